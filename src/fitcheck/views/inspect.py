"""What was understood of a model that lies outside the catalogue: layer groups, builds, parts and bytes, and what is not known."""

from __future__ import annotations

from fitcheck.catalogue.models import Model
from fitcheck.frozen import frozen
from fitcheck.units import format_size
from fitcheck.views.document import Column, Document, Line, Table, cell, clean
from fitcheck.views.models import KvRow, model_document


@frozen
class PartRow:
    """A part of a build: tensors of one kind, their bytes, and the parameters they hold, packed values counted one by one."""

    build: str
    part: str
    bytes: int
    parameters: int | None


@frozen
class BuildRow:
    """A build whose headers were read, or that stands by its listing alone (`exact` says which of its bytes are known by header)."""

    build: str
    files: int
    format: str | None
    label: str | None
    why: str
    header_bytes: int
    exact: bool
    tensors: int
    parameters: int | None
    stored_as: dict[str, int]


@frozen
class InspectReport:
    """The whole answer to one `inspect`."""

    source: str
    url: str
    model: Model
    kv: dict[str, KvRow]
    builds: tuple[BuildRow, ...]
    parts: tuple[PartRow, ...]
    unknown: tuple[str, ...]
    notes: tuple[str, ...]


def inspect_document(report: InspectReport) -> Document:
    """As a model of the catalogue is shown, with what was read of each build."""
    model = model_document(report.model.model_copy(update={"note": None}))
    parts = [part for part in model.parts if not (isinstance(part, Line) and part.key in ("released", "license"))]
    at = next((index for index, part in enumerate(parts) if isinstance(part, Table) and part.key == "checkpoints"), len(parts))
    extra = [table for table in (_builds(report), _parts(report)) if table.rows]
    unknown = [Line("not known", clean(reason), "warn") for reason in report.unknown]
    tail = [*parts[: at + 1], *extra, *parts[at + 1 :]]
    first = next((index for index, part in enumerate(tail) if isinstance(part, Table)), len(tail))
    return Document(
        clean(f"{report.model.name}, as read at {report.source}"),
        (*tail[:first], *unknown, *tail[first:]),
        tuple(clean(note) for note in report.notes),
    )


def _builds(report: InspectReport) -> Table:
    columns = (
        Column("build"),
        Column("files", right=True, rank=1),
        Column("format"),
        Column("parameters", right=True),
        Column("tensors", right=True, rank=2),
        Column("headers read", right=True, rank=2),
        Column("stored as", wrap=True, rank=3, below=True),
        Column("why this format", wrap=True, rank=4, below=True),
    )
    rows = tuple(
        (
            cell(row.build),
            cell(row.files),
            cell(f"{row.format} {row.label}" if row.format and row.label else row.format),
            cell(None if row.parameters is None else f"{row.parameters:,}"),
            cell(f"{row.tensors:,}"),
            cell(format_size(row.header_bytes) if row.exact else "none"),
            cell(", ".join(f"{kind} {format_size(size)}" for kind, size in row.stored_as.items()) or None),
            cell(row.why),
        )
        for row in report.builds
    )
    return Table("builds", "What the files hold", columns, rows)


def _parts(report: InspectReport) -> Table:
    columns = (Column("build"), Column("part"), Column("size", right=True), Column("bytes", right=True), Column("parameters", right=True))
    rows = tuple(
        (
            cell(row.build),
            cell(row.part),
            cell(format_size(row.bytes)),
            cell(f"{row.bytes:,}"),
            cell(None if row.parameters is None else f"{row.parameters:,}"),
        )
        for row in report.parts
    )
    return Table("parts", "Bytes by part", columns, rows)
