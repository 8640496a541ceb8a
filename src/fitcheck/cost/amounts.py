"""Numbers as people type them into options, each refused with its option named where it makes no sense."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from fitcheck.errors import UsageError
from fitcheck.units import parse_volume

MAX_TOKENS = 10**15
MAX_MONTHS = 1200
MAX_AMOUNT = Decimal(10**9)
MIN_POSITIVE = Decimal("0.000001")
_MONEY = re.compile(r"^\s*(?P<before>[^\d\s.+\-]*)\s*(?P<number>[^\s]*?)\s*(?P<after>[^\d\s.]*)\s*$")
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
_DOLLARS = {"", "$", "US$", "USD"}


def read_tokens(value: str | int, option: str, *, at_least: int = 0) -> int:
    """A count of tokens such as `50M` or `0`. Raises `UsageError`."""
    text = str(value)
    if at_least == 0 and text.strip() == "0":
        return 0
    try:
        tokens = parse_volume(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", hint=error.hint) from error
    if tokens > MAX_TOKENS:
        raise UsageError(f"{option}: {text!r} is more than {MAX_TOKENS:,} tokens", hint=f"write {option} with fewer")
    return tokens


def read_whole(value: str | int | None, option: str, *, at_least: int, at_most: int) -> int | None:
    """A whole number within bounds, None where it was not given. Raises `UsageError`."""
    if value is None:
        return None
    text = str(value).strip()
    if not re.fullmatch(r"[+-]?[0-9]{1,12}", text) or not at_least <= int(text) <= at_most:
        raise UsageError(f"{option}: {text!r} is not a whole number from {at_least:,} to {at_most:,}", hint=f"write {option} 36")
    return int(text)


def read_amount(
    value: str | Decimal | None, option: str, *, currency: bool = False, above_zero: bool = False, at_most: Decimal = MAX_AMOUNT
) -> Decimal | None:
    """A finite number from 0 (or just above) on, None where it was not given. `currency` admits `$` and `USD` beside it, and no other.

    Raises `UsageError`: amounts in different currencies are never mixed.
    """
    if value is None:
        return None
    text = str(value).strip()
    match = _MONEY.match(text)
    digits = text
    if currency and match is not None and (match["before"] or match["after"]) and match["number"]:
        digits = match["number"]
        for unit in (match["before"], match["after"]):
            if unit.upper() not in _DOLLARS:
                raise UsageError(
                    f"{option}: {text!r} is in {unit}, and prices here are in USD", hint="give it in USD: nothing is converted"
                )
    if _THOUSANDS.fullmatch(digits):
        digits = digits.replace(",", "")
    try:
        number = Decimal(digits)
    except InvalidOperation as error:
        raise UsageError(f"{option}: cannot read {text!r} as a number", hint=f"write {option} with a plain number such as 0.17") from error
    if not number.is_finite():
        raise UsageError(f"{option}: {text!r} is not a finite number", hint=f"write {option} with a plain number")
    if number < 0 or (above_zero and number < MIN_POSITIVE) or number > at_most:
        low = "above 0" if above_zero else "0 or more"
        raise UsageError(f"{option}: {text!r} is out of range", hint=f"write {option} with a number {low}, at most {at_most:,f}")
    return number
