"""Devices that are another's machine under a badge of their own: what their record leaves out is that device's."""

from __future__ import annotations

from typing import Any, TypeVar

from fitcheck.catalogue.hardware import Device
from fitcheck.catalogue.load import Catalogue
from fitcheck.catalogue.provenance import Cited

_INHERITED = ("usable", "overhead", "power", "link", "compute_capability")
_Figure = TypeVar("_Figure", bound=Cited)


def device(catalogue: Catalogue, device_id: str) -> Device:
    """The device of this id with what its record leaves out taken from the device it is a variant of, sources included."""
    own = catalogue.get(Device, device_id)
    if own.variant_of is None:
        return own
    base = catalogue.get(Device, own.variant_of)
    taken = {name: _renamed(base.id, getattr(base, name)) for name in _INHERITED if not getattr(own, name)}
    sources = {f"{base.id}:{key}": source for key, source in base.sources.items()}
    return own.model_copy(update={**taken, "sources": {**sources, **own.sources}})


def _renamed(owner: str, value: Any) -> Any:
    """Figures of another record, naming their sources so that they cannot be taken for this record's own."""
    if isinstance(value, tuple):
        return tuple(_renamed(owner, item) for item in value)
    return _cited_as(owner, value) if isinstance(value, Cited) else value


def _cited_as(owner: str, figure: _Figure) -> _Figure:
    parts = {name: _cited_as(owner, part) for name in type(figure).model_fields if isinstance(part := getattr(figure, name), Cited)}
    return figure.model_copy(update={**parts, "source": tuple(f"{owner}:{key}" for key in figure.source)})
