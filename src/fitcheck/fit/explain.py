"""The words of an answer: why the verdict, what was assumed, what to be careful about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from fitcheck.catalogue.models import CheckpointEvent, ComponentKind
from fitcheck.catalogue.provenance import Status
from fitcheck.fit.case import Case
from fitcheck.fit.memory import OWN_DRAFTS
from fitcheck.fit.placement import left_out, on_device
from fitcheck.fit.report import Assumption, CheckpointRow, DeviceLedger, Verdict
from fitcheck.fit.sources import oldest
from fitcheck.fit.startup import startup_warnings
from fitcheck.units import GIB, format_gib, format_size

if TYPE_CHECKING:
    from fitcheck.fit.assess import Assessment
    from fitcheck.fit.ledger import Plan


_FIRST_CLAUSE = re.compile(r"[:;.] ")


def verdict_reason(found: Assessment, case: Case) -> str:
    """One sentence: what decides the verdict of the checkpoint that is told in full."""
    if found.plan is None:
        return found.missing or "not known"
    room = found.headroom_bytes or 0
    each = "the device" if case.count == 1 else "each device"
    usable = format_gib(found.plan.budget.bytes)
    if found.arithmetic is Verdict.NO:
        term = max(found.plan.ledger(case.headline_tokens, case.users).terms, key=lambda term: term.bytes)
        short = f"{format_size(-room)} short of {usable} usable on {each}; the largest term, {term.name}, is {format_gib(term.bytes)}"
        return f"{short}, yet a recipe shows it running" if found.verdict is Verdict.TIGHT else short
    share = f"{100 * room / found.plan.budget.bytes:.1f} %"
    return f"{format_size(room)} ({share}) of {usable} usable left on {each}"


def checkpoint_reason(found: Assessment, case: Case, event: CheckpointEvent) -> str:
    """Why a checkpoint stands where it does, in a few words."""
    if event.status is Status.WITHDRAWN:
        instead = f"; use {', '.join(event.successors)}" if event.successors else ""
        reason = f": {_FIRST_CLAUSE.split(event.note)[0]}" if event.note else ""
        return f"withdrawn {event.since}{reason}{instead}"
    if found.missing is not None:
        return found.missing
    if found.checkpoint.pruned:
        return "experts were removed: another model in quality"
    nearest = next((row for row in found.evidence.others if row.checkpoint == found.checkpoint.id), None)
    if not found.evidence.recipes and nearest is not None and nearest.count == case.count:
        return f"a recipe differs: {', '.join(nearest.differs)}"
    return "shown running" if found.evidence.recipes else ""


def assumptions(found: Assessment, case: Case, builds: int) -> tuple[Assumption, ...]:
    """What the answer takes for granted, each with the option that changes it; `builds` is how many were judged."""
    return tuple(_assumptions(found.plan, case, builds)) if found.plan else ()


def _assumptions(plan: Plan, case: Case, builds: int) -> Iterator[Assumption]:
    if case.origin is not None:
        yield from (Assumption(text, "--cluster") for text in case.origin.assumed)
    if case.checkpoint_id is None:
        only = "the only one known" if builds == 1 else f"the best of {builds}"
        yield Assumption(f"checkpoint {plan.checkpoint.id}, {only}", "--checkpoint")
    if case.context_tokens is None:
        yield Assumption(f"a context of {case.headline_tokens:,} tokens per user for the verdict", "--context")
    if case.engine_id is None:
        yield Assumption(f"engine {plan.engine.name}", "--engine")
    if case.kv_dtype is None:
        yield Assumption(f"KV cache in {plan.dtype.name}{_dtype_meaning(plan)}", "--kv-dtype")
    if case.count > 1:
        yield Assumption(f"{plan.layout.label}: {plan.layout.reason}", "--tp")
    if not plan.budget.asked:
        yield Assumption(f"{format_gib(plan.budget.bytes)} usable per device: {plan.budget.formula}", "--usable")
    if case.calibrated is not None and case.calibrated.engine == plan.engine.id:
        yield Assumption(f"{format_gib(case.calibrated.overhead_bytes)} of engine overhead {case.calibrated.words()}", "--calibrated")
    for part in plan.placed:
        if part.component.kind is ComponentKind.NGRAM and not part.moved:
            yield Assumption(f"n-gram tables ({format_gib(part.component.value)}) on {part.place}", f"--place {part.component.kind}=gpu")
    for component in left_out(plan.checkpoint, plan.placed):
        yield Assumption(f"{component.kind} ({format_gib(component.value)}) not loaded", f"--place {component.kind}=gpu")
    yield from _state_assumptions(plan)


def _state_assumptions(plan: Plan) -> Iterator[Assumption]:
    if plan.memory.allocate is None:
        yield Assumption(f"state by the architecture's general formula, without blocks and reserves: {plan.memory.because}", None)
        return
    named = ", ".join(f"{name} {value}" for name, value in plan.memory.named.items())
    yield Assumption(f"state as {plan.engine.name} allocates it, with its defaults{' and ' + named if named else ''}", None)


def _dtype_meaning(plan: Plan) -> str:
    if plan.dtype.name != "auto":
        return ", as the best recipe runs it"
    architecture = plan.case.model.architecture
    own_record = architecture is not None and any(group.kind == "compressed" for group in architecture.groups)
    return " (the model's own FP8 record)" if own_record else " (16-bit)"


def warnings(found: Assessment, case: Case, rows: tuple[CheckpointRow, ...]) -> tuple[str, ...]:
    """What to be careful about; `rows` are all builds that were judged."""
    return (*case.notes, *_warnings(found, case), *_other_builds(found, rows))


def _other_builds(found: Assessment, rows: tuple[CheckpointRow, ...]) -> Iterator[str]:
    """What the headline leaves out: that all builds fail, or that one nobody can size is shown running."""
    if found.verdict is Verdict.NO and len(rows) > 1:
        unknown = sum(row.verdict is Verdict.UNKNOWN for row in rows)
        rest = f", and {unknown} could not be judged" if unknown else ""
        yield f"none of {len(rows)} builds is known to fit; {found.checkpoint.id} comes nearest{rest}"
    for row in rows:
        if row.verdict is Verdict.UNKNOWN and row.recipes and row.id != found.checkpoint.id:
            yield f"a recipe shows {row.id} running on this cluster, though it cannot be judged: {row.because}"


def _warnings(found: Assessment, case: Case) -> Iterator[str]:
    if found.checkpoint.pruned:
        yield f"{found.checkpoint.id} is pruned: experts were removed, so it is another model in quality"
    event = found.checkpoint.event_on(case.as_of)
    if event is None:
        yield f"{found.checkpoint.id} had not been published by {case.as_of} (it is from {found.checkpoint.events[0].since} on)"
    elif event.status is Status.WITHDRAWN:
        instead = f"; use {', '.join(event.successors)}" if event.successors else ""
        yield f"{found.checkpoint.id} was withdrawn on {event.since}: {event.note or 'no reason is recorded'}{instead}"
    if found.arithmetic is Verdict.NO and found.verdict is Verdict.TIGHT:
        names = ", ".join(row.id for row in found.evidence.recipes[:3])
        yield f"arithmetic says no, and a recipe says it runs ({names}): taken as tight, so check before you buy"
    if found.verdict is Verdict.UNKNOWN and found.evidence.recipes:
        yield f"a recipe shows it running all the same: {found.evidence.recipes[0].id}"
    if found.plan is None:
        return
    yield from _drafter_warnings(found)
    yield from (
        f"{part.component.kind} ({format_gib(part.component.value)}) lies in {part.place}: its room and speed there are not checked"
        for part in found.plan.placed
        if not on_device(part, case.device) and (part.moved or (part.place == "ram" and part.component.kind is not ComponentKind.EMBEDDING))
    )
    if not found.plan.layout.stock:
        yield f"{found.plan.layout.label} is not stock: {found.plan.layout.reason}"
    yield from _memory_warnings(found.plan, case)
    yield from startup_warnings(found.plan, case)


def _drafter_warnings(found: Assessment) -> Iterator[str]:
    """Speeds with a drafter, beside a ledger without it: the build's own draft layers, or one that is downloaded apart."""
    if found.plan is None:
        return
    lead = next((row for row in found.evidence.recipes if row.speeds), None)
    if lead is None or lead.speculation in (None, "none"):
        return
    own = lead.speculation.startswith(OWN_DRAFTS)
    drafters = [
        part for part in left_out(found.checkpoint, found.plan.placed) if part.kind is ComponentKind.DRAFTER and part.optional != own
    ]
    if drafters:
        size = format_gib(drafters[0].value)
        yield f"the speeds are with speculation ({lead.speculation}), whose drafter ({size}) is not counted: --place drafter=gpu counts it"


def _memory_warnings(plan: Plan, case: Case) -> Iterator[str]:
    memory = case.device.memory
    if plan.budget.bytes > memory.visible[0].value + (memory.reclaimable.value if memory.reclaimable else 0):
        yield f"{format_gib(plan.budget.bytes)} usable is more than {case.device.name} shows ({format_gib(memory.visible[0].value)})"
    free = [figure.value for figure in memory.free_at_boot]
    now = case.origin.free_bytes if case.origin is not None else None
    if free and now is None and not plan.budget.asked and min(free) < plan.budget.bytes:
        low, high = format_gib(min(free), 1), format_gib(max(free), 1)
        yield f"owners report {low} to {high} free at boot, and {format_gib(plan.budget.bytes, 1)} is counted on: check yours (--usable)"
    if now is not None and not plan.budget.asked and now < plan.budget.bytes:
        counted = format_gib(plan.budget.bytes)
        usable = f", or --usable {now // GIB}GiB" if now >= GIB else ""
        yield f"{format_gib(now)} is free on this machine now, and {counted} is counted on: free it first{usable}"
    needed = plan.total_bytes(case.headline_tokens, case.users)
    overhead = next((term for term in plan.fixed_terms if term.part == "overhead"), None)
    if overhead is None:
        yield f"what {plan.engine.name} holds besides weights and state is not known and not counted"
    elif overhead.high_bytes is not None and needed <= plan.budget.bytes:
        worst_case = needed - overhead.bytes + overhead.high_bytes
        if worst_case > plan.budget.bytes:
            yield f"with the highest engine overhead seen ({format_gib(overhead.high_bytes, 1)}) it would not fit"


def oldest_used(ledger: DeviceLedger, case: Case) -> date | None:
    """The day the oldest source behind the ledger was read."""
    del case
    return oldest([source for term in ledger.terms for source in term.sources] + list(ledger.usable_sources))
