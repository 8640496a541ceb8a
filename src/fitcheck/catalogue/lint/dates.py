"""Dates against the catalogue's own day, which `data/VERSION` holds, and against the day a model was released."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path

from fitcheck.catalogue import load
from fitcheck.catalogue.hardware import Price
from fitcheck.catalogue.lint.findings import Finding
from fitcheck.catalogue.lint.shelf import Entry, Rule, Shelf, Where, parts
from fitcheck.catalogue.models import Model, Score
from fitcheck.catalogue.provenance import DayFigure, DayOrMonth, Event, Record, Source, Status
from fitcheck.catalogue.recipes import Recipe
from fitcheck.errors import DataError
from fitcheck.units import counted_from

LATER = timedelta(days=731)
"""How long after the installed catalogue's day a file of others may be written: nothing but that day is known of today."""

EARLY = timedelta(days=1)
"""Time zones: what is out in California in the evening has tomorrow's date in China."""


def last_days(paths: Iterable[str]) -> dict[str, date]:
    """The last day that a file can know of: the catalogue's own for its files, two years later for those of others."""
    try:
        folder = load.data_folder().resolve()
        year, month, day = (folder / "VERSION").read_text(encoding="utf-8").strip().split(".")[:3]
        known = date(int(year), int(month), int(day))
    except (DataError, OSError, ValueError):
        return {}
    return {path: known if _inside(path, folder) else known + LATER for path in paths}


def _inside(path: str, folder: Path) -> bool:
    try:
        return Path(path).resolve().parent == folder
    except (OSError, RuntimeError, ValueError):
        return False


def earliest(day_or_month: DayOrMonth) -> date:
    """The first day that a date can mean: a month begins on its first."""
    return counted_from(day_or_month) if len(day_or_month) > len("2026-09") else counted_from(day_or_month).replace(day=1)


def _dated(record: Record) -> Iterator[tuple[Where, date]]:
    """Every day on which something was read or took place. What is only announced may lie ahead, and so may prices by the token."""
    for where, part in parts(record):
        match part:
            case Source():
                yield (*where, "read"), part.read
            case DayFigure():
                yield (*where, "value"), earliest(part.value)
            case Score() | Recipe():
                yield (*where, "date"), earliest(part.date)
            case Event() if part.status is not Status.ANNOUNCED:
                yield (*where, "from"), earliest(part.since)
            case Price() if part.kind != "announced":
                yield (*where, "from"), earliest(part.since)


def unread_yet(entry: Entry[Record], shelf: Shelf) -> Iterator[Finding]:
    """FC115: read or begun on a day that was still to come."""
    last = shelf.last_days.get(entry.block.path)
    for where, day in _dated(entry.record):
        if last is not None and day > last:
            yield entry.finding("FC115", f"{day} is after {last}", where)


def before_release(day_or_month: DayOrMonth, model: Model) -> bool:
    """Whether something is dated before its model was out, whatever day its month or the model's means."""
    return earliest(model.released.value) - counted_from(day_or_month) > EARLY


def early_checkpoint(entry: Entry[Model], _: Shelf) -> Iterator[Finding]:
    """FC214: a build of a model that was not there."""
    for index, checkpoint in enumerate(entry.record.checkpoints):
        for number, event in enumerate(checkpoint.events):
            if event.status is not Status.ANNOUNCED and before_release(event.since, entry.record):
                message = f"{checkpoint.id} is dated {event.since}; the model was released {entry.record.released.value}"
                yield entry.finding("FC214", message, ("checkpoints", index, "events", number, "from"))


EVERY_RECORD: tuple[Rule[Record], ...] = (unread_yet,)
MODEL_RULES: tuple[Rule[Model], ...] = (early_checkpoint,)
