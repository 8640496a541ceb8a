"""From names and texts to a fit case: the one way in for the command line and the Python API."""

from __future__ import annotations

from datetime import date

from fitcheck.catalogue.hardware import Engine
from fitcheck.catalogue.load import Catalogue
from fitcheck.catalogue.lookup import ClusterSpec, catalogued, find_build, find_checkpoint, find_cluster, find_engine, told_apart
from fitcheck.catalogue.models import ComponentKind, Model
from fitcheck.catalogue.recipes import Recipe
from fitcheck.fit.calibrated import Calibrated, check_calibrated
from fitcheck.fit.case import Case
from fitcheck.fit.layout import Degrees
from fitcheck.units import parse_bytes, parse_context


def fit_case(
    catalogue: Catalogue,
    model: str | Model,
    *,
    cluster: str | ClusterSpec,
    as_of: date,
    context: str | int | None = None,
    users: int = 1,
    checkpoint: str | None = None,
    engine: str | None = None,
    kv_dtype: str | None = None,
    tp: int | None = None,
    dp: int = 1,
    dcp: int | None = None,
    ep: bool = False,
    usable: str | int | None = None,
    places: dict[ComponentKind, str] | None = None,
    calibrated: Calibrated | None = None,
) -> Case:
    """Look up everything a `fit` question names; `model` is a name, or a record that was made elsewhere.

    Texts are read as on the command line (`128k`, `102GiB`). With `calibrated` the engine is the one
    that was measured. Raises `UnknownId` for names nobody catalogued, `UsageError` for values
    that make no sense, `DataError` for a malformed record.
    """
    found = find_cluster(catalogue, cluster)
    record, named_build = find_build(catalogue, model, as_of) if isinstance(model, str) else (told_apart(catalogue, model), None)
    notes = (record.note,) if not isinstance(model, str) and record.note and not catalogued(catalogue, record) else ()
    asked_engine = find_engine(catalogue, engine) if engine is not None else None
    if calibrated is not None:
        check_calibrated(calibrated, found.device, asked_engine)
        asked_engine = find_engine(catalogue, calibrated.engine)
    return Case(
        model=record,
        device=found.device,
        count=found.count,
        named_cluster=found.named,
        origin=found.origin,
        as_of=as_of,
        engines=catalogue.all(Engine),
        recipes=catalogue.mentioning(Recipe, model=record.id),
        notes=notes,
        context_tokens=parse_context(context) if isinstance(context, str) else context,
        users=users,
        checkpoint_id=find_checkpoint(record, checkpoint).id if checkpoint is not None else named_build.id if named_build else None,
        engine_id=asked_engine.id if asked_engine is not None else None,
        kv_dtype=kv_dtype,
        degrees=Degrees(tp, dp, dcp, ep),
        usable_bytes=parse_bytes(usable) if isinstance(usable, str) else usable,
        places=places or {},
        calibrated=calibrated,
    )
