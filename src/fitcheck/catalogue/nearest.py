"""Names that look like what was typed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from fitcheck.catalogue.load import normalise
from fitcheck.errors import FitcheckError
from fitcheck.units import counted_from

if TYPE_CHECKING:
    from fitcheck.catalogue.load import Catalogue

SHOWN = 3


def nearest(catalogue: Catalogue, kind: str, name: str, day: date | None = None) -> tuple[str, ...]:
    """Up to three ids and aliases of a kind that look most like a name, best first, no two of one record.

    A model's alias that was only announced, or was withdrawn, is never among them; on a `day` neither is one that is not in force then,
    nor a model that was not out.
    """
    names = catalogue.names(kind)
    best: dict[str, str] = {}
    for candidate in by_likeness(name, names):
        record_id = names[candidate]
        if record_id not in best and (kind != "model" or _answers(catalogue, record_id, candidate, day)):
            best[record_id] = candidate
        if len(best) == SHOWN:
            break
    return tuple(best.values())


def nearest_clusters(catalogue: Catalogue, name: str, count: int | None) -> tuple[str, ...]:
    """Up to three things to type for a cluster: devices with the count that was asked, or devices and named clusters without one."""
    devices = nearest(catalogue, "device", name)
    if count is not None:
        return tuple(f"{count}x{device}" for device in devices)
    return tuple(by_likeness(name, (*devices, *nearest(catalogue, "cluster", name))))[:SHOWN]


def by_likeness(name: str, candidates: Iterable[str]) -> list[str]:
    """Names in the order of how much they look like this one."""
    wanted = normalise(name)

    def unlikeness(candidate: str) -> tuple[float, str]:
        form = normalise(candidate)
        inside = 0.1 if wanted and (wanted in form or form in wanted) else 0.0
        return -(SequenceMatcher(None, wanted, form).ratio() + inside), candidate

    return sorted(candidates, key=unlikeness)


def _answers(catalogue: Catalogue, record_id: str, name: str, day: date | None) -> bool:
    """Whether a model would be found by this name, on that day or ever."""
    from fitcheck.catalogue.models import Model
    from fitcheck.catalogue.provenance import Status

    try:
        model = catalogue.get(Model, record_id)
    except FitcheckError:
        return False
    if day is not None and counted_from(model.released.value) > day:
        return False
    if name == record_id:
        return True
    known = [alias for alias in model.aliases if alias.name == name]
    return any(alias.serves_on(day) if day is not None else alias.status is Status.EFFECTIVE for alias in known)
