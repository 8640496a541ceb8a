"""What tokens cost at an instant, and on average over a week's load.

A rate card is a list of dated periods; each has a base price and may have another for the windows of a schedule, which lives in the
provider's own zone. A name is valid from its first date on; what is not known is refused, never taken as zero.
"""

from __future__ import annotations

from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Literal
from zoneinfo import ZoneInfo

from fitcheck.catalogue.provenance import Status
from fitcheck.catalogue.ratecards import Calendar, PricePeriod, Rate, Schedule, ScheduleRule, Tier, TokenPrices
from fitcheck.cost.hours import Hours, divide
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.frozen import frozen
from fitcheck.units import format_instant

MTOK = 1_000_000


@frozen
class Tokens:
    """Tokens of a request or a month. `cached` is the part of `input` that is read from cache."""

    input: int
    output: int
    cached: int = 0

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            if getattr(self, name) < 0:
                raise UsageError(f"--{name} is negative: {getattr(self, name)}", hint=f"write --{name} with 0 or more tokens")
        if self.cached > self.input:
            raise UsageError(
                f"--cached ({self.cached:,}) is more than --input ({self.input:,})",
                hint="--cached is the part of --input that is read from cache",
            )

    @property
    def fresh(self) -> int:
        """Input that is not read from cache."""
        return self.input - self.cached


@frozen
class Tariff:
    """A rate with the schedules and calendars it names, by their ids."""

    rate: Rate
    schedules: dict[str, Schedule]
    calendars: dict[str, Calendar]


@frozen
class Priced:
    """What tokens cost at an instant: the sum, its parts, the unit prices and why they are the ones."""

    amount: Decimal
    currency: str
    fresh_input: Decimal
    cached_input: Decimal
    output: Decimal
    prices: TokenPrices
    hour: Literal["peak", "offpeak", "flat"]
    period: PricePeriod
    tier_above_input_tokens: int | None
    served_by: str | None
    warnings: tuple[str, ...]


def begins(rate: Rate, period: PricePeriod) -> datetime:
    """From when a period counts: its date, else the day on which the first of its sources was read."""
    if period.since is not None:
        return period.since
    read = min(rate.sources[key].read for key in period.source if key in rate.sources)
    return datetime.combine(read, time(0), UTC)


def period_at(rate: Rate, moment: datetime) -> PricePeriod | None:
    """The period in force at an instant, or None: start inclusive, end exclusive, of several that hold the latest to begin.

    Announced and withdrawn prices are never in force, and no price is before the name itself.
    """
    if rate.available_from is not None and moment < rate.available_from:
        return None
    effective = (period for period in rate.periods if period.status is Status.EFFECTIVE)
    in_force = [period for period in effective if begins(rate, period) <= moment and (period.until is None or moment < period.until)]
    return max(in_force, key=lambda period: begins(rate, period), default=None)


def first_known(rate: Rate) -> datetime | None:
    """The first instant at which a price of the name is known, None where none ever took effect."""
    known = [begins(rate, period) for period in rate.periods if period.status is Status.EFFECTIVE]
    if not known:
        return None
    return max(min(known), rate.available_from) if rate.available_from is not None else min(known)


def demand_period(rate: Rate, moment: datetime) -> PricePeriod:
    """As `period_at`; raises `UnknownFact` where there is none, with the first date of the name or of its prices."""
    period = period_at(rate, moment)
    if period is not None:
        return period
    effective = [known for known in rate.periods if known.status is Status.EFFECTIVE]
    asked = format_instant(moment)
    if rate.available_from is not None and moment < rate.available_from:
        first, words = rate.available_from, "is valid"
    elif effective:
        first = min(begins(rate, known) for known in effective)
        words = "has a price that is known" if rate.available_from or not any(known.since for known in effective) else "is valid"
    else:
        raise UnknownFact(f"no price of {rate.id} has ever been in force", hint=f"'fitcheck rates {rate.id}' shows what was announced")
    if moment < first:
        start = format_instant(first)
        raise UnknownFact(f"{rate.id} {words} only from {start} on, so it has no price at {asked}", hint=f"ask for {start} or later")
    raise UnknownFact(f"no price of {rate.id} is known at {asked}", hint=f"'fitcheck rates {rate.id}' shows its history")


def rule_at(schedule: Schedule, moment: datetime) -> ScheduleRule | None:
    """The rule in force at an instant: the latest that has begun."""
    begun = [rule for rule in schedule.rules if rule.since <= moment]
    return max(begun, key=lambda rule: rule.since, default=None)


def window_hours(tariff: Tariff, schedule_id: str, moment: datetime, *, with_holidays: bool) -> Hours:
    """The windows of a schedule in force at an instant, holidays taken out where asked."""
    schedule = tariff.schedules[schedule_id]
    rule = rule_at(schedule, moment)
    zone = ZoneInfo(schedule.timezone)
    if rule is None:
        return Hours(zone, ())
    days = tariff.calendars[rule.holidays].days if with_holidays and rule.holidays else ()
    return Hours(zone, rule.windows, frozenset(days))


def is_peak(tariff: Tariff, period: PricePeriod, moment: datetime) -> bool:
    """Whether the peak price applies: inside peak windows, or outside the windows of a schedule that names the cheap hours."""
    if period.schedule is None:
        return False
    inside = window_hours(tariff, period.schedule, moment, with_holidays=True).contains(moment)
    return inside == (tariff.schedules[period.schedule].window_name == "peak")


def price(tariff: Tariff, at: datetime, tokens: Tokens) -> Priced:
    """What these tokens cost at an instant, as one request. Raises `UnknownFact` where a price that is needed is not known."""
    rate = tariff.rate
    period = demand_period(rate, at)
    peak = is_peak(tariff, period, at)
    chosen = period.peak if peak and period.peak is not None else period.offpeak
    tier = tier_for(period, tokens.input)
    prices: TokenPrices = tier or chosen
    fresh, cached, output = amounts(rate, prices, tokens)
    return Priced(
        amount=fresh + cached + output,
        currency=rate.currency,
        fresh_input=fresh,
        cached_input=cached,
        output=output,
        prices=prices,
        hour=("peak" if peak else "offpeak") if period.schedule else "flat",
        period=period,
        tier_above_input_tokens=tier.above_input_tokens if tier else None,
        served_by=rate.model_at(at),
        warnings=holiday_warnings(tariff, period, at),
    )


def tier_for(period: PricePeriod, request_input_tokens: int) -> Tier | None:
    """The tier that a request with this much input is charged at, as a whole; None below the first."""
    reached = [tier for tier in period.tiers if request_input_tokens > tier.above_input_tokens]
    return max(reached, key=lambda tier: tier.above_input_tokens, default=None)


def amounts(rate: Rate, prices: TokenPrices, tokens: Tokens) -> tuple[Decimal, Decimal, Decimal]:
    """Money for fresh input, cached input and output. Raises `UnknownFact` where cached input has no known price."""
    if tokens.cached and prices.cached_input_per_mtok is None:
        raise UnknownFact(f"{rate.id} has no known price for cached input", hint="ask with --cached 0 to charge all input as fresh")
    cached_price = prices.cached_input_per_mtok or Decimal(0)
    return prices.input_per_mtok * tokens.fresh / MTOK, cached_price * tokens.cached / MTOK, prices.output_per_mtok * tokens.output / MTOK


def holiday_warnings(tariff: Tariff, period: PricePeriod, at: datetime) -> tuple[str, ...]:
    """A warning where the instant lies past the holidays that are known, so that a holiday may be charged as a working day."""
    if period.schedule is None:
        return ()
    schedule = tariff.schedules[period.schedule]
    rule = rule_at(schedule, at)
    if rule is None or rule.holidays is None:
        return ()
    calendar = tariff.calendars[rule.holidays]
    local_day = at.astimezone(ZoneInfo(schedule.timezone)).date()
    if local_day <= calendar.known_until:
        return ()
    return (
        f"{calendar.name} are known to {calendar.known_until.isoformat()} only: {local_day.isoformat()} is charged as a day like others",
    )


@frozen
class WeekSplit:
    """How a load's hours in a week divide into peak and off-peak ones, in hours."""

    peak_hours: Decimal
    offpeak_hours: Decimal

    @property
    def peak_share(self) -> Decimal:
        """The share of the load that pays the peak price; 0 for a load of no hours."""
        total = self.peak_hours + self.offpeak_hours
        return self.peak_hours / total if total else Decimal(0)


def week_split(tariff: Tariff, period: PricePeriod, moment: datetime, load: Hours | None) -> WeekSplit:
    """A usual week's split by the rule in force at an instant: no holidays, the clocks as in the week of that day (UTC).

    Without a schedule all hours are off-peak.
    """
    windows = window_hours(tariff, period.schedule, moment, with_holidays=False) if period.schedule else None
    inside, outside = (Decimal(int(part.total_seconds())) / 3600 for part in divide(load, windows, moment.astimezone(UTC).date()))
    if period.schedule and tariff.schedules[period.schedule].window_name == "offpeak":
        inside, outside = outside, inside
    return WeekSplit(peak_hours=inside, offpeak_hours=outside)


def blend(peak: Decimal, offpeak: Decimal, split: WeekSplit) -> Decimal:
    """The average of two prices over a week's load, exact where it has an end; the off-peak price for a load of no hours."""
    hours = split.peak_hours + split.offpeak_hours
    return (peak * split.peak_hours + offpeak * split.offpeak_hours) / hours if hours else offpeak
