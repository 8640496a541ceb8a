"""How a row of the tables of SGLang, MLX and TensorRT-LLM is asked and compared."""

from decimal import Decimal
from typing import Any

from fitcheck.fit.engines.base import Allocate, Ledger, Settings
from fitcheck.fit.state import KvDtype, kv_dtype
from tests.fit.engines.pool_shapes import SHAPES

GIB = 1 << 30


def ledger(allocate: Allocate, model: str, *, context: int = 32768, users: int = 1, dtype: str = "auto", **settings: Any) -> Ledger:
    """The terms for a model; `tp`, `pp`, `dp` and `dcp` are the split, the rest are the engine's own settings."""
    split = {name: settings.pop(name, 1) for name in ("tp", "pp", "dp", "dcp")}
    named = KvDtype(dtype, "nvfp4", "nvfp4") if dtype.startswith("fp4") else kv_dtype(dtype)
    return Ledger(allocate(SHAPES[model], Settings(context, users, named, named=settings, **split)))


def asked(allocate: Allocate, row: dict[str, Any], **more: Any) -> Ledger:
    """The terms that a row asks for."""
    options = {name: row[name] for name in ("context", "users", "tp", "dp") if name in row}
    return ledger(allocate, row["model"], dtype=row.get("kv_dtype", "auto"), **{**options, **row.get("settings", {}), **more})


def compare(allocate: Allocate, row: dict[str, Any]) -> None:
    """The figure that the row names, to the byte or to the last digit that was printed."""
    if "per_token" in row:
        step = 2560 * 256
        grown = asked(allocate, row, context=2 * step).kv_bytes - asked(allocate, row, context=step).kv_bytes
        assert Decimal(grown) / step == Decimal(str(row["per_token"])), row["source"]
        return
    got = part(asked(allocate, row), row.get("of", "kv"))
    if "bytes" in row:
        assert got == row["bytes"], row["source"]
    else:
        printed = Decimal(str(row["gib"]))
        assert abs(Decimal(got) / GIB - printed) <= Decimal("0.011"), row["source"]


def part(found: Ledger, of: str) -> int:
    """The caches, the states, or the terms of one name."""
    whole = {"kv": found.kv_bytes, "state": found.state_bytes}
    return whole[of] if of in whole else sum(term.bytes for term in found.terms if term.name == of)
