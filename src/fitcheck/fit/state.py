"""What a sequence keeps on a device: bytes of KV cache and recurrent state by layer group.

General formulas, as the architecture defines the state; what a particular engine rounds up or reserves on top is that engine's rule and
not applied here. Sizes are whole bytes, rounded up.

Sources: the model configs; MLA: DeepSeek-V2 paper, section 2.1 (one latent of `kv_lora_rank` + `qk_rope_head_dim` per token and layer);
DSA index keys: 128 FP8 elements and one FP32 scale a key (vLLM `deepseek_v32_indexer`); linear attention and Mamba-2 states: one matrix
per head and a convolution tail of kernel - 1 steps, independent of the context.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from fitcheck.catalogue.layers import (
    Attention,
    Chunked,
    Compressed,
    CompressedWindow,
    Compressor,
    Cross,
    Indexer,
    Latent,
    LayerGroup,
    Recurrent,
    Sliding,
    Stateless,
)
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UsageError

ELEMENT_BYTES: dict[str, Fraction] = {
    "f32": Fraction(4),
    "bf16": Fraction(2),
    "f16": Fraction(2),
    "fp8": Fraction(1),
    "q8_0": Fraction(34, 32),
    "q6_0": Fraction(26, 32),
    "q5_1": Fraction(24, 32),
    "q5_0": Fraction(22, 32),
    "q4_1": Fraction(20, 32),
    "q4_0": Fraction(18, 32),
    "iq4_nl": Fraction(18, 32),
    "nvfp4": Fraction(9, 16),
    "mxfp4": Fraction(17, 32),
    "mxfp8": Fraction(33, 32),
    "int8_per_token_head": Fraction(1),
    "fp8_per_token_head": Fraction(1),
    "int4_per_token_head": Fraction(1, 2),
}
"""Bytes per cached element with its share of the block scales: ggml's block sizes (ggml-common.h: `block_q8_0` is 34 bytes for 32
elements), NVFP4 one FP8 scale for 16 elements, MXFP4 one E8M0 scale for 32. vLLM's `*_per_token_head` keep FP32 scales beside the
elements, which its own module counts."""

LATENT_ROW_BYTES: dict[str, int] = {"fp8_ds_mla": 656, "nvfp4_ds_mla": 432}
"""Row layouts of the MLA cache that are not `elements x bytes`: `fp8_ds_mla` holds 512 FP8, 4 FP32 scales and 64 BF16 rope elements
(512 + 16 + 128; vLLM, `concat_and_cache_ds_mla`) and keeps its size where a model has no rope part; `nvfp4_ds_mla` is the 432 bytes that
vLLM's log of GLM-5.2 on GB10 amounts to (local-inference-lab/vllm PR 82)."""

_FOUR_BIT = ("nvfp4", "mxfp4", "nvfp4_ds_mla")

_SPELLED = {
    "fp32": "f32",
    "float32": "f32",
    "fp8_e4m3fn": "fp8_e4m3",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e4m3": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
}
"""PyTorch's names of dtypes, which logs print (`torch.float8_e4m3fn`)."""

_SAME = {
    "auto": "bf16",
    "bfloat16": "bf16",
    "fp16": "f16",
    "float16": "f16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp4": "nvfp4",
    "fp4_e2m1": "nvfp4",
    "fp4_mx_block16": "nvfp4",
}


class KvDtype(NamedTuple):
    """The cache's element type, as asked: one name, or `K/V` where keys and values differ."""

    name: str
    k: str
    v: str

    def width(self, part: str) -> Fraction:
        """Bytes per element of a key (`k`) or value (`v`)."""
        named = self.k if part == "k" else self.v
        return ELEMENT_BYTES["fp8" if named == "fp8_ds_mla" else "nvfp4" if named == "nvfp4_ds_mla" else named]


def kv_dtype(name: str) -> KvDtype:
    """The dtype of a name such as `fp8`, `auto` (16-bit) or `q8_0/f16`. Raises `UsageError` for one nobody uses."""
    named = [_SPELLED.get(part, part) for part in (part.strip().removeprefix("torch.") for part in name.lower().split("/"))]
    parts = [_SAME.get(part, part) for part in named]
    known = {*ELEMENT_BYTES, *LATENT_ROW_BYTES}
    if len(parts) > 2 or any(part not in known for part in parts):
        names = ", ".join(sorted(known | set(_SAME)))
        raise UsageError(f"unknown KV dtype {ascii(name)[:80]}", hint=f"one of {names}, or K/V such as q8_0/f16")
    return KvDtype("/".join(named), parts[0], parts[-1])


class Share(NamedTuple):
    """What part of the model a device holds: tensor parallelism divides heads, pipeline parallelism divides layers."""

    tp: int = 1
    pp: int = 1

    def layers(self, layers: int) -> int:
        """Layers of a group on the fullest stage."""
        return ceil(layers / self.pp)

    def heads(self, kv_heads: int) -> int:
        """KV heads on one rank. Past one head a rank, heads are replicated, so a rank never holds less than one."""
        return ceil(kv_heads / self.tp)


class StatePart(NamedTuple):
    """Bytes that one group keeps for one sequence on the fullest device.

    `per_token` is how fast it grows at that context; `fixed` parts do not depend on the context at all.
    """

    name: str
    bytes: int
    per_token: Fraction
    fixed: bool
    formula: str


def _kv_row(group: Attention | Sliding | Chunked | Cross, dtype: KvDtype, share: Share) -> tuple[Fraction, str]:
    heads, layers = share.heads(group.kv_heads), share.layers(group.layers)
    row = layers * heads * (group.k_dim * dtype.width("k") + group.v_dim * dtype.width("v"))
    widths = f"({group.k_dim} x {_number(dtype.width('k'))} + {group.v_dim} x {_number(dtype.width('v'))}) B"
    return row, f"{_layers(layers)} x {heads} KV heads x {widths}"


def _attention(group: Attention, tokens: int, dtype: KvDtype, share: Share) -> StatePart:
    row, words = _kv_row(group, dtype, share)
    return StatePart("KV, full attention", ceil(row * tokens), row, False, f"{words} x {tokens:,} tokens")


def _sliding(group: Sliding, tokens: int, dtype: KvDtype, share: Share) -> StatePart:
    row, words = _kv_row(group, dtype, share)
    kept = min(tokens, group.window_tokens)
    rate = row if tokens < group.window_tokens else Fraction(0)
    return StatePart("KV, sliding window", ceil(row * kept), rate, False, f"{words} x {kept:,} tokens (window {group.window_tokens:,})")


def _chunked(group: Chunked, tokens: int, dtype: KvDtype, share: Share) -> StatePart:
    row, words = _kv_row(group, dtype, share)
    kept = min(tokens, group.chunk_tokens)
    rate = row if tokens < group.chunk_tokens else Fraction(0)
    return StatePart("KV, chunked attention", ceil(row * kept), rate, False, f"{words} x {kept:,} tokens (chunk {group.chunk_tokens:,})")


def _cross(group: Cross, _tokens: int, dtype: KvDtype, share: Share) -> StatePart:
    if group.positions is None:
        raise UnknownFact("the encoder's positions depend on the input, so the cross-attention cache is not known from the config")
    row, words = _kv_row(group, dtype, share)
    size = ceil(row * group.positions)
    return StatePart("KV, cross-attention", size, Fraction(0), True, f"{words} x {group.positions:,} encoder positions")


def _latent(group: Latent, tokens: int, dtype: KvDtype, share: Share) -> StatePart:
    layers = share.layers(group.layers)
    if dtype.k in LATENT_ROW_BYTES:
        row, words = Fraction(LATENT_ROW_BYTES[dtype.k]), f"{LATENT_ROW_BYTES[dtype.k]} B ({dtype.k} row)"
    else:
        row = (group.latent_dim + group.rope_dim) * dtype.width("k")
        words = f"({group.latent_dim} + {group.rope_dim}) x {_number(dtype.width('k'))} B"
    formula = f"{_layers(layers)} x {words} x {tokens:,} tokens, whole on each rank"
    return StatePart("KV, latent (MLA)", ceil(layers * row * tokens), layers * row, False, formula)


def _indexer(group: Indexer, tokens: int, dtype: KvDtype, share: Share) -> StatePart:
    layers = share.layers(group.layers)
    size = group.fp4_bytes_per_key if dtype.k in _FOUR_BIT and group.fp4_bytes_per_key else group.bytes_per_key
    keys = ceil(tokens / group.pool_tokens)
    pooled = f" (one per {group.pool_tokens} tokens)" if group.pool_tokens > 1 else ""
    formula = f"{_layers(layers)} x {size} B x {keys:,} keys{pooled}, whole on each rank"
    rate = Fraction(layers * size, group.pool_tokens)
    return StatePart("index keys", layers * size * keys, rate, False, formula)


def _record(group: Compressed | CompressedWindow, dtype: KvDtype) -> tuple[Fraction, str]:
    """A compressed record's bytes: the native FP8 layout unless asked otherwise, the 4-bit layout where there is one, else plain elements.

    Raises `UnknownFact` for a dtype that no published layout or row length covers.
    """
    table = group.record_bytes
    if dtype.name == "auto" or dtype.k in ("fp8", "fp8_ds_mla"):
        return Fraction(table["fp8"]), "FP8 record"
    if dtype.k in _FOUR_BIT and "fp4" in table:
        return Fraction(table["fp4"]), "4-bit record"
    if dtype.k not in LATENT_ROW_BYTES and dtype.k not in _FOUR_BIT and group.row_dim is not None:
        return group.row_dim * dtype.width("k"), f"{group.row_dim} x {_number(dtype.width('k'))} B"
    raise UnknownFact(f"no record of compressed attention in {dtype.name} is published", hint="ask with --kv-dtype auto")


def _compressed(group: Compressed, tokens: int, dtype: KvDtype, share: Share) -> StatePart:
    layers = share.layers(group.layers)
    size, layout = _record(group, dtype)
    records = ceil(tokens / group.ratio)
    formula = f"{_layers(layers)} x {_number(size)} B ({layout}) x {records:,} records (1:{group.ratio}), whole on each rank"
    return StatePart(f"KV, compressed 1:{group.ratio}", ceil(layers * size * records), layers * size / group.ratio, False, formula)


def _compressed_window(group: CompressedWindow, tokens: int, dtype: KvDtype, share: Share) -> StatePart:
    layers = share.layers(group.layers)
    size, layout = _record(group, dtype)
    kept = min(tokens, group.window_tokens)
    rate = layers * size if tokens < group.window_tokens else Fraction(0)
    formula = f"{_layers(layers)} x {_number(size)} B ({layout}) x {kept:,} tokens (window {group.window_tokens:,}), whole on each rank"
    return StatePart("KV, recent window", ceil(layers * size * kept), rate, False, formula)


def _compressor(group: Compressor, _tokens: int, _dtype: KvDtype, share: Share) -> StatePart:
    layers, row = share.layers(group.layers), group.bytes_per_token + group.index_bytes_per_token
    formula = f"{_layers(layers)} x {row:,} B (FP32) x {group.window_tokens:,} tokens, whole on each rank"
    return StatePart("compressor state", layers * row * group.window_tokens, Fraction(0), True, formula)


def _recurrent(group: Recurrent, _tokens: int, _dtype: KvDtype, share: Share) -> StatePart:
    layers = share.layers(group.layers)
    state = ceil(group.state_elements / share.tp) * group.state_dtype_bytes
    tail = ceil(group.conv_elements / share.tp) * group.conv_dtype_bytes
    divided = f" / {share.tp} ranks" if share.tp > 1 else ""
    words = f"{group.state_elements:,} x {group.state_dtype_bytes} B + {group.conv_elements:,} x {group.conv_dtype_bytes} B"
    formula, once = f"{_layers(layers)} x ({words}){divided}", group.ngram_conv_elements * group.conv_dtype_bytes
    if once:
        formula += f" + {group.ngram_conv_elements:,} x {group.conv_dtype_bytes} B in one layer, whole on each rank"
    return StatePart("recurrent state", layers * (state + tail) + once, Fraction(0), True, formula)


def _stateless(_group: Stateless, _tokens: int, _dtype: KvDtype, _share: Share) -> StatePart | None:
    return None


_RULES: dict[type[Any], Callable[[Any, int, KvDtype, Share], StatePart | None]] = {
    Attention: _attention,
    Sliding: _sliding,
    Chunked: _chunked,
    Cross: _cross,
    Latent: _latent,
    Indexer: _indexer,
    Compressed: _compressed,
    CompressedWindow: _compressed_window,
    Compressor: _compressor,
    Recurrent: _recurrent,
    Stateless: _stateless,
}


def group_state(group: LayerGroup, tokens: int, dtype: KvDtype, share: Share) -> StatePart | None:
    """Bytes that a layer group keeps for one sequence of `tokens` on the fullest device; None for groups that keep nothing."""
    return _RULES[type(group)](group, tokens, dtype, share)


def sequence_state(architecture: Architecture, tokens: int, dtype: KvDtype, share: Share) -> tuple[StatePart, ...]:
    """All parts that one sequence of `tokens` keeps on the fullest device, in the architecture's order."""
    parts = (group_state(group, tokens, dtype, share) for group in architecture.groups)
    return tuple(part for part in parts if part is not None)


def state_bytes(architecture: Architecture, tokens: int, dtype: KvDtype, share: Share) -> int:
    """Sum of `sequence_state`."""
    return sum(part.bytes for part in sequence_state(architecture, tokens, dtype, share))


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):g}"


def _layers(count: int) -> str:
    return "1 layer" if count == 1 else f"{count} layers"
