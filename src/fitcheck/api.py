"""The Python API: the commands' verbs over the same records, light to import."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from fitcheck.catalogue.load import Catalogue
    from fitcheck.catalogue.models import ComponentKind
    from fitcheck.fit.report import FitReport


def load_catalogue(*overlays: str | Path) -> Catalogue:
    """The shipped catalogue with overlay files on top. Raises `fitcheck.errors.DataError` for a missing or unreadable file."""
    from fitcheck.catalogue.load import load_catalogue as load

    return load(*overlays)


def fit(
    model: str,
    *,
    cluster: str,
    context: str | int | None = None,
    users: int = 1,
    checkpoint: str | None = None,
    engine: str | None = None,
    kv_dtype: str | None = None,
    tp: int | None = None,
    usable: str | int | None = None,
    places: dict[ComponentKind, str] | None = None,
    as_of: date | None = None,
    catalogue: Catalogue | None = None,
) -> FitReport:
    """Whether a model fits a cluster, as `fitcheck fit` answers it.

    `context` is tokens per user, a number or text such as `128k`; `usable` is bytes per device or text such as `102GiB`; `as_of` is today
    (UTC) unless given. Raises a `fitcheck.errors.FitcheckError` for names and values that make no sense.
    """
    from fitcheck.ask import fit_case
    from fitcheck.fit.solve import fit as answer

    case = fit_case(
        catalogue or load_catalogue(),
        model,
        cluster=cluster,
        as_of=as_of or datetime.now(UTC).date(),
        context=context,
        users=users,
        checkpoint=checkpoint,
        engine=engine,
        kv_dtype=kv_dtype,
        tp=tp,
        usable=usable,
        places=places,
    )
    return answer(case)
