"""Devices, clusters and engines."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from fitcheck.catalogue.hardware import Device, Engine, EngineDefault, Overhead, UsableShare
from fitcheck.catalogue.lint import references
from fitcheck.catalogue.lint.findings import Finding
from fitcheck.catalogue.lint.shelf import Entry, Rule, Shelf, ShelfRule, parts
from fitcheck.catalogue.lint.sizes import UNIT_SLIP, explained, unit_slip
from fitcheck.catalogue.provenance import Record
from fitcheck.units import GB, GIB, format_gib

USUAL_SHARE = (Decimal("0.4"), Decimal("0.985"))
USUAL_BANDWIDTH = (10 * GB, 20_000 * GB)
"""Bytes a second of memory, from one channel of DDR4 to the stacks of the fastest accelerators sold."""


def more_than_sold(entry: Entry[Device], _: Shelf) -> Iterator[Finding]:
    """FC401: makers may sell GiB as GB, so up to 1.0737 times what is sold can be seen."""
    memory = entry.record.memory
    for index, seen in enumerate(memory.visible):
        if seen.value > memory.sold.value * GIB / GB * (1 + UNIT_SLIP):
            message = f"{format_gib(seen.value)} visible of {format_gib(memory.sold.value)} sold"
            yield entry.finding("FC401", message, ("memory", "visible", index))


def memory_slip(entry: Entry[Device], _: Shelf) -> Iterator[Finding]:
    """FC210: visible against sold memory."""
    memory = entry.record.memory
    for index, seen in enumerate(memory.visible):
        if unit_slip(seen.value, memory.sold.value) and not explained(seen, memory.sold):
            message = f"{seen.value:,} B visible, {memory.sold.value:,} B sold"
            yield entry.finding("FC210", message, ("memory", "visible", index))


def more_than_visible(entry: Entry[Device], _: Shelf) -> Iterator[Finding]:
    """FC402: what is free at boot, or can be reclaimed, is part of what machines of this sort can see or were sold with."""
    memory = entry.record.memory
    most = max(seen.value for seen in memory.visible)
    for index, free in enumerate(memory.free_at_boot):
        if free.value > most:
            where = ("memory", "free_at_boot", index)
            yield entry.finding("FC402", f"{format_gib(free.value)} free of {format_gib(most)} visible", where)
    if memory.reclaimable is not None and memory.reclaimable.value > most:
        yield entry.finding("FC402", f"{format_gib(memory.reclaimable.value)} reclaimable", ("memory", "reclaimable"))


def odd_bandwidth(entry: Entry[Device], _: Shelf) -> Iterator[Finding]:
    """FC410: gigabytes taken for bytes, bits for bytes, or a digit too many."""
    bandwidth, (low, high) = entry.record.memory.bandwidth_bytes_per_s, USUAL_BANDWIDTH
    if bandwidth is not None and not low <= bandwidth.value <= high:
        message = f"{bandwidth.value:,} bytes a second (usual: {low:,} to {high:,})"
        yield entry.finding("FC410", message, ("memory", "bandwidth_bytes_per_s", "value"))


def engine_twice(entry: Entry[Device], _: Shelf) -> Iterator[Finding]:
    """FC403: two usable shares for one engine, or two overheads for one engine, number of devices and version."""
    figures_of: dict[str, tuple[UsableShare | Overhead, ...]] = {"usable": entry.record.usable, "overhead": entry.record.overhead}
    for field, figures in figures_of.items():
        seen: set[tuple[object, ...]] = set()
        for index, figure in enumerate(figures):
            of = (figure.engine, figure.devices, figure.until_version) if isinstance(figure, Overhead) else (figure.engine,)
            if of in seen:
                yield entry.finding("FC403", f"a second {field} figure for {figure.engine}", (field, index))
            seen.add(of)


def foreign_engine(entry: Entry[Device], shelf: Shelf) -> Iterator[Finding]:
    """FC409: a usable share or an overhead of an engine that cannot run here."""
    figures_of: dict[str, tuple[UsableShare | Overhead, ...]] = {"usable": entry.record.usable, "overhead": entry.record.overhead}
    for field, figures in figures_of.items():
        for index, figure in enumerate(figures):
            engine = shelf.find(Engine, figure.engine)
            if engine is not None and entry.record.chip not in engine.chips:
                yield entry.finding("FC409", f"{engine.id} does not run on {entry.record.chip}", (field, index, "engine"))


def variant_memory(entry: Entry[Device], shelf: Shelf) -> Iterator[Finding]:
    """FC404: recipes of the original count for a variant, so both have the same memory."""
    variant_of = entry.record.variant_of
    original = shelf.find(Device, variant_of) if variant_of else None
    if original is not None and original.memory.sold.value != entry.record.memory.sold.value:
        sizes = f"{format_gib(entry.record.memory.sold.value)} sold, {original.id} {format_gib(original.memory.sold.value)}"
        yield entry.finding("FC404", sizes, ("memory", "sold"))


def detected_twice(shelf: Shelf) -> Iterator[Finding]:
    """FC411: two devices that a machine's software calls alike, with memory that does not tell them apart."""
    seen: dict[tuple[str, str, int], str] = {}
    for entry in shelf.of(Device):
        device = entry.record
        for index, name in enumerate(device.detected_as):
            other = seen.setdefault((name.by, name.name, device.memory.sold.value), device.id)
            if other != device.id and device.variant_of is None:
                message = f"{name.name!r} with {format_gib(device.memory.sold.value)} is {other} already"
                yield entry.finding("FC411", message, ("detected_as", index))


def odd_share(entry: Entry[Record], _: Shelf) -> Iterator[Finding]:
    """FC407: engines are given most of a device's memory, and never quite all of it."""
    low, high = USUAL_SHARE
    for where, part in parts(entry.record):
        if isinstance(part, UsableShare | EngineDefault) and not low <= part.fraction <= high:
            yield entry.finding("FC407", f"a usable share of {part.fraction} (usual: {low} to {high})", (*where, "fraction"))


def odd_range(entry: Entry[Record], _: Shelf) -> Iterator[Finding]:
    """FC408: low, value and high in that order."""
    for where, part in parts(entry.record):
        if not isinstance(part, Overhead):
            continue
        low = part.low.value if part.low else part.value
        high = part.high.value if part.high else part.value
        if not low <= part.value <= high:
            message = f"{format_gib(part.value)} is not between {format_gib(low)} and {format_gib(high)}"
            yield entry.finding("FC408", message, (*where, "value"))


EVERY_RECORD: tuple[Rule[Record], ...] = (odd_share, odd_range)
SHELF_RULES: tuple[ShelfRule, ...] = (detected_twice,)
DEVICE_RULES: tuple[Rule[Device], ...] = (
    more_than_sold,
    memory_slip,
    more_than_visible,
    odd_bandwidth,
    engine_twice,
    foreign_engine,
    variant_memory,
    references.variant_chain,
)
