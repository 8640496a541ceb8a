"""Figures and their sources, and records that name other records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from fitcheck.catalogue.hardware import Cluster, Device, Engine, Overhead, UsableShare
from fitcheck.catalogue.lint.findings import Finding
from fitcheck.catalogue.lint.shelf import Entry, Rule, Shelf, Where, parts
from fitcheck.catalogue.models import Model, ResidentFigure
from fitcheck.catalogue.provenance import Record
from fitcheck.catalogue.ratecards import PricePeriod, Rate, ScheduleRule, Served
from fitcheck.catalogue.recipes import Recipe

LONGEST_NAME = 100
_SLUG = re.compile(r"^[a-z0-9][a-z0-9.\-]*$")

_REFERENCES: tuple[tuple[type[Record], str, str, str], ...] = (
    (Recipe, "model", "model", "FC104"),
    (Served, "model", "model", "FC104"),
    (Recipe, "device", "device", "FC106"),
    (Cluster, "device", "device", "FC106"),
    (Device, "variant_of", "device", "FC106"),
    (Recipe, "engine", "engine", "FC107"),
    (UsableShare, "engine", "engine", "FC107"),
    (Overhead, "engine", "engine", "FC107"),
    (ResidentFigure, "engine", "engine", "FC107"),
    (PricePeriod, "schedule", "schedule", "FC108"),
    (ScheduleRule, "holidays", "calendar", "FC109"),
)
"""Which field of which class names a record of which kind."""


def suggest(name: str, known: Iterable[str]) -> str:
    """A known name that is close to this one, in words, or nothing."""
    close = get_close_matches(name[:LONGEST_NAME], list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def unknown_record(entry: Entry[Record], shelf: Shelf) -> Iterator[Finding]:
    """FC104, FC106-FC109: a named record that does not exist."""
    for where, part in parts(entry.record):
        for owner, field, kind, finding_id in _REFERENCES:
            name = getattr(part, field) if isinstance(part, owner) else None
            if name is not None and not shelf.has(kind, name):
                message = f"{kind} {name!r} is not in the catalogue{suggest(name, shelf.ids.get(kind, ()))}"
                yield entry.finding(finding_id, message, (*where, field))


def unknown_checkpoint(entry: Entry[Recipe], shelf: Shelf) -> Iterator[Finding]:
    """FC105: a recipe's checkpoint is none of its model's."""
    recipe = entry.record
    model = shelf.find(Model, recipe.model)
    if model is not None and recipe.checkpoint is not None and model.checkpoint(recipe.checkpoint) is None:
        close = suggest(recipe.checkpoint, [checkpoint.id for checkpoint in model.checkpoints])
        yield entry.finding("FC105", f"{model.id} has no checkpoint {recipe.checkpoint!r}{close}", ("checkpoint",))


def unknown_successor(entry: Entry[Model], _: Shelf) -> Iterator[Finding]:
    """FC110: a withdrawn checkpoint points at one that the model does not have, or at itself."""
    for index, checkpoint in enumerate(entry.record.checkpoints):
        for number, event in enumerate(checkpoint.events):
            for successor in event.successors:
                if successor == checkpoint.id or entry.record.checkpoint(successor) is None:
                    where = ("checkpoints", index, "events", number, "successors")
                    yield entry.finding("FC110", f"{checkpoint.id} names the successor {successor!r}", where)


def unserved_format(entry: Entry[Model], shelf: Shelf) -> Iterator[Finding]:
    """FC114: a format no engine lists, so that no engine is the default for the checkpoint. A broken engine might list it."""
    engines = shelf.of(Engine)
    if not engines or len(engines) < len(shelf.ids["engine"]):
        return
    served = {name for engine in engines for name in engine.record.formats}
    for index, checkpoint in enumerate(entry.record.checkpoints):
        if checkpoint.format not in served:
            message = f"{checkpoint.id}: no engine lists the format {checkpoint.format!r}{suggest(checkpoint.format, served)}"
            yield entry.finding("FC114", message, ("checkpoints", index, "format"))


def variant_chain(entry: Entry[Device], shelf: Shelf) -> Iterator[Finding]:
    """FC405: recipes are looked up one step along `variant_of`, so it must name an original."""
    original = shelf.find(Device, entry.record.variant_of) if entry.record.variant_of else None
    if entry.record.variant_of == entry.id or (original is not None and original.variant_of is not None):
        yield entry.finding("FC405", f"variant_of {entry.record.variant_of!r} is itself a variant", ("variant_of",))


def _citations(record: Record) -> Iterator[tuple[Where, str]]:
    for where, part in parts(record):
        keys = getattr(part, "source", ())
        for key in (keys,) if isinstance(keys, str) else keys:
            yield (*where, "source"), key


def unknown_source(entry: Entry[Record], _: Shelf) -> Iterator[Finding]:
    """FC101: a figure that rests on nothing the record names."""
    sources = getattr(entry.record, "sources", {})
    for where, key in _citations(entry.record):
        if key not in sources:
            yield entry.finding("FC101", f"source {key!r} is not among the record's sources{suggest(key, sources)}", where)


def unused_source(entry: Entry[Record], _: Shelf) -> Iterator[Finding]:
    """FC102: a source that no figure names."""
    used = {key for _, key in _citations(entry.record)}
    for key in getattr(entry.record, "sources", {}):
        if key not in used:
            yield entry.finding("FC102", f"source {key!r} is never used", ("sources", key))


def repeated_address(entry: Entry[Record], _: Shelf) -> Iterator[Finding]:
    """FC103: one address under two names."""
    first: dict[str, str] = {}
    for key, source in getattr(entry.record, "sources", {}).items():
        if first.setdefault(source.url, key) != key:
            yield entry.finding("FC103", f"sources {first[source.url]!r} and {key!r} have the same address", ("sources", key))


def malformed_id(entry: Entry[Record], _: Shelf) -> Iterator[Finding]:
    """FC112: an id that is no lower-case slug; rates have a form of their own, which the schema checks."""
    if not isinstance(entry.record, Rate) and not _SLUG.match(entry.id):
        yield entry.finding("FC112", f"{entry.id!r} is no lower-case slug")


EVERY_RECORD: tuple[Rule[Record], ...] = (unknown_record, unknown_source, unused_source, repeated_address, malformed_id)
