"""The records that lint reads: each with the lines of its parts, all together on a shelf where references are looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Generic, TypeVar, cast

from pydantic import BaseModel

from fitcheck.catalogue.lint.findings import MEANINGS, Finding
from fitcheck.catalogue.load import line_of
from fitcheck.catalogue.provenance import Record
from fitcheck.catalogue.text import Block

Where = tuple[str | int, ...]
R_co = TypeVar("R_co", bound=Record, covariant=True)
R = TypeVar("R", bound=Record)


def found(finding_id: str, message: str, path: str, line: int) -> Finding:
    """A finding with the severity and hint of its id."""
    known = MEANINGS[finding_id]
    return Finding(finding_id, known.severity, message, path, line, known.hint)


@dataclass(frozen=True)
class Entry(Generic[R_co]):
    """A sound record: typed, with its text and the line of each of its parts."""

    kind: str
    id: str
    block: Block
    record: R_co
    lines: dict[Where, int]

    def line(self, where: Where = ()) -> int:
        """The line of a part, or of the innermost part around it that stands in the text."""
        return line_of((self.id, *where), self.lines, self.block.line)

    def finding(self, finding_id: str, message: str, where: Where = ()) -> Finding:
        """A finding about a part of this record."""
        return found(finding_id, f"{self.id}: {message}", self.block.path, self.line(where))


@dataclass(frozen=True)
class Shelf:
    """Every record in force. `ids` also holds those of broken records, so that one mistake is not reported twice."""

    entries: tuple[Entry[Record], ...]
    ids: Mapping[str, frozenset[str]]
    last_days: Mapping[str, date] = field(default_factory=dict)
    """By file, the last day of which it can know."""

    @cached_property
    def _by_id(self) -> dict[tuple[type[Record], str], Record]:
        return {(type(entry.record), entry.id): entry.record for entry in self.entries}

    def of(self, record_type: type[R]) -> list[Entry[R]]:
        """The sound records of a type."""
        return [cast("Entry[R]", entry) for entry in self.entries if isinstance(entry.record, record_type)]

    def find(self, record_type: type[R], record_id: str) -> R | None:
        """The sound record of this type and id, or None."""
        record = self._by_id.get((record_type, record_id))
        return record if isinstance(record, record_type) else None

    def has(self, kind: str, record_id: str) -> bool:
        """Whether there is a record of this kind and id, sound or not."""
        return record_id in self.ids.get(kind, frozenset())


Rule = Callable[[Entry[R], Shelf], Iterator[Finding]]
"""Looks at one record, with the others at hand."""

ShelfRule = Callable[[Shelf], Iterator[Finding]]
"""Looks at all records at once."""


def parts(value: object, at: Where = ()) -> Iterator[tuple[Where, BaseModel]]:
    """A record and every record inside it, each with its path of keys as written in the file."""
    if isinstance(value, BaseModel):
        yield at, value
    for step, child in _children(value):
        yield from parts(child, (*at, step))


def numbers(value: object, at: Where = ()) -> Iterator[tuple[Where, int | Decimal]]:
    """Every number in a record, with its path."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        yield at, value
    for step, child in _children(value):
        yield from numbers(child, (*at, step))


def strings(value: object, at: Where = ()) -> Iterator[tuple[Where, str]]:
    """Every text in plain values, keys included, with its path."""
    if isinstance(value, str):
        yield at, value
    for step, child in _children(value):
        if isinstance(step, str):
            yield (*at, step), step
        yield from strings(child, (*at, step))


def _children(value: object) -> Iterator[tuple[str | int, object]]:
    if isinstance(value, BaseModel):
        for name, info in type(value).model_fields.items():
            yield info.alias or name, getattr(value, name)
    elif isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)
