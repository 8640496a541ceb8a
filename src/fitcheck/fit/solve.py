"""From a case to its report: every checkpoint assessed, the best one told in full."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from fitcheck.catalogue.hardware import Engine
from fitcheck.catalogue.models import Checkpoint, ComponentKind
from fitcheck.catalogue.recipes import Recipe
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.case import Budget, Case, usable_budget
from fitcheck.fit.evidence import Setting, differences, known_recipes, measured_speed, weigh
from fitcheck.fit.explain import assumptions, checkpoint_reason, oldest_used, verdict_reason, warnings
from fitcheck.fit.ledger import Plan, make_plan
from fitcheck.fit.memory import state_model
from fitcheck.fit.placement import PLACES, Layout, choose_layout, place_components, refused_place
from fitcheck.fit.remedies import remedies, smallest_cluster
from fitcheck.fit.report import CheckpointRow, ContextRow, Evidence, FitReport, Verdict
from fitcheck.fit.search import judge, longest_context, most_users
from fitcheck.fit.state import KvDtype, Share, kv_dtype, state_bytes

_RUNS, _SHOWN, _NO, _UNKNOWN, _NOT_SERVED = range(5)
_NO_EVIDENCE = Evidence("arithmetic", (), ())


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

    def headroom_bytes(self, tokens: int, users: int) -> int | None:
        """Usable less taken on the fullest device; negative where it does not fit."""
        return self.plan.budget.bytes - self.plan.total_bytes(tokens, users) if self.plan else None


def fit(case: Case) -> FitReport:
    """Answer the case.

    Raises `UsageError` where an option cannot be honoured (a tensor-parallel size that does not divide the devices, a component that
    no checkpoint has, an engine that serves none of the builds) and `UnknownFact` for a KV dtype that the architecture has no layout for.
    """
    _check_places(case)
    recipes = known_recipes(case)
    assessed = [assess(case, checkpoint, recipes) for checkpoint in _asked_checkpoints(case)]
    if case.engine_id is not None and assessed and not any(found.served for found in assessed):
        raise UsageError(
            f"{assessed[0].missing}, nor is any other build of {case.model.id}", hint="leave --engine out to see what serves it"
        )
    ranked = sorted(assessed, key=lambda found: rank_key(found, case))
    rows = tuple(_row(found, case) for found in ranked)
    best = next((found for found in ranked if not found.checkpoint.withdrawn_on(case.as_of)), ranked[0] if ranked else None)
    return _report(case, best, rows, recipes)


def _asked_checkpoints(case: Case) -> list[Checkpoint]:
    if case.checkpoint_id is not None:
        return [checkpoint for checkpoint in case.model.checkpoints if checkpoint.id == case.checkpoint_id]
    return [checkpoint for checkpoint in case.model.checkpoints if checkpoint.event_on(case.as_of) is not None]


def _check_places(case: Case) -> None:
    known = {component.kind for checkpoint in _asked_checkpoints(case) for component in checkpoint.components}
    for kind, place in case.places.items():
        if place not in PLACES:
            raise UsageError(f"--place {kind}={place}: there is no place {place!r}", hint=f"one of {', '.join(PLACES)}")
        if kind not in known:
            names = ", ".join(sorted(known)) or "none"
            raise UsageError(f"no checkpoint of {case.model.id} has {kind} as a part of its own", hint=f"parts known apart: {names}")


def assess(case: Case, checkpoint: Checkpoint, recipes: tuple[Recipe, ...]) -> Assessment:
    """Verdict and evidence for one checkpoint at the headline context."""
    shown = _best_first(case, checkpoint, recipes)
    lead = next((recipe for recipe in shown if recipe.checkpoint == checkpoint.id), None)
    engine = _engine_for(case, checkpoint, lead, recipes)
    unserved = _why_not_served(case, checkpoint, engine, recipes)
    plan, missing = (None, unserved) if unserved else _plan(case, checkpoint, engine, lead)
    tokens = case.headline_tokens
    usable = plan.budget.bytes if plan else case.usable_bytes or case.device.memory.visible[0].value
    moved = tuple(part.component.kind.value for part in plan.placed if part.moved) if plan else ()
    evidence = weigh(case, Setting(checkpoint.id, tokens, case.users, usable, moved), shown)
    if plan is None:
        return Assessment(checkpoint, Verdict.UNKNOWN, Verdict.UNKNOWN, evidence, None, missing, served=unserved is None)
    arithmetic = judge(plan.total_bytes(tokens, case.users), plan.budget.bytes)
    if case.model.architecture is None and arithmetic is not Verdict.NO:
        missing = "the architecture is not published, so the KV cache cannot be counted"
        return Assessment(checkpoint, Verdict.UNKNOWN, Verdict.UNKNOWN, evidence, None, missing)
    verdict = Verdict.TIGHT if arithmetic is Verdict.NO and evidence.recipes else arithmetic
    return Assessment(checkpoint, verdict, arithmetic, evidence, plan, None)


def _best_first(case: Case, checkpoint: Checkpoint, recipes: tuple[Recipe, ...]) -> list[Recipe]:
    """Recipes of this checkpoint and those that do not name theirs: what shows just what was asked first (whatever the memory)."""
    setting = Setting(checkpoint.id, case.headline_tokens, case.users, case.usable_bytes or case.device.memory.visible[0].value)
    own = [recipe for recipe in recipes if recipe.checkpoint in (checkpoint.id, None)]
    return sorted(own, key=lambda recipe: (recipe.checkpoint is None, len(differences(recipe, case, setting)), recipe.count != case.count))


def _engine_for(case: Case, checkpoint: Checkpoint, lead: Recipe | None, recipes: tuple[Recipe, ...]) -> Engine | None:
    """As asked; else that of the best recipe of this build on this kind of device; else the usual one for its format."""
    if case.engine_id is not None:
        return case.engine(case.engine_id)
    if lead is not None and case.engine(lead.engine) is not None:
        return case.engine(lead.engine)
    serving = [engine for engine in case.engines if _serves(case, checkpoint, engine, recipes)]
    return min(serving, key=lambda engine: engine.preference, default=None)


def _serves(case: Case, checkpoint: Checkpoint, engine: Engine, recipes: tuple[Recipe, ...]) -> bool:
    """Whether the engine serves the build here: its stock builds do, or a recipe on this kind of device shows it for the format."""
    if engine.serves(checkpoint.format, case.device.chip):
        return True
    shown = {recipe.checkpoint for recipe in recipes if recipe.engine == engine.id and recipe.checkpoint is not None}
    return any(build.id in shown and build.format == checkpoint.format for build in case.model.checkpoints)


def _why_not_served(case: Case, checkpoint: Checkpoint, engine: Engine | None, recipes: tuple[Recipe, ...]) -> str | None:
    if engine is None:
        return f"no engine in the catalogue serves {checkpoint.format} on {case.device.name}"
    if _serves(case, checkpoint, engine, recipes):
        return None
    if case.device.chip not in engine.chips:
        return f"{engine.name} does not run on {case.device.name}"
    return f"{engine.name} is not known to serve {checkpoint.format} on {case.device.name}"


def _plan(case: Case, checkpoint: Checkpoint, engine: Engine | None, lead: Recipe | None) -> tuple[Plan | None, str | None]:
    if engine is None or not checkpoint.components:
        return None, "the size of this build is not published"
    budget = usable_budget(case, engine)
    if budget is None:
        return None, f"{engine.name}'s share of memory is not published (--usable sets it)"
    refused = refused_place(place_components(checkpoint, engine, case.places), engine)
    if refused is not None:
        return None, refused
    layout, dtype = _layout(case, engine, lead), _dtype(case, engine, lead)
    memory = state_model(case.model.architecture, engine, case.device, layout, dtype, lead if lead and lead.count == case.count else None)
    if memory.refused and case.kv_dtype is not None:
        return None, f"{engine.name}: {memory.because}"
    return make_plan(case, checkpoint, engine, memory, budget), None


def _layout(case: Case, engine: Engine, lead: Recipe | None) -> Layout:
    recipe_tp = lead.setup.tp if lead is not None and lead.count == case.count and lead.engine == engine.id else None
    return choose_layout(case.count, engine, case.model.architecture, asked_tp=case.tp, recipe_tp=recipe_tp)


def _dtype(case: Case, engine: Engine, lead: Recipe | None) -> KvDtype:
    """As asked, else as the best recipe runs it where the architecture has a layout for that, else what the engine takes by itself."""
    if case.kv_dtype is not None:
        return kv_dtype(case.kv_dtype)
    if lead is not None and lead.count == case.count and lead.engine == engine.id and lead.setup.kv_dtype is not None:
        try:
            theirs = kv_dtype(lead.setup.kv_dtype)
            if case.model.architecture is not None:
                state_bytes(case.model.architecture, 1, theirs, Share())
        except (UsageError, UnknownFact):
            return kv_dtype("auto")
        return theirs
    return kv_dtype("auto")


def bits_per_weight(case: Case, checkpoint: Checkpoint) -> Decimal | None:
    """The build's own label, else the bytes of weights (n-gram tables, drafter and vision apart) over the parameters.

    Where a model has parameters stored beside its backbone and the build does not name its n-gram tables apart, all that is stored counts.
    """
    if checkpoint.bits_per_weight is not None:
        return checkpoint.bits_per_weight.value
    parameters = case.model.parameters
    apart = any(part.kind is ComponentKind.NGRAM for part in checkpoint.components)
    weights = parameters.total.value if apart or parameters.stored is None else parameters.stored.value
    counted = [part.value for part in checkpoint.components if part.kind in (ComponentKind.WEIGHTS, ComponentKind.EXPERTS)]
    if not counted:
        return None
    return (Decimal(sum(counted)) * 8 / weights).quantize(Decimal("0.01"))


def rank_key(found: Assessment, case: Case) -> tuple[object, ...]:
    """Best first.

    Not withdrawn; runs; not pruned; has a recipe; least KL divergence (the original's is 0); else most bits per weight. Of those that do
    not run, what a recipe shows all the same, then what comes nearest, then what is unknown, then what no engine serves.
    """
    divergence, bits = found.checkpoint.divergence, bits_per_weight(case, found.checkpoint) or Decimal(0)
    distance = Decimal(0) if found.checkpoint.native else divergence.value if divergence is not None else Decimal("Infinity")
    order = _order(found)
    headroom = found.headroom_bytes(case.headline_tokens, case.users) or 0
    return (
        found.checkpoint.withdrawn_on(case.as_of),
        order,
        -headroom if order == _NO else 0,
        found.checkpoint.pruned,
        found.evidence.kind != "recipe",
        distance,
        -bits,
        found.checkpoint.id,
    )


def _order(found: Assessment) -> int:
    if found.verdict.runs:
        return _RUNS
    if found.verdict is Verdict.NO:
        return _NO
    if not found.served:
        return _NOT_SERVED
    return _SHOWN if found.evidence.recipes else _UNKNOWN


def _row(found: Assessment, case: Case) -> CheckpointRow:
    checkpoint = found.checkpoint
    event = checkpoint.event_on(case.as_of) or checkpoint.events[0]
    count = len(found.evidence.recipes)
    return CheckpointRow(
        id=checkpoint.id,
        hub_id=checkpoint.hub_id,
        format=checkpoint.format,
        bytes=checkpoint.total_bytes,
        bits_per_weight=bits_per_weight(case, checkpoint),
        divergence=checkpoint.divergence.value if checkpoint.divergence else None,
        verdict=found.verdict,
        evidence=f"recipe ({count})" if count else "arithmetic",
        recipes=count,
        headroom_bytes=found.headroom_bytes(case.headline_tokens, case.users),
        status=event.status.value,
        successors=event.successors,
        because=checkpoint_reason(found, case, event),
    )


def _by_context(case: Case, plan: Plan) -> tuple[ContextRow, ...]:
    from fitcheck.fit.case import TABLE_CONTEXT_TOKENS

    architecture = plan.case.model.architecture
    maximum = architecture.max_context_tokens if architecture else 0
    lengths = sorted({tokens for tokens in (*TABLE_CONTEXT_TOKENS, case.headline_tokens) if tokens <= maximum} | {maximum})
    rows = []
    for tokens in lengths:
        ledger = plan.ledger(tokens, case.users)
        rows.append(
            ContextRow(
                context_tokens=tokens,
                weights_bytes=ledger.part_bytes("weights"),
                state_bytes=ledger.part_bytes("state"),
                overhead_bytes=ledger.part_bytes("overhead"),
                total_bytes=ledger.total_bytes,
                verdict=judge(ledger.total_bytes, ledger.usable_bytes),
            )
        )
    return tuple(rows)


def _report(case: Case, best: Assessment | None, rows: tuple[CheckpointRow, ...], recipes: tuple[Recipe, ...]) -> FitReport:
    plan = best.plan if best else None
    tokens, users = case.headline_tokens, case.users
    evidence = best.evidence if best else _NO_EVIDENCE
    ledger = plan.ledger(tokens, users) if plan else None
    oldest = oldest_used(ledger, case) if ledger else None

    def judge_again(changed: Case) -> Verdict:
        return assess(changed, best.checkpoint, recipes).arithmetic if best else Verdict.UNKNOWN

    smallest = smallest_cluster(case, judge_again) if plan else None
    changes = tuple(remedies(case, best, rows, judge_again, smallest)) if best and best.verdict is Verdict.NO else ()
    return FitReport(
        model=case.model.id,
        model_name=case.model.name,
        checkpoint=best.checkpoint.id if best else None,
        cluster=case.cluster_row(),
        engine=plan.engine.id if plan else case.engine_id,
        layout=plan.layout.label if plan else None,
        kv_dtype=plan.dtype.name if plan else case.kv_dtype,
        context_tokens=tokens,
        context_asked=case.context_tokens is not None,
        users=users,
        verdict=best.verdict if best else Verdict.UNKNOWN,
        reason=verdict_reason(best, case) if best else f"no checkpoint of {case.model.id} had been published by {case.as_of}",
        evidence=evidence,
        headroom_bytes=best.headroom_bytes(tokens, users) if best else None,
        max_context_tokens=longest_context(plan, users) if plan else None,
        max_users=most_users(plan, tokens) if plan else None,
        kv_bytes_per_token=plan.memory.growth(tokens) if plan else None,
        state_bytes_per_sequence=plan.memory.fixed(tokens) if plan else None,
        devices=(ledger,) if ledger else (),
        by_context=_by_context(case, plan) if plan else (),
        checkpoints=rows,
        smallest_cluster=smallest,
        remedies=changes,
        speed=measured_speed(evidence, users),
        assumptions=assumptions(best, case, len(rows)) if best else (),
        oldest_source=oldest,
        oldest_source_age_days=(case.as_of - oldest).days if oldest else None,
        warnings=warnings(best, case, rows) if best else (),
    )


__all__ = ["Assessment", "Budget", "assess", "bits_per_weight", "fit", "rank_key"]
