"""A month's work: how a volume of tokens splits into fresh input, cached input and output.

A volume is not a workload: the same tokens cost many times more as output than as cached input. So the split is part of every answer,
with where it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from fitcheck.catalogue.provenance import Grade
from fitcheck.catalogue.ratecards import Profile
from fitcheck.cost.tariff import Tokens
from fitcheck.errors import UsageError
from fitcheck.fit.report import CitedSource
from fitcheck.fit.sources import cite
from fitcheck.frozen import frozen


@frozen
class Workload:
    """Tokens of one month; the three parts add up to the total exactly.

    `request_input_tokens` is the input of a typical request where it was given: prices that depend on it then apply.
    """

    total_tokens: int
    fresh_input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    split_from: str
    grade: Grade
    sources: tuple[CitedSource, ...] = ()
    note: str | None = None
    request_input_tokens: int | None = None
    caveats: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[tuple[str, int, Decimal], ...]:
        """Each part's name, tokens, and share of the total."""
        counts = (("fresh input", self.fresh_input_tokens), ("cached input", self.cached_input_tokens), ("output", self.output_tokens))
        return tuple((name, tokens, Decimal(tokens) / self.total_tokens) for name, tokens in counts)

    def without_cache(self) -> Workload:
        """The same work with all input fresh."""
        return replace(self, fresh_input_tokens=self.fresh_input_tokens + self.cached_input_tokens, cached_input_tokens=0)

    def with_cache_hits(self, share: Decimal) -> Workload:
        """The same work where only that share of the cached input is in the cache, and the rest is fresh."""
        hits = int((self.cached_input_tokens * share).to_integral_value())
        missed = self.cached_input_tokens - hits
        return replace(self, fresh_input_tokens=self.fresh_input_tokens + missed, cached_input_tokens=hits)

    def times(self, factor: int) -> Workload:
        """So many times the work."""
        counts = ("total_tokens", "fresh_input_tokens", "cached_input_tokens", "output_tokens")
        return replace(self, **{name: getattr(self, name) * factor for name in counts})


def largest_remainder(total: int, weights: Sequence[Decimal | int]) -> tuple[int, ...]:
    """A total in whole parts in proportion to the weights: each rounded down, the rest to those that lost most, the first where equal.

    The parts add up to the total. Raises `ValueError` where no weight is above 0.
    """
    fractions = [Fraction(weight) for weight in weights]
    everything = sum(fractions)
    if everything <= 0:
        raise ValueError("no weight is above 0")
    exact = [total * weight / everything for weight in fractions]
    parts = [int(share) for share in exact]
    by_loss = sorted(range(len(weights)), key=lambda index: parts[index] - exact[index])
    for index in by_loss[: total - sum(parts)]:
        parts[index] += 1
    return tuple(parts)


def from_profile(total_tokens: int, profile: Profile) -> Workload:
    """A volume split by the shares of a profile."""
    fresh, cached, output = largest_remainder(total_tokens, (profile.input_share, profile.cached_share, profile.output_share))
    return Workload(
        total_tokens=total_tokens,
        fresh_input_tokens=fresh,
        cached_input_tokens=cached,
        output_tokens=output,
        split_from=f"profile {profile.id}",
        grade=profile.grade,
        sources=cite(profile.sources, profile),
        note=profile.note,
        caveats=profile.caveats,
    )


def from_request(total_tokens: int, request: Tokens) -> Workload:
    """A volume split in the proportion of a typical request's tokens. Raises `UsageError` for a request of no tokens."""
    if request.input + request.output == 0:
        raise UsageError("--input and --output are both 0", hint="give the tokens of a typical request, such as --input 3000 --output 500")
    fresh, cached, output = largest_remainder(total_tokens, (request.fresh, request.cached, request.output))
    cached_words = f" ({request.cached:,} of them cached)" if request.cached else ""
    return Workload(
        total_tokens=total_tokens,
        fresh_input_tokens=fresh,
        cached_input_tokens=cached,
        output_tokens=output,
        split_from=f"requests as given: {request.input:,} tokens in{cached_words}, {request.output:,} out",
        grade=Grade.ASSUMED,
        request_input_tokens=request.input,
    )
