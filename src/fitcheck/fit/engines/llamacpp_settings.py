"""What llama.cpp makes of its settings: cells, streams and cache types.

Sources (build 11549): `llama_context::llama_context` (`src/llama-context.cpp`) for the padding, the split over sequences and the caps of
`n_batch` and `n_ubatch`; `llama_init_from_model` (same file) for what is refused; `llama_kv_cache_iswa` (`src/llama-kv-cache-iswa.cpp`) for
the cells of sliding layers; `common/common.h` for the defaults of the command-line tools.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from math import ceil
from typing import Any, NamedTuple

from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import Settings, reject_unknown
from fitcheck.fit.engines.llamacpp_families import Rules

PAD_CELLS = 256

BLOCKS: dict[str, tuple[int, int]] = {
    "f32": (1, 4),
    "f16": (1, 2),
    "bf16": (1, 2),
    "q8_0": (32, 34),
    "q5_1": (32, 24),
    "q5_0": (32, 22),
    "q4_1": (32, 20),
    "q4_0": (32, 18),
    "iq4_nl": (32, 18),
}
"""Elements and bytes of a block by cache type (`common/arg.cpp`, `kv_cache_types`; `ggml/src/ggml-common.h`)."""

FORK_BLOCKS = {"q6_0": (32, 26)}
"""Cache types of ik_llama.cpp alone."""

DEFAULTS: dict[str, Any] = {
    "n_ctx": 0,
    "n_ctx_seq": None,
    "n_ctx_per_seq": None,
    "n_seq_max": 1,
    "n_batch": 2048,
    "n_ubatch": 512,
    "type_k": "f16",
    "type_v": "f16",
    "kv_unified": False,
    "swa_full": False,
    "fa": "auto",
    "n_rs_seq": 0,
    "n_outputs_max": 0,
    "offload_kqv": True,
    "n_gpu_layers": None,
    "split_mode": "layer",
    "tensor_split": None,
}
_FLASH: dict[Any, bool] = {
    **dict.fromkeys(["auto", "on", "enabled", True, -1], True),
    **dict.fromkeys(["off", "disabled", False], False),
}
"""As the command line, the log and `llama_flash_attn_type` (-1 auto, 0, 1) say it."""


class Run(NamedTuple):
    """A context as llama.cpp sets it up: `cells` in each of `streams` (one of all sequences if unified), `fa` flash attention."""

    cells: int
    streams: int
    sequences: int
    n_batch: int
    n_ubatch: int
    type_k: str
    type_v: str
    unified: bool
    swa_full: bool
    fa: bool
    snapshots: int
    outputs: int
    on_device: bool
    gpu_layers: int | None = None
    """How many layers lie on devices, the output among them; None is all."""

    def window_cells(self, window: int, *, shared: bool) -> int:
        """Cells of a sliding layer: the window of each sequence that shares the stream and one micro-batch, padded."""
        if self.swa_full:
            return self.cells
        return pad(min(self.cells, window * (self.sequences if shared else 1) + self.n_ubatch), PAD_CELLS)


def pad(value: int, multiple: int) -> int:
    """The next multiple (GGML_PAD)."""
    return -(-value // multiple) * multiple


def block_of(kind: str) -> tuple[int, int]:
    """Elements and bytes of a cache type's block."""
    return BLOCKS.get(kind) or FORK_BLOCKS[kind]


def row_bytes(kind: str, elements: int) -> int:
    """Bytes of a row (`ggml_row_size`). Raises `UsageError` where blocks do not divide it."""
    block, size = block_of(kind)
    if elements % block:
        raise UsageError(
            f"llama.cpp refuses a {kind} cache here: its blocks of {block} do not divide a row of {elements}", hint="f16 or bf16"
        )
    return elements // block * size


def run_of(architecture: Architecture, rules: Rules, settings: Settings, types: Collection[str] = BLOCKS.keys()) -> Run:
    """The context for these settings, whose caches are of one of the `types`.

    Without `n_ctx` it is users times context, so that each sequence has its context, padded. `n_ctx` 0 is the model's own context. Data
    parallelism is so many servers, each with its share of the users.
    """
    named = settings.named
    reject_unknown(named, set(DEFAULTS), "llama.cpp")
    value = {**DEFAULTS, **_from_ask(settings), **{name: given for name, given in named.items() if given is not None}}
    sequences = _count(value, "n_seq_max", least=1)
    unified = _flag(value, "kv_unified")
    if named.get("n_ctx") is None:
        value["n_ctx"] = _told(value, sequences, unified=unified) or settings.context * sequences
    asked = _count(value, "n_ctx") or rules.context_tokens or architecture.max_context_tokens
    n_batch = min(asked, _count(value, "n_batch", least=1))
    n_ubatch = min(n_batch, _count(value, "n_ubatch") or n_batch)
    total = pad(asked, PAD_CELLS)
    cells = total if unified else pad(total // sequences, PAD_CELLS)
    if cells == 0:
        raise UsageError(f"llama.cpp refuses n_ctx {asked} for {sequences} sequences: none is left for each", hint="a larger n_ctx")
    return Run(
        cells=cells,
        streams=1 if unified else sequences,
        sequences=sequences,
        n_batch=n_batch,
        n_ubatch=n_ubatch,
        type_k=_type(value, "type_k", types),
        type_v=_type(value, "type_v", types),
        unified=unified,
        swa_full=_flag(value, "swa_full"),
        fa=_flash(value["fa"]) and rules.flash,
        snapshots=_count(value, "n_rs_seq"),
        outputs=_count(value, "n_outputs_max"),
        on_device=_flag(value, "offload_kqv"),
        gpu_layers=_gpu_layers(value),
    )


def _told(value: Mapping[str, Any], sequences: int, *, unified: bool) -> int | None:
    """The whole context where a log gives a sequence's: `n_ctx_seq`, which is the pool's if it is unified, before that `n_ctx_per_seq`."""
    if value["n_ctx_seq"] is not None:
        return _count(value, "n_ctx_seq", least=1) * (1 if unified else sequences)
    return None if value["n_ctx_per_seq"] is None else _count(value, "n_ctx_per_seq", least=1) * sequences


def _from_ask(settings: Settings) -> dict[str, Any]:
    """The asked users and dtype in llama.cpp's words. Its `auto` is f16, which is also where a 16-bit dtype goes that was not named."""
    dtype = settings.kv_dtype
    kinds = ("f16", "f16") if dtype.name == "auto" else (dtype.k, dtype.v)
    return {"n_seq_max": ceil(settings.users / settings.dp), "type_k": kinds[0], "type_v": kinds[1]}


def _count(value: Mapping[str, Any], name: str, *, least: int = 0) -> int:
    found = value[name]
    if isinstance(found, bool) or not isinstance(found, int) or found < least:
        raise UsageError(f"{name} is {found!r}, and must be a whole number, {least} or more")
    return found


def _flag(value: Mapping[str, Any], name: str) -> bool:
    if value[name] not in (True, False):
        raise UsageError(f"{name} is {value[name]!r}", hint="true or false")
    return bool(value[name])


def _gpu_layers(value: Mapping[str, Any]) -> int | None:
    """`-ngl`: the last so many layers, the output counted as one; negative, `all` and `auto` put all of them where they fit.

    Layers lie whole on a device, in order (`--split-mode layer`, or `none` on one), and equal devices share them evenly.
    """
    if value["split_mode"] not in ("layer", "none", 0, 1):
        raise UnknownFact(f"llama.cpp's split mode {value['split_mode']!r} is not modelled", hint="split_mode layer")
    shares = value["tensor_split"]
    parts = re.split(r"[,/;]", shares) if isinstance(shares, str) else list(shares) if isinstance(shares, list | tuple) else [shares]
    if len({str(part).strip() for part in parts}) > 1:
        raise UnknownFact("how much of the caches lies on each device under an uneven tensor_split is not modelled")
    given = value["n_gpu_layers"]
    if given is None or given in ("all", "auto"):
        return None
    if isinstance(given, bool) or not isinstance(given, int):
        raise UsageError(f"n_gpu_layers is {given!r}, and must be a whole number, all or auto")
    return None if given < 0 else given


def _flash(found: Any) -> bool:
    """Whether flash attention is on; `auto` is, wherever the device has the kernel, and the cache is laid out as if it were."""
    if not isinstance(found, str | int) or found not in _FLASH:
        raise UsageError(f"fa is {found!r}", hint="auto, on or off")
    return _FLASH[found]


def _type(value: Mapping[str, Any], name: str, types: Collection[str]) -> str:
    found = value[name].lower() if isinstance(value[name], str) else value[name]
    if not isinstance(found, str) or found not in types:
        raise UsageError(f"llama.cpp has no cache type {found!r} ({name})", hint=f"one of {', '.join(types)}")
    return found
