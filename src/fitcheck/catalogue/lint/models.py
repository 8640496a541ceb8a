"""Architectures, parameters, aliases and the dated events of records."""

from __future__ import annotations

from collections.abc import Iterator

from fitcheck.catalogue.lint import dates, names, references, sizes
from fitcheck.catalogue.lint.findings import Finding
from fitcheck.catalogue.lint.shelf import Entry, Rule, Shelf, Where, parts
from fitcheck.catalogue.models import Alias, CheckpointEvent, Model
from fitcheck.catalogue.provenance import Event, Record, Status
from fitcheck.units import counted_from

_BESIDE = {"indexer", "compressed_window", "compressor", "cross"}
"""Groups that keep their state beside another group of the same layers."""


def layer_sum(entry: Entry[Model], _: Shelf) -> Iterator[Finding]:
    """FC204: each layer belongs to one group.

    Compressed attention shares caches between layers, so there only each group is bounded; where attention and a recurrent state run side
    by side in every layer (Falcon-H1), each group has them all.
    """
    architecture = entry.record.architecture
    if architecture is None:
        return
    where = ("architecture", "groups")
    for index, group in enumerate(architecture.groups):
        if group.layers > architecture.layers:
            message = f"{group.kind} has {group.layers} layers of {architecture.layers}"
            yield entry.finding("FC204", message, (*where, index, "layers"))
            return
    owners = [group for group in architecture.groups if group.kind not in _BESIDE]
    total = sum(group.layers for group in owners)
    beside = all(group.layers == architecture.layers for group in owners) and {group.kind for group in owners} == {"attention", "recurrent"}
    if total != architecture.layers and not beside and all(group.kind != "compressed" for group in owners):
        terms = " + ".join(f"{group.layers} {group.kind}" for group in owners)
        yield entry.finding("FC204", f"{terms or 'no group'} = {total}, not {architecture.layers} layers", where)


def parameter_order(entry: Entry[Model], _: Shelf) -> Iterator[Finding]:
    """FC205: active parameters are part of the total, and the total of what is stored."""
    counts = entry.record.parameters
    pairs = (
        ("active", counts.active, counts.total),
        ("active_prefill", counts.active_prefill, counts.total),
        ("total", counts.total, counts.stored),
    )
    for name, part, whole in pairs:
        if part is not None and whole is not None and part.value > whole.value:
            message = f"{name} {part.value:,} is above {'stored' if name == 'total' else 'total'} {whole.value:,}"
            yield entry.finding("FC205", message, ("parameters", name, "value"))


def idle_successors(entry: Entry[Model], _: Shelf) -> Iterator[Finding]:
    """FC206: successors follow a withdrawal."""
    for where, part in parts(entry.record):
        if isinstance(part, CheckpointEvent) and part.successors and part.status is not Status.WITHDRAWN:
            yield entry.finding("FC206", f"successors of an event that is {part.status.value}", (*where, "successors"))


def silent_withdrawal(entry: Entry[Record], _: Shelf) -> Iterator[Finding]:
    """FC207: a checkpoint or recipe is withdrawn and nobody says why. An alias needs no reason."""
    for where, part in parts(entry.record):
        if isinstance(part, Event) and not isinstance(part, Alias) and part.status is Status.WITHDRAWN and not (part.note or "").strip():
            yield entry.finding("FC207", "withdrawn without a note", where)


def same_day_events(entry: Entry[Record], _: Shelf) -> Iterator[Finding]:
    """FC208: of two events of one day nobody can say which is in force."""
    first: dict[tuple[Where, object, str], Where] = {}
    for where, part in parts(entry.record):
        if isinstance(part, Event):
            subject = part.name if isinstance(part, Alias) else None
            key = (where[:-1], counted_from(part.since), str(subject))
            if first.setdefault(key, where) != where:
                yield entry.finding("FC208", f"a second event from {part.since}", (*where, "from"))


def backward_alias(entry: Entry[Model], _: Shelf) -> Iterator[Finding]:
    """FC209: `until` is exclusive, so an alias that ends on its first day never serves."""
    for index, alias in enumerate(entry.record.aliases):
        if alias.until is not None and counted_from(alias.until) <= counted_from(alias.since):
            yield entry.finding("FC209", f"{alias.name} ends {alias.until}, begins {alias.since}", ("aliases", index))


EVERY_RECORD: tuple[Rule[Record], ...] = (silent_withdrawal, same_day_events)
MODEL_RULES: tuple[Rule[Model], ...] = (
    layer_sum,
    parameter_order,
    idle_successors,
    backward_alias,
    references.unknown_successor,
    references.unserved_format,
    *names.MODEL_RULES,
    *sizes.MODEL_RULES,
    *dates.MODEL_RULES,
)
