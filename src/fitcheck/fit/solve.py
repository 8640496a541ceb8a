"""From a case to its report: every checkpoint assessed, the best one told in full."""

from __future__ import annotations

from fitcheck.catalogue.models import Checkpoint
from fitcheck.catalogue.recipes import Recipe
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.assess import Assessment, assess
from fitcheck.fit.case import TABLE_CONTEXT_TOKENS, Case
from fitcheck.fit.evidence import known_recipes, measured_speed
from fitcheck.fit.explain import assumptions, oldest_used, verdict_reason, warnings
from fitcheck.fit.ledger import Plan
from fitcheck.fit.offload import Place, with_experts_apart
from fitcheck.fit.rank import checkpoint_row, rank_key
from fitcheck.fit.remedies import remedies, smallest_cluster
from fitcheck.fit.report import CheckpointRow, ContextRow, Evidence, FitReport, Verdict
from fitcheck.fit.search import judge, longest_context, most_users
from fitcheck.fit.startup import startup_of

_NO_EVIDENCE = Evidence("arithmetic", (), ())


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
            f"no build of {case.model.id} can be asked for: {assessed[0].missing}", hint="leave --engine out to see what serves it"
        )
    ranked = sorted(assessed, key=lambda found: rank_key(found, case))
    rows = tuple(checkpoint_row(found, case) for found in ranked)
    best = next((found for found in ranked if not found.checkpoint.withdrawn_on(case.as_of)), ranked[0] if ranked else None)
    return _report(case, best, rows, recipes)


def _asked_checkpoints(case: Case) -> list[Checkpoint]:
    if case.checkpoint_id is not None:
        return [checkpoint for checkpoint in case.model.checkpoints if checkpoint.id == case.checkpoint_id]
    return [checkpoint for checkpoint in case.model.checkpoints if checkpoint.event_on(case.as_of) is not None]


def _check_places(case: Case) -> None:
    model = case.model
    builds = [with_experts_apart(checkpoint, model.architecture, model.parameter_count) for checkpoint in _asked_checkpoints(case)]
    known = {component.kind for components in builds for component in components}
    for kind, place in case.places.items():
        try:
            Place.read(place)
        except UsageError as error:
            raise UsageError(f"--place {kind}={place}: {error.message}", hint=error.hint) from error
        if kind not in known:
            names = ", ".join(sorted(known)) or "none"
            raise UsageError(f"no checkpoint of {case.model.id} has {kind} as a part of its own", hint=f"parts known apart: {names}")


def _by_context(case: Case, plan: Plan) -> tuple[ContextRow, ...]:
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
        """The verdict of a changed question; one that cannot be asked (degrees that do not divide, no such dtype) is unknown."""
        try:
            return assess(changed, best.checkpoint, recipes).arithmetic if best else Verdict.UNKNOWN
        except (UsageError, UnknownFact):
            return Verdict.UNKNOWN

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
        reason=verdict_reason(best, case) if best else _no_build(case),
        evidence=evidence,
        headroom_bytes=best.headroom_bytes if best else None,
        max_context_tokens=longest_context(plan, users) if plan else None,
        max_users=most_users(plan, tokens) if plan else None,
        kv_bytes_per_token=plan.memory.growth(tokens) if plan else None,
        state_bytes_per_sequence=plan.memory.fixed(tokens) if plan else None,
        devices=(ledger,) if ledger else (),
        startup=startup_of(plan, case) if plan else None,
        by_context=_by_context(case, plan) if plan else (),
        checkpoints=rows,
        smallest_cluster=smallest,
        remedies=changes,
        speed=measured_speed(evidence, users),
        assumptions=assumptions(best, case, len(rows)) if best else (),
        oldest_source=oldest,
        oldest_source_age_days=(case.as_of - oldest).days if oldest else None,
        warnings=warnings(best, case, rows) if best else case.notes,
    )


def _no_build(case: Case) -> str:
    if not case.model.checkpoints:
        return f"no checkpoint of {case.model.id} is known, nor can one be derived"
    return f"no checkpoint of {case.model.id} had been published by {case.as_of}"
