"""vLLM's settings with its defaults filled in.

Sources (sdists from PyPI): vLLM 0.20.2 and 0.21.0 to 0.33.0.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import Settings, reject_unknown
from fitcheck.fit.engines.vllm_profile import Batch, counts_graphs, sorts_vocabulary
from fitcheck.fit.engines.vllm_speculation import Speculation, speculation
from fitcheck.fit.engines.vllm_versions import UNNAMED, Rules, rules_of

MambaMode = Literal["none", "align", "all"]

MAX_NUM_BATCHED_TOKENS = 8192
"""`EngineArgs.get_batch_defaults`: 8,192 for the server on cards of 70 GiB or more and offline on smaller ones; the server on smaller
cards and on GB10 takes 2,048, on cards of 160 GiB 16,384. The card is not known here; the middle one is what recipes mostly set."""

MAX_NUM_SEQS = 1024
"""`get_batch_defaults` too: 1,024 on cards of 70 GiB or more but A100 and GB10, 256 on others."""

HOPPER = 9
"""The generation of compute capability 9.x."""

GB10 = 121
"""Compute capability 12.1, which `get_batch_defaults` keeps on the small tier."""

_DTYPES = {
    **dict.fromkeys(["auto", "bf16", "bfloat16", "f16", "fp16", "float16", "half"], "bf16"),
    **dict.fromkeys(["fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"], "fp8"),
    **dict.fromkeys(["nvfp4", "nvfp4_4over6", "fp4"], "nvfp4"),
    **{name: name for name in ("fp8_ds_mla", "nvfp4_ds_mla", "int4_per_token_head", "int8_per_token_head", "fp8_per_token_head")},
}
"""Names of `CacheDType` (vllm/config/cache.py) whose layout is known here."""

_UNKNOWN_DTYPES = ("turboquant_", "octave_", "ultraquant_")

_STATE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "torch.float32": 4, "torch.float16": 2, "torch.bfloat16": 2}

NAMES = {
    "async_scheduling", "attention_backend", "block_size", "compute_capability", "disable_hybrid_kv_cache_manager",
    "disable_sliding_window", "dtype", "enable_chunked_prefill", "enable_expert_parallel", "enable_prefix_caching", "enforce_eager",
    "gpu_memory_utilization", "indexer_kv_dtype", "kv_cache_dtype", "kv_cache_memory_bytes", "mamba_cache_dtype",
    "mamba_cache_mode", "mamba_ssm_cache_dtype",
    "max_model_len", "max_num_batched_tokens", "max_num_seqs", "method", "num_gpu_blocks_override", "num_speculative_tokens",
    "speculative_config", "swa_block_size", "vllm_version",
}  # fmt: skip
"""Settings with vLLM's own names; besides, `vllm_version` and `compute_capability` (of the GPU: 9.0, 10.0, 12.1), which decide layouts,
and `swa_block_size`, which forks of vLLM have."""


class Asked(NamedTuple):
    """What vLLM is asked to hold. `draft_tokens` is None where nothing was said of speculation; `capability` is 90, 100, 121 or None."""

    tokens: int
    users: int
    dtype: str
    named_dtype: str
    tp: int
    pp: int
    dcp: int
    block_tokens: int | None
    window_block_tokens: int | None
    in_flight_tokens: int
    draft_tokens: int | None
    own_drafts: bool
    prefix_caching: bool | None
    mamba_mode: MambaMode | None
    hybrid_manager: bool
    index_fp4: bool
    state_bytes: int | None
    tail_bytes: int | None
    capability: int | None
    rules: Rules
    batch: Batch
    backend: str | None

    @property
    def drafting(self) -> bool:
        """Whether the model's own draft layers keep caches."""
        return bool(self.draft_tokens) and self.own_drafts

    @property
    def auto_dtype(self) -> bool:
        """Whether the dtype is left to vLLM."""
        return self.named_dtype == "auto"

    @property
    def major(self) -> int | None:
        """The GPU's generation: 9 Hopper, 10 and 12 Blackwell."""
        return None if self.capability is None else self.capability // 10

    def mode(self, flavour: str) -> MambaMode:
        """How the state of a flavour is cached (`MambaModelConfig.verify_and_update_config`).

        A mode alone does not turn prefix caching on where a version has it off; without a version it says that it is on.
        """
        told = self.mamba_mode is not None and self.rules is UNNAMED
        cached = (told or flavour in self.rules.cached) if self.prefix_caching is None else self.prefix_caching
        if not cached or self.mamba_mode == "none":
            return "none"
        if self.mamba_mode is not None:
            return "all" if self.mamba_mode == "all" and flavour in self.rules.whole else "align"
        return "all" if flavour in self.rules.cached_whole else "align"


def read_settings(settings: Settings) -> Asked:
    """Settings with defaults. Raises `UsageError` for names and values that vLLM does not have."""
    named = settings.named
    reject_unknown(named, NAMES, "vllm")
    rules = rules_of(named)
    tokens = _count(named, "max_model_len", settings.context)
    capability = _capability(named)
    name = str(named.get("kv_cache_dtype") or settings.kv_dtype.name)
    if _flag(named, "disable_sliding_window"):
        raise UnknownFact("what vLLM keeps with disable_sliding_window is not modelled", hint="a max_model_len within the window")
    drafts = speculation(named)
    batch = _batch(named, tokens, settings, capability, drafts)
    _check_dtype(named)
    return Asked(
        tokens=tokens,
        users=settings.users,
        dtype=_dtype(name),
        named_dtype=name.lower(),
        tp=settings.tp,
        pp=settings.pp,
        dcp=settings.dcp,
        block_tokens=_maybe_count(named, "block_size"),
        window_block_tokens=_maybe_count(named, "swa_block_size"),
        in_flight_tokens=_in_flight(named, batch.tokens, settings.pp, rules, overlapped=drafts.overlapped),
        draft_tokens=drafts.tokens,
        own_drafts=drafts.own,
        prefix_caching=_flag(named, "enable_prefix_caching") if "enable_prefix_caching" in named else None,
        mamba_mode=_mamba_mode(named),
        hybrid_manager=not _flag(named, "disable_hybrid_kv_cache_manager"),
        index_fp4=named.get("indexer_kv_dtype") in ("mxfp4", "nvfp4", "fp4"),
        state_bytes=_state_bytes(named, "mamba_ssm_cache_dtype"),
        tail_bytes=_state_bytes(named, "mamba_cache_dtype"),
        capability=capability,
        rules=rules,
        batch=batch,
        backend=None if named.get("attention_backend") is None else str(named["attention_backend"]).upper().rpartition(".")[2],
    )


def _batch(named: dict[str, Any], tokens: int, settings: Settings, capability: int | None, drafts: Speculation) -> Batch:
    """The batch that one step takes at most.

    A default is at most `max_num_seqs` sequences of the longest length, and without chunked prefill no less than one such sequence
    (`_set_default_max_num_seqs_and_batched_tokens_args`).
    """
    default = 2048 if capability == GB10 else MAX_NUM_BATCHED_TOKENS
    if not _flag(named, "enable_chunked_prefill", default=True):
        default = max(default, tokens)
    rows = _count(named, "max_num_seqs", 256 if capability == GB10 else MAX_NUM_SEQS)
    batched = _count(named, "max_num_batched_tokens", min(default, rows * tokens))
    return Batch(
        tokens=batched,
        rows=rows,
        tp=settings.tp,
        pp=settings.pp,
        experts_whole=_flag(named, "enable_expert_parallel"),
        sorts=sorts_vocabulary(named),
        graphs=counts_graphs(named),
        step=1 + (drafts.tokens or 0),
    )


def _in_flight(named: dict[str, Any], batched: int, pp: int, rules: Rules, *, overlapped: bool) -> int:
    """Tokens scheduled and not yet settled: every batch in flight may hold `max_num_batched_tokens` (`VllmConfig.max_in_flight_tokens`)."""
    overlapped = rules.batches > 1 and _flag(named, "async_scheduling", default=overlapped)
    if rules.batches == 1:
        return batched
    return batched * (pp + 1 if overlapped else pp)


def _dtype(name: str) -> str:
    wanted = name.lower()
    if wanted.startswith(_UNKNOWN_DTYPES):
        raise UnknownFact(f"the layout of the KV dtype {name!r} is not known here")
    if wanted not in _DTYPES:
        raise UsageError(f"vllm has no KV dtype {name!r}", hint=f"one of {', '.join(sorted(_DTYPES))}")
    return _DTYPES[wanted]


def _check_dtype(named: dict[str, Any]) -> None:
    """The model's own dtype: all 16-bit ones take the same, and `auto` is one of them (`_resolve_auto_dtype`)."""
    dtype = str(named.get("dtype") or "auto").lower().removeprefix("torch.")
    if dtype in ("float32", "float"):
        raise UnknownFact("the caches of a model that vLLM runs in 32 bits are not modelled")
    if dtype not in ("auto", "bfloat16", "float16", "half"):
        raise UsageError(f"vllm has no dtype {ascii(dtype)[:40]}", hint="auto, bfloat16, float16 or float32")


def _mamba_mode(named: dict[str, Any]) -> MambaMode | None:
    mode = named.get("mamba_cache_mode")
    if mode not in (None, "none", "align", "all"):
        raise UsageError(f"vllm has no mamba_cache_mode {mode!r}", hint="none, align or all")
    found: MambaMode | None = mode
    return found


def _capability(named: dict[str, Any]) -> int | None:
    given = named.get("compute_capability")
    if given is None:
        return None
    try:
        number = float(given)
    except (TypeError, ValueError):
        raise UsageError(f"compute_capability {given!r} is not a number", hint="such as 9.0, 10.0 or 12.1") from None
    return round(number * 10) if number < 20 else round(number)


def _state_bytes(named: dict[str, Any], name: str) -> int | None:
    value = named.get(name)
    if value in (None, "auto"):
        return None
    if value not in _STATE_BYTES:
        raise UsageError(f"vllm has no {name} {value!r}", hint=f"auto, {', '.join(_STATE_BYTES)}")
    return _STATE_BYTES[str(value)]


def _flag(named: dict[str, Any], name: str, *, default: bool = False) -> bool:
    value = named.get(name)
    if value not in (None, True, False):
        raise UsageError(f"{name} is {value!r}, and is true or false")
    return default if value is None else bool(value)


def _maybe_count(named: dict[str, Any], name: str) -> int | None:
    return None if named.get(name) is None else _count(named, name, 1)


def _count(named: dict[str, Any], name: str, default: int) -> int:
    value = default if named.get(name) is None else named[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} is {value!r}, and must be 1 or more")
    return value
