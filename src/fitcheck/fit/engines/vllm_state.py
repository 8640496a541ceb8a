"""Recurrent state in vLLM: a page per layer and sequence, and the attention block that is stretched over it.

Sources: vLLM 0.33.0: vllm/model_executor/layers/mamba/mamba_utils.py (`MambaStateShapeCalculator`, `MambaStateDtypeCalculator`);
`Qwen3_5ForConditionalGenerationConfig`, `NemotronHForCausalLMConfig` (vllm/model_executor/models/config.py);
`Platform._align_hybrid_block_size` (vllm/platforms/interface.py); `get_mamba_specs_from_config` and `PLELayer` of Qwen4-Exp
(vllm/models/qwen4_exp/nvidia).
"""

from __future__ import annotations

from math import ceil, lcm

from fitcheck.catalogue.layers import Indexer, Latent, LayerGroup, Recurrent
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


def ngram_page(group: Recurrent, asked: Asked, drafts: int) -> int:
    """Bytes of the tail behind an n-gram embedding, whole on each rank, and longer by a step for each draft token."""
    if not group.ngram_conv_elements:
        return 0
    if drafts and group.ngram_conv_steps is None:
        raise UnknownFact(
            "how many steps the convolution behind the n-gram embedding reaches back is not known, which draft tokens lengthen"
        )
    step = group.ngram_conv_elements // (group.ngram_conv_steps or 1)
    return (group.ngram_conv_elements + drafts * step) * (asked.tail_bytes or group.conv_dtype_bytes)


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
    states = [group for group in groups if isinstance(group, Recurrent)]
    return max(max(state_page(group, asked, family, drafts), ngram_page(group, asked, drafts)) for group in states)


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
    drafts = asked.draft_tokens or 0
    states = [group for group in groups if isinstance(group, Recurrent)]
    tails = tuple(
        Cache(
            "n-gram convolution",
            "state",
            "state",
            1,
            block,
            padded or ngram_page(group, asked, drafts),
            flavour="shortconv",
            replicated=True,
        )
        for group in states
        if group.ngram_conv_elements
    )
    own = tuple(
        Cache(
            NAMES.get(group.flavour, NAMES[None]),
            "state",
            "state",
            group.layers,
            block,
            padded or state_page(group, asked, family, drafts),
            flavour=group.flavour or "",
            checkpoints=int(_checkpointed(group, asked, family)),
        )
        for group in states
    )
    return (*own, *tails)


def tail_rings(groups: tuple[LayerGroup, ...], asked: Asked) -> tuple[Cache, ...]:
    """One block a request for the pool of tokens that is not full yet, with room for draft tokens.

    GLM-5.3-Flash keeps keys and gates in a ring of 2^n pools (`Glm5NextTailCache`), Qwen4-Exp keys alone in whole pools
    (`QSAKeyStateCache`; 24 B a row more with positions of three axes, which its block has room for).
    """
    latent, found = any(isinstance(group, Latent) for group in groups), []
    for group in groups:
        if isinstance(group, Indexer) and group.pool_tokens > 1:
            pools = ceil((group.pool_tokens + (asked.draft_tokens or 0)) / group.pool_tokens)
            ring = group.pool_tokens * (1 << (pools - 1).bit_length() if latent else pools)
            page = (2 if latent else 1) * ring * (group.key_dim or 128) * 2
            found.append(Cache("index tail ring", "state", "ring", group.layers, ring, page))
    return tuple(found)
