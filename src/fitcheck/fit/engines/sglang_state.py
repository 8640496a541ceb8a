"""SGLang: the pool of recurrent states (Mamba, gated delta net, KDA, lightning attention, short convolution)."""

from __future__ import annotations

from fitcheck.catalogue.layers import Recurrent
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import StateTerm
from fitcheck.fit.engines.sglang_ask import Asked
from fitcheck.fit.engines.sglang_families import SLOTS_BY_STRATEGY, STATE_SLOTS

CONV_BYTES = 2
"""BF16 whatever the model's dtype (`configs/mamba_utils.py`, `mamba2_state_dtype`: `SGLANG_MAMBA_CONV_DTYPE`)."""
NAMED_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def state_slots(family: str, asked: Asked) -> int:
    """States that the pool holds, besides one for padding (`mem_cache/kv_cache_configurator.py`, `_handle_max_mamba_cache`).

    `--max-mamba-cache-size` as given; one for each request without the radix cache; else as many for each as `_calculate_mamba_ratio`
    demands of the pool: without the overlap schedule one for tracking less, and none unless there are pages
    (`arg_groups/overrides.py`, `_mamba_radix_cache_resolution`). By default SGLang makes the pool as large as `--mamba-full-memory-ratio`
    of the memory left allows; what is counted here is the smallest pool with which all requests run.
    """
    given = asked.number("max_mamba_cache_size")
    if given is not None:
        return max(1, given // asked.dp_attention)
    if asked.named.get("disable_radix_cache"):
        return asked.requests
    strategy = asked.named.get("mamba_radix_cache_strategy", "auto")
    alone = bool(asked.named.get("disable_overlap_schedule"))
    if strategy == "auto":
        tracked = STATE_SLOTS[family] == SLOTS_BY_STRATEGY["extra_buffer"] and (asked.page > 1 or not alone)
        strategy = "extra_buffer" if tracked else "no_buffer"
    if strategy not in SLOTS_BY_STRATEGY:
        raise UsageError(f"SGLang has no mamba_radix_cache_strategy {strategy!r}", hint=f"one of {', '.join(SLOTS_BY_STRATEGY)}")
    return asked.requests * (SLOTS_BY_STRATEGY[strategy] - (1 if strategy == "extra_buffer" and alone else 0))


def rank_elements(group: Recurrent, tp: int) -> tuple[int, int]:
    """Elements of one layer's recurrent state and of one convolution step, on a rank.

    `configs/mamba_utils.py`, `Mamba2StateShape.create`: heads are divided; groups that the ranks do not divide evenly become one for each
    rank. KDA divides query, key and value (`KimiLinearStateShape.create`), Mamba-1 its inner width (`create_full_rank`).
    """
    steps = (group.conv_kernel or 2) - 1
    step = group.conv_elements // steps if steps else 0
    if group.groups and group.group_elements:
        inner = step - group.groups * group.group_elements
        held = group.groups if group.groups % tp == 0 else tp
        step = inner + held * group.group_elements
    return -(-group.state_elements // tp), -(-step // tp)


def state_terms(family: str, group: Recurrent, asked: Asked) -> tuple[StateTerm, ...]:
    """The pool of one group's states, and the states of draft tokens (`mem_cache/memory_pool.py`, `MambaPool`)."""
    if family not in STATE_SLOTS or group.flavour == "rwkv":
        raise UnknownFact(f"SGLang 0.5.23 has no pool of recurrent states for {family}")
    layers, steps = asked.layers(group.layers), (group.conv_kernel or 2) - 1
    state, step = rank_elements(group, asked.tp)
    element = _state_bytes(group, asked)
    per_slot = layers * (state * element + step * steps * CONV_BYTES)
    slots = state_slots(family, asked) + 1
    words = f"{slots:,} slots x {layers} layers x ({state:,} x {element} B + {step * steps:,} x {CONV_BYTES} B)"
    terms = [StateTerm("recurrent state", "state", slots * per_slot, words)]
    if group.ngram_conv_elements:
        terms.append(_ngrams(group, slots))
    if asked.speculative:
        terms.append(_draft_states(group, asked, layers * state * element, layers * step * CONV_BYTES))
    return tuple(terms)


def _ngrams(group: Recurrent, slots: int) -> StateTerm:
    """The convolution of Qwen4-Exp's n-gram embedding, whole on each rank (`mem_cache/ple_state_pool.py`, `ShortConvPool`).

    Two token numbers a slot beside it (`NGramPool`, 16 B) are left out.
    """
    words = f"{slots:,} slots x {group.ngram_conv_elements:,} x {CONV_BYTES} B"
    return StateTerm("n-gram convolution", "state", slots * group.ngram_conv_elements * CONV_BYTES, words)


def _state_bytes(group: Recurrent, asked: Asked) -> int:
    """FP32 unless the config or `--mamba-ssm-dtype` says otherwise (`configs/mamba_utils.py`, `mamba2_state_dtype`)."""
    named = asked.named.get("mamba_ssm_dtype")
    if named is None:
        return group.named_dtype_bytes or 4
    if named not in NAMED_BYTES:
        raise UsageError(f"SGLang has no mamba_ssm_dtype {named!r}", hint=f"one of {', '.join(NAMED_BYTES)}")
    return NAMED_BYTES[str(named)]


def _draft_states(group: Recurrent, asked: Asked, state_bytes: int, step_bytes: int) -> StateTerm:
    """One state for each draft token of each request, and the convolution's inputs.

    `MambaPool.__init__`: overlapping windows are kept once (draft tokens + kernel - 2 steps), but whole for KDA and for draft trees.
    """
    drafts = asked.draft_tokens
    if not drafts:
        raise UnknownFact("speculative_num_draft_tokens is needed: SGLang keeps one recurrent state for each draft token")
    kernel = group.conv_kernel or 2
    whole = group.flavour == "kda" or (asked.number("speculative_eagle_topk", 1) or 1) > 1
    steps = drafts * (kernel - 1) if whole else max(0, drafts + kernel - 2)
    rows = asked.requests + 1
    ngrams = drafts * group.ngram_conv_elements * CONV_BYTES
    size = rows * (drafts * state_bytes + steps * step_bytes + ngrams)
    words = f"{rows:,} requests x ({drafts} drafts x {state_bytes:,} B + {steps} convolution steps x {step_bytes:,} B"
    words += f" + n-gram convolutions {ngrams:,} B)" if ngrams else ")"
    return StateTerm("recurrent state, draft tokens", "state", size, words)
