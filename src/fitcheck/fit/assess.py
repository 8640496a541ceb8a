"""One checkpoint on the cluster: verdict and evidence."""

from __future__ import annotations

from typing import NamedTuple

from fitcheck.catalogue.hardware import Engine
from fitcheck.catalogue.models import Checkpoint, ComponentKind
from fitcheck.catalogue.recipes import Recipe
from fitcheck.errors import UsageError
from fitcheck.fit.case import Case, usable_budget
from fitcheck.fit.evidence import Setting, differences, weigh
from fitcheck.fit.layout import lacking_degree
from fitcheck.fit.ledger import Plan, make_plan, placed_parts
from fitcheck.fit.memory import StateModel, state_model
from fitcheck.fit.placement import Placed, refused_place
from fitcheck.fit.report import Evidence, Verdict
from fitcheck.fit.search import judge
from fitcheck.fit.serving import dtype_for, engine_for, layout_for, why_not_served


class Assessment(NamedTuple):
    """One checkpoint on the cluster: the plan where one could be made, else why not."""

    checkpoint: Checkpoint
    verdict: Verdict
    arithmetic: Verdict
    evidence: Evidence
    plan: Plan | None
    missing: str | None
    served: bool = True
    """Whether some engine is known to serve the build here at all."""
    headroom_bytes: int | None = None
    """Usable less taken on the fullest device at the headline context, where there is a plan; negative where it does not fit."""


def assess(case: Case, checkpoint: Checkpoint, recipes: tuple[Recipe, ...]) -> Assessment:
    """Verdict and evidence for one checkpoint at the headline context."""
    shown = _best_first(case, checkpoint, recipes)
    lead = next((recipe for recipe in shown if recipe.checkpoint == checkpoint.id), None)
    engine = engine_for(case, checkpoint, lead, recipes)
    unserved = why_not_served(case, checkpoint, engine, recipes)
    plan, missing = (None, unserved) if unserved else _plan(case, checkpoint, engine, lead)
    tokens = case.headline_tokens
    usable = plan.budget.bytes if plan else case.usable_bytes or case.device.memory.visible[0].value
    moved = tuple(part.component.kind.value for part in plan.placed if part.moved) if plan else ()
    evidence = weigh(case, Setting(checkpoint.id, tokens, case.users, usable, moved), shown)
    if plan is None:
        return Assessment(checkpoint, Verdict.UNKNOWN, Verdict.UNKNOWN, evidence, None, missing, served=unserved is None)
    taken = plan.total_bytes(tokens, case.users)
    arithmetic = judge(taken, plan.budget.bytes)
    if case.model.architecture is None and arithmetic is not Verdict.NO:
        missing = "the architecture is not published, so the KV cache cannot be counted"
        return Assessment(checkpoint, Verdict.UNKNOWN, Verdict.UNKNOWN, evidence, None, missing)
    verdict = Verdict.TIGHT if arithmetic is Verdict.NO and evidence.recipes else arithmetic
    return Assessment(checkpoint, verdict, arithmetic, evidence, plan, None, headroom_bytes=plan.budget.bytes - taken)


def _best_first(case: Case, checkpoint: Checkpoint, recipes: tuple[Recipe, ...]) -> list[Recipe]:
    """Recipes of this checkpoint and those that do not name theirs: what shows just what was asked first (whatever the memory)."""
    setting = Setting(checkpoint.id, case.headline_tokens, case.users, case.usable_bytes or case.device.memory.visible[0].value)
    own = [recipe for recipe in recipes if recipe.checkpoint in (checkpoint.id, None)]
    return sorted(own, key=lambda recipe: (recipe.checkpoint is None, len(differences(recipe, case, setting)), recipe.count != case.count))


def _plan(case: Case, checkpoint: Checkpoint, engine: Engine | None, lead: Recipe | None) -> tuple[Plan | None, str | None]:
    if engine is None or not checkpoint.components:
        return None, "the size of this build is not published"
    budget = usable_budget(case, engine)
    if budget is None:
        return None, f"{engine.name}'s share of memory is not published (--usable sets it)"
    lead = lead if lead is not None and lead.count == case.count else None
    placed = placed_parts(case, checkpoint, engine, lead)
    refused = _not_apart(case, placed) or refused_place(placed, engine) or _lacking(case, engine)
    if refused is not None:
        return None, refused
    layout, dtype = layout_for(case, engine, lead), dtype_for(case, engine, lead, checkpoint)
    memory = state_model(case.model.architecture, engine, case.device, layout, dtype, lead)
    refused = _not_modelled(case, engine, memory)
    if refused is not None:
        return None, refused
    return make_plan(case, checkpoint, engine, memory, budget, placed), None


def _not_apart(case: Case, placed: tuple[Placed, ...]) -> str | None:
    """A part that was asked to lie elsewhere and that the build does not name apart; routed experts count where they are divided too."""
    kinds = {part.component.kind for part in placed}
    missing = next((kind for kind in case.places if kind not in kinds), None)
    if missing is not None:
        return f"how much of this build is {missing} is not known"
    divided = case.degrees.dp > 1 or case.degrees.ep
    experts = case.model.architecture.experts if case.model.architecture else None
    if divided and experts and ComponentKind.EXPERTS not in kinds:
        return "how much of this build is experts, which replicas and ranks share, is not known"
    return None


def _lacking(case: Case, engine: Engine) -> str | None:
    """What parallelism was asked that the engine lacks; where the engine was asked too, that is an error."""
    lacking = lacking_degree(engine, case.degrees)
    if lacking is not None and case.engine_id is not None:
        raise UsageError(lacking, hint="leave it out, or name another engine (--engine)")
    return lacking


def _not_modelled(case: Case, engine: Engine, memory: StateModel) -> str | None:
    """Why the caches that were asked for cannot be counted; where the engine was asked too, that is an error."""
    if memory.refused and case.kv_dtype is not None:
        if case.engine_id is not None:
            raise UsageError(f"--kv-dtype {case.kv_dtype}: {memory.because}", hint="leave --kv-dtype or --engine out")
        return f"{engine.name}: {memory.because}"
    if memory.allocate is None and memory.layout.dcp > 1:
        return f"{engine.name}'s caches under decode-context parallelism are not modelled: {memory.because}"
    return None
