"""What would make it fit, cheapest first, and the smallest cluster of the device that holds the build."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from fitcheck.catalogue.models import ComponentKind
from fitcheck.fit.case import Case
from fitcheck.fit.offload import Place, first_layers, with_experts_apart
from fitcheck.fit.report import CheckpointRow, Remedy, Verdict
from fitcheck.fit.search import largest, longest_context, most_users
from fitcheck.units import format_gib

if TYPE_CHECKING:
    from fitcheck.fit.assess import Assessment
    from fitcheck.fit.ledger import Plan

MAX_DEVICES_TRIED = 32
_SMALLER_CACHE = {"llama.cpp": "q8_0", "ik-llama.cpp": "q8_0", "mlx": "q8_0"}
"""What an engine calls a cache of half the size, where that is not `fp8`."""

Judge = Callable[[Case], Verdict]
"""The verdict of the same build for a changed question."""


def smallest_cluster(case: Case, judge: Judge) -> int | None:
    """The fewest of the device, up to 32, on which the build runs with all else as asked; None where none does."""
    for count in range(1, MAX_DEVICES_TRIED + 1):
        if judge(replace(case, count=count, named_cluster=None)).runs:
            return count
    return None


def remedies(case: Case, found: Assessment, rows: tuple[CheckpointRow, ...], judge: Judge, smallest: int | None) -> Iterator[Remedy]:
    """For a build that does not fit: what costs nothing first (another build, another setting), what costs money last."""
    other = next((row for row in rows if row.verdict.runs and row.status != "withdrawn" and row.id != found.checkpoint.id), None)
    if other is not None:
        yield Remedy(f"the build {other.id} {'fits' if other.verdict is Verdict.FITS else 'just fits'}", f"--checkpoint {other.id}")
    yield from _settings(case, found, judge)
    if smallest is not None and smallest > case.count:
        more = smallest - case.count
        yield Remedy(f"{more} more {case.device.name}: {smallest} hold it", f"--cluster {smallest}x{case.device.id}")


def _settings(case: Case, found: Assessment, judge: Judge) -> Iterator[Remedy]:
    plan = found.plan
    if plan is None:
        return
    smaller = _SMALLER_CACHE.get(plan.engine.id, "fp8")
    yield from _experts_away(case, plan, judge)
    if plan.dtype.k in ("bf16", "f16", "f32") and judge(replace(case, kv_dtype=smaller)).runs:
        yield Remedy(f"a KV cache in {smaller}", f"--kv-dtype {smaller}")
    context = longest_context(plan, case.users)
    if context:
        yield Remedy(f"a context of {context:,} tokens at most", f"--context {context}")
    users = most_users(plan, case.headline_tokens)
    if 0 < users < case.users:
        yield Remedy(f"{users:,} user{'' if users == 1 else 's'} at once", f"--users {users}")
    reclaimable = case.device.memory.reclaimable
    if reclaimable is not None and case.usable_bytes is None:
        more = plan.budget.bytes + reclaimable.value
        if judge(replace(case, usable_bytes=more)).runs:
            yield Remedy(f"{format_gib(reclaimable.value)} more usable: the display's share reclaimed", f"--usable {more}B")


def _experts_away(case: Case, plan: Plan, judge: Judge) -> Iterator[Remedy]:
    """Routed experts in host RAM: of the fewest layers that do, where an engine can divide them so, else all."""
    kind, engine = ComponentKind.EXPERTS, plan.engine
    apart = with_experts_apart(plan.checkpoint, case.model.architecture, case.model.parameter_count)
    parts = [component for component in apart if component.kind is kind]
    experts = sum(part.value for part in parts)
    placed = Place.read(case.places[kind]) if kind in case.places else Place("gpu")
    if (
        (placed.where != "gpu" and placed.layers is None)
        or not experts
        or case.device.memory.unified
        or "ram" not in engine.offloads.get(kind, ())
    ):
        return

    def runs(place: str) -> bool:
        return judge(replace(case, places={**case.places, kind: place}, engine_id=engine.id)).runs

    if not runs("ram"):
        return
    layers = case.model.architecture.expert_layers if case.model.architecture and engine.split == "pipeline" else None
    if layers is None:
        yield Remedy(f"the routed experts in host RAM ({format_gib(experts, 1)}), slower", f"--engine {engine.id} --place experts=ram")
        return
    kept = largest(layers - 1, lambda count: runs(f"ram:{layers - count}"))
    away = layers - kept
    size = sum(first_layers(part, away, layers) for part in parts)
    words = f"the routed experts of {away} of {layers} layers in host RAM ({format_gib(size, 1)}), slower"
    yield Remedy(words, f"--engine {engine.id} --place experts=ram:{away}")
