"""Recurrent state in vLLM: a page per layer and sequence, and the attention block that is stretched over it.

Sources: vLLM 0.33.0: vllm/model_executor/layers/mamba/mamba_utils.py (`MambaStateShapeCalculator`, `MambaStateDtypeCalculator`);
`Qwen3_5ForConditionalGenerationConfig`, `NemotronHForCausalLMConfig` (vllm/model_executor/models/config.py);
`Platform._align_hybrid_block_size` (vllm/platforms/interface.py).
"""

from __future__ import annotations

from math import ceil, lcm

from fitcheck.catalogue.layers import Indexer, LayerGroup, Recurrent
from fitcheck.errors import UnknownFact
from fitcheck.fit.engines.vllm_caches import Cache
from fitcheck.fit.engines.vllm_settings import HOPPER, Asked

NAMES = {
    "mamba1": "state, Mamba-1",
    "mamba2": "state, Mamba-2",
    "gdn": "state, gated delta net",
    "kda": "state, Kimi delta attention",
    "lightning": "state, lightning attention",
    "shortconv": "state, short convolution",
    None: "recurrent state",
}

_DRAFT_TAIL = ("mamba2", "gdn", "kda", "shortconv", None)
"""Flavours whose convolution's tail is longer by a step for each draft token (`num_spec`)."""

_NAMED_BY_CONFIG = ("gdn", "mamba2")
"""Flavours whose state takes the dtype that the config names, FP32 for Nemotron-H; else the model's dtype."""

_UNCHUNKED_TOKENS = 2048
"""`ModelConfig.get_mamba_chunk_size`: what stands for the chunk of Mamba-1, whose kernels have none."""

_CHECKPOINT_TOKENS = {"gdn": 64, "kda": 16}
"""`FLASHINFER_GDN_CHECKPOINT_ALIGNMENT`, `kda_prefill_checkpoint_alignment`: blocks are multiples of it where states are checkpointed."""

MOST_DRAFT_TOKENS = 16
"""Where speculation is told from the block alone, no more draft tokens than this are tried."""


def state_page(group: Recurrent, asked: Asked, family: str, drafts: int) -> int:
    """Bytes of one layer's state on one rank: the convolution's tail and the state itself."""
    if group.flavour == "rwkv":
        raise UnknownFact("vLLM does not run RWKV")
    tail_bytes = asked.tail_bytes or group.conv_dtype_bytes
    state = ceil(group.state_elements / asked.tp) * _state_bytes(group, asked, family)
    kernel = group.conv_kernel or 4
    step = group.conv_elements // max(kernel - 1, 1)
    steps = kernel - 1 + (drafts if group.flavour in _DRAFT_TAIL else 0)
    return ceil((step + _extra_groups(group, asked.tp)) / asked.tp) * steps * tail_bytes + state


def _state_bytes(group: Recurrent, asked: Asked, family: str) -> int:
    """Bytes of a state's element: as asked, as the config names it, else as vLLM chooses for the flavour.

    KDA is FP32 (`kda_state_dtype`); Nemotron-H is FP32 (`DEFAULT_MAMBA_SSM_CACHE_DTYPE`); the others follow the model's 16-bit dtype.
    """
    if asked.state_bytes is not None and group.flavour != "lightning":
        return asked.state_bytes
    if group.flavour is None or group.flavour == "kda":
        return group.state_dtype_bytes
    if group.flavour in _NAMED_BY_CONFIG and group.named_dtype_bytes is not None and family != "qwen3_next":
        return group.named_dtype_bytes
    return 4 if family == "nemotron_h" else asked.tail_bytes or group.conv_dtype_bytes


def _extra_groups(group: Recurrent, tp: int) -> int:
    """Elements of a step that Mamba-2 adds so that every rank has its heads' groups (`extra_groups_for_head_shards`)."""
    if group.flavour != "mamba2" or not group.groups or not group.group_elements or group.groups % tp == 0:
        return 0
    return (tp - group.groups) * group.group_elements


def aligned_block(block: int, row: int, page: int, unit: int) -> int:
    """Tokens of the attention block that covers a state of `page` bytes, where a token takes `row` bytes in an attention layer."""
    return max(block, unit * ceil(page / (unit * row)))


def block_unit(groups: tuple[LayerGroup, ...], asked: Asked, family: str, *, block: int, latent: bool) -> int:
    """What the aligned block is a multiple of: the kernels' block, chunks of states that every block keeps, checkpoints in a prefill."""
    states = [group for group in groups if isinstance(group, Recurrent)]
    modes = {asked.mode(group.flavour or "") for group in states}
    units = [max(block, asked.rules.latent_unit) if latent else block]
    if "all" in modes and asked.rules.chunked:
        units += [_chunk(group) for group in states]
    if "align" in modes:
        units += [_CHECKPOINT_TOKENS.get(group.flavour or "", 1) for group in states if _checkpointed(group, asked, family)]
    return lcm(*units)


def _chunk(group: Recurrent) -> int:
    if group.flavour == "mamba1":
        return _UNCHUNKED_TOKENS
    if group.chunk_tokens is None:
        raise UnknownFact("the chunk of the Mamba-2 kernels, of which blocks that keep every state are multiples, is not known")
    return group.chunk_tokens


def draft_tokens(groups: tuple[LayerGroup, ...], asked: Asked, family: str, row: int, *, block: int, unit: int) -> int:
    """Draft tokens, which lengthen the state: as asked; where only the attention block is given, what that block tells.

    vLLM prints the block that alignment has led to. One that a state without draft tokens does not lead to means that there were some;
    of the numbers that lead to it, the largest is taken.
    """
    if asked.draft_tokens is not None or asked.block_tokens is None:
        return asked.draft_tokens or 0
    leads = [aligned_block(block, row, largest_page(groups, asked, family, drafts), unit) for drafts in range(MOST_DRAFT_TOKENS + 1)]
    if asked.block_tokens <= leads[0] or asked.block_tokens not in leads:
        return 0
    return max(drafts for drafts, lead in enumerate(leads) if lead == asked.block_tokens)


def largest_page(groups: tuple[LayerGroup, ...], asked: Asked, family: str, drafts: int) -> int:
    """The largest state page of the model's recurrent layers."""
    return max(state_page(group, asked, family, drafts) for group in groups if isinstance(group, Recurrent))


def _checkpointed(group: Recurrent, asked: Asked, family: str) -> bool:
    """Whether a layer exports its state from inside a prefill.

    Those of FlashInfer and FlashKDA do so on compute capability 9.x, 10.x and 12.x; older GPUs run Triton's kernels
    (`_resolve_gdn_prefill_backend`, `resolve_kda_prefill_backend`).
    """
    if group.flavour in asked.rules.checkpoints:
        return True
    return family in asked.rules.checkpoints and (asked.major is None or asked.major >= HOPPER)


def state_caches(groups: tuple[LayerGroup, ...], block: int, padded: int | None, asked: Asked, family: str) -> tuple[Cache, ...]:
    """Caches of recurrent layers; `padded` is the attention page that theirs are padded to ("Padding mamba page size by X%")."""
    return tuple(
        Cache(
            NAMES.get(group.flavour, NAMES[None]),
            "state",
            "state",
            group.layers,
            block,
            padded or state_page(group, asked, family, asked.draft_tokens or 0),
            flavour=group.flavour or "",
            checkpoints=int(_checkpointed(group, asked, family)),
        )
        for group in groups
        if isinstance(group, Recurrent)
    )


def tail_rings(groups: tuple[LayerGroup, ...], asked: Asked) -> tuple[Cache, ...]:
    """GLM-5.3-Flash: one block a request for the keys and gates of the pool of tokens that is not full yet (`Glm5NextTailCache`)."""
    found = []
    for group in groups:
        if isinstance(group, Indexer) and group.pool_tokens > 1:
            pools = ceil((group.pool_tokens + (asked.draft_tokens or 0)) / group.pool_tokens)
            ring = group.pool_tokens * (1 << (pools - 1).bit_length())
            page = 2 * ring * (group.key_dim or 128) * 2
            found.append(Cache("index tail ring", "state", "ring", group.layers, ring, page))
    return tuple(found)
