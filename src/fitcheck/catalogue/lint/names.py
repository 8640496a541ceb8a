"""Names that two records answer to, and records that stand twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import combinations

from fitcheck.catalogue.hardware import Cluster
from fitcheck.catalogue.lint.findings import Finding
from fitcheck.catalogue.lint.shelf import Entry, Rule, Shelf, ShelfRule, Where, found
from fitcheck.catalogue.load import normalise
from fitcheck.catalogue.models import Alias, Model
from fitcheck.catalogue.provenance import Record, Status
from fitcheck.catalogue.text import Block
from fitcheck.units import counted_from

_SPACES = {"cluster": "device"}
"""Kinds whose names are looked up together with those of another kind."""


@dataclass(frozen=True)
class _Name:
    text: str
    entry: Entry[Record]
    where: Where
    since: date = date.min
    until: date = date.max


def _names(entry: Entry[Record]) -> Iterator[_Name]:
    yield _Name(entry.id, entry, ())
    for index, alias in enumerate(getattr(entry.record, "aliases", ())):
        where = ("aliases", index)
        if isinstance(alias, str):
            yield _Name(alias, entry, where)
        elif isinstance(alias, Alias) and alias.status is Status.EFFECTIVE:
            until = counted_from(alias.until) if alias.until else date.max
            yield _Name(alias.name, entry, where, counted_from(alias.since), until)


def shared_name(shelf: Shelf) -> Iterator[Finding]:
    """FC111: an id or alias that two records answer to at once. An alias may pass from one model to another on a day."""
    spaces: dict[tuple[str, str], list[_Name]] = {}
    for entry in shelf.entries:
        for name in _names(entry):
            spaces.setdefault((_SPACES.get(entry.kind, entry.kind), normalise(name.text)), []).append(name)
    for names in spaces.values():
        told: set[tuple[str, str]] = set()
        for first, second in combinations(names, 2):
            pair = (first.entry.id, second.entry.id)
            meet = first.since < second.until and second.since < first.until
            if first.entry is not second.entry and meet and pair not in told:
                told.add(pair)
                message = f"{second.text!r} is also a name of the {first.entry.kind} {first.entry.id!r}"
                yield second.entry.finding("FC111", message, second.where)


def two_defaults(shelf: Shelf) -> Iterator[Finding]:
    """FC406: `2xspark` can mean one named cluster only."""
    first: dict[tuple[str, int], str] = {}
    for entry in shelf.of(Cluster):
        cluster = entry.record
        if cluster.default and first.setdefault((cluster.device, cluster.count), cluster.id) != cluster.id:
            other = first[cluster.device, cluster.count]
            yield entry.finding("FC406", f"{other!r} is the default for {cluster.count}x {cluster.device} already", ("default",))


def repeated_checkpoint(entry: Entry[Model], _: Shelf) -> Iterator[Finding]:
    """FC113: two checkpoints of one model that a name cannot tell apart."""
    first: dict[str, str] = {}
    for index, checkpoint in enumerate(entry.record.checkpoints):
        form = normalise(checkpoint.id)
        if form in first:
            yield entry.finding("FC113", f"checkpoint {checkpoint.id!r} stands beside {first[form]!r}", ("checkpoints", index, "id"))
        first.setdefault(form, checkpoint.id)


def repeated_record(blocks: list[Block]) -> Iterator[Finding]:
    """FC008: a record of one kind and id in two files; the second would replace the first."""
    first: dict[tuple[str | None, str], Block] = {}
    for block in blocks:
        other = first.setdefault((block.kind, block.id), block)
        if other.path != block.path:
            yield found("FC008", f"{block.id}: also in {other.path}:{other.line}", block.path, block.line)


SHELF_RULES: tuple[ShelfRule, ...] = (shared_name, two_defaults)
MODEL_RULES: tuple[Rule[Model], ...] = (repeated_checkpoint,)
