"""What providers charge: schedules, holiday calendars, dated prices, workload profiles."""

# Annotations are evaluated as they stand (no `from __future__ import annotations`): pydantic would compile each text again at start-up.

from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fitcheck.catalogue.provenance import Cited, Instant, Record, Source, Status

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Money = Annotated[Decimal, Field(ge=0)]


class Window(Record):
    """Hours of the day on some weekdays, in the schedule's own zone; start inclusive, end exclusive.

    A window whose end is not after its start wraps past midnight and belongs to the day it starts on.
    """

    days: tuple[Weekday, ...] = Field(min_length=1)
    start: time
    end: time


class ScheduleRule(Cited):
    """The windows in force from an instant on, until the next rule. No windows: the base price all day."""

    since: Instant = Field(alias="from")
    windows: tuple[Window, ...]
    holidays: str | None = None
    """Id of a calendar whose days have no windows at all."""


class Schedule(Record):
    """When a price other than the base price applies, in the provider's own zone."""

    kind: Literal["schedule"]
    id: str
    timezone: str
    window_name: Literal["peak", "offpeak"] = "peak"
    """What the windows are: peak hours on an off-peak base, or a cheap window on a full-price base."""
    rules: tuple[ScheduleRule, ...] = Field(min_length=1)
    sources: dict[str, Source]
    note: str | None = None


class Calendar(Record):
    """Public holidays, known up to and including `known_until`."""

    kind: Literal["calendar"]
    id: str
    name: str
    days: tuple[date, ...]
    known_until: date
    source: str
    sources: dict[str, Source]
    note: str | None = None


class TokenPrices(Record):
    """Money per million tokens. Absent is unknown, never free."""

    input_per_mtok: Money
    cached_input_per_mtok: Money | None = None
    output_per_mtok: Money


class Tier(TokenPrices):
    """Prices for requests whose input is longer than `above_input_tokens`; the whole request is charged at the tier."""

    above_input_tokens: Annotated[int, Field(gt=0)]


class PricePeriod(Cited):
    """Prices in force from an instant (inclusive) until another (exclusive).

    `peak` is absent where the price does not depend on the hour. `since` is absent where nobody recorded when the price began: it
    then counts from the day its source was read.
    """

    since: Instant | None = Field(default=None, alias="from")
    until: Instant | None = None
    status: Status = Status.EFFECTIVE
    promotion: bool = False
    offpeak: TokenPrices
    peak: TokenPrices | None = None
    schedule: str | None = None
    tiers: tuple[Tier, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.since and self.until and self.since >= self.until:
            raise ValueError("the period ends before it starts")
        if (self.peak is None) != (self.schedule is None):
            raise ValueError("a peak price and a schedule go together")
        return self


class Served(Cited):
    """Which model answers under this name from an instant on; None where it is not in the catalogue."""

    model: str | None
    since: Instant | None = Field(default=None, alias="from")


class Rate(Record):
    """What a provider charges under one name of its own. The id is `provider/vendor-api-id`."""

    kind: Literal["rate"]
    id: str = Field(pattern=r"^[a-z0-9.\-]+/\S+$")
    provider: str
    name: str
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    available_from: Instant | None = None
    """When the name began to work, where it is known. Before it, there is no price."""
    serves: tuple[Served, ...] = ()
    periods: tuple[PricePeriod, ...] = Field(min_length=1)
    sources: dict[str, Source]
    note: str | None = None

    def model_at(self, moment: datetime) -> str | None:
        """Id of the model that answers at an instant, as far as the catalogue knows."""
        begun = [entry for entry in self.serves if entry.since is None or entry.since <= moment]
        return begun[-1].model if begun else None


class Profile(Cited):
    """How a volume splits into fresh input, cached input and output; the three shares add up to 1."""

    kind: Literal["profile"]
    id: str
    name: str
    input_share: Annotated[Decimal, Field(ge=0, le=1)]
    cached_share: Annotated[Decimal, Field(ge=0, le=1)]
    output_share: Annotated[Decimal, Field(ge=0, le=1)]
    caveats: tuple[str, ...] = ()
    """What an answer that rests on the split must say."""
    sources: dict[str, Source]

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.input_share + self.cached_share + self.output_share != 1:
            raise ValueError("the shares of input, cached input and output must add up to 1")
        return self


class Assumption(Cited):
    """A default that an answer may rest on, such as the price of electricity; `unit` is part of the value."""

    kind: Literal["assumption"]
    id: str
    name: str
    value: Decimal
    unit: str
    sources: dict[str, Source]
