"""Token prices, schedules and calendars."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time
from itertools import combinations, pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

from fitcheck.catalogue.hardware import Price
from fitcheck.catalogue.lint.findings import Finding
from fitcheck.catalogue.lint.shelf import Entry, Rule, Shelf, Where, parts
from fitcheck.catalogue.provenance import Record, Status
from fitcheck.catalogue.ratecards import Calendar, PricePeriod, Rate, Schedule, TokenPrices
from fitcheck.units import counted_from, format_instant

_EVER = datetime.max.replace(tzinfo=UTC)
_MONEY = ("input_per_mtok", "cached_input_per_mtok", "output_per_mtok")


class _Span(NamedTuple):
    at: int
    since: datetime
    until: datetime
    status: Status


def _begin(rate: Rate, period: PricePeriod) -> datetime | None:
    """When a period counts from: without `from` it is the day on which its source was read, and None where that is not known."""
    if period.since is not None:
        return period.since
    read = [rate.sources[key].read for key in period.source if key in rate.sources]
    return datetime.combine(min(read), time(), UTC) if read else None


def _spans(rate: Rate) -> list[_Span]:
    begun = [(index, _begin(rate, period), period) for index, period in enumerate(rate.periods)]
    return [_Span(index, since, period.until or _EVER, period.status) for index, since, period in begun if since is not None]


def overlapping_periods(entry: Entry[Rate], _: Shelf) -> Iterator[Finding]:
    """FC301: two prices in force at one instant. Periods are half-open; withdrawn ones bind nobody."""
    live = [span for span in _spans(entry.record) if span.status is not Status.WITHDRAWN]
    for one, other in combinations(live, 2):
        if one.status is other.status and one.since < other.until and other.since < one.until:
            message = f"from {format_instant(max(one.since, other.since))} on, periods {one.at + 1} and {other.at + 1} both hold"
            yield entry.finding("FC301", message, ("periods", other.at))


def dead_period(entry: Entry[Rate], _: Shelf) -> Iterator[Finding]:
    """FC312: a period that ends before it counts."""
    for span in _spans(entry.record):
        if span.since >= span.until:
            message = f"period {span.at + 1} ends {format_instant(span.until)}, but counts from {format_instant(span.since)}"
            yield entry.finding("FC312", message, ("periods", span.at))


def endless_promotion(entry: Entry[Rate], _: Shelf) -> Iterator[Finding]:
    """FC302: a promotion without `until` would be taken for the ordinary price for ever."""
    for index, period in enumerate(entry.record.periods):
        if period.promotion and period.until is None:
            yield entry.finding("FC302", f"period {index + 1} is a promotion without until", ("periods", index))


def dear_cache(entry: Entry[Rate], _: Shelf) -> Iterator[Finding]:
    """FC303: off-peak, peak and tiers alike."""
    for where, part in parts(entry.record):
        if isinstance(part, TokenPrices) and part.cached_input_per_mtok is not None and part.cached_input_per_mtok > part.input_per_mtok:
            message = f"cached input {part.cached_input_per_mtok}, fresh input {part.input_per_mtok}"
            yield entry.finding("FC303", message, (*where, "cached_input_per_mtok"))


def cheap_peak(entry: Entry[Rate], _: Shelf) -> Iterator[Finding]:
    """FC304: any of the peak prices below its off-peak price."""
    for index, period in enumerate(entry.record.periods):
        for field in _MONEY if period.peak is not None else ():
            base, peak = getattr(period.offpeak, field), getattr(period.peak, field)
            if base is not None and peak is not None and peak < base:
                yield entry.finding("FC304", f"{field} is {peak} at peak, {base} off-peak", ("periods", index, "peak", field))


def free_price(entry: Entry[Record], _: Shelf) -> Iterator[Finding]:
    """FC305: token prices, device prices and rents."""
    for where, part in parts(entry.record):
        fields = _MONEY if isinstance(part, TokenPrices) else ("amount",) if isinstance(part, Price) else ()
        for field in fields:
            if getattr(part, field) == 0:
                yield entry.finding("FC305", f"{field} is 0", (*where, field))


def tier_order(entry: Entry[Rate], _: Shelf) -> Iterator[Finding]:
    """FC311: tiers go from short to long."""
    for index, period in enumerate(entry.record.periods):
        for number, (one, other) in enumerate(pairwise(period.tiers), start=1):
            if other.above_input_tokens <= one.above_input_tokens:
                message = f"a tier above {other.above_input_tokens:,} tokens after one above {one.above_input_tokens:,}"
                yield entry.finding("FC311", message, ("periods", index, "tiers", number))


def served_order(entry: Entry[Rate], _: Shelf) -> Iterator[Finding]:
    """FC313: the last entry that has begun is the one that answers, so they stand in order; only the first may lack `from`."""
    for index, (one, other) in enumerate(pairwise(entry.record.serves), start=1):
        if other.since is None or (one.since is not None and other.since <= one.since):
            yield entry.finding("FC313", f"entry {index + 1} does not begin after entry {index}", ("serves", index))


def rule_order(entry: Entry[Schedule], _: Shelf) -> Iterator[Finding]:
    """FC306: each rule holds until the next."""
    for index, (one, other) in enumerate(pairwise(entry.record.rules), start=1):
        if other.since <= one.since:
            message = f"a rule from {format_instant(other.since)} after one from {format_instant(one.since)}"
            yield entry.finding("FC306", message, ("rules", index))


def unknown_zone(entry: Entry[Schedule], _: Shelf) -> Iterator[Finding]:
    """FC307: a zone that the time zone database does not have."""
    try:
        ZoneInfo(entry.record.timezone)
    except (KeyError, ValueError, OSError):
        yield entry.finding("FC307", f"unknown time zone {entry.record.timezone!r}", ("timezone",))


def empty_window(entry: Entry[Schedule], _: Shelf) -> Iterator[Finding]:
    """FC308: as windows wrap past midnight, equal ends could mean none or all of the day."""
    for number, rule in enumerate(entry.record.rules):
        for index, window in enumerate(rule.windows):
            if window.start == window.end:
                where: Where = ("rules", number, "windows", index)
                yield entry.finding("FC308", f"{window.start:%H:%M} to {window.end:%H:%M}", where)


def holidays(entry: Entry[Calendar], _: Shelf) -> Iterator[Finding]:
    """FC309, FC310: each day once, and none past what is known."""
    seen = set()
    for index, day in enumerate(entry.record.days):
        if day in seen:
            yield entry.finding("FC309", f"{day} comes twice", ("days", index))
        if day > entry.record.known_until:
            yield entry.finding("FC310", f"{day} lies after known_until {entry.record.known_until}", ("days", index))
        seen.add(day)


def bought_price(entry: Entry[Record], _: Shelf) -> Iterator[Finding]:
    """FC312, FC314: prices of things: none that ends before it begins, no two of one sort from the same day."""
    first: dict[tuple[object, ...], Where] = {}
    for where, part in parts(entry.record):
        if not isinstance(part, Price):
            continue
        if part.until is not None and counted_from(part.until) <= counted_from(part.since):
            yield entry.finding("FC312", f"a price ends {part.until}, but counts from {part.since}", where)
        sort = (where[:-1], part.kind, part.currency, part.seller, counted_from(part.since))
        if where[0] == "prices" and first.setdefault(sort, where) != where:
            yield entry.finding("FC314", f"a second {part.kind} price from {part.since}", where)


EVERY_RECORD: tuple[Rule[Record], ...] = (free_price, bought_price)
RATE_RULES: tuple[Rule[Rate], ...] = (
    overlapping_periods,
    dead_period,
    endless_promotion,
    dear_cache,
    cheap_peak,
    tier_order,
    served_order,
)
SCHEDULE_RULES: tuple[Rule[Schedule], ...] = (rule_order, unknown_zone, empty_window)
CALENDAR_RULES: tuple[Rule[Calendar], ...] = (holidays,)
