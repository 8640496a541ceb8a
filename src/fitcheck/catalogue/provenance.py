"""Where a figure comes from: sources, grades, dated events.

Each record carries its own `sources`, a table of short names; a figure names the ones it rests on. So one record can be read and
judged by itself, and an answer can cite exactly what it used.
"""

# Annotations are evaluated as they stand (no `from __future__ import annotations`): pydantic would compile each text again at start-up.

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fitcheck.errors import UsageError
from fitcheck.units import counted_from, parse_bytes, parse_instant


class Record(BaseModel):
    """A frozen, closed record. Building its validator is put off until the first use, so commands pay only for what they read."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Grade(StrEnum):
    """How a number is known, best first. An answer is as good as its worst input."""

    MEASURED = "measured"
    PUBLISHED = "published"
    DERIVED = "derived"
    ESTIMATED = "estimated"
    ASSUMED = "assumed"

    @property
    def rank(self) -> int:
        """0 for the best grade."""
        return list(Grade).index(self)


def worst(grades: list[Grade]) -> Grade:
    """The grade of a result that rests on figures of these grades."""
    return max(grades, key=lambda grade: grade.rank, default=Grade.ASSUMED)


class Status(StrEnum):
    """What state a dated event puts its subject in."""

    ANNOUNCED = "announced"
    EFFECTIVE = "effective"
    WITHDRAWN = "withdrawn"


def _day_or_month(text: str) -> str:
    counted_from(text)
    return text


def _bytes_from_text(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_bytes(value)
    except UsageError as error:
        raise ValueError(error.message) from error


def _tuple_of_one(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _instant(value: Any) -> Any:
    return parse_instant(value) if isinstance(value, str) else value


DayOrMonth = Annotated[str, AfterValidator(_day_or_month)]
"""`2026-09-10`, or `2026-09` where the day is not known; a month counts from its end."""

Instant = Annotated[datetime, BeforeValidator(_instant)]
"""A moment with its zone, kept in UTC."""

Bytes = Annotated[int, BeforeValidator(_bytes_from_text), Field(ge=0)]
"""A size: an integer of bytes where it is exact, or text with a unit (`"164 GiB"`) where it was printed rounded."""

SourceKeys = Annotated[tuple[str, ...], BeforeValidator(_tuple_of_one), Field(min_length=1)]
"""One or more names from the record's `sources`."""


class Source(Record):
    """An address and the day it was read there, or through the copy that `via` names."""

    url: str = Field(pattern=r"^(https?://|github:|pypi:|npm:|file:)\S+$")
    read: date
    title: str | None = None
    via: str | None = None


class Cited(Record):
    """Anything that rests on sources and has a grade."""

    source: SourceKeys
    grade: Grade = Grade.PUBLISHED
    note: str | None = None


class BytesFigure(Cited):
    """A size. `printed` is how the source wrote it, where that was rounded."""

    value: Bytes
    printed: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _keep_what_was_printed(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("value"), str) and "printed" not in data:
            return {**data, "printed": data["value"]}
        return data


class CountFigure(Cited):
    """A whole number of something (parameters, tokens)."""

    value: int = Field(ge=0)


class NumberFigure(Cited):
    """A decimal number (watts, bits per weight, a score)."""

    value: Decimal


class DayFigure(Cited):
    """A day or month."""

    value: DayOrMonth


class Event(Cited):
    """From `from` on, the subject has this status."""

    status: Status
    since: DayOrMonth = Field(alias="from")


def status_on(events: tuple[Event, ...], day: date) -> Event | None:
    """The event in force on a day: the latest one that has begun, or None before the first."""
    begun = [event for event in events if counted_from(event.since) <= day]
    return max(begun, key=lambda event: counted_from(event.since), default=None)
