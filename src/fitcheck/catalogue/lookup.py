"""Names as people type them, to records: models, checkpoints, clusters, engines."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, NoReturn

from fitcheck.catalogue import variants
from fitcheck.catalogue.hardware import Cluster, Device, Engine
from fitcheck.catalogue.load import Catalogue, normalise
from fitcheck.catalogue.models import Alias, Checkpoint, Model
from fitcheck.catalogue.provenance import Status
from fitcheck.errors import UnknownId, UsageError
from fitcheck.frozen import frozen

if TYPE_CHECKING:
    from fitcheck.catalogue.described import Origin
    from fitcheck.catalogue.recipes import Recipe

MAX_DEVICES = 4096
_COUNTED = re.compile(r"^\s*(?P<count>-?\d+)\s*[x×*]\s*(?P<name>\S.*?)\s*$", re.IGNORECASE)
_TIMES = re.compile(r"^\s*(?P<name>\S.*?)\s*[*×]\s*(?P<count>-?\d+)\s*$")
_LOOSE = (
    re.compile(r"^\s*(?P<name>\S.*?)\s*x\s*(?P<count>\d+)\s*$", re.IGNORECASE),
    re.compile(r"^\s*(?P<count>\d+)[\s_-]*(?P<name>[^\s\d_-].*?)\s*$"),
)
"""Further ways in which people write a count (`sparkx2`, `2 spark`), taken only where the whole is no name and the rest is a device."""


@frozen
class ClusterSpec:
    """Some number of one device; `named` is the catalogue's cluster of that make-up, which says what joins them.

    `origin` is there where the device was described or found, and not taken from the catalogue as it stands.
    """

    device: Device
    count: int
    named: Cluster | None
    origin: Origin | None = None

    @property
    def label(self) -> str:
        """As people write it: `2x dgx-spark`."""
        return f"{self.count}x {self.device.id}"


def find_build(catalogue: Catalogue, name: str, as_of: date) -> tuple[Model, Checkpoint | None]:
    """As `find_model`, with the checkpoint where the name is that of one: its hub id, or an alias that names it."""
    model = find_model(catalogue, name, as_of)
    hub_id = name.lower() if name.lower() != (model.hub_id or "").lower() else None
    by_hub = next((build for build in model.checkpoints if hub_id and (build.hub_id or "").lower() == hub_id), None)
    alias = next((alias for alias in model.aliases if normalise(alias.name) == normalise(name)), None)
    by_alias = model.checkpoint(alias.checkpoint) if alias is not None and alias.checkpoint is not None else None
    return model, by_hub or by_alias


def told_apart(catalogue: Catalogue, model: Model) -> Model:
    """A record made elsewhere under an id of its own, where it only happens to be called as one of the catalogue's models."""
    if model.id not in catalogue.ids("model") or catalogued(catalogue, model):
        return model
    return model.model_copy(update={"id": f"{model.id}-as-read"})


def catalogued(catalogue: Catalogue, model: Model) -> bool:
    """Whether a record made elsewhere is one of the catalogue's models: the same id, and the same repository where it has one."""
    if model.id not in catalogue.ids("model"):
        return False
    known = catalogue.get(Model, model.id)
    hubs = {(hub_id or "").lower() for hub_id in (known.hub_id, *(build.hub_id for build in known.checkpoints))}
    return model == known or (model.hub_id is not None and model.hub_id.lower() in hubs)


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
    shown = _without_secrets(name)
    raise UnknownId(f"unknown model {shown!r}", hint="'fitcheck models' lists them all", nearest=catalogue.nearest("model", shown, as_of))


def _without_secrets(name: str) -> str:
    """A name as it may be repeated: what was meant as an address loses its query and its password."""
    return re.sub(r"//[^/@]*@", "//", name.partition("?")[0]) if "/" in name else name


def _find_id(catalogue: Catalogue, kind: str, name: str) -> str | None:
    wanted = normalise(name)
    exact = next((record_id for record_id in catalogue.ids(kind) if normalise(record_id) == wanted), None)
    return exact or next((record_id for known, record_id in catalogue.names(kind).items() if normalise(known) == wanted), None)


def _checked_alias(catalogue: Catalogue, model: Model, name: str, as_of: date) -> Model:
    known = [alias for alias in model.aliases if normalise(alias.name) == normalise(name)]
    if any(alias.serves_on(as_of) for alias in known):
        return model
    raise UnknownId(_alias_reason(known, model, name, as_of), hint=f"ask for {model.id}", nearest=catalogue.nearest("model", name, as_of))


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
        if wanted and wanted in {normalise(known) for known in (checkpoint.id, checkpoint.hub_id) if known}:
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


def find_recipe(catalogue: Catalogue, name: str) -> Recipe:
    """The recipe of this id. Raises `UnknownId` with the nearest."""
    record_id = _find_id(catalogue, "recipe", name)
    if record_id is None:
        raise UnknownId(f"unknown recipe {name!r}", hint="'fitcheck recipes' lists them all", nearest=catalogue.nearest("recipe", name))
    from fitcheck.catalogue.recipes import Recipe

    return catalogue.get(Recipe, record_id)


def find_cluster(catalogue: Catalogue, spec: str | ClusterSpec) -> ClusterSpec:
    """The cluster in a spec: `2xspark`, `2x dgx-spark`, `spark*2`, one device by name, a named cluster, or a description.

    A description (`2x24GiB@936GB/s`) is what is left where no name is; a cluster that was found elsewhere is taken as it is. Raises
    `UsageError` for a count that makes no sense or a description that cannot be read, and `UnknownId` for a device nobody has catalogued.
    """
    if not isinstance(spec, str):
        return spec
    if not spec.strip():
        raise UsageError("the cluster is empty", hint="name a device and how many of it, such as 2xspark")
    match = _COUNTED.match(spec) or _TIMES.match(spec)
    if match is None:
        cluster_id = _find_id(catalogue, "cluster", spec)
        if cluster_id is not None:
            named = catalogue.get(Cluster, cluster_id)
            return ClusterSpec(variants.device(catalogue, named.device), named.count, named)
    name = match["name"] if match else spec
    device_id = _find_id(catalogue, "device", name)
    if match is None and device_id is None:
        match, device_id = _loosely(catalogue, spec)
    count = _count(match["count"]) if match else 1
    if device_id is None:
        return _described(catalogue, match["name"] if match else spec, count) or _not_found(catalogue, spec, match and match["name"], count)
    device = variants.device(catalogue, device_id)
    return ClusterSpec(device, count, default_cluster(catalogue, device, count))


def _described(catalogue: Catalogue, name: str, count: int) -> ClusterSpec | None:
    from fitcheck.catalogue.described import looks_described, parse_described

    if not looks_described(name):
        return None
    machine = parse_described(name)
    wired = catalogue.get(Engine, "mlx") if machine.chip == "apple" and "mlx" in catalogue.blocks("engine") else None
    return ClusterSpec(machine.device(wired), count, None, machine.origin)


def _loosely(catalogue: Catalogue, spec: str) -> tuple[re.Match[str] | None, str | None]:
    """A count and a device in a spec that is neither in the grammar nor a name; the match alone where only the count can be told."""
    found = [match for match in (form.match(spec) for form in _LOOSE) if match]
    for match in found:
        device_id = _find_id(catalogue, "device", match["name"])
        if device_id is not None:
            return match, device_id
    return None, None


def _count(written: str) -> int:
    count = int(written) if len(written) <= len(str(MAX_DEVICES)) + 1 else MAX_DEVICES + 1
    if not 1 <= count <= MAX_DEVICES:
        raise UsageError(f"a cluster of {written} devices makes no sense", hint=f"write a count from 1 to {MAX_DEVICES}, such as 2xspark")
    return count


def _not_found(catalogue: Catalogue, spec: str, name: str | None, count: int) -> NoReturn:
    from fitcheck.catalogue.nearest import nearest_clusters

    nearest = nearest_clusters(catalogue, name or spec, None if name is None else count)
    hint = "'fitcheck hardware' lists them all; a machine can be described too: 2x24GiB@936GB/s"
    raise UnknownId(f"unknown device {name or spec!r}", hint=hint, nearest=nearest)


def default_cluster(catalogue: Catalogue, device: Device, count: int) -> Cluster | None:
    """The named cluster that is meant by a count of a device, or None."""
    found = catalogue.mentioning(Cluster, device=device.platform, count=count)
    return next((cluster for cluster in found if cluster.default), None)
