"""A run of vLLM in the words of its allocator."""

from __future__ import annotations

import re
from typing import Any

from fitcheck.fit.printed import Fact, Printed
from fitcheck.sources.logs.facts import count, decimal, degrees, devices_stated, over, ratio, text, whole
from fitcheck.sources.logs.reading import LogReading

_STOCK = re.compile(
    r"v?(\d{1,3})\.(\d{1,4})(?:\.\d{1,4})?(?:\.?(?:rc|a|b|post|dev)\d{0,6})*(?:\+(?:g[0-9a-f]{6,12}|cu\d{2,3}|rocm\d{2,4}|d?\d{8}|\.){0,8})?"
)
"""Versions whose rules are those of the numbers in them. Forks put names behind the plus, and builds without tags call themselves 0.1."""

_VLLM = (
    "block_size", "enable_prefix_caching", "max_num_batched_tokens", "mamba_cache_mode", "mamba_cache_dtype", "mamba_ssm_cache_dtype",
    "async_scheduling", "disable_hybrid_kv_cache_manager",
)  # fmt: skip
_OWN_DRAFTS = ("mtp", "dspark")


def _stock_version(version: str | None) -> str | None:
    """`0.13` for a version whose numbers can be trusted."""
    found = _STOCK.fullmatch(version or "")
    return f"{found[1]}.{found[2]}" if found and (int(found[1]), int(found[2])) >= (0, 2) else None


def vllm_run(reading: LogReading, common: dict[str, Any]) -> Printed:
    """The run: the smallest pool of the ranks, weights of the fullest."""
    notes, uncounted = list(reading.notes), []
    named = {name: value for name in _VLLM if (value := reading.setting(name)) is not None}
    block = count(reading, "block_tokens")
    if block:
        named["block_size"] = block
    batched, version = count(reading, "batched_tokens"), _stock_version(reading.version)
    if batched:
        named.setdefault("max_num_batched_tokens", batched)
    if version:
        named["vllm_version"] = version
    elif reading.version:
        notes.append(f"version {reading.version} is a fork's or a build without its number: the rules of the newest version read are taken")
    method, drafts = text(reading.setting("speculative_config.method")), whole(reading.setting("num_speculative_tokens"))
    if drafts and (method or "mtp").lower().endswith(_OWN_DRAFTS):
        named["num_speculative_tokens"] = drafts
    elif drafts or method:
        uncounted.append(f"the weights and the cache of a drafter ({method or 'of its own'})")
    dtype = text(reading.setting("kv_cache_dtype")) or "auto"
    pool = over(reading, "kv_in_use", min) or over(reading, "kv_available", min)
    blocks = over(reading, "kv_blocks", min)
    tokens = over(reading, "kv_tokens", min) or over(reading, "stored_tokens", min)
    size = whole(named.get("block_size"), 16)
    if tokens is None and blocks is not None and size:
        tokens = Fact(blocks.value * size, 0, blocks.line, blocks.at)
    if blocks is not None and size:
        named["block_size"] = size
    context = whole(reading.setting("max_model_len")) or count(reading, "concurrency_tokens") or count(reading, "needed_tokens")
    return Printed(
        **common,
        devices=devices_stated(reading),
        context_tokens=context or count(reading, "context_tokens"),
        users=whole(reading.setting("max_num_seqs")),
        kv_dtype=dtype,
        **degrees(reading),
        named=named,
        weights=over(reading, "weights", max),
        kv=pool,
        kv_is_budget=True,
        tokens=tokens,
        concurrency=ratio(reading, "concurrency"),
        needed=over(reading, "needed", max),
        needed_tokens=count(reading, "needed_tokens"),
        graphs=over(reading, "graphs", max),
        activation=over(reading, "activation", max),
        non_torch=over(reading, "non_torch", max),
        total=over(reading, "total_memory", min),
        utilisation=ratio(reading, "utilisation") or decimal(reading.setting("gpu_memory_utilization")),
        speculation=method or ("mtp" if drafts else None),
        draft_tokens=drafts,
        uncounted=tuple(uncounted),
        notes=tuple(notes),
    )
