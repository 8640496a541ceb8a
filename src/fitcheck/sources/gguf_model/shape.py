"""What every architecture's file says in the same keys, and the attention of each block that follows from it.

llama.cpp build 11549, `llama_model_base::load_hparams` (`src/llama-model.cpp`) and `llama_hparams` (`src/llama-hparams.cpp`).
"""

from __future__ import annotations

from typing import NamedTuple

from fitcheck.catalogue.layers import LayerGroup
from fitcheck.sources.families.fields import MOST_LAYERS, Unsettled
from fitcheck.sources.families.groups import NOTHING, Heads, by_shape
from fitcheck.sources.gguf_model.keys import Keys


class Shape(NamedTuple):
    """The decoder's layers, the draft blocks after them, and for each block the heads and the feed-forward size.

    `full` and `slid` are the widths of a key and a value in full and in sliding layers; None without attention heads.
    """

    layers: int
    blocks: int
    hidden: int
    heads: list[int]
    kv_heads: list[int]
    feed_forward: list[int]
    full: tuple[int, int] | None
    slid: tuple[int, int] | None

    @property
    def draft(self) -> int:
        """Draft (NextN) blocks, which come last."""
        return self.blocks - self.layers


def shape_of(keys: Keys) -> Shape:
    """The shape. A width that is not given is the hidden size over the first block's heads, rounded down."""
    blocks = keys.count("block_count", most=MOST_LAYERS)
    draft = keys.maybe("nextn_predict_layers", most=blocks, least=0) or 0
    if draft == blocks:
        raise Unsettled(f"all {blocks} blocks are draft blocks (nextn_predict_layers)")
    hidden = keys.count("embedding_length")
    heads = keys.per_block("attention.head_count", blocks) or [0] * blocks
    kv_heads = keys.per_block("attention.head_count_kv", blocks) or heads
    feed_forward = keys.per_block("feed_forward_length", blocks) or [0] * blocks
    full = slid = None
    if heads[0]:
        each = hidden // heads[0]
        full = (keys.maybe("attention.key_length") or each, keys.maybe("attention.value_length") or each)
        slid = (keys.maybe("attention.key_length_swa") or full[0], keys.maybe("attention.value_length_swa") or full[1])
    return Shape(blocks - draft, blocks, hidden, heads, kv_heads, feed_forward, full, slid)


def attention_of(shape: Shape, kinds: list[str], window: int | None, sliding_kind: str) -> tuple[LayerGroup, ...]:
    """Groups of so many blocks as there are kinds; one without KV heads keeps nothing."""
    rows = [
        (NOTHING, Heads(1, 1, 1)) if kind == NOTHING or not kept else (kind, _heads(shape, kept, slides=kind == sliding_kind))
        for kind, kept in zip(kinds, shape.kv_heads, strict=False)
    ]
    return by_shape(rows, window)


def draft_of(shape: Shape, kinds: list[str], window: int | None, sliding_kind: str) -> tuple[LayerGroup, ...]:
    """Groups of the draft blocks; `kinds` tells those of all blocks."""
    last = shape._replace(kv_heads=shape.kv_heads[shape.layers :])
    return attention_of(last, kinds[shape.layers :], window, sliding_kind)


def _heads(shape: Shape, kept: int, *, slides: bool) -> Heads:
    widths = shape.slid if slides else shape.full
    if widths is None:
        raise Unsettled("attention.head_count is missing or 0 in the first block, so that a head's width is not known")
    if 0 in widths:
        raise Unsettled(f"embedding_length {shape.hidden} is less than attention.head_count {shape.heads[0]}")
    return Heads(kept, *widths)
