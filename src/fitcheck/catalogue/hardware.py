"""Devices, the clusters people make of them, and the engines that run on them."""

# Annotations are evaluated as they stand (no `from __future__ import annotations`): pydantic would compile each text again at start-up.

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from fitcheck.catalogue.provenance import BytesFigure, Cited, DayOrMonth, NumberFigure, Record, Source

Chip = Literal["nvidia", "amd", "apple", "intel", "cpu"]
"""Whose accelerator it is, or `cpu` where the processor computes, which decides the engines that run on it."""

ONE_MEMORY: tuple[Chip, ...] = ("apple", "cpu")
"""Chips that never have a memory of their own beside the system's."""

Fraction = Annotated[Decimal, Field(gt=0, le=1)]


class UsableShare(Cited):
    """What share of visible memory an engine takes on this device when people run it (`gpu_memory_utilization` and its kin)."""

    engine: str
    fraction: Fraction


class Overhead(BytesFigure):
    """What an engine holds besides weights and state: context, collectives, graphs, activation peak. `low` and `high` were seen.

    `devices` is how many of the device worked together where that was seen. `until_version` marks the figure of old versions of the
    engine (exclusive): it counts only where such a version is named.
    """

    engine: str
    devices: Annotated[int, Field(ge=1)] | None = None
    until_version: Annotated[str, Field(pattern=r"^\d+\.\d+$")] | None = None
    low: BytesFigure | None = None
    high: BytesFigure | None = None


class Memory(Record):
    """A device's memory, kept apart: what is sold, what software sees, what has been free at boot.

    Where machines differ, `visible` holds the figure used first and the others after it.
    """

    sold: BytesFigure
    visible: tuple[BytesFigure, ...] = Field(min_length=1)
    free_at_boot: tuple[BytesFigure, ...] = ()
    reclaimable: BytesFigure | None = None
    unified: bool = False
    bandwidth_bytes_per_s: NumberFigure | None = None


class Power(NumberFigure):
    """Watts at the wall unless `scope` says otherwise, in the state that `condition` words."""

    state: Literal["idle", "busy", "limit"]
    scope: Literal["wall", "device", "adapter"] = "wall"
    condition: str | None = None


class Price(Cited):
    """A dated price. `until` is exclusive; a price without it holds until the next of the same `kind` and currency."""

    amount: Annotated[Decimal, Field(ge=0)]
    currency: str = "USD"
    kind: Literal["announced", "list", "street", "rental_per_hour"] = "list"
    since: DayOrMonth = Field(alias="from")
    until: DayOrMonth | None = None
    seller: str | None = None


class Link(Cited):
    """How devices of this sort are joined: nominal and measured bytes per second, one direction."""

    name: str
    bytes_per_s: Annotated[int, Field(gt=0)]
    measured_bytes_per_s: Annotated[int, Field(gt=0)] | None = None


class DetectedAs(Cited):
    """What the device is called on a machine that has it.

    `driver` is the name that the vendor's software prints (NVML, macOS), `pci` the `vendor:device` of a card in hexadecimal, with
    `/revision` where that tells two cards apart. Devices that share a name differ in memory, or one is a variant of the other.
    """

    by: Literal["driver", "pci"]
    name: str


class Device(Record):
    """One accelerator or unified-memory machine.

    `variant_of` names the device whose machine this is under another badge: fields left out here are that device's.
    """

    kind: Literal["device"]
    id: str
    name: str
    maker: str
    chip: Chip
    aliases: tuple[str, ...] = ()
    variant_of: str | None = None
    compute_capability: NumberFigure | None = None
    """NVIDIA's number for what the chip can do, which decides cache layouts."""
    detected_as: tuple[DetectedAs, ...] = ()
    memory: Memory
    usable: tuple[UsableShare, ...] = ()
    overhead: tuple[Overhead, ...] = ()
    beside_buffers: tuple[Overhead, ...] = ()
    """What an engine holds on it beside the buffers that its module counts, where that is not as on other devices."""
    power: tuple[Power, ...] = ()
    prices: tuple[Price, ...] = ()
    link: Link | None = None
    sources: dict[str, Source]
    note: str | None = None

    @property
    def platform(self) -> str:
        """The id under which recipes count for this device: its own, or that of the machine it is a variant of."""
        return self.variant_of or self.id

    def overhead_of(self, engine: str, count: int = 1, version: str | None = None) -> Overhead | None:
        """What an engine was seen to hold on so many of the device: of the named version, else as new versions do; None if nobody saw."""
        return _seen([figure for figure in self.overhead if figure.engine == engine], count, version)


def _seen(figures: Sequence[Overhead], count: int, version: str | None) -> Overhead | None:
    """Of the figures of a version that of most devices that are no more than these; where all are of more, that of the fewest."""
    old = [figure for figure in figures if figure.until_version and version and _version(version) < _version(figure.until_version)]
    found = min(old, key=lambda figure: _version(figure.until_version or "0")).until_version if old else None
    kept = [figure for figure in figures if figure.until_version == found]
    fewer = [figure for figure in kept if (figure.devices or 1) <= count]
    return max(fewer or kept, key=lambda figure: (bool(fewer), (figure.devices or 0) * (1 if fewer else -1)), default=None)


def _version(text: str) -> tuple[int, ...]:
    """The first two numbers of a version: `v0.11.2.dev690` is (0, 11)."""
    parts = text.lstrip("v").split(".")[:2]
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


class Cluster(Record):
    """A named cluster: how many of which device, and what joins them."""

    kind: Literal["cluster"]
    id: str
    name: str
    aliases: tuple[str, ...] = ()
    device: str
    count: Annotated[int, Field(ge=1)]
    joined_by: str
    default: bool = False
    link: Link | None = None
    extras: tuple[Price, ...] = ()
    power: tuple[Power, ...] = ()
    sources: dict[str, Source]
    note: str | None = None


class EngineDefault(Cited):
    """What the engine takes of visible memory on a device with no figure of its own."""

    fraction: Fraction


class Engine(Record):
    """An inference engine: which checkpoint formats it serves, and its defaults where a device says nothing.

    `formats` is in order of how usual the engine is for the format: the first engine that lists a format serves it by default.
    """

    kind: Literal["engine"]
    id: str
    name: str
    aliases: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    chips: tuple[Chip, ...] = Field(min_length=1)
    preference: int
    only: dict[str, tuple[Chip, ...]] = Field(default_factory=dict)
    """Formats that it serves on some chips alone."""
    by_recipe: tuple[str, ...] = ()
    """Formats that stock builds do not serve: taken as served only on machines where a recipe shows it."""
    split: Literal["tensor", "pipeline"] = "tensor"
    parallel: tuple[Literal["dp", "ep", "dcp"], ...] = ()
    """Kinds of parallelism that it has besides: data (replicas that share the users), expert, decode-context."""
    places: dict[str, Literal["gpu", "ram", "nvme", "none"]] = Field(default_factory=dict)
    """Where it keeps a component by itself, the GPU unless said; `none` is a drafter that comes with the build and is loaded to draft."""
    offloads: dict[str, tuple[Literal["ram", "nvme"], ...]] = Field(default_factory=dict)
    """Components that it can keep outside the device's memory, and where."""
    usable: EngineDefault | None = None
    overhead: Overhead | None = None
    beside_buffers: tuple[Overhead, ...] = ()
    """What it holds beside the buffers that its module counts: the device's context, the buffers of collectives."""
    sources: dict[str, Source]
    note: str | None = None

    def beside_on(self, device: Device | None, count: int = 1, version: str | None = None) -> Overhead | None:
        """What it holds on so many of a device beside the buffers that its module counts; of the named version, else as new versions do."""
        own = [figure for figure in device.beside_buffers if figure.engine == self.id] if device is not None else []
        return _seen(own or self.beside_buffers, count, version)

    def serves(self, format_name: str, chip: Chip) -> bool:
        """Whether its stock builds serve checkpoints of a format on a chip."""
        return (
            format_name in self.formats
            and format_name not in self.by_recipe
            and chip in self.chips
            and chip in self.only.get(format_name, self.chips)
        )
