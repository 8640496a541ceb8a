"""A run of SGLang in the words of its allocator."""

from __future__ import annotations

from typing import Any

from fitcheck.fit.printed import Fact, Printed
from fitcheck.sources.logs.facts import count, decimal, degrees, devices_stated, fact, over, summed, text, text_of, whole
from fitcheck.sources.logs.reading import LogReading

_SGLANG = (
    "page_size", "disable_radix_cache", "enable_dp_attention", "swa_full_tokens_ratio", "disable_hybrid_swa_memory", "mamba_ssm_dtype",
    "disable_overlap_schedule",
)  # fmt: skip


def sglang_run(reading: LogReading, common: dict[str, Any]) -> Printed:
    """The run: pools of one rank, weights of the fullest."""
    uncounted, algorithm = [], text(reading.setting("speculative_algorithm"))
    named = {name: value for name in _SGLANG if (value := reading.setting(name)) is not None}
    if algorithm:
        uncounted.append(f"the weights, the cache and the draft tokens' states of speculation ({algorithm})")
    pools = 2 if reading.all("swa_tokens") else 1
    kv, first = _sglang_pool(reading, pools)
    slots, states = count(reading, "state_slots"), _sglang_states(reading)
    if slots:
        named["max_mamba_cache_size"] = slots
    tokens = over(reading, "full_tokens", min) or first
    if tokens is not None:
        named["max_total_tokens"] = tokens.value
    printed_dtype = {
        "float8_e4m3fn": "fp8",
        "float8_e5m2": "fp8",
        "bfloat16": "auto",
        "float16": "auto",
        "float4_e2m1fn_x2": "fp4_mx_block16",
    }
    seen = printed_dtype.get(text_of(reading, "kv_dtype") or "")
    asked = text(reading.setting("kv_cache_dtype")) or "auto"
    split = {**degrees(reading), "dcp": 1}
    return Printed(
        **common,
        devices=devices_stated(reading),
        context_tokens=count(reading, "context_tokens") or whole(reading.setting("context_length")),
        users=count(reading, "running_requests") or whole(reading.setting("max_running_requests")),
        kv_dtype=asked if asked not in ("auto", "bf16", "bfloat16") else seen or "auto",
        **split,
        named=named,
        weights=over(reading, "weights", max),
        kv=kv,
        tokens=tokens,
        state=states,
        graphs=over(reading, "graphs", max),
        total=over(reading, "total_memory", min),
        utilisation=decimal(reading.setting("mem_fraction_static")),
        speculation=algorithm.lower() if algorithm else None,
        draft_tokens=whole(reading.setting("speculative_num_draft_tokens")),
        uncounted=tuple(uncounted),
        notes=reading.notes,
    )


def _sglang_pool(reading: LogReading, pools: int) -> tuple[Fact | None, Fact | None]:
    """The first pools of one rank (a drafter's come after), and the tokens of the first."""
    sizes = [figure for figure in reading.figures if figure.term in ("k_bytes", "latent_bytes")]
    if not sizes:
        return None, over(reading, "kv_tokens", min)
    rank = sizes[0].where
    own = [figure for figure in sizes if figure.where == rank][:pools]
    at = {figure.number for figure in own}
    parts = [
        figure
        for figure in reading.figures
        if figure.where == rank and figure.number in at and figure.term in ("k_bytes", "v_bytes", "latent_bytes")
    ]
    tokens = next((figure for figure in reading.all("kv_tokens") if figure.where == rank and figure.number in at), None)
    return summed(parts), fact(tokens)


def _sglang_states(reading: LogReading) -> Fact | None:
    terms = ("conv_state", "ssm_state", "draft_ssm_state", "draft_conv_state")
    found = [figure for figure in reading.figures if figure.term in terms]
    return summed([figure for figure in found if (figure.where, figure.number) == (found[0].where, found[0].number)]) if found else None
