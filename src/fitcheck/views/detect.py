"""How a machine that was looked at is shown: its accelerators, its memory, its ports, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator

from fitcheck.frozen import frozen
from fitcheck.units import format_gb, format_gib, gib
from fitcheck.views.document import Cell, Column, Document, Line, Table, Tone, cell, clean

NOT_KNOWN = "not in the catalogue"


@frozen
class AcceleratorRow:
    """One accelerator. `device` is its id in the catalogue, or None; `sold_bytes` is what the catalogue says such a device is sold with.

    `cluster` is what to type for it in other commands, None where its memory is not known. Bytes and texts are None where nothing tells.
    """

    name: str
    device: str | None
    chip: str
    index: int
    sold_bytes: int | None
    installed_bytes: int | None
    visible_bytes: int | None
    free_bytes: int | None
    unified: bool
    sliced: bool
    compute_capability: str | None
    gfx: str | None
    driver: str | None
    link: str | None
    pci: str | None
    uuid: str | None
    through: str
    hidden_by: str | None
    cluster: str | None
    note: str | None


@frozen
class MemoryRow:
    """The system's own memory; `limit_bytes` is what this process's control group (container) may take, where that is less."""

    total_bytes: int | None
    available_bytes: int | None
    limit_bytes: int | None


@frozen
class PortRow:
    """A port that can join machines, with its rate and state as the driver prints them."""

    name: str
    rate: str
    state: str


@frozen
class DetectReport:
    """The whole answer to `detect`. `here` is what `--cluster here` stands for, or None with the reason in `here_missing`."""

    system: str
    machine: str | None
    accelerators: tuple[AcceleratorRow, ...]
    memory: MemoryRow
    ports: tuple[PortRow, ...]
    here: str | None
    here_missing: str | None
    notes: tuple[str, ...]


def detect_document(report: DetectReport) -> Document:
    """The machine in a table of accelerators, its memory and ports, and notes."""
    count = len(report.accelerators)
    found = "no accelerator" if not count else "1 accelerator" if count == 1 else f"{count} accelerators"
    parts: list[Line | Table] = list(_facts(report))
    parts.append(_accelerators(report.accelerators))
    if report.ports:
        rows = tuple((cell(port.name), cell(port.rate), cell(port.state)) for port in report.ports)
        parts.append(Table("ports", "Ports that can join machines", (Column("port"), Column("rate"), Column("state")), rows))
    return Document(f"This machine: {found}", tuple(parts), tuple(clean(note) for note in _notes(report)))


def _facts(report: DetectReport) -> Iterator[Line]:
    yield Line("system", clean(f"{report.system}{f', {report.machine}' if report.machine else ''}"))
    memory = report.memory
    total = "not known" if memory.total_bytes is None else f"{format_gib(memory.total_bytes)} in all"
    available = "" if memory.available_bytes is None else f", {format_gib(memory.available_bytes)} available now"
    limit = "" if memory.limit_bytes is None else f", at most {format_gib(memory.limit_bytes)} for this control group"
    yield Line("memory", f"{total}{limit}{available}")
    if report.here is not None:
        yield Line("here", clean(f"--cluster here stands for {report.here}"), "good")
    else:
        yield Line("here", clean(f"--cluster here cannot be used: {report.here_missing}"), "quiet")


def _accelerators(rows: tuple[AcceleratorRow, ...]) -> Table:
    columns = (
        Column("accelerator"),
        Column("catalogue"),
        Column("installed", right=True, rank=2),
        Column("visible GiB", right=True),
        Column("free GiB", right=True),
        Column("capability", rank=3),
        Column("driver", rank=5),
        Column("link", rank=4, wrap=True, width=14),
        Column("through", rank=6),
        Column("note", rank=7, wrap=True, below=True),
    )
    return Table("accelerators", "Accelerators", columns, tuple(_row(row) for row in rows), empty="none found")


def _row(row: AcceleratorRow) -> tuple[Cell, ...]:
    tone: Tone = "quiet" if row.hidden_by else "plain"
    note = ", ".join(words for words in (f"hidden by {row.hidden_by}" if row.hidden_by else None, row.note) if words)
    return (
        cell(f"{row.index}: {row.name}", tone),
        cell(row.device or NOT_KNOWN, tone),
        cell(_installed(row)),
        cell(_gib(row.visible_bytes)),
        cell(_gib(row.free_bytes)),
        cell(row.compute_capability or row.gfx),
        cell(row.driver),
        cell(row.link),
        cell(row.through),
        cell(note or None),
    )


def _installed(row: AcceleratorRow) -> str | None:
    """What is installed as the driver counts it, else what the catalogue says is sold."""
    if row.installed_bytes is not None:
        return format_gib(row.installed_bytes)
    return None if row.sold_bytes is None else f"{format_gb(row.sold_bytes)} sold"


def _gib(size_bytes: int | None) -> str | None:
    return None if size_bytes is None else f"{gib(size_bytes):,.2f}"


def _notes(report: DetectReport) -> Iterator[str]:
    yield from report.notes
    unknown = [row for row in report.accelerators if row.device is None and row.cluster is not None]
    if unknown:
        text = f"{unknown[0].name} is {NOT_KNOWN}: it can be described with its bandwidth, such as --cluster '{unknown[0].cluster}'"
        yield text
