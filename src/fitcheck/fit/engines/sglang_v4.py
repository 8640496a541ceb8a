"""SGLang: the pools of DeepSeek V4 and V4.1 (`mem_cache/deepseek_v4_memory_pool.py`, `DeepSeekV4TokenToKVPool`), on CUDA.

A windowed pool of all layers, a compressed pool for each ratio, index keys, and the compressors' states. Earlier releases sized them
otherwise: states lay in pages of 128 tokens, those of ratio 128 too, so that logs of May 2026 say 15,955.85 bytes a token for V4-Flash
and 23,749.84 for V4-Pro (a log of August 9,259.90 for V4-Flash with drafts), where 0.5.23 comes to 7,086.75 and 10,115.25.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fitcheck.catalogue.layers import Compressed, CompressedWindow, Indexer
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import StateTerm
from fitcheck.fit.engines.sglang_ask import Asked
from fitcheck.fit.engines.sglang_families import DSV4_SWA_RATIO
from fitcheck.fit.engines.sglang_swa import by_ratio, chunk_tokens, request_cap

PAGE = 256
ROW_DIM = 512
INDEX_DIM = 128
LOW_RATIO_INDEX_PAGE = 64
FP4_INDEX_BYTES = INDEX_DIM // 2 + INDEX_DIM // 32
RINGS = {2: (2, None), 4: (8, 16), 128: (128, 256)}
"""Rows of a compressor's ring, without and with speculative decoding; see `_ring`."""


class Layout(NamedTuple):
    """A record's bytes and the multiple that a page is padded to (`kernels/ops/attention/dsv4/kv_layout.py`, `KVLayout`)."""

    row: int
    align: int

    def page(self, tokens: int) -> int:
        """Bytes of a page of so many records."""
        return -(-tokens * self.row // self.align) * self.align


V4, V41, V41_FP4, UNIFORM = Layout(584, 576), Layout(528, 512), Layout(288, 256), Layout(512, 1)
LAYOUTS = {"flashmla": (V4, V4), "flashmla_mega": (V41, V41_FP4), "trtllm": (UNIFORM, UNIFORM)}
"""Layouts of the window and of compressed records of ratio 1 and 2, by `--dsv4-attn-backend` (`select_dsv4_kv_layout`,
`resolve_compressed_kv_layout`). FlashMLA is the default; V4.1 takes `flashmla_mega` on SM100 where attention is not tensor-parallel."""


class Sizes(NamedTuple):
    """Tokens of the two pools."""

    full: int
    window: int


def terms(architecture: Architecture, asked: Asked) -> Iterator[StateTerm]:
    """All pools of a rank; the caches are whole on every one. `--kv-cache-dtype` does not matter: records have a layout of their own."""
    if asked.dcp > 1:
        raise UnknownFact("SGLang 0.5.23 spreads no compressed caches over decode-context ranks")
    backend = asked.named.get("dsv4_attn_backend", "flashmla")
    if backend not in LAYOUTS:
        raise UsageError(f"SGLang has no dsv4_attn_backend {backend!r}", hint=f"one of {', '.join(LAYOUTS)}")
    layout, low = LAYOUTS[str(backend)]
    if asked.dtype.k not in ("bf16", "fp8", "fp8_ds_mla"):
        raise UsageError(f"SGLang keeps the caches of {architecture.family} in FP8, not {asked.dtype.name!r}")
    if any(isinstance(group, Compressed | CompressedWindow) and group.row_dim not in (None, ROW_DIM) for group in architecture.groups):
        raise UnknownFact(f"SGLang's layouts are made for records of {ROW_DIM} elements")
    sizes = _sizes(architecture, asked)
    yield from _window(architecture, asked, sizes, layout)
    for group in architecture.groups:
        if isinstance(group, Compressed):
            yield _compressed(group, asked, sizes, low if group.ratio <= 2 else layout)
            yield from _compressor(group, asked, sizes)
        elif isinstance(group, Indexer):
            yield _index(group, asked, sizes)


def _sizes(architecture: Architecture, asked: Asked) -> Sizes:
    """Tokens of the full and of the windowed pool (`model_executor/pool_configurator.py`, `DSV4PoolConfigurator`).

    V4: a tenth of the full pool, or `--swa-full-tokens-ratio`; V4.1 sizes it from the requests, with four tails kept for each
    (`_resolve_swa_cap_tokens`, `_resolve_swa_prefix_tails`).
    """
    window = max(group.window_tokens for group in architecture.groups if isinstance(group, CompressedWindow))
    chunk = chunk_tokens(asked)
    if chunk and asked.named.get("swa_full_tokens_ratio") is None and architecture.family == "deepseek_v41":
        default = 0 if asked.named.get("disable_radix_cache") else 4 * asked.requests
        tails = 0 if asked.named.get("swa_prefix_tails") == 0 else asked.number("swa_prefix_tails", default)
        return Sizes(asked.slots, request_cap(asked, window, chunk, tails or 0))
    return Sizes(*by_ratio(asked, window, DSV4_SWA_RATIO))


def _window(architecture: Architecture, asked: Asked, sizes: Sizes, layout: Layout) -> Iterator[StateTerm]:
    """Records of recent tokens in every layer; a draft layer has such a pool and nothing else (`_derive_pool_sizes`)."""
    drafts = architecture.draft_groups if asked.drafting else ()
    pages = (sizes.window + PAGE) // PAGE
    for name, groups in (("KV, recent window", architecture.groups), ("KV, recent window of draft layers", drafts)):
        layers = sum(asked.layers(group.layers) for group in groups if isinstance(group, CompressedWindow))
        if layers:
            words = f"{layers} layers x {pages:,} pages x {layout.page(PAGE):,} B ({PAGE} tokens)"
            yield StateTerm(name, "cache", layers * pages * layout.page(PAGE), words)


def _compressed(group: Compressed, asked: Asked, sizes: Sizes, layout: Layout) -> StateTerm:
    """Compressed records, a page's tokens over the ratio to a page, and a logical page more (`_num_dsv4_physical_kv_pages`)."""
    records = PAGE // group.ratio
    pages = -(-(sizes.full // group.ratio + PAGE) // records)
    layers = asked.layers(group.layers)
    words = f"{layers} layers x {pages:,} pages x {layout.page(records):,} B ({records} records)"
    return StateTerm(f"KV, compressed 1:{group.ratio}", "cache", layers * pages * layout.page(records), words)


def _index(group: Indexer, asked: Asked, sizes: Sizes) -> StateTerm:
    """Index keys: FP8 and a scale for ratio 4, always FP4 for ratio 1 and 2, in pages of 64 (`_init_compressed_pools`)."""
    layers = asked.layers(group.layers)
    if group.pool_tokens == 4:
        keys, size = PAGE // 4, group.bytes_per_key
        pages = -(-(sizes.full // 128 * 32 + PAGE) // keys)
    else:
        keys, size = LOW_RATIO_INDEX_PAGE, FP4_INDEX_BYTES
        pages = -(-((sizes.full + PAGE) // group.pool_tokens + keys) // keys)
    return StateTerm("index keys", "cache", layers * pages * keys * size, f"{layers} layers x {pages:,} pages x {keys} keys x {size} B")


def _compressor(group: Compressed, asked: Asked, sizes: Sizes) -> Iterator[StateTerm]:
    """FP32 states of the compressors (`mem_cache/deepseek_v4_compress_state.py`, `CompressStatePool`).

    Ratio 4 keeps a ring for every page of the windowed pool, keys and scores of overlapping windows, also of the index keys; ratio 128
    and 2 a ring for each request and one to spare. Ratio 1 compresses nothing.
    """
    if group.ratio == 1:
        return
    ring = _ring(group.ratio, asked)
    owners = sizes.window // PAGE if group.ratio == 4 else asked.requests + 1
    rows = -(-(owners * ring + ring + 1) // group.ratio) * group.ratio
    width = 4 * (ROW_DIM + INDEX_DIM) if group.ratio == 4 else 2 * ROW_DIM
    layers = asked.layers(group.layers)
    words = f"{layers} layers x {rows:,} rows x {width:,} x 4 B"
    yield StateTerm(f"compressor state 1:{group.ratio}", "cache" if group.ratio == 4 else "state", layers * rows * width * 4, words)


def _ring(ratio: int, asked: Asked) -> int:
    """Rows of a compressor's ring; for ratio 2 it grows with the drafts (`get_compress_state_ring_size`)."""
    plain, drafting = RINGS[ratio]
    if not asked.speculative:
        return plain
    if drafting is None and not asked.draft_tokens:
        raise UnknownFact("speculative_num_draft_tokens is needed: the compressors of ratio 2 keep a ring as long as the drafts")
    return drafting or 1 << (asked.draft_tokens + 1).bit_length()
