"""`--cluster here`: this machine as a cluster, with the memory that was measured on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

from fitcheck.catalogue import variants
from fitcheck.catalogue.described import Described, Origin, wired_shares
from fitcheck.catalogue.hardware import ONE_MEMORY, Device, Engine, UsableShare
from fitcheck.catalogue.load import Catalogue
from fitcheck.catalogue.lookup import MAX_DEVICES, ClusterSpec, default_cluster
from fitcheck.catalogue.provenance import BytesFigure, Grade, NumberFigure, Source
from fitcheck.errors import UsageError
from fitcheck.sources.host.match import matched
from fitcheck.sources.host.records import Accelerator, Host
from fitcheck.units import format_gib

SOURCE = "here"
_HERE = re.compile(r"\s*(?:(?P<count>\d{1,6})\s*[x×*]\s*)?here(?:\s*[*×]\s*(?P<times>\d{1,6}))?\s*", re.IGNORECASE)
_WIRED_ENGINES = ("mlx", "llama.cpp")


def asks_for_here(spec: str) -> int | None:
    """How many machines like this one a cluster's text asks for (`here`, `2xhere`, `here*2`); None where it means something else.

    Raises `UsageError` for none or too many.
    """
    match = _HERE.fullmatch(spec)
    if match is None or (match["count"] and match["times"]):
        return None
    count = int(match["count"] or match["times"] or 1)
    if not 1 <= count <= MAX_DEVICES:
        raise UsageError(f"a cluster of {count} machines makes no sense", hint="write here, or 2xhere for two machines like this one")
    return count


def cluster_of(catalogue: Catalogue, host: Host, machines: int, day: date) -> ClusterSpec:
    """That many machines like this one, each with all of its accelerators that programs can use, or its processor where it has none.

    Graphics that share the system's memory are left out beside cards of their own. Raises `UsageError` where there is none, where their
    memory is not known, or where they are of more than one sort, each time with what to type instead.
    """
    usable, left_out = _usable(host)
    sorts = _sorts(catalogue, host, usable)
    if len(sorts) > 1:
        raise _mixed(sorts)
    device, group = next(iter(sorts.values()))
    if group[0].sliced and len(group) > 1:
        left_out.append(f"one of {len(group)} slices: a program sees one MIG slice at a time, so a model is not split over them")
        group = group[:1]
    first, count = group[0], len(group) * machines
    if count > MAX_DEVICES:
        raise UsageError(f"a cluster of {count} devices makes no sense", hint=f"write a count of at most {MAX_DEVICES // len(group)}")
    visible = min(known.visible_bytes or 0 for known in group)
    free = [known.free_bytes for known in group if known.free_bytes is not None]
    seen = _measured(catalogue, device, first, visible, day)
    named = default_cluster(catalogue, seen, count) if device is not None else None
    return ClusterSpec(seen, count, named, Origin(tuple(_said(seen, device, group, machines, left_out)), min(free, default=None)))


def _usable(host: Host) -> tuple[list[Accelerator], list[str]]:
    """What computes here, and lines on what does not: accelerators, else the processor. Raises `UsageError` where none is left."""
    known = [one for one in host.accelerators if one.visible_bytes and not one.hidden]
    own = [one for one in known if not one.unified]
    left_out = [f"{one.name} is left out: {one.hidden} hides it" for one in host.accelerators if one.hidden]
    if own and len(own) < len(known):
        left_out += [f"{one.name} is left out: it shares the system's memory" for one in known if one.unified]
        known = own
    if known:
        return known, left_out
    processor = _processor(host)
    if processor is not None:
        left_out += [f"{one.name} is left out: {one.note}" for one in host.accelerators if not one.hidden]
        return [processor], left_out
    why = "; ".join([f"{one.name}: {one.note or 'its memory is not known'}" for one in host.accelerators if not one.hidden] or left_out)
    hint = "'fitcheck detect' shows what was found; name a device ('fitcheck hardware' lists them) or describe one: 24GiB@936GB/s"
    raise UsageError(f"--cluster here: no accelerator with known memory was found{f' ({why})' if why else ''}", hint=hint)


def _processor(host: Host) -> Accelerator | None:
    """The processor with the memory that this process may take; None beside an accelerator whose memory nothing tells.

    Graphics of Intel's without memory of their own do not count as one: what they can take of the system's is not told.
    """
    others = [one for one in host.accelerators if not one.hidden and not (one.chip == "intel" and one.unified)]
    sizes = [size for size in (host.ram.total_bytes, host.ram.limit_bytes) if size]
    if others or not sizes:
        return None
    through = "sysctl" if host.system == "macOS" else "meminfo"
    return Accelerator(host.processor or "processor", "cpu", through, None, min(sizes), host.ram.available_bytes, unified=True)


def _sorts(catalogue: Catalogue, host: Host, usable: list[Accelerator]) -> dict[str, tuple[Device | None, list[Accelerator]]]:
    """The accelerators by sort: one device of the catalogue, or one name and size."""
    sorts: dict[str, tuple[Device | None, list[Accelerator]]] = {}
    devices = catalogue.devices
    for one in usable:
        device = matched(devices, one, host)
        key = device.id if device is not None else f"{one.name}, {format_gib(one.visible_bytes or 0)}"
        sorts.setdefault(key, (device, []))[1].append(one)
    return sorts


def typed(device: Device | None, group: list[Accelerator]) -> str:
    """What to type for some like accelerators instead of `here`."""
    visible = min(known.visible_bytes or 0 for known in group)
    return f"{len(group)}x{device.id if device is not None else _described(group[0], visible).text}"


def _mixed(sorts: dict[str, tuple[Device | None, list[Accelerator]]]) -> UsageError:
    found = " and ".join(f"{len(group)}x {group[0].name}" for _, group in sorts.values())
    types = " or ".join(f"--cluster '{typed(device, group)}'" for device, group in sorts.values())
    message = f"--cluster here: this machine has {found}, and a cluster is of one sort of device"
    return UsageError(message, hint=f"write {types}; CUDA_VISIBLE_DEVICES can leave some out too")


def _described(known: Accelerator, visible: int) -> Described:
    return Described(visible, None, known.chip, known.unified)


def _measured(catalogue: Catalogue, device: Device | None, known: Accelerator, visible: int, day: date) -> Device:
    """The catalogue's device with what was measured here before its own figures; a described one where it holds none."""
    source = Source(url=f"file:{known.through}", read=day, title="measured on this machine")
    note = f"this machine, through {known.through}{f': {known.note}' if known.note else ''}"
    figure = BytesFigure(value=visible, source=(SOURCE,), grade=Grade.MEASURED, note=note)
    shares: tuple[UsableShare, ...] = ()
    if device is None:
        wired = catalogue.get(Engine, "mlx") if known.chip == "apple" else None
        base, name = _described(known, visible).device(wired), f"{known.name} (this machine)"
        known_here: dict[str, Any] = {"name": name}
        if known.compute_capability is not None:
            capability = NumberFigure(value=Decimal(known.compute_capability), source=(SOURCE,), grade=Grade.MEASURED)
            known_here["compute_capability"] = capability
        memory = base.memory.model_copy(update={"visible": (figure,)})
    else:
        base, known_here = variants.device(catalogue, device.id), {}
        memory = base.memory.model_copy(update={"visible": (figure, *base.memory.visible)})
    if known.chip == "apple":
        shares = _wired(catalogue, known, visible)
    usable = (*shares, *(share for share in base.usable if share.engine not in {own.engine for own in shares}))
    return base.model_copy(update={**known_here, "memory": memory, "usable": usable, "sources": {**base.sources, SOURCE: source}})


def _wired(catalogue: Catalogue, known: Accelerator, visible: int) -> tuple[UsableShare, ...]:
    """What the GPU may wire here where somebody set it with sysctl."""
    limit = known.wired_limit_bytes
    if limit is None:
        return ()
    fraction = min(Decimal(1), Decimal(limit) / visible)
    engines = [share.engine for share in wired_shares(catalogue.get(Engine, "mlx"), visible)] or list(_WIRED_ENGINES)
    note = f"iogpu.wired_limit_mb is {format_gib(limit)} here"
    return tuple(UsableShare(engine=name, fraction=fraction, source=(SOURCE,), grade=Grade.MEASURED, note=note) for name in engines)


def _said(seen: Device, device: Device | None, group: list[Accelerator], machines: int, left_out: list[str]) -> Iterator[str]:
    first, visible = group[0], seen.memory.visible[0].value
    free = min((known.free_bytes for known in group if known.free_bytes is not None), default=None)
    each = "" if len(group) == 1 else " each"
    now = "" if free is None else f", {format_gib(free)} free now"
    yield f"this machine, through {first.through}: {len(group)}x {first.name}, {format_gib(visible)} visible{each}{now}"
    if first.chip == "cpu":
        yield "no accelerator that a program can use: the processor computes, from the system's memory, whose bandwidth is not known"
    elif device is None:
        yield "it is not in the catalogue: its bandwidth, power and prices are not known, and each engine's own defaults count"
    elif first.unified and first.chip not in ONE_MEMORY:
        yield f"taken as {device.id}: machines of this make-up under other badges are not told apart"
    if machines > 1:
        yield f"{machines} machines like this one; the others were not looked at"
    yield from left_out
