"""Bytes of a token in an attention layer of vLLM, by KV dtype, and the pages that follow.

Sources: vLLM 0.33.0: `AttentionSpec.state_content_size_bytes`; `TritonAttentionBackend.customize_spec` (an FP32 scale for each key and
each value of a head in the per-token-head dtypes); `nvfp4_kv_cache_full_dim` (half a byte an element and an FP8 scale for 16);
`MLAAttention.get_kv_cache_spec` (656 and 352 bytes a row); `_canonicalize_sparse_mla_kv_cache_dtype`; `DeepseekV32IndexerCache`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from fitcheck.catalogue.layers import Attention, Chunked, Cross, Indexer, Latent, LayerGroup, Sliding
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.vllm_caches import Cache
from fitcheck.fit.engines.vllm_settings import HOPPER, Asked

BLOCK_TOKENS = 16
"""`CacheConfig.DEFAULT_BLOCK_SIZE`, which FlashAttention, FlashInfer and Triton take."""

LATENT_BLOCK_TOKENS = 64
"""FlashMLA's and the sparse indexers' kernel block; other MLA backends take 16, 32 or 128."""

SPARSE_GQA_BLOCK_TOKENS = 128
"""MiniMax M3: one sparse block per page (`MiniMaxM3SparseBackend.get_supported_kernel_block_sizes`). An index of pooled keys beside
keys and values takes any multiple of 16 (`Qwen4ExpQSABackend`, whose kernels read whole pages)."""

EXPANDED = ("minicpm3",)
"""Families with MLA fields that vLLM runs as multi-head attention; values are padded to the keys' width (minicpm3.py)."""

SCALE_BYTES = 8
"""Two FP32 scales a head and token in the per-token-head dtypes."""


def _packed4(width: int) -> int:
    return width // 2 + width // 16


_HEAD_ROW: dict[str, Callable[[int, int], int]] = {
    "bf16": lambda k, v: 2 * (k + v),
    "fp8": lambda k, v: k + v,
    "nvfp4": lambda k, v: _packed4(k) + _packed4(v),
    "int8_per_token_head": lambda k, v: k + v + SCALE_BYTES,
    "fp8_per_token_head": lambda k, v: k + v + SCALE_BYTES,
    "int4_per_token_head": lambda k, v: k // 2 + v // 2 + SCALE_BYTES,
}
"""Bytes of one head's key and value."""

_LATENT_ROW: dict[str, Callable[[int], int]] = {
    "bf16": lambda width: 2 * width,
    "fp8": lambda width: width,
    "int8_per_token_head": lambda width: width + SCALE_BYTES,
    "fp8_per_token_head": lambda width: width + SCALE_BYTES,
    "int4_per_token_head": lambda width: width // 2 + SCALE_BYTES,
    "fp8_ds_mla": lambda _width: 656,
    "nvfp4_ds_mla": lambda _width: 352,
}
"""Bytes of a latent row. 352 is vLLM's own, for SM10x: 256 of FP4, 32 scales, 64 of FP8 rope."""

_LATENT_ROW_SM12X = {"nvfp4_ds_mla": 432}
"""What a fork's log of GLM-5.2 on GB10 amounts to (local-inference-lab/vllm PR 82); vLLM itself has no such row there."""

_SPARSE: dict[tuple[str, int | None], str] = {
    ("fp8", None): "fp8_ds_mla",
    ("fp8", 9): "fp8_ds_mla",
    ("fp8", 12): "fp8_ds_mla",
    ("auto", 12): "fp8_ds_mla",
}
"""The row that a sparse MLA backend stores for a dtype, by GPU generation: FlashMLA sparse (Hopper) and FlashInfer's SM12x backend pack
8-bit rows into 656 bytes, FlashInfer on SM10x keeps them plain. Where the GPU is not named, the packed row, as in all logs of GLM-5.1."""

_PLAIN_ON_HOPPER = ("fp8_e4m3",)
"""Names under which vLLM keeps the plain row on Hopper, where `fp8` becomes `fp8_ds_mla` before a backend is chosen (asked of 0.33)."""

_FP8_ON_SM10X = ("glm_moe_dsa", "glm5_next")
"""`GlmMoeDsaForCausalLM` and `Glm5NextModelConfig`: `auto` becomes FP8 on SM10x."""


def head_row(kv_heads: int, k_dim: int, v_dim: int, asked: Asked) -> int:
    """Bytes of a token in one layer on one rank; KV heads are replicated once there are more ranks than heads (`get_num_kv_heads`)."""
    if asked.dtype not in _HEAD_ROW:
        raise UsageError(f"vllm has no {asked.dtype} cache for attention that is not latent")
    return ceil(kv_heads / asked.tp) * _HEAD_ROW[asked.dtype](k_dim, v_dim)


def latent_row(group: Latent, asked: Asked, family: str, *, sparse: bool) -> int:
    """Bytes of a token's latent in one layer, whole on each rank."""
    if family in EXPANDED:
        if group.expanded_heads is None or group.expanded_k_dim is None:
            raise UnknownFact(f"{family}: vLLM stores the expanded keys and values, whose widths are missing")
        return head_row(group.expanded_heads, group.expanded_k_dim, group.expanded_k_dim, asked)
    dtype = _sparse_dtype(group, asked, family) if sparse else asked.dtype
    if dtype not in _LATENT_ROW:
        raise UnknownFact(f"the layout of a latent cache in {dtype} is not published")
    if asked.major == 12 and dtype in _LATENT_ROW_SM12X:
        return _LATENT_ROW_SM12X[dtype]
    return _LATENT_ROW[dtype](group.latent_dim + group.rope_dim)


def _sparse_dtype(group: Latent, asked: Asked, family: str) -> str:
    if asked.auto_dtype and asked.major == 10 and family in _FP8_ON_SM10X:
        return "fp8"
    if (group.rope_dim == 0 and asked.capability is None) or (asked.named_dtype in _PLAIN_ON_HOPPER and asked.major == HOPPER):
        return asked.dtype
    return _SPARSE.get(("auto" if asked.auto_dtype else asked.dtype, asked.major), asked.dtype)


def main_block(groups: tuple[LayerGroup, ...], asked: Asked) -> int:
    """Tokens of a block before it is aligned to a recurrent state (`_preferred_block_size_for_backends`)."""
    if asked.block_tokens is not None:
        return asked.block_tokens
    if any(isinstance(group, Latent) for group in groups):
        return LATENT_BLOCK_TOKENS
    unpooled = any(isinstance(group, Indexer) and group.pool_tokens == 1 for group in groups)
    return SPARSE_GQA_BLOCK_TOKENS if unpooled else BLOCK_TOKENS


def attention_caches(architecture: Architecture, groups: tuple[LayerGroup, ...], block: int, asked: Asked) -> tuple[Cache, ...]:
    """Caches of the attention layers among `groups`, with `block` tokens a block."""
    sparse = any(isinstance(group, Indexer) for group in architecture.groups)
    found = []
    for group in groups:
        if isinstance(group, Latent):
            row = latent_row(group, asked, architecture.family, sparse=sparse)
            name = "KV, latent (MLA)" if architecture.family not in EXPANDED else "KV, expanded"
            found.append(Cache(name, "cache", "full", group.layers, block, block * row, (row,), latent=True))
        elif isinstance(group, Indexer):
            found.append(_index_cache(group, block, asked))
        elif isinstance(group, Attention | Sliding | Chunked | Cross):
            found.append(_head_cache(group, block, asked))
    return tuple(found)


def _index_cache(group: Indexer, block: int, asked: Asked) -> Cache:
    size = group.bytes_per_key
    if asked.index_fp4:
        if group.fp4_bytes_per_key is None:
            raise UnknownFact("the bytes of a 4-bit index key are not published for this model")
        size = group.fp4_bytes_per_key
    return Cache("index keys", "cache", "full", group.layers, block, ceil(block / group.pool_tokens) * size, (size,), latent=True)


_SPANS: dict[type[Any], tuple[str, str, str]] = {
    Attention: ("KV, full attention", "full", ""),
    Sliding: ("KV, sliding window", "sliding", "window_tokens"),
    Chunked: ("KV, chunked attention", "chunked", "chunk_tokens"),
    Cross: ("KV, cross-attention", "cross", "positions"),
}
"""Name, kind and the field with the span of each attention with keys and values by head."""


def _head_cache(group: Attention | Sliding | Chunked | Cross, block: int, asked: Asked) -> Cache:
    name, kind, field = _SPANS[type(group)]
    span = getattr(group, field) if field else 0
    if span is None:
        raise UnknownFact("the encoder's positions depend on the input, so the cross-attention cache is not known from the config")
    row = head_row(group.kv_heads, group.k_dim, group.v_dim, asked)
    shape = (ceil(group.kv_heads / asked.tp), group.k_dim, group.v_dim)
    return Cache(name, "cache", kind, group.layers, block, block * row, shape, span)  # type: ignore[arg-type]
