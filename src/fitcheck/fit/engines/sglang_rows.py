"""SGLang: bytes that one layer keeps for one token on a rank."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from fitcheck.catalogue.layers import Attention, Chunked, Indexer, Latent, Sliding
from fitcheck.errors import UsageError
from fitcheck.fit.engines.sglang_ask import Asked

WIDTH = {
    "f32": Fraction(4),
    "bf16": Fraction(2),
    "f16": Fraction(2),
    "fp8": Fraction(1),
    "fp8_ds_mla": Fraction(1),
    "mxfp8": Fraction(33, 32),
    "nvfp4": Fraction(9, 16),
}
"""Bytes per element with the block scales: `mxfp8` one UE8M0 for 32 (`mem_cache/memory_pool.py`, `MHATokenToKVPoolMXFP8`), FP4 one byte
for 16 (`layers/quantization/fp4_kv_cache_quant_method.py`; `MLATokenToKVPoolFP4`)."""

DSA_WIDTH = {"f32", "bf16", "f16", "fp8", "fp8_ds_mla"}


class Row(NamedTuple):
    """Bytes for one token in one layer, and the words for it."""

    bytes: Fraction
    words: str


def width(asked: Asked) -> Fraction:
    """Bytes per element of the cache's dtype."""
    if asked.dtype.k != asked.dtype.v or asked.dtype.k not in WIDTH:
        raise UsageError(f"SGLang has no KV dtype {asked.dtype.name!r}", hint="one of auto, bf16, fp8_e4m3, mxfp8, nvfp4")
    return WIDTH[asked.dtype.k]


def head_row(group: Attention | Sliding | Chunked, asked: Asked) -> Row:
    """Keys and values of the heads on a rank (`model_executor/pool_configurator.py`, `DefaultPoolConfigurator._compute_cell_size`)."""
    heads, element = asked.heads(group.kv_heads), width(asked)
    words = f"{heads} KV heads x ({group.k_dim} + {group.v_dim}) x {float(element):g} B"
    return Row(heads * (group.k_dim + group.v_dim) * element, words)


def latent_row(group: Latent, asked: Asked, sparse: bool) -> Row:
    """A latent and its rope part, whole on each rank (`kv_cache_configurator.py`, `calculate_mla_kv_cache_dim`).

    With DSA an FP8 row holds the latent in FP8, an FP32 scale for every 128 of it, and the rope part in 16 bits; the TRT-LLM backend (the
    default on Blackwell) and TileLang store it raw, which is smaller. It is raw here where both backends are named so.
    """
    element, dims = width(asked), group.latent_dim + group.rope_dim
    if sparse and asked.dtype.k not in DSA_WIDTH:
        raise UsageError(f"SGLang keeps DSA caches in 16 bits or fp8_e4m3, not {asked.dtype.name!r}")
    if sparse and element == 1 and not _raw(asked):
        row = group.latent_dim + group.latent_dim // 128 * 4 + 2 * group.rope_dim
        return Row(Fraction(row), f"({group.latent_dim} fp8 + {group.latent_dim // 128} x 4 B scales + {group.rope_dim} x 2 B)")
    return Row(dims * element, f"({group.latent_dim} + {group.rope_dim}) x {float(element):g} B")


def _raw(asked: Asked) -> bool:
    if asked.dtype.k == "fp8_ds_mla":
        return False
    backends = [asked.named.get("dsa_prefill_backend"), asked.named.get("dsa_decode_backend")]
    return "trtllm" in backends or backends == ["tilelang", "tilelang"]


def index_bytes(group: Indexer, layers: int, asked: Asked) -> tuple[int, str]:
    """Index keys of DSA in whole pages, whole on every rank, also under DCP (`mem_cache/index_key_cache.py`, `IndexKeyCache`).

    Layers that share another's selection have none (`DSATokenToKVPool.skip_topk_layers`).
    """
    size = (asked.slots + asked.page) * asked.dcp - asked.page
    pages = (size + asked.page + 1) // asked.page
    row = asked.page // group.pool_tokens * group.bytes_per_key
    return layers * pages * row, f"{layers} layers x {pages:,} pages x {asked.page // group.pool_tokens} keys x {group.bytes_per_key} B"
