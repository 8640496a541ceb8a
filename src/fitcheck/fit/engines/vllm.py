"""What vLLM (v1 engine) sets apart for a model's caches and states: blocks per request times bytes per block.

All caches draw blocks of one size from one pool. A request of the longest length takes some blocks in each group of layers
(`get_max_concurrency_for_kv_cache_config`: the pool's blocks over that number is the printed "Maximum concurrency", and from about 0.21
on the printed "GPU KV cache size" is that times `max_model_len`; up to 0.26 it weighed a group's blocks by the group's own bytes, which
for DeepSeek V4 prints more requests than the pool holds). The bytes here are those blocks for `users` requests; the pool's one null
block is not in them. A pipeline stage has its part of each group's layers, rounded up; versions before projection
(`_project_kv_cache_groups_to_worker`) charged every stage with all layers in their start-up check (vllm issue 34076).

Sources: vLLM 0.33.0 and older sdists (`vllm_settings`); each module names those of its rules.
"""

from __future__ import annotations

from collections import Counter
from math import ceil

from fitcheck.catalogue.layers import Compressed, CompressedWindow, LayerGroup, Recurrent
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import Settings, StateTerm
from fitcheck.fit.engines.vllm_caches import Cache
from fitcheck.fit.engines.vllm_compressed import compressed_caches
from fitcheck.fit.engines.vllm_groups import Group, make_groups
from fitcheck.fit.engines.vllm_layers import attention_caches, main_block
from fitcheck.fit.engines.vllm_profile import profile_terms
from fitcheck.fit.engines.vllm_settings import Asked, read_settings
from fitcheck.fit.engines.vllm_state import (
    aligned_block,
    block_unit,
    draft_tokens,
    largest_page,
    state_caches,
    tail_rings,
)
from fitcheck.fit.engines.vllm_versions import PURE

_SHARING = ("gemma3n", "gemma4", "gemma4_unified")
"""Families whose last layers read the caches of earlier ones. Asked, vLLM 0.33 refuses Gemma 4 E2B on two pipeline stages, whose sharing
layers would be on another stage than what they share, and gives E4B blocks that one stage alone does not explain."""


def allocate(architecture: Architecture, settings: Settings) -> tuple[StateTerm, ...]:
    """Bytes on the fullest device for `users` sequences of `context` tokens, by sort of layer, unused parts of blocks included.

    The profiling peak comes with them as a buffer, which is in none of the sums of caches and states; as many users as are asked at once
    need at least as large a `max_num_seqs`.
    """
    groups, asked = plan(architecture, read_settings(settings))
    batch = asked.batch._replace(rows=max(asked.batch.rows, asked.users))
    return (*_terms(groups, asked), *profile_terms(architecture, batch))


def plan(architecture: Architecture, asked: Asked) -> tuple[tuple[Group, ...], Asked]:
    """The groups of layers that share blocks, and the settings with what the block tells of speculation.

    Packed layouts are those of models whose backends ask for the block to be outermost: DeepSeek V4 and V4.1
    (`DeepseekV4IndexerBackend`), GLM-5.3-Flash (`KpoolTailBackend`) and Qwen4-Exp (`QSAStateBackend`).
    """
    own = architecture.groups
    if architecture.family in asked.rules.untold:
        asked = asked._replace(dtype="bf16")
    if asked.pp > 1 and architecture.family in _SHARING and any(group.kind == "none" for group in own):
        raise UnknownFact(
            f"{architecture.family}: how vLLM splits layers that share caches over pipeline stages is not known",
            hint="tensor parallelism (tp) instead",
        )
    if any(isinstance(group, Compressed | CompressedWindow) for group in own):
        if not asked.hybrid_manager:
            raise UnknownFact("what vLLM makes of compressed caches with disable_hybrid_kv_cache_manager is not known")
        drafts = _drafts(architecture, asked)
        return make_groups(compressed_caches(own, drafts, asked), asked, packed=True), asked
    if any(isinstance(group, Recurrent) for group in own):
        return _hybrid(architecture, asked)
    drafts = _drafts(architecture, asked)
    caches = attention_caches(architecture, (*own, *drafts), main_block(own, asked), asked)
    return make_groups(caches, asked, packed=False), asked


def _drafts(architecture: Architecture, asked: Asked) -> tuple[LayerGroup, ...]:
    """The draft layers that keep caches. Raises `UnknownFact` where there are to be some and the config has none."""
    if not asked.drafting:
        return ()
    if not architecture.draft_groups:
        raise UnknownFact(
            f"{architecture.family} has no draft layers of its own in its config, and what another drafter keeps is not known"
        )
    return architecture.draft_groups


def _hybrid(architecture: Architecture, asked: Asked) -> tuple[tuple[Group, ...], Asked]:
    """Recurrent layers beside attention: the attention block grows until its page covers a state, whose page is padded to it.

    Without attention there is no prefix caching unless it is asked for (`is_prefix_caching_supported`: attention-free models), and
    nothing to align.
    """
    own, family = architecture.groups, architecture.family
    probe = next(iter(attention_caches(architecture, own, 1, asked)), None)
    if probe is None:
        alone = asked._replace(prefix_caching=asked.prefix_caching or False, rules=asked.rules._replace(whole=PURE))
        return make_groups(state_caches(own, main_block(own, asked), None, alone, family), alone, packed=False), alone
    if asked.pp > 1 and any(isinstance(group, Recurrent) and group.ngram_conv_elements for group in own):
        raise UsageError("vLLM refuses pipeline stages for a model with an n-gram embedding", hint="tensor parallelism (tp) instead")
    row, latent = probe.page_bytes, probe.latent
    plain = main_block(own, asked._replace(block_tokens=None))
    told = bool(asked.draft_tokens)
    unit = block_unit(own, asked, family, block=plain, latent=latent)
    asked = asked._replace(draft_tokens=draft_tokens(own, asked, family, row, block=plain, unit=unit))
    page, block = largest_page(own, asked, family, asked.draft_tokens or 0), main_block(own, asked)
    block = aligned_block(block, row, page, block_unit(own, asked, family, block=block, latent=latent))
    drafts = _drafts(architecture, asked) if told else architecture.draft_groups if asked.drafting else ()
    rings = tail_rings((*own, *drafts), asked)
    caches = (
        *attention_caches(architecture, (*own, *drafts), block, asked),
        *state_caches((*own, *drafts), block, block * row, asked, family),
        *rings,
    )
    return make_groups(caches, asked, packed=bool(rings)), asked


def _terms(groups: tuple[Group, ...], asked: Asked) -> tuple[StateTerm, ...]:
    """Each sort of layer with its own pages; what a group leaves unused of its blocks counts to the first of its sorts."""
    block_bytes = max((group.bytes(asked.pp) for group in groups), default=0)
    sizes: Counter[str] = Counter()
    sorts: dict[str, Cache] = {}
    parts: dict[str, Counter[str]] = {}
    for group in groups:
        blocks = group.blocks(asked) * asked.users
        unused = block_bytes - group.filled_bytes(asked.pp)
        for index, member in enumerate(group.members):
            layers = ceil(member.layers / asked.pp)
            sizes[member.name] += blocks * (layers * member.page_bytes + (unused if index == 0 else 0))
            sorts.setdefault(member.name, member)
            padding = f" + {unused:,} B unused" if unused and index == 0 else ""
            words = f"({layers} layers x {member.page_bytes:,} B{padding}) x {blocks:,} blocks of {member.block_tokens:,} tokens"
            parts.setdefault(member.name, Counter())[words] += 1
    return tuple(StateTerm(name, sorts[name].sort, size, _words(parts[name])) for name, size in sizes.items())


def _words(parts: Counter[str]) -> str:
    return " + ".join(f"{count} groups x {words}" if count > 1 else words for words, count in parts.items())
