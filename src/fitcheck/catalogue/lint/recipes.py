"""Recipes against the models and devices they name."""

from __future__ import annotations

from collections.abc import Iterator

from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.lint import dates, references
from fitcheck.catalogue.lint.findings import Finding
from fitcheck.catalogue.lint.shelf import Entry, Rule, Shelf
from fitcheck.catalogue.models import Model
from fitcheck.catalogue.recipes import Recipe
from fitcheck.units import format_gib

_SIXTEEN_BIT = {"auto", "bf16", "bfloat16", "f16", "fp16", "float16"}
_EIGHT_BIT = {"fp8", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla", "fp8_per_token_head", "int8_per_token_head", "mxfp8", "q8_0"}
_FIVE_AND_SIX_BIT = {"q5_0", "q5_1", "q6_0"}
_FOUR_BIT = {"fp4", "fp4_e2m1", "fp4_mx_block16", "nvfp4", "nvfp4_ds_mla", "mxfp4", "int4_per_token_head", "q4_0", "q4_1", "iq4_nl"}
KV_DTYPES = frozenset({"f32"} | _SIXTEEN_BIT | _EIGHT_BIT | _FIVE_AND_SIX_BIT | _FOUR_BIT)
"""The names of KV dtypes that `fitcheck fit` knows (`fitcheck.fit.state`): the catalogue stands beneath it and cannot ask."""

FASTEST_STREAM = 5_000
FASTEST_PREFILL = 200_000
"""Tokens a second beyond what anyone has published of these machines."""


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
    if model is not None and dates.before_release(entry.record.date, model):
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


def unknown_kv_dtype(entry: Entry[Recipe], _: Shelf) -> Iterator[Finding]:
    """FC509: a KV dtype that says nothing about the size of a token, where keys and values may differ (`q8_0/f16`)."""
    name = entry.record.setup.kv_dtype
    parts = (name or "auto").lower().split("/")
    if len(parts) > 2 or not KV_DTYPES.issuperset(parts):
        close = references.suggest(name or "", sorted(KV_DTYPES))
        yield entry.finding("FC509", f"KV dtype {name!r} is not known{close}", ("setup", "kv_dtype"))


def too_fast(entry: Entry[Recipe], _: Shelf) -> Iterator[Finding]:
    """FC510: a speed of one stream, or of reading, that no machine of the catalogue reaches."""
    for index, speed in enumerate(entry.record.speeds):
        shared = speed.users if speed.phase == "decode" and speed.per == "total" else 1
        most = FASTEST_STREAM if speed.phase == "decode" else FASTEST_PREFILL
        if speed.high > most * shared:
            yield entry.finding("FC510", f"{speed.phase} at {speed.high / shared:,.0f} tok/s", ("speeds", index))


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
    unknown_kv_dtype,
    too_fast,
    foreign_engine,
    unlisted_format,
    references.unknown_checkpoint,
)
