"""Which checkpoint stands before which, and how each is listed."""

from __future__ import annotations

from decimal import Decimal

from fitcheck.catalogue.models import Checkpoint, ComponentKind
from fitcheck.fit.assess import Assessment
from fitcheck.fit.case import Case
from fitcheck.fit.explain import checkpoint_reason
from fitcheck.fit.report import CheckpointRow, Verdict

_BACKBONE = (ComponentKind.WEIGHTS, ComponentKind.EXPERTS, ComponentKind.EMBEDDING)
_RUNS, _SHOWN, _NO, _UNKNOWN, _NOT_SERVED = range(5)


def bits_per_weight(case: Case, checkpoint: Checkpoint) -> Decimal | None:
    """The build's own label, else the bytes of weights (n-gram tables, drafter and vision apart) over the parameters.

    Where a model has parameters stored beside its backbone and the build does not name its n-gram tables apart, all that is stored counts.
    """
    if checkpoint.bits_per_weight is not None:
        return checkpoint.bits_per_weight.value
    parameters = case.model.parameters
    apart = any(part.kind is ComponentKind.NGRAM for part in checkpoint.components)
    weights = case.model.parameter_count if apart or parameters.stored is None else parameters.stored.value
    counted = [part.value for part in checkpoint.components if part.kind in _BACKBONE]
    if not counted or not weights:
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
    headroom = found.headroom_bytes or 0
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


def checkpoint_row(found: Assessment, case: Case) -> CheckpointRow:
    """A checkpoint as it is listed."""
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
        headroom_bytes=found.headroom_bytes,
        status=event.status.value,
        successors=event.successors,
        because=checkpoint_reason(found, case, event),
    )
