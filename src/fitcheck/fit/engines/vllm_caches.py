"""What one vLLM block holds of a layer (a page), and how many blocks a request takes.

Sources: vLLM 0.33.0, vllm/v1/kv_cache_interface.py (`max_memory_usage_bytes` and `max_admission_blocks_per_request` of each spec).
"""

from __future__ import annotations

from math import ceil
from typing import Literal, NamedTuple

from fitcheck.fit.engines.vllm_settings import Asked

Kind = Literal["full", "sliding", "chunked", "cross", "state", "ring"]


class Cache(NamedTuple):
    """Layers that keep the same page.

    `page_bytes` is one layer's part of a block of `block_tokens`. `span_tokens` is the window, the chunk or the encoder's positions.
    `row` tells layouts apart that happen to have pages of one size. `latent` pages cannot be padded to any size (flat rows).
    `checkpoints` are the blocks of a recurrent state for checkpoints inside a prefill. `replicated` states are whole on each rank.
    """

    name: str
    sort: Literal["cache", "state"]
    kind: Kind
    layers: int
    block_tokens: int
    page_bytes: int
    row: tuple[int, ...] = ()
    span_tokens: int = 0
    latent: bool = False
    flavour: str = ""
    checkpoints: int = 0
    replicated: bool = False

    @property
    def same_group(self) -> tuple[object, ...]:
        """What layers must have in common to be of one `KVCacheSpec`."""
        return self.kind, self.block_tokens, self.page_bytes, self.row, self.span_tokens, self.latent, self.flavour, self.replicated

    @property
    def same_blocks(self) -> tuple[object, ...]:
        """What layers must have in common to take the same blocks (`UniformTypeKVCacheSpecs.is_uniform_type`)."""
        return self.kind, self.block_tokens, self.span_tokens, self.page_bytes if self.kind == "state" else 0, self.replicated

    @property
    def layer_bytes(self) -> int:
        """One block of all its layers."""
        return self.layers * self.page_bytes


def blocks_per_request(cache: Cache, asked: Asked) -> int:
    """Blocks that one request of `asked.tokens` takes.

    A window keeps its tokens and those in flight, and may start within a block; decode-context parallelism divides the tokens of full
    attention, rounded up; a recurrent state has one block and one for each draft token, and one more in `align` mode.
    """
    if cache.kind == "full":
        return ceil(ceil(asked.tokens / asked.dcp) / cache.block_tokens)
    if cache.kind == "sliding":
        return ceil(min(cache.span_tokens - 1 + asked.in_flight_tokens, asked.tokens) / cache.block_tokens) + 1
    if cache.kind == "chunked":
        return ceil(min(cache.span_tokens + asked.in_flight_tokens, asked.tokens) / cache.block_tokens)
    if cache.kind == "cross":
        return ceil(cache.span_tokens / cache.block_tokens)
    return _state_blocks(cache, asked) if cache.kind == "state" else 1


def _state_blocks(cache: Cache, asked: Asked) -> int:
    drafts, mode = asked.draft_tokens or 0, asked.mode(cache.flavour)
    if mode == "all":
        return ceil(asked.tokens / cache.block_tokens) + drafts
    if mode == "none":
        return 1 + drafts
    return 2 + drafts + cache.checkpoints
