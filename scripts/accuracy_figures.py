"""The figures behind docs/accuracy.md: what fitcheck predicts beside what engines printed, for the rows in tests/data/accuracy."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fitcheck import kv_memory
from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.load import Catalogue
from fitcheck.catalogue.models import Architecture, Model
from fitcheck.catalogue.recipes import Recipe
from fitcheck.errors import FitcheckError
from fitcheck.fit.engines.base import Ledger
from fitcheck.fit.layout import Layout
from fitcheck.fit.memory import batch_defaults
from fitcheck.fit.overhead_seen import known_overhead
from fitcheck.fit.placement import component_bytes, measured_resident, on_device, place_components
from fitcheck.sources.config import ConfigModel
from fitcheck.units import GIB

DATA = Path(__file__).resolve().parent.parent / "tests" / "data" / "accuracy"

PLAIN_BYTES = {"fp8": 1.0, "fp8_e4m3": 1.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
"""Bytes of an element for the plain formula; 2 for any other name."""

MISS = 0.03
GB10 = "dgx-spark"
LOW, HIGH = -0.03, 0.10
"""Bounds of a good prediction of a whole device: under is the unsafe side."""


class Answer(NamedTuple):
    """One row with what was predicted: signed shares of the engine's figure, None where it is unknown.

    `told` is with the settings that the row's source states; `shown` also where they are inferred, which proves nothing.
    """

    row: dict[str, Any]
    error: float | None
    told: float | None
    shown: float | None
    plain: float
    inferred: bool = False


class Measures(NamedTuple):
    """The measures of a scoreboard; shares are of all rows, unknown ones included."""

    rows: int
    unknown: int
    median: float | None
    p90: float | None
    within_1: float
    within_3: float
    under: int

    @classmethod
    def of(cls, errors: Iterable[float | None]) -> Measures:
        """Of signed errors."""
        found = list(errors)
        known = sorted(abs(error) for error in found if error is not None)
        median = statistics.median(known) if known else None
        p90 = known[int(0.9 * (len(known) - 1))] if known else None
        within = [sum(error <= bound for error in known) / len(found) for bound in (0.01, MISS)]
        under = sum(error is not None and error < -MISS for error in found)
        return cls(len(found), len(found) - len(known), median, p90, within[0], within[1], under)


class Whole(NamedTuple):
    """One device: what was predicted in all, the budget it is compared with, and the overhead that the log itself leaves."""

    name: str
    setting: str
    weights: float
    cache: float
    overhead: float
    budget: float
    seen: float | None
    source: str

    @property
    def error(self) -> float:
        """Signed share of the budget."""
        return (self.weights + self.cache + self.overhead) / self.budget - 1

    @property
    def good(self) -> bool:
        """Whether it lies between the bounds."""
        return LOW <= self.error <= HIGH


def read_rows(name: str) -> list[dict[str, Any]]:
    """The rows of one file of figures."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@cache
def notes() -> dict[str, Any]:
    """Causes and settings that people found."""
    found: dict[str, Any] = yaml.safe_load((DATA / "notes.yaml").read_text(encoding="utf-8"))
    return found


@cache
def models() -> dict[str, tuple[ConfigModel, dict[str, int]]]:
    """Models by the name of their config, with the fields of the plain formula."""
    found = {}
    for row in read_rows("architectures"):
        architecture = Architecture.model_validate(row["architecture"])
        found[row["config"]] = (ConfigModel(row["config"], row["source"], architecture, (), None), row.get("plain", {}))
    return found


def ask(row: dict[str, Any], context: int, *, kv_dtype: str | None = None, **settings: Any) -> int:
    """Bytes that fitcheck predicts for one request of that length with the row's settings."""
    ledger = ledger_of(row, context, kv_dtype=kv_dtype, **settings)
    return ledger.kv_bytes if row.get("state_printed_apart") else ledger.bytes


def ledger_of(row: dict[str, Any], context: int, *, kv_dtype: str | None = None, **settings: Any) -> Ledger:
    """The whole answer for one request of that length with the row's settings."""
    named = {"block_size": row["block_size"], **settings} if row.get("block_size") else settings
    degrees = {name: row.get(name, 1) for name in ("tp", "pp", "dp", "dcp")}
    dtype = kv_dtype or row["kv_dtype"]
    return kv_memory(models()[row["config"]][0], engine=row["engine"], context=context, kv_dtype=dtype, **degrees, **named)


def predicted(row: dict[str, Any], **settings: Any) -> float:
    """Bytes of the row's pool, or of the request where the engine said what one needs."""
    units: float = row["tokens"] / row["context"] if "tokens" in row else 1.0
    return ask(row, row["context"], **settings) * units


def predicted_blocks(row: dict[str, Any], **settings: Any) -> float:
    """Bytes of the printed number of pool blocks: what each further block of a very long request takes."""
    length = 1 << 20
    grown = ask(row, 2 * length, **settings) - ask(row, length, **settings)
    return float(grown / length * row.get("tokens", row["context"]))


def plain_bytes(row: dict[str, Any]) -> float:
    """2 x layers x KV heads x head dim x bytes x context."""
    fields = models()[row["config"]][1]
    names = (row["kv_dtype"] + "/" + row["kv_dtype"]).split("/")[:2]
    width = sum(PLAIN_BYTES.get(name, 2.0) for name in names) / 2
    heads = max(1.0, fields["kv_heads"] / float(row.get("tp", 1)))
    tokens: int = row.get("tokens", row["context"])
    return 2 * fields["layers"] * heads * fields["head_dim"] * width * tokens


def answers() -> list[Answer]:
    """Every row of the logs, as asked and with what its record states besides."""
    stated = {name: (miss, settings) for miss in notes()["misses"] for name, settings in miss["rows"].items()}
    found = []
    for row in read_rows("logs"):
        error = shown = _error(row, predicted, {})
        inferred = False
        if row["id"] in stated:
            miss, settings = stated[row["id"]]
            inferred = miss.get("inferred", False)
            count = predicted_blocks if miss.get("as") == "blocks" else predicted
            shown = _error(row, count, {**settings, **({"kv_dtype": miss["kv_dtype"]} if "kv_dtype" in miss else {})})
        found.append(Answer(row, error, error if inferred else shown, shown, plain_bytes(row) / row["expected_bytes"] - 1, inferred))
    return found


def _error(row: dict[str, Any], count: Callable[..., float], settings: dict[str, Any]) -> float | None:
    try:
        return float(count(row, **settings) / row["expected_bytes"] - 1)
    except FitcheckError:
        return None


def exact_rows() -> list[tuple[dict[str, Any], bool]]:
    """The rows of llama.cpp's own counts, and whether the prediction is equal to the byte."""
    found = []
    for row in read_rows("llamacpp"):
        settings = dict(row["settings"])
        users = settings.get("n_seq_max", 1)
        model = models()[row["config"]][0]
        bytes_ = kv_memory(model, engine="llama.cpp", context=settings["n_ctx"] // users, users=users, **settings).bytes
        found.append((row, bytes_ == row["expected_bytes"]))
    return found


def overhead_bytes(catalogue: Catalogue, device: Device, engine: str, peak_bytes: int, count: int, version: str | None) -> int:
    """The overhead on so many of a device, else the engine's own; no less than the profiling peak and what comes beside, as in `fit`."""
    module = catalogue.get(Engine, engine)
    known = known_overhead(device, module, count, version)
    beside = module.beside_buffers.value if peak_bytes and module.beside_buffers is not None else 0
    return max(known[0] if known is not None else 0, peak_bytes + beside)


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
            continue
        device = catalogue.get(Device, row["device"])
        total = row["total_gib"] * GIB if "total_gib" in row else device.memory.visible[0].value
        units = row["concurrency"] if "concurrency" in row else row["tokens"] / row["context"]
        settings = {**engines_default(device, row["engine"]), **row.get("settings", {})}
        ledger = ledger_of(row, row["context"], **settings)
        pool = ledger.bytes * units
        budget, weights = row["utilisation"] * total, row["weights_gib"] * GIB
        setting = f"{row['model']}, {row['engine']}, {device.name}" + (f", TP{row['tp']}" if row.get("tp", 1) > 1 else "")
        version = row.get("settings", {}).get("vllm_version")
        overhead = overhead_bytes(catalogue, device, row["engine"], ledger.compute_bytes, row.get("tp", 1), version)
        found.append(Whole(row["id"], setting, weights, pool, overhead, budget, budget - weights - row["kv_bytes"], row["source"]))
    return found, left


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
