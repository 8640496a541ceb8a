"""The figures behind docs/accuracy.md: what fitcheck predicts beside what engines printed, for the rows in tests/data/accuracy."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fitcheck import kv_memory
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import FitcheckError
from fitcheck.fit.engines.base import Ledger
from fitcheck.sources.config import ConfigModel

DATA = Path(__file__).resolve().parent.parent / "tests" / "data" / "accuracy"

PLAIN_BYTES = {"fp8": 1.0, "fp8_e4m3": 1.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
"""Bytes of an element for the plain formula; 2 for any other name."""

FORKED = {"ik_llama.cpp": "llama.cpp"}
MISS = 0.03


class Answer(NamedTuple):
    """One row with what was predicted: signed shares of the engine's figure, None where it is unknown.

    `told` is with the settings that the row's source states; `shown` also where they are inferred, which proves nothing. `parent` is what
    comes of a fork's row asked under the name of what it was forked from.
    """

    row: dict[str, Any]
    error: float | None
    told: float | None
    shown: float | None
    plain: float
    inferred: bool = False
    parent: float | None = None


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
        found[row["config"]] = (
            ConfigModel(row["config"], row["source"], architecture, (), row.get("forced_kv_dtype")),
            row.get("plain", {}),
        )
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
        parent = _error({**row, "engine": FORKED[row["engine"]]}, predicted, {}) if row["engine"] in FORKED else error
        plain = plain_bytes(row) / row["expected_bytes"] - 1
        found.append(Answer(row, error, error if inferred else shown, shown, plain, inferred, parent))
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
