"""DeepSeek V4 and V4.1 in vLLM: compressed records, index keys, windows and compressor states, packed side by side in a block.

Sources: vLLM 0.33.0: vllm/models/deepseek_v4/{attention,compressor}.py, vllm/models/deepseek_v41/{attention,compressor}.py,
`DeepseekV4SWACache` (vllm/v1/attention/backends/mla/sparse_swa.py).
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from fitcheck.catalogue.layers import Compressed, CompressedWindow, Indexer, LayerGroup
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.vllm_caches import Cache
from fitcheck.fit.engines.vllm_settings import Asked

KEY_DIM, ROW_DIM = 128, 512
"""Widths of an index key and of a record, where a config leaves them out."""

V4_RATIOS = (4, 128)

V4_BLOCK_TOKENS, V4_WINDOW_BLOCK_TOKENS = 256, 64
V41_WINDOW_BLOCK_TOKENS = 32

V4_STATE_BLOCKS = {4: 4, 128: 8}
"""Tokens of a compressor state's block (`CompressorStateCache`)."""


class Layout(NamedTuple):
    """The names of a record and a window record, and what their pages are rounded up to."""

    record: str
    window: str
    alignment: int


_FP8 = Layout("fp8", "fp8", 576)
_SM100 = Layout("fp8_sm100", "fp8_sm100", 512)
_FP4 = Layout("fp4", "fp4", 512)
_FP4_FORK = Layout("fp4", "fp4", 1)

PLAIN = {"plain_fp8": 1, "plain_bf16": 2}
"""Rows of a record's elements as they are, and the bytes of each: FlashInfer's, which align pages to 512 bytes, index keys too
(`DeepseekV4Attention.get_kv_cache_spec`, `DeepseekV4IndexerCache`: "576B for FlashMLA packing; 512B for FlashInfer sparse")."""

FLASHINFER = "FLASHINFER_MLA_SPARSE_DSV4"


def is_v4(groups: tuple[LayerGroup, ...]) -> bool:
    """Whether the compressed caches are those of V4 (one record for 4 or 128 tokens), not of V4.1 (for 1 or 2)."""
    return any(isinstance(group, Compressed) and group.ratio in V4_RATIOS for group in groups)


def _layout(asked: Asked, *, v4: bool) -> Layout:
    """The records that a dtype means: `_resolve_dsv4_kv_cache_dtype`, `_select_dsv4_attn_cls`.

    V4 packs FP8 alone; FlashInfer's rows are plain, except on SM12x, and the only ones in 16 bits. V4.1 packs 528 bytes on SM10x and 584
    elsewhere; NVFP4 needs SM10x, whose `auto` it is. Before 0.31 forks for GB10 had NVFP4 too, with pages that were not rounded.
    """
    plain = _plain(asked, v4=v4)
    if plain is not None:
        return plain
    if asked.dtype in ("fp8", "fp8_ds_mla") or (asked.auto_dtype and (v4 or asked.major in (9, 12))):
        return _SM100 if asked.major == 10 and not v4 else _FP8
    if v4:
        raise UnknownFact(f"vLLM's packed layout of DeepSeek V4 has FP8 records only; that of {asked.dtype} is not published")
    if asked.dtype in ("nvfp4", "nvfp4_ds_mla") or (asked.auto_dtype and asked.major == 10):
        return _FP4 if asked.rules.balanced else _FP4_FORK
    if asked.auto_dtype:
        raise UnknownFact(
            "DeepSeek V4.1's record depends on the GPU where the KV dtype is auto",
            hint="name the KV dtype (fp8, nvfp4_ds_mla) or compute_capability (9.0, 10.0, 12.1)",
        )
    raise UnknownFact(f"the layout of DeepSeek V4.1's records in {asked.dtype} is not published")


def _plain(asked: Asked, *, v4: bool) -> Layout | None:
    """FlashInfer's rows, where that backend is named or 16 bits are asked of V4, which no other takes."""
    named = asked.backend == FLASHINFER
    if named and not v4:
        raise UnknownFact(f"the layout of DeepSeek V4.1's records under {FLASHINFER} is not known")
    if asked.major == 12 or not (named or (v4 and asked.dtype == "bf16" and not asked.auto_dtype)):
        return None
    if asked.dtype not in ("fp8", "bf16"):
        raise UsageError(f"vLLM's FlashInfer has no rows of DeepSeek V4 in {asked.dtype}", hint="fp8 or bfloat16")
    return Layout(f"plain_{asked.dtype}", f"plain_{asked.dtype}", 512)


def compressed_caches(groups: tuple[LayerGroup, ...], drafts: tuple[LayerGroup, ...], asked: Asked) -> tuple[Cache, ...]:
    """Caches of all layers of a model with compressed attention, its draft layers included."""
    v4 = is_v4(groups)
    layout = _layout(asked, v4=v4)
    block = asked.block_tokens or (V4_BLOCK_TOKENS if v4 else 64 if asked.major == 9 else 128)
    window_block = asked.window_block_tokens or (V4_WINDOW_BLOCK_TOKENS if v4 else V41_WINDOW_BLOCK_TOKENS)
    found: list[Cache] = []
    for group in (*groups, *drafts):
        if isinstance(group, Compressed):
            own = _own_block(group.ratio, block, layout, asked)
            size = ceil(own / group.ratio) * _record(group, layout.record)
            found.append(_cache(f"KV, compressed 1:{group.ratio}", group.layers, own, _up(size, layout.alignment)))
            found += _states(group.layers, group.ratio, group.row_dim or ROW_DIM, layout, asked)
        elif isinstance(group, Indexer):
            own = _own_block(group.pool_tokens, block, layout, asked)
            found.append(
                _cache("index keys", group.layers, own, _up(ceil(own / group.pool_tokens) * _key(group, layout, asked), layout.alignment))
            )
            if v4:
                found += _states(group.layers, group.pool_tokens, group.key_dim or KEY_DIM, layout, asked)
        elif isinstance(group, CompressedWindow):
            page = _up(window_block * _record(group, layout.window), layout.alignment)
            found.append(
                Cache("KV, recent window", "cache", "sliding", group.layers, window_block, page, (), group.window_tokens, latent=True)
            )
    return tuple(found)


def _cache(name: str, layers: int, block: int, page: int) -> Cache:
    return Cache(name, "cache", "full", layers, block, page, (page,), latent=True)


def _up(size: int, alignment: int) -> int:
    return ceil(size / alignment) * alignment


def _record(group: Compressed | CompressedWindow, name: str) -> int:
    """Bytes of a record; 528 on SM10x where a model's entry names only the FP8 one of other GPUs."""
    sizes = group.record_bytes
    if name in PLAIN:
        return PLAIN[name] * (group.row_dim or ROW_DIM)
    if name not in sizes and name != "fp8_sm100":
        raise UnknownFact(f"the bytes of a record in {name} are not published for this model")
    return sizes.get(name, 528)


def _key(group: Indexer, layout: Layout, asked: Asked) -> int:
    """Bytes of an index key: FP8 unless `indexer_kv_dtype` says otherwise (`dsa_indexer_uses_fp4`); the forks' NVFP4 has 4-bit keys.

    MXFP4 is half a byte an element and an E8M0 scale for 32 (`DeepseekV4Indexer`).
    """
    if not (asked.index_fp4 or layout is _FP4_FORK):
        return group.bytes_per_key
    if group.fp4_bytes_per_key is None:
        width = group.key_dim or KEY_DIM
        return width // 2 + width // 32
    return group.fp4_bytes_per_key


def _own_block(ratio: int, block: int, layout: Layout, asked: Asked) -> int:
    """Tokens of a cache's block: the model's; before 0.31 on SM12x 64 records, so that V4.1's ratio-1 layer had blocks of its own."""
    return 64 * ratio if not asked.rules.balanced and layout is _FP8 and asked.major == 12 and ratio <= 2 else block


def _states(layers: int, ratio: int, width: int, layout: Layout, asked: Asked) -> list[Cache]:
    """What a compressor keeps in FP32: keys and scores of the tokens that make its next record.

    V4: a window of `coff x ratio` tokens, `coff` 2 where windows overlap (ratio 4). V4.1: a ring of one block for ratio 2, with room for
    the draft tokens; ratio 1 keeps nothing.
    """
    if ratio in V4_STATE_BLOCKS:
        overlap = 2 if ratio == 4 else 1
        block = V4_STATE_BLOCKS[ratio]
        page = _up(block * 2 * overlap * width * 4, layout.alignment)
        return [Cache("compressor state", "state", "sliding", layers, block, page, (width,), overlap * ratio, latent=True)]
    if ratio == 1:
        return []
    rows = max(8, 1 << ((asked.draft_tokens or 0) + 1).bit_length())
    return [Cache("compressor state", "state", "ring", layers, rows, rows * 2 * width * 4)]
