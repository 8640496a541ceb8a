"""A machine described in words instead of by name: `2x24GiB@936GB/s`, `96GiB unified:apple`.

    [COUNTx]SIZE[@BANDWIDTH][:unified][:CHIP]

SIZE is the memory that software sees on each device, with its unit; BANDWIDTH is that memory's, in bytes a second; CHIP is nvidia (taken
where none is named), amd, apple or intel, or cpu where the processor computes. `unified` says that processor and accelerator share the
memory, as all of Apple's do. A space serves as well as a colon. What is not said is not known: an engine's own defaults stand for its share
of memory and its overhead.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import get_args

from fitcheck.catalogue.hardware import ONE_MEMORY, Chip, Device, Engine, Memory, UsableShare
from fitcheck.catalogue.provenance import BytesFigure, Grade, NumberFigure
from fitcheck.errors import UsageError
from fitcheck.frozen import frozen
from fitcheck.units import GB, GIB, parse_bandwidth, parse_bytes, short_bandwidth, short_size

ASKED = ("asked",)
"""The source of a figure that the question itself gives: it has no address."""

WIRED_BELOW = (36 * GIB, Decimal("0.66"))
"""Up to this much memory macOS lets the GPU wire about two thirds; above it what the engine for Apple's chips has as its default."""

MOST_BYTES = 1024 * 1024 * GIB
MOST_BYTES_PER_S = 1000**2 * GB
GRAMMAR = "[COUNTx]SIZE[@BANDWIDTH][:unified][:CHIP], such as 24GiB, 2x24GiB@936GB/s or 96GiB:unified:amd"
_CHIPS: tuple[Chip, ...] = get_args(Chip)
_DEFAULT_CHIP: Chip = "nvidia"
_LOOKS = re.compile(r"\s*\d[\d_,.]*\s*(?:(?:[KMGT]i?)?B|[KMG])(?=$|[\s@:])|[^:]*@", re.IGNORECASE)
_PARTS = re.compile(
    r"\s*(?P<size>[\d_,.]+\s*[a-z]+)(?P<words>[^@]*)(?:@(?P<rate>[\d_,.\s]+[a-z]+\s*/\s*s(?:ec)?)(?P<more>[^@]*))?", re.IGNORECASE
)


@frozen
class Origin:
    """Where a cluster's device is from when the catalogue alone does not say: what is taken for granted, and what is free on it now.

    `assumed` are sentences for the answer; `free_bytes` is the least free of its devices where somebody measured it.
    """

    assumed: tuple[str, ...] = ()
    free_bytes: int | None = None


@frozen
class Described:
    """A device as it was described. `chip` is None where none was named."""

    visible_bytes: int
    bandwidth_bytes_per_s: int | None = None
    chip: Chip | None = None
    unified: bool = False

    @property
    def text(self) -> str:
        """The description in its shortest form; `parse_described` reads it back as this very record."""
        rate = f"@{short_bandwidth(self.bandwidth_bytes_per_s)}" if self.bandwidth_bytes_per_s is not None else ""
        shared = ":unified" if self.unified and self.chip not in ONE_MEMORY else ""
        return f"{short_size(self.visible_bytes)}{rate}{shared}{f':{self.chip}' if self.chip else ''}"

    @property
    def origin(self) -> Origin:
        """What the description leaves to be taken for granted."""
        said = [f"a machine as described: each device shows {short_size(self.visible_bytes)} of memory to software"]
        if self.chip is None:
            said.append(f"its chip is taken as {_DEFAULT_CHIP}, as none was named: write :amd or :apple after the size")
        return Origin(tuple(said))

    def device(self, wired: Engine | None = None) -> Device:
        """The record: no prices, power or overheads of its own, and no shares but macOS's limit, which `wired` has with its sources."""
        figure = BytesFigure(value=self.visible_bytes, source=ASKED, grade=Grade.ASSUMED)
        rate = self.bandwidth_bytes_per_s
        bandwidth = None if rate is None else NumberFigure(value=Decimal(rate), source=ASKED, grade=Grade.ASSUMED)
        return Device(
            kind="device",
            id=self.text,
            name=f"{self.text} (as described)",
            maker="not said",
            chip=self.chip or _DEFAULT_CHIP,
            memory=Memory(sold=figure, visible=(figure,), unified=self.unified, bandwidth_bytes_per_s=bandwidth),
            usable=wired_shares(wired, self.visible_bytes) if wired is not None and self.chip == "apple" else (),
            sources=wired.sources if wired is not None and self.chip == "apple" else {},
        )


def wired_shares(mlx: Engine, visible_bytes: int) -> tuple[UsableShare, ...]:
    """What macOS lets the GPU wire of a Mac's memory unless it is told otherwise, for each engine that runs on one."""
    if mlx.usable is None:
        return ()
    smallest, fraction = WIRED_BELOW
    if visible_bytes > smallest:
        fraction = mlx.usable.fraction
    known = {"fraction": fraction, "source": mlx.usable.source, "grade": mlx.usable.grade, "note": mlx.usable.note}
    return tuple(UsableShare.model_validate({"engine": engine, **known}) for engine in (mlx.id, "llama.cpp"))


def looks_described(text: str) -> bool:
    """Whether a text that names no device begins as a size does, or has a bandwidth: it is then read as a description."""
    return _LOOKS.match(text) is not None


def parse_described(text: str) -> Described:
    """The device of a description, without its count. Raises `UsageError` that says which part cannot be read."""
    match = _PARTS.fullmatch(text)
    if match is None:
        raise UsageError(f"cannot read {text!r} as a machine", hint=f"write {GRAMMAR}")
    size = _within(parse_bytes(match["size"]), MOST_BYTES, match["size"], "memory")
    rate = None
    if match["rate"] is not None:
        rate = _within(parse_bandwidth(match["rate"].strip()), MOST_BYTES_PER_S, match["rate"], "bandwidth")
    words = [word.lower() for word in re.split(r"[\s:]+", f"{match['words']} {match['more'] or ''}") if word]
    chips = [word for word in words if word != "unified"]
    unknown = next((word for word in chips if word not in _CHIPS), None)
    if unknown is not None:
        raise UsageError(f"{text!r}: {unknown!r} is no chip", hint=f"write :unified, or a chip: {', '.join(_CHIPS)}")
    if len(set(chips)) > 1:
        raise UsageError(f"{text!r} names {len(set(chips))} chips: {', '.join(chips)}", hint="a cluster is of one sort of device")
    chip = next((known for known in _CHIPS if known in chips), None)
    return Described(size, rate, chip, unified="unified" in words or chip in ONE_MEMORY)


def _within(value: int, most: int, written: str, what: str) -> int:
    if not 0 < value <= most:
        raise UsageError(f"{written.strip()!r} of {what} makes no sense", hint=f"write {GRAMMAR}")
    return value
