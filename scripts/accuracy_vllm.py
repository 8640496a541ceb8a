"""What vLLM itself counts for a request (`ask_vllm.py`), beside what fitcheck does: the section of docs/accuracy.md."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from accuracy_figures import models, notes, read_rows
from accuracy_tables import signed, table

from fitcheck import kv_memory
from fitcheck.errors import FitcheckError

EQUAL = 2e-6
"""vLLM's figure is a pool over a number of requests, of which blocks that do not fill up are a millionth at most."""

WORDS = """## vLLM's own counts

vLLM builds a model without weights and plans its pool on a machine without a GPU (`scripts/ask_vllm.py`, run in an environment of vLLM):
what one request takes of the pool is asked of the engine, and of `fitcheck.kv_memory` with the same settings, the version and the GPU's
compute capability. Configs whose code is not vLLM's or transformers' own are not among them, nor is what these refuse; of versions up to
0.26 not DeepSeek V4, whose number of requests there is more than the pool holds, nor in 0.23 configs that name no architecture, which it
takes for pooling models. They are no longer unseen: of the first 232 rows 211 were equal, and what the others showed was mended from
vLLM's sources.
"""


class Count(NamedTuple):
    """A row with what fitcheck says: the signed share of vLLM's figure, None where it is unknown."""

    row: dict[str, Any]
    error: float | None

    @property
    def equal(self) -> bool:
        """Whether the two are the same but for the pool's rest."""
        return self.error is not None and abs(self.error) <= EQUAL


def counts() -> list[Count]:
    """Every row."""
    return [Count(row, _error(row)) for row in read_rows("vllm")]


def _error(row: dict[str, Any]) -> float | None:
    degrees = {name: row.get(name, 1) for name in ("tp", "pp", "dcp")}
    named = {"vllm_version": row["version"], "compute_capability": row["capability"], **row["settings"]}
    if "draft" in row:
        named["num_speculative_tokens"] = row["draft"]
    model = models()[row["config"]][0]
    try:
        found = kv_memory(model, engine="vllm", context=row["context"], kv_dtype=row.get("kv_dtype", "auto"), **degrees, **named)
    except FitcheckError:
        return None
    return found.bytes / float(row["bytes"]) - 1


def vllm_section() -> list[str]:
    """Shares by version, and every row that is not equal with its cause."""
    found = counts()
    versions = sorted({count.row["version"] for count in found}, reverse=True)
    rows = [_version(version, [count for count in found if count.row["version"] == version]) for version in versions]
    off = [count for count in found if not count.equal]
    misses = [(*_named(count.row), f"{count.row['bytes']:,}", signed(count.error), str(cause_of(count.row))) for count in off]
    families = len({models()[count.row["config"]][0].architecture.family for count in found})  # type: ignore[union-attr]
    equal = sum(count.equal for count in found)
    total = f"**{equal} of {len(found)}** equal, over {len({count.row['config'] for count in found})} configs of {families} families."
    causes = "\n".join(f"{number}. {cause['cause']}" for number, cause in enumerate(notes()["vllm"], 1))
    return [
        WORDS,
        total,
        table("vLLM|rows>|configs>|equal>|within 3 %>|unknown>|largest error>", rows),
        "Those that are not equal:",
        table("config|asked|vLLM's bytes>|fitcheck>|cause>", misses),
        "The causes:",
        causes,
    ]


def _version(version: str, found: list[Count]) -> tuple[str, ...]:
    known = [count.error for count in found if count.error is not None]
    kinds = Counter(
        {
            "equal": sum(count.equal for count in found),
            "near": sum(abs(error) <= 0.03 for error in known),
            "unknown": len(found) - len(known),
        }
    )
    configs = len({count.row["config"] for count in found})
    worst = signed(max(known, key=abs))
    return (version, str(len(found)), str(configs), *(str(kinds[name]) for name in ("equal", "near", "unknown")), worst)


def _named(row: dict[str, Any]) -> tuple[str, str]:
    left_out = {"config", "bytes", "settings", "version"}
    asked = {**{key: value for key, value in row.items() if key not in left_out}, **row["settings"]}
    return row["config"].replace("__", "/"), f"{row['version']}: " + ", ".join(f"{key}={value}" for key, value in asked.items())


def cause_of(row: dict[str, Any]) -> int | None:
    """The number of the cause that names the row's config and all else that it says of it."""
    for number, cause in enumerate(notes()["vllm"], 1):
        if row["config"] in cause["configs"] and all(row.get(key) == value for key, value in cause.get("when", {}).items()):
            return number
    return None
