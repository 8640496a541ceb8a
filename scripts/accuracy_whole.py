"""Whole devices behind docs/accuracy.md: weights + cache + overhead beside the share of memory that an engine filled."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

from accuracy_figures import ledger_of, notes, read_rows

from fitcheck import kv_memory
from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.load import Catalogue
from fitcheck.catalogue.models import Model
from fitcheck.catalogue.recipes import Recipe
from fitcheck.errors import FitcheckError
from fitcheck.fit.layout import Layout
from fitcheck.fit.memory import batch_defaults
from fitcheck.fit.overhead_seen import known_overhead
from fitcheck.fit.placement import component_bytes, measured_resident, on_device, place_components
from fitcheck.units import GIB

GB10 = "dgx-spark"
LOW, HIGH = -0.03, 0.10
"""Bounds of a good prediction of a whole device: under is the unsafe side."""


class Whole(NamedTuple):
    """One device: what was predicted in all, the budget it is compared with, and the overhead that the log itself leaves.

    `first` is the error of the first prediction, where that was written down.
    """

    name: str
    setting: str
    weights: float
    cache: float
    overhead: float
    budget: float
    seen: float | None
    source: str
    first: float | None = None

    @property
    def error(self) -> float:
        """Signed share of the budget."""
        return (self.weights + self.cache + self.overhead) / self.budget - 1

    @property
    def good(self) -> bool:
        """Whether it lies between the bounds."""
        return LOW <= self.error <= HIGH


def overhead_bytes(catalogue: Catalogue, device: Device, engine: str, peak_bytes: int, count: int, version: str | None) -> int:
    """The overhead on so many of a device, else the engine's own; no less than the profiling peak and what comes beside, as in `fit`."""
    module = catalogue.get(Engine, engine)
    known = known_overhead(device, module, count, version)
    beside = module.beside_on(device, count, version) if peak_bytes else None
    return max(known[0] if known is not None else 0, peak_bytes + (beside.value if beside is not None else 0))


def engines_default(device: Device, engine: str) -> dict[str, Any]:
    """What an engine takes by itself on a device."""
    return batch_defaults(device) if engine == "vllm" else {}


def whole_logs(catalogue: Catalogue) -> tuple[list[Whole], Counter[str]]:
    """Start-up logs that print weights, cache and utilisation; and why others are not asked."""
    found, left = [], Counter[str]()
    for row in read_rows("devices"):
        reason = row.get("incomplete") or notes()["incomplete"].get(row["id"])
        if reason:
            left[reason] += 1
        else:
            found.append(_whole_log(catalogue, row, {}))
    return found, left


def whole_unseen(catalogue: Catalogue) -> tuple[list[Whole], list[Whole]]:
    """Logs read after the figures stood: those that a rule or a figure then took something from, and those that none did."""
    used: list[Whole] = []
    unseen: list[Whole] = []
    for row in read_rows("unseen"):
        capability = catalogue.get(Device, row["device"]).compute_capability
        chip = {} if capability is None else {"compute_capability": capability.value}
        (used if row.get("used") else unseen).append(_whole_log(catalogue, row, chip))
    return used, unseen


def _whole_log(catalogue: Catalogue, row: dict[str, Any], chip: dict[str, Any]) -> Whole:
    device, tp = catalogue.get(Device, row["device"]), row.get("tp", 1)
    total = row["total_gib"] * GIB if "total_gib" in row else device.memory.visible[0].value
    units = row["concurrency"] if "concurrency" in row else row["tokens"] / row["context"]
    stated = row.get("settings", {})
    ledger = ledger_of(row, row["context"], **(engines_default(device, row["engine"]) | chip | stated))
    budget, weights = row["utilisation"] * total, row["weights_gib"] * GIB
    version = stated.get("vllm_version")
    engine = f"{row['engine']} {version}" if "first_error" in row else row["engine"]
    setting = f"{row['model']}, {engine}, {device.name}" + (f", TP{tp}" if tp > 1 else "")
    overhead = overhead_bytes(catalogue, device, row["engine"], ledger.compute_bytes, tp, version)
    seen = budget - weights - row["kv_bytes"]
    return Whole(row["id"], setting, weights, ledger.bytes * units, overhead, budget, seen, row["source"], row.get("first_error"))


def whole_recipes(catalogue: Catalogue) -> tuple[list[Whole], list[Whole], Counter[str]]:
    """Recipes that state share of memory and tokens of the pool: of stock versions, of forks and images; and why others are not asked."""
    stock: list[Whole] = []
    forks: list[Whole] = []
    left = Counter[str]()
    for recipe in catalogue.recipes:
        if recipe.setup.memory_fraction is None or recipe.setup.kv_tokens_printed is None:
            continue
        version = re.match(r"\d+\.\d+", recipe.engine_version or "")
        try:
            found = _whole_recipe(catalogue, recipe, version.group() if version else None)
        except FitcheckError as error:
            left[f"cache unknown: {error}"] += 1
            continue
        if isinstance(found, str):
            left[found] += 1
        else:
            (stock if version else forks).append(found)
    return stock, forks, left


def _whole_recipe(catalogue: Catalogue, recipe: Recipe, version: str | None) -> Whole | str:
    model, device, engine = catalogue.get(Model, recipe.model), catalogue.get(Device, recipe.device), catalogue.get(Engine, recipe.engine)
    build = model.checkpoint(recipe.checkpoint) if recipe.checkpoint else None
    setup, drafts = recipe.setup, recipe.speculation
    if build is None or not build.components or model.architecture is None:
        return "the build, its size or the architecture is not known"
    if setup.context_tokens is None or setup.kv_tokens_printed is None:
        return "the longest context is not stated"
    if drafts is not None and (drafts.method.startswith("dflash") or (drafts.method != "none" and drafts.draft_tokens is None)):
        return "a drafter whose weights and cache are not stated"
    layout = Layout(setup.tp or 1, setup.pp or 1, "as the recipe runs it")
    named = engines_default(device, engine.id)
    if engine.id == "vllm":
        named |= {"compute_capability": "12.1" if device.platform == GB10 else device.compute_capability}
        named |= {"num_speculative_tokens": drafts.draft_tokens if drafts else None, "vllm_version": version}
    dtype = setup.kv_dtype or "auto"
    ledger = kv_memory(model, engine=engine.id, context=setup.context_tokens, kv_dtype=dtype, tp=layout.tp, pp=layout.pp, **named)
    placed = place_components(build, engine, {})
    resident = measured_resident(build, engine, layout, placed)
    parts = sum(component_bytes(part.component, layout, model.architecture.layers)[0] for part in placed if on_device(part, device))
    weights, pool = resident.value if resident else parts, ledger.bytes * setup.kv_tokens_printed / setup.context_tokens
    budget = float(setup.memory_fraction or 0) * device.memory.visible[0].value
    seen = budget - weights - setup.kv_bytes_per_device if setup.kv_bytes_per_device else None
    served = f"{engine.name} {version}" if version else recipe.engine_version or engine.name
    setting = f"{model.name} {build.id}, {served}, {recipe.count}x {device.name}"
    overhead = overhead_bytes(catalogue, device, engine.id, ledger.compute_bytes, recipe.count, version)
    return Whole(recipe.id, setting, weights, pool, overhead, budget, seen, recipe.sources[recipe.source].url)
