"""`fitcheck detect`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fitcheck.cli.common import INVOCATION, AsOfOption, FormatOption, OverlayOption, day_of_answer, emit, open_catalogue
from fitcheck.errors import UsageError
from fitcheck.units import format_gib
from fitcheck.views.document import Format

if TYPE_CHECKING:
    from datetime import date

    from fitcheck.catalogue.load import Catalogue
    from fitcheck.sources.host.records import Host
    from fitcheck.views.detect import AcceleratorRow, DetectReport

EXAMPLES = """
Examples:

  fitcheck detect

  fitcheck detect --format json

  fitcheck fit gpt-oss-20b --cluster here
"""


def detect(as_of: AsOfOption = None, format_: FormatOption = Format.TABLE, overlay: OverlayOption = None) -> None:
    """Look at this machine: its accelerators and memory, installed, visible and free now, and what they are in the catalogue."""
    from fitcheck.sources.host import read_host
    from fitcheck.sources.host.edge import this_machine
    from fitcheck.views.detect import detect_document

    INVOCATION.format = format_
    day = day_of_answer(as_of)
    catalogue = open_catalogue(overlay)
    report = report_of(catalogue, read_host(this_machine()), day)
    emit(detect_document(report), command="detect", catalogue=catalogue, as_of=day, inputs={}, result=report, warnings=report.notes)


def report_of(catalogue: Catalogue, host: Host, day: date) -> DetectReport:
    """What was found, with the catalogue's names for it."""
    from fitcheck.sources.host.here import cluster_of
    from fitcheck.views.detect import DetectReport, MemoryRow, PortRow

    here, missing = None, None
    try:
        found = cluster_of(catalogue, host, 1, day)
        here = f"{found.label}, {format_gib(found.device.memory.visible[0].value)} visible{' on each' if found.count > 1 else ''}"
    except UsageError as error:
        missing = error.message.removeprefix("--cluster here: ")
    return DetectReport(
        system=host.system,
        machine=host.model,
        accelerators=_rows(catalogue, host),
        memory=MemoryRow(host.ram.total_bytes, host.ram.available_bytes, host.ram.limit_bytes),
        ports=tuple(PortRow(port.name, port.rate, port.state) for port in host.ports),
        here=here,
        here_missing=missing,
        notes=host.notes,
    )


def _rows(catalogue: Catalogue, host: Host) -> tuple[AcceleratorRow, ...]:
    from fitcheck.sources.host.here import typed
    from fitcheck.sources.host.match import matched
    from fitcheck.views.detect import AcceleratorRow

    rows = []
    for known in host.accelerators:
        device = matched(catalogue.devices, known, host)
        rows.append(
            AcceleratorRow(
                name=known.name,
                device=device.id if device else None,
                chip=known.chip,
                index=known.index,
                sold_bytes=device.memory.sold.value if device else None,
                installed_bytes=known.installed_bytes,
                visible_bytes=known.visible_bytes,
                free_bytes=known.free_bytes,
                unified=known.unified,
                sliced=known.sliced,
                compute_capability=known.compute_capability,
                gfx=known.gfx,
                driver=known.driver,
                link=known.link,
                pci=known.pci,
                uuid=known.uuid,
                through=known.through,
                hidden_by=known.hidden,
                cluster=typed(device, [known]).removeprefix("1x") if known.visible_bytes else None,
                note=known.note,
            )
        )
    return tuple(rows)
