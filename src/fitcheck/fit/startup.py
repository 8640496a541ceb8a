"""What must be free when an engine starts, and what loading leaves behind: the part of memory that a running server no longer shows.

vLLM refuses to start where less is free than its share of the whole (`request_memory`, v1/worker/utils.py, 0.33.0). On unified memory CUDA
counts the page cache as used (DGX Spark: MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks issue 47), so the files that a load has read stand in
the way of the next start until they are dropped. Engines that map GGUF files use those pages as the weights themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from fitcheck.fit.case import Case
from fitcheck.fit.ledger import Plan
from fitcheck.fit.placement import left_out
from fitcheck.fit.report import Startup
from fitcheck.units import format_gib

_CHECKS_FREE = ("vllm",)
"""Engines that take a share of the whole memory and check at the start that it is free."""

_MAPS_FILES = ("llama.cpp", "ik-llama.cpp")


def startup_of(plan: Plan, case: Case) -> Startup:
    """What has to be free at the start on one device, and what reading the weights may leave in the page cache of unified memory.

    At most the whole build is read on each machine, draft layers that are then passed over too, and no more stays cached than the machine
    has beside its weights.
    """
    memory = case.device.memory
    needed = plan.budget.bytes if plan.engine.id in _CHECKS_FREE else plan.total_bytes(case.headline_tokens, case.users)
    weights = sum(term.bytes for term in plan.fixed_terms if term.part == "weights")
    passed_over = [part for part in left_out(plan.checkpoint, plan.placed) if not part.optional]
    read = sum(part.value for part in (*(part.component for part in plan.placed), *passed_over))
    cached = 0 if not memory.unified or plan.engine.id in _MAPS_FILES else max(0, min(read, memory.visible[0].value - weights))
    return Startup(free_needed_bytes=needed, checked=plan.engine.id in _CHECKS_FREE, page_cache_bytes=cached)


def startup_warnings(plan: Plan, case: Case) -> Iterator[str]:
    """Where the next start would find too little free unless the page cache is dropped."""
    startup = startup_of(plan, case)
    visible = case.device.memory.visible[0].value
    if startup.page_cache_bytes and visible - startup.page_cache_bytes < startup.free_needed_bytes <= visible:
        cached, needed = format_gib(startup.page_cache_bytes, 1), format_gib(startup.free_needed_bytes, 1)
        refuses = f"{plan.engine.name} starts only where {needed} are free" if startup.checked else f"{needed} must be free"
        yield f"loading leaves up to {cached} in the page cache, which counts as used here, and {refuses}: drop it before each start"
