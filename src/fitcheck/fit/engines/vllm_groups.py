"""How vLLM shares one pool of blocks among unlike layers: groups of layers that take blocks together.

Every block has the bytes of the largest group, so a smaller group leaves the rest of its blocks unused. Before 0.27 a block of unlike
pages (DeepSeek V4) had slots for each size of page, and reserved them whether or not a group filled them.

Sources: vLLM 0.33.0, vllm/v1/core/kv_cache_planning.py; 0.20.2 to 0.28.0, vllm/v1/core/kv_cache_utils.py.
"""

from __future__ import annotations

from collections import defaultdict
from math import ceil
from typing import NamedTuple

from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.vllm_caches import Cache, blocks_per_request
from fitcheck.fit.engines.vllm_settings import Asked
from fitcheck.fit.engines.vllm_versions import Packing


class Group(NamedTuple):
    """Layers with one block table; `members` count the layers of this group alone.

    `slots` are the sizes of page that a block reserves and how many of each, where it reserves more than the group fills.
    """

    members: tuple[Cache, ...]
    slots: tuple[tuple[int, int], ...] = ()

    def filled_bytes(self, pp: int) -> int:
        """What the group puts in a block on the fullest pipeline stage."""
        return sum(ceil(member.layers / pp) * member.page_bytes for member in self.members)

    def bytes(self, pp: int) -> int:
        """What a block must have for the group on the fullest pipeline stage."""
        return sum(ceil(count / pp) * page for page, count in self.slots) or self.filled_bytes(pp)

    def blocks(self, asked: Asked) -> int:
        """Blocks of one request."""
        return max(blocks_per_request(member, asked) for member in self.members)


def make_groups(caches: tuple[Cache, ...], asked: Asked, *, packed: bool) -> tuple[Group, ...]:
    """`get_kv_cache_groups`: one group where all layers take the same blocks, else by page size.

    `packed` is for models whose layouts have the block outermost, so that pages of different sizes lie side by side in a block. Raises
    `UsageError` where the hybrid manager is off and layers stay unlike (`unify_hybrid_kv_cache_specs`).
    """
    merged = _merge(caches if asked.hybrid_manager else _promote(caches))
    if not merged:
        return ()
    if len({cache.same_blocks for cache in merged}) == 1:
        return (Group(merged),)
    if not asked.hybrid_manager:
        raise UsageError(
            "vLLM refuses disable_hybrid_kv_cache_manager here: these layers' caches cannot be made of one type",
            hint="leave the hybrid KV cache manager on",
        )
    if packed and len({cache.page_bytes for cache in merged}) > 1:
        return _packed(merged, asked)
    unified = _unify(merged)
    if unified is None:
        promoted = _merge(_promote(merged))
        if len({cache.same_blocks for cache in promoted}) > 1:
            raise UnknownFact("vLLM cannot give these layers' caches one page size")
        return (Group(promoted),)
    return _split(_merge(unified))


def _merge(caches: tuple[Cache, ...]) -> tuple[Cache, ...]:
    """Layers of equal layout together, in order of appearance: draft layers join the model's own."""
    layers: dict[tuple[object, ...], Cache] = {}
    for cache in caches:
        seen = layers.get(cache.same_group)
        layers[cache.same_group] = cache if seen is None else seen._replace(layers=seen.layers + cache.layers)
    return tuple(layers.values())


def _promote(caches: tuple[Cache, ...]) -> tuple[Cache, ...]:
    """`_promote_local_kv_cache_specs`: without the hybrid manager windows and chunks keep every token, beside full attention."""
    full = next((cache for cache in caches if cache.kind == "full"), None)
    if full is None:
        return caches
    return tuple(
        cache._replace(
            kind="full",
            block_tokens=full.block_tokens,
            page_bytes=cache.page_bytes * full.block_tokens // cache.block_tokens,
            span_tokens=full.span_tokens,
        )
        if cache.kind in ("sliding", "chunked")
        else cache
        for cache in caches
    )


def _unify(caches: tuple[Cache, ...]) -> tuple[Cache, ...] | None:
    """`unify_kv_cache_spec_page_size`: smaller pages get more tokens a block, or padding; None where latent rows allow neither."""
    largest = max(cache.page_bytes for cache in caches)
    unified = []
    for cache in caches:
        if cache.kind != "state" and largest % cache.page_bytes == 0:
            block = cache.block_tokens * (largest // cache.page_bytes)
            unified.append(cache._replace(block_tokens=block, page_bytes=largest))
        elif cache.latent:
            return None
        else:
            unified.append(cache._replace(page_bytes=largest))
    return tuple(unified)


def _split(caches: tuple[Cache, ...]) -> tuple[Group, ...]:
    """`_get_kv_cache_groups_uniform_page_size`: groups of as many layers as the rarest kind has, or the commonest below 1.5 times that.

    The last group of a kind is short of layers and its blocks are partly unused ("Add N padding layers").
    """
    counts = [cache.layers for cache in caches]
    size = max(counts) if max(counts) < min(counts) * 1.5 else min(counts)
    return tuple(Group((part,)) for cache in caches for part in _parts(cache, ceil(cache.layers / size)))


def _parts(cache: Cache, groups: int) -> list[Cache]:
    """A kind's layers dealt out to `groups` in turn (`layers[i::num_groups]`)."""
    return [cache._replace(layers=len(range(index, cache.layers, groups))) for index in range(groups)]


class _Bucket(NamedTuple):
    """Layers that take the same blocks, with pages of one or more sizes."""

    members: tuple[Cache, ...]

    @property
    def by_page(self) -> dict[int, int]:
        """Layers of each page size."""
        found: dict[int, int] = defaultdict(int)
        for member in self.members:
            found[member.page_bytes] += member.layers
        return dict(found)

    @property
    def repeats(self) -> int:
        return max(self.by_page.values())

    @property
    def balanced(self) -> bool:
        return len(set(self.by_page.values())) == 1

    def widest(self, groups: int) -> int:
        """Bytes of the largest of the groups that it is split into."""
        return sum(ceil(layers / groups) * page for page, layers in self.by_page.items())


def _packed(caches: tuple[Cache, ...], asked: Asked) -> tuple[Group, ...]:
    """`_get_packed_kv_cache_groups`: mixed pages stay together and set how many layers a group has; states fill what a block holds."""
    found: dict[tuple[object, ...], list[Cache]] = defaultdict(list)
    for cache in caches:
        found[cache.same_blocks].append(cache)
    buckets = [_Bucket(tuple(members)) for members in found.values()]
    repeats = _repeats(buckets, asked.rules.balanced)

    def plain_groups(bucket: _Bucket) -> int:
        splits = bucket.balanced if asked.rules.balanced else bucket.members[0].kind != "full"
        return ceil(bucket.repeats / repeats) if repeats is not None and splits else 1

    def is_state(bucket: _Bucket) -> bool:
        kind = bucket.members[0].kind
        return kind in ("state", "ring") or (repeats is None and kind == "sliding")

    anchor = max(bucket.widest(bucket.repeats if is_state(bucket) else plain_groups(bucket)) for bucket in buckets)
    groups = []
    for bucket in buckets:
        number = plain_groups(bucket)
        if is_state(bucket):
            number = max(number, ceil(bucket.repeats / max(anchor // bucket.members[0].page_bytes, 1)))
        parts = [_parts(member, number) for member in bucket.members]
        groups += [Group(tuple(part[index] for part in parts if part[index].layers)) for index in range(number)]
    return tuple(groups) if asked.rules.packing == "dense" else _slotted(groups, asked.rules.packing)


def _slotted(groups: list[Group], packing: Packing) -> tuple[Group, ...]:
    """Blocks with a slot for each page of the full caches, into which the smaller pages of windows are padded.

    `slots` (0.23 to 0.26: `_bucket_layers_by_page_size`): of each size as many as the group with most of it has; `tuples` (up to 0.22:
    `_get_kv_cache_config_deepseek_v4`): of every size as many as of the commonest. The start-up check counted tuples up to 0.28.
    """
    sizes = sorted({member.page_bytes for group in groups for member in group.members if member.kind == "full"})
    padded = [tuple(member._replace(page_bytes=_slot(member, sizes)) for member in group.members) for group in groups]
    most = {size: max(sum(member.layers for member in members if member.page_bytes == size) for members in padded) for size in sizes}
    if packing == "tuples":
        most = dict.fromkeys(sizes, max(most.values()))
    return tuple(Group(members, tuple(most.items())) for members in padded)


def _slot(member: Cache, sizes: list[int]) -> int:
    fits = next((size for size in sizes if size >= member.page_bytes), None)
    if fits is None:
        raise UnknownFact(f"vLLM before 0.27 has no slot for pages of {member.page_bytes:,} B beside blocks of this size")
    return fits


def _repeats(buckets: list[_Bucket], balanced: bool) -> int | None:
    """Layers of each page size in a group: at least those of the buckets that must stay whole, and otherwise the least padding."""
    counted = [bucket for bucket in buckets if bucket.balanced or not balanced]
    floors = [bucket.repeats for bucket in counted if len(bucket.by_page) > 1]
    if not floors:
        return None
    if not balanced:
        floors = [bucket.repeats for bucket in buckets if bucket.members[0].kind == "full"] or floors
    return _least_padding([bucket.repeats for bucket in counted], max(floors))


def _least_padding(counts: list[int], floor: int) -> int:
    """`_approximate_gcd`: the divisor from `floor` on that rounds the counts up by the least; of equals the largest."""
    sizes = range(floor, max(*counts, floor) + 1)
    return min(sizes, key=lambda size: (sum(-count % size for count in counts), -size))
