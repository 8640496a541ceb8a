"""TensorRT-LLM: the paged KV cache of its PyTorch backend.

Read in NVIDIA/TensorRT-LLM, `tensorrt_llm/_torch/pyexecutor/resource_manager.py` (`KVCacheManager`), `_util.py` (which manager),
`_torch/attention/.../dsa` (`DSACacheManager`) and `llmapi/llm_args.py` (`KvCacheConfig`). A pool is a number of blocks of
`tokens_per_block` tokens, all layers of a rank in each. Recurrent states: `pyexecutor/kv_cache/mamba_cache_manager/` (`common.py`,
`mamba_cache_manager_v2.py`) and `pyexecutor/config_utils.py` at commits of 2026-10. PyPI has no sources of it, and the repository is
indexed in parts: what those do not show (compressed caches, windowed pools) is not answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from fitcheck.catalogue.layers import Attention, Chunked, Indexer, Latent, LayerGroup, Recurrent, Sliding, Stateless
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import Settings, StateTerm, reject_unknown

KNOWN = {
    "block_size",
    "enable_attention_dp",
    "free_gpu_memory_fraction",
    "mamba_ssm_cache_dtype",
    "max_attention_window",
    "max_batch_size",
    "max_beam_width",
    "max_num_tokens",
    "max_seq_len",
    "max_tokens",
    "tokens_per_block",
}
"""`free_gpu_memory_fraction` and `max_num_tokens` decide what is left for the pool, not what requests need of it; they have no effect.
`block_size` is the word of other engines for `tokens_per_block`."""
BLOCK_TOKENS = 32
"""`KvCacheConfig.tokens_per_block`. FlashMLA on Hopper takes 64."""
WIDTH = {"f32": Fraction(4), "bf16": Fraction(2), "f16": Fraction(2), "fp8": Fraction(1), "nvfp4": Fraction(9, 16)}
"""Bytes per element; NVFP4 with one FP8 scale for 16 (`KVCacheManager.get_cache_bytes_per_token`)."""
HYBRID = {"nemotron_h", "qwen3_next", "qwen3_5", "qwen3_5_moe", "kimi_linear", "kimi_k3"}
"""Families with recurrent layers that it runs, but Qwen4-Exp, whose n-gram states were not read (`extract_mamba_kv_cache_params`)."""
STATE_WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2}
CONV_WIDTH = 2
"""The model's own dtype, 16 bits wide in all of them (`resolve_hf_torch_dtype`)."""
SHARING = {"gemma3n", "gemma4"}
"""Families whose layers share caches or differ in width, which `KVCacheManagerV2` keeps in pools of their own."""


class Asked(NamedTuple):
    """A pool of `tokens` in whole blocks, on one rank."""

    tokens: int
    blocks: int
    tp: int
    pp: int
    element: Fraction
    slots: int
    state_dtype: str


def allocate(architecture: Architecture, settings: Settings) -> tuple[StateTerm, ...]:
    """The pool that the users' requests fill. Raises `UnknownFact` for caches whose allocation no source at hand shows."""
    asked = _ask(settings)
    if architecture.family in SHARING or "max_attention_window" in settings.named:
        raise UnknownFact(f"how TensorRT-LLM divides the caches of {architecture.family} into pools by window is not known")
    sparse = any(isinstance(group, Latent) for group in architecture.groups)
    terms = tuple(term for group in architecture.groups for term in _terms(group, architecture.family, sparse, asked))
    if not terms:
        raise UnknownFact(f"{architecture.family} keeps nothing between tokens")
    return terms


def _ask(settings: Settings) -> Asked:
    """Requests take whole blocks (`get_needed_resource_to_completion`); `max_tokens` bounds the pool as it stands.

    Attention DP gives every rank requests of its own and all heads (`KVCacheManager.__init__`: `tp_size = 1`).
    """
    named = settings.named
    reject_unknown(named, KNOWN, "tensorrt-llm")
    if settings.dcp > 1:
        raise UnknownFact("how TensorRT-LLM spreads the cache over context-parallel (Helix) ranks is not known")
    if settings.kv_dtype.k not in WIDTH or settings.kv_dtype.k != settings.kv_dtype.v:
        raise UsageError(f"TensorRT-LLM has no KV dtype {settings.kv_dtype.name!r}", hint="one of auto, fp8, nvfp4")
    if _count(named, "max_beam_width", 1) > 1:
        raise UnknownFact("what TensorRT-LLM keeps for the beams of a request is not known")
    attention_dp = bool(named.get("enable_attention_dp"))
    groups = settings.dp * (settings.tp if attention_dp else 1)
    users = -(-_count(named, "max_batch_size", settings.users) // groups)
    size = _count(named, "tokens_per_block", _count(named, "block_size", BLOCK_TOKENS))
    blocks = users * -(-_count(named, "max_seq_len", settings.context) // size)
    if "max_tokens" in named:
        blocks = _count(named, "max_tokens", 0) // size
    slots = users * settings.pp + (2 if attention_dp else 1)
    state = str(named.get("mamba_ssm_cache_dtype") or "auto").removeprefix("torch.")
    if state != "auto" and state not in STATE_WIDTH:
        raise UsageError(f"TensorRT-LLM has no mamba_ssm_cache_dtype {ascii(state)[:40]}", hint=f"auto, {', '.join(STATE_WIDTH)}")
    tp = 1 if attention_dp else settings.tp
    return Asked(blocks * size, blocks, tp, settings.pp, WIDTH[settings.kv_dtype.k], slots, state)


def _count(named: dict[str, Any], name: str, default: int) -> int:
    value = named.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{name} is {value!r}, and must be a whole number of 1 or more")
    return value


def _terms(group: LayerGroup, family: str, sparse: bool, asked: Asked) -> Iterator[StateTerm]:
    if isinstance(group, Attention | Sliding | Chunked):
        yield _heads(group, family, asked)
    elif isinstance(group, Latent):
        yield _latent(group, family, asked)
    elif isinstance(group, Recurrent) and family in HYBRID:
        yield _state(group, family, asked)
    elif isinstance(group, Indexer) and sparse and group.pool_tokens == 1:
        yield _index(group, asked)
    elif not isinstance(group, Stateless):
        raise UnknownFact(f"how TensorRT-LLM allocates the {group.kind} caches of {family} is not known")


def _heads(group: Attention | Sliding | Chunked, family: str, asked: Asked) -> StateTerm:
    """Keys and values of a rank's heads, rounded up, in every layer (`KVCacheManager.get_cache_bytes_per_token`).

    Windows do not matter: `max_attention_window` is the longest sequence unless it is set. Layers without attention count no head.
    """
    if group.k_dim != group.v_dim:
        raise UnknownFact(f"TensorRT-LLM has one width for keys and values, and {family} has {group.k_dim} and {group.v_dim}")
    heads, layers = -(-group.kv_heads // asked.tp), -(-group.layers // asked.pp)
    row = layers * 2 * heads * group.k_dim * asked.element
    return _pool("KV, all tokens", row, f"{layers} layers x 2 x {heads} KV heads x {group.k_dim} x {float(asked.element):g} B", asked)


def _latent(group: Latent, family: str, asked: Asked) -> StateTerm:
    """One latent and its rope part, whole on each rank (`CacheType.SELFKONLY`; `get_cache_size_per_token`, `mla`)."""
    if family == "minicpm3":
        raise UnknownFact("TensorRT-LLM has no MLA for minicpm3")
    layers = -(-group.layers // asked.pp)
    row = layers * (group.latent_dim + group.rope_dim) * asked.element
    words = f"{layers} layers x ({group.latent_dim} + {group.rope_dim}) x {float(asked.element):g} B"
    return _pool("KV, latent (MLA)", row, words, asked)


def _index(group: Indexer, asked: Asked) -> StateTerm:
    """FP8 index keys with a scale, in layers that own an indexer (`DSACacheManager.get_cache_bytes_per_token`)."""
    layers = -(-group.layers // asked.pp)
    return _pool("index keys", Fraction(layers * group.bytes_per_key), f"{layers} layers x {group.bytes_per_key} B", asked)


def _state(group: Recurrent, family: str, asked: Asked) -> StateTerm:
    """A state for each resident sequence and one for the padding of CUDA graphs, one more under attention DP (`MambaHybridCacheManagerV2`).

    Sequences of all pipeline stages are resident (`_estimate_mamba_hybrid_cache_cost`). Snapshots for reuse take what is left over and are
    not counted, and neither are drafts'. The state is FP32 for KDA, else what `mamba_ssm_cache_dtype` says, in the settings or in the
    config, else the model's dtype: a config's `mamba_ssm_dtype` (Qwen3.5) is not looked at (`resolve_ssm_cache_dtype`).
    """
    layers, steps = -(-group.layers // asked.pp), (group.conv_kernel or 4) - 1
    step = group.conv_elements // max(steps, 1)
    if (group.heads or asked.tp) % asked.tp or step % asked.tp:
        raise UsageError(f"TensorRT-LLM does not divide the {group.heads} recurrent heads of {family} over {asked.tp} ranks")
    state, tail = group.state_elements // asked.tp, step // asked.tp * steps
    element = _state_width(group, family, asked)
    words = f"{layers} layers x ({state:,} x {element} B + {tail:,} x {CONV_WIDTH} B) x {asked.slots:,} slots"
    return StateTerm("recurrent state", "state", layers * (state * element + tail * CONV_WIDTH) * asked.slots, words)


def _state_width(group: Recurrent, family: str, asked: Asked) -> int:
    if group.flavour == "kda":
        return 4
    if asked.state_dtype != "auto":
        return STATE_WIDTH[asked.state_dtype]
    return group.named_dtype_bytes or CONV_WIDTH if family == "nemotron_h" else CONV_WIDTH


def _pool(name: str, row: Fraction, words: str, asked: Asked) -> StateTerm:
    block = asked.tokens // asked.blocks if asked.blocks else 0
    return StateTerm(name, "cache", ceil(row * asked.tokens), f"{words} x {asked.blocks:,} blocks of {block} tokens")
