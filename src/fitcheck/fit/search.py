"""The longest context and the most users that still fit, by bisection on the real ledger."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from fitcheck.fit.case import MAX_USERS
from fitcheck.fit.ledger import Plan
from fitcheck.fit.report import Verdict

TIGHT_SHARE = Fraction(5, 100)
"""A fit that leaves less than this share of usable memory is `tight`."""


def largest(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number from 0 to `limit` that fits, for a `fits` that once false stays false."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def judge(total_bytes: int, usable_bytes: int) -> Verdict:
    """The arithmetic verdict of one device."""
    headroom = usable_bytes - total_bytes
    if headroom < 0:
        return Verdict.NO
    return Verdict.TIGHT if headroom < TIGHT_SHARE * usable_bytes else Verdict.FITS


def longest_context(plan: Plan, users: int) -> int:
    """The longest context, up to the model's maximum, at which `users` fit; 0 when not even one token does."""
    architecture = plan.case.model.architecture
    maximum = architecture.max_context_tokens if architecture else 0
    return largest(maximum, lambda tokens: plan.total_bytes(tokens, users) <= plan.budget.bytes)


def most_users(plan: Plan, tokens: int) -> int:
    """The most users, each with a context of `tokens`, that fit; 0 when not even one does."""

    def fits(users: int) -> bool:
        return plan.total_bytes(tokens, users) <= plan.budget.bytes

    limit = 1
    while limit < MAX_USERS and fits(limit):
        limit *= 4
    return largest(min(limit, MAX_USERS), fits)
