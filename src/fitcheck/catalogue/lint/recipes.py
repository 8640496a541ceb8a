"""Recipes against the models and devices they name."""

from __future__ import annotations

from collections.abc import Iterator

from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.lint import references
from fitcheck.catalogue.lint.findings import Finding
from fitcheck.catalogue.lint.shelf import Entry, Rule, Shelf
from fitcheck.catalogue.models import Model
from fitcheck.catalogue.recipes import Recipe
from fitcheck.units import counted_from, format_gib


def long_context(entry: Entry[Recipe], shelf: Shelf) -> Iterator[Finding]:
    """FC501: more context than the model has."""
    model = shelf.find(Model, entry.record.model)
    asked = entry.record.setup.context_tokens
    if model is not None and model.architecture is not None and asked is not None and asked > model.architecture.max_context_tokens:
        message = f"{asked:,} tokens; {model.id} has {model.architecture.max_context_tokens:,}"
        yield entry.finding("FC501", message, ("setup", "context_tokens"))


def wide_split(entry: Entry[Recipe], _: Shelf) -> Iterator[Finding]:
    """FC502: tensor times pipeline ranks, and expert and context ranks, each need a device."""
    setup, count = entry.record.setup, entry.record.count
    ranks = {"tp x pp": (setup.tp or 1) * (setup.pp or 1), "ep": setup.ep or 1, "dcp": setup.dcp or 1}
    for name, needed in ranks.items():
        if needed > count:
            yield entry.finding("FC502", f"{name} = {needed} ranks on {count} devices", ("setup", name.split(" ")[0]))


def early_recipe(entry: Entry[Recipe], shelf: Shelf) -> Iterator[Finding]:
    """FC503: run before the model was released."""
    model = shelf.find(Model, entry.record.model)
    if model is not None and counted_from(entry.record.date) < counted_from(model.released.value):
        yield entry.finding("FC503", f"dated {entry.record.date}; {model.id} was released {model.released.value}", ("date",))


def two_headlines(entry: Entry[Recipe], _: Shelf) -> Iterator[Finding]:
    """FC504: one headline for each phase."""
    led: set[str] = set()
    for index, speed in enumerate(entry.record.speeds):
        if speed.headline and speed.phase in led:
            yield entry.finding("FC504", f"a second {speed.phase} headline", ("speeds", index))
        if speed.headline:
            led.add(speed.phase)


def repeated_speed(entry: Entry[Recipe], _: Shelf) -> Iterator[Finding]:
    """FC505: two figures that nothing tells apart."""
    seen = set()
    for index, speed in enumerate(entry.record.speeds):
        conditions = (speed.phase, speed.users, speed.per, speed.workload)
        if conditions in seen:
            yield entry.finding("FC505", f"a second {speed.phase} speed of {speed.users} users", ("speeds", index))
        seen.add(conditions)


def needs_too_much(entry: Entry[Recipe], shelf: Shelf) -> Iterator[Finding]:
    """FC506: KV cache or usable memory beyond what the device shows or was sold with."""
    device = shelf.find(Device, entry.record.device)
    if device is None:
        return
    most = max(device.memory.sold.value, *(seen.value for seen in device.memory.visible))
    requires = entry.record.requires
    for where, size in (
        (("setup", "kv_bytes_per_device"), entry.record.setup.kv_bytes_per_device),
        (("requires", "usable_bytes"), requires.usable_bytes if requires else None),
    ):
        if size is not None and size > most:
            yield entry.finding("FC506", f"{where[-1]} is {format_gib(size)}; {device.id} has {format_gib(most)}", where)


def foreign_engine(entry: Entry[Recipe], shelf: Shelf) -> Iterator[Finding]:
    """FC507: a deployment that nobody can have run."""
    device, engine = shelf.find(Device, entry.record.device), shelf.find(Engine, entry.record.engine)
    if device is not None and engine is not None and device.chip not in engine.chips:
        yield entry.finding("FC507", f"{engine.id} does not run on {device.chip}, the chip of {device.id}", ("engine",))


def unlisted_format(entry: Entry[Recipe], shelf: Shelf) -> Iterator[Finding]:
    """FC508: the recipe shows that the engine serves a format which the engine's record leaves out."""
    model, engine = shelf.find(Model, entry.record.model), shelf.find(Engine, entry.record.engine)
    checkpoint = model.checkpoint(entry.record.checkpoint) if model is not None and entry.record.checkpoint else None
    if checkpoint is not None and engine is not None and engine.formats and checkpoint.format not in engine.formats:
        yield entry.finding("FC508", f"{engine.id} does not list {checkpoint.format}, the format of {checkpoint.id}", ("checkpoint",))


RULES: tuple[Rule[Recipe], ...] = (
    long_context,
    wide_split,
    early_recipe,
    two_headlines,
    repeated_speed,
    needs_too_much,
    foreign_engine,
    unlisted_format,
    references.unknown_checkpoint,
)
