"""Names as people type them, to records: models, checkpoints, clusters, engines."""

from __future__ import annotations

import re
from datetime import date

from fitcheck.catalogue.hardware import Cluster, Device, Engine
from fitcheck.catalogue.load import Catalogue, normalise
from fitcheck.catalogue.models import Alias, Checkpoint, Model
from fitcheck.catalogue.provenance import Status
from fitcheck.errors import UnknownId, UsageError
from fitcheck.frozen import frozen

MAX_DEVICES = 4096
_COUNTED = re.compile(r"^\s*(?P<count>-?\d+)\s*[x×*]\s*(?P<name>\S.*?)\s*$", re.IGNORECASE)
_TIMES = re.compile(r"^\s*(?P<name>\S.*?)\s*[*×]\s*(?P<count>-?\d+)\s*$")


@frozen
class ClusterSpec:
    """Some number of one device; `named` is the catalogue's cluster of that make-up, which says what joins them."""

    device: Device
    count: int
    named: Cluster | None

    @property
    def label(self) -> str:
        """As people write it: `2x dgx-spark`."""
        return f"{self.count}x {self.device.id}"


def find_model(catalogue: Catalogue, name: str, as_of: date) -> Model:
    """The model of this id, hub id, or alias in force on the day. Raises `UnknownId` with the nearest names."""
    record_id = _find_id(catalogue, "model", name)
    if record_id is not None:
        model = catalogue.get(Model, record_id)
        if normalise(name) == normalise(model.id):
            return model
        return _checked_alias(catalogue, model, name, as_of)
    for block in catalogue.blocks("model").values():
        if name.count("/") == 1 and name.lower() in block.text.lower():
            model = catalogue.get(Model, block.id)
            if name.lower() in {(known or "").lower() for known in (model.hub_id, *(build.hub_id for build in model.checkpoints))}:
                return model
    raise UnknownId(f"unknown model {name!r}", hint="'fitcheck models' lists them all", nearest=catalogue.nearest("model", name))


def _find_id(catalogue: Catalogue, kind: str, name: str) -> str | None:
    wanted = normalise(name)
    exact = next((record_id for record_id in catalogue.ids(kind) if normalise(record_id) == wanted), None)
    return exact or next((record_id for known, record_id in catalogue.names(kind).items() if normalise(known) == wanted), None)


def _checked_alias(catalogue: Catalogue, model: Model, name: str, as_of: date) -> Model:
    known = [alias for alias in model.aliases if normalise(alias.name) == normalise(name)]
    if any(alias.serves_on(as_of) for alias in known):
        return model
    raise UnknownId(_alias_reason(known, model, name, as_of), hint=f"ask for {model.id}", nearest=catalogue.nearest("model", name))


def _alias_reason(known: list[Alias], model: Model, name: str, as_of: date) -> str:
    effective = [alias for alias in known if alias.status is Status.EFFECTIVE]
    if not effective:
        return f"{name!r} was never a name of {model.id}: it was announced, then withdrawn"
    first = min(alias.since for alias in effective)
    return f"on {as_of.isoformat()} {name!r} is not a name of {model.id} (it is from {first} on)"


def find_checkpoint(model: Model, name: str) -> Checkpoint:
    """The model's checkpoint of this id or hub id. Raises `UnknownId` with the nearest."""
    wanted = normalise(name)
    for checkpoint in model.checkpoints:
        if wanted in (normalise(checkpoint.id), normalise(checkpoint.hub_id or "")):
            return checkpoint
    from difflib import get_close_matches

    ids = [checkpoint.id for checkpoint in model.checkpoints]
    nearest = tuple(get_close_matches(name.lower(), ids, n=3, cutoff=0.0))
    raise UnknownId(f"{model.id} has no checkpoint {name!r}", hint=f"'fitcheck models {model.id}' lists them", nearest=nearest)


def find_engine(catalogue: Catalogue, name: str) -> Engine:
    """The engine of this id or alias. Raises `UnknownId` with the nearest."""
    record_id = _find_id(catalogue, "engine", name)
    if record_id is None:
        known = ", ".join(catalogue.ids("engine"))
        raise UnknownId(f"unknown engine {name!r}", hint=f"known engines: {known}", nearest=catalogue.nearest("engine", name))
    return catalogue.get(Engine, record_id)


def find_cluster(catalogue: Catalogue, spec: str) -> ClusterSpec:
    """The cluster in a spec: `2xspark`, `2x dgx-spark`, `spark*2`, one device by name, or a named cluster.

    Raises `UsageError` for a count that makes no sense and `UnknownId` for a device nobody has catalogued.
    """
    match = _COUNTED.match(spec) or _TIMES.match(spec)
    if match is None:
        cluster_id = _find_id(catalogue, "cluster", spec)
        if cluster_id is not None:
            named = catalogue.get(Cluster, cluster_id)
            return ClusterSpec(catalogue.get(Device, named.device), named.count, named)
    count = int(match["count"][:9]) if match else 1
    name = match["name"] if match else spec
    if not name.strip():
        raise UsageError("the cluster is empty", hint="name a device and how many of it, such as 2xspark")
    if not 1 <= count <= MAX_DEVICES:
        raise UsageError(f"a cluster of {count} devices makes no sense", hint="write a count from 1 on, such as 2xspark")
    device_id = _find_id(catalogue, "device", name)
    if device_id is None:
        raise UnknownId(f"unknown device {name!r}", hint="'fitcheck hardware' lists them all", nearest=catalogue.nearest("device", name))
    device = catalogue.get(Device, device_id)
    return ClusterSpec(device, count, _default_cluster(catalogue, device, count))


def _default_cluster(catalogue: Catalogue, device: Device, count: int) -> Cluster | None:
    found = catalogue.mentioning(Cluster, device=device.platform, count=count)
    return next((cluster for cluster in found if cluster.default), None)
