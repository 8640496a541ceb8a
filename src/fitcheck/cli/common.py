"""What all commands share: options, the catalogue, output, errors."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fitcheck.errors import FitcheckError, UsageError
from fitcheck.units import parse_day
from fitcheck.views.document import Format

if TYPE_CHECKING:
    from fitcheck.catalogue.load import Catalogue
    from fitcheck.views.document import Document

FormatOption = Annotated[Format, typer.Option("--format", help="How the answer is written.", rich_help_panel="Output")]
AsOfOption = Annotated[
    str | None,
    typer.Option("--as-of", metavar="DATE", help="Answer as of this day (YYYY-MM-DD) instead of today.", rich_help_panel="Output"),
]
OverlayOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--overlay", metavar="FILE", help="A YAML file of records to add to the catalogue; may be repeated.", rich_help_panel="Output"
    ),
]
NON_TERMINAL_WIDTH = 120


@dataclass
class Invocation:
    """How this process was asked to answer; errors follow the same format."""

    format: Format = Format.TABLE


INVOCATION = Invocation()


def day_of_answer(as_of: str | None) -> date:
    """The day asked, else `SOURCE_DATE_EPOCH`'s, else today in UTC. Raises `UsageError` for a malformed one."""
    if as_of is not None:
        return parse_day(as_of)
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch:
        try:
            return datetime.fromtimestamp(int(epoch), UTC).date()
        except (ValueError, OverflowError, OSError) as error:
            raise UsageError(f"SOURCE_DATE_EPOCH={epoch!r} is not a number of seconds") from error
    return datetime.now(UTC).date()


def open_catalogue(overlays: list[Path] | None) -> Catalogue:
    """The shipped catalogue with the overlays of the command line and of FITCHECK_OVERLAY (paths joined as in PATH)."""
    from fitcheck.catalogue.load import load_catalogue

    from_environment = [Path(part) for part in os.environ.get("FITCHECK_OVERLAY", "").split(os.pathsep) if part]
    return load_catalogue(*from_environment, *(overlays or []))


def emit(
    document: Document,
    *,
    command: str,
    catalogue: Catalogue,
    as_of: date,
    inputs: dict[str, Any],
    result: Any,
    warnings: tuple[str, ...] = (),
) -> None:
    """Print an answer in the format asked: the document, or the whole result as JSON in its envelope."""
    if INVOCATION.format is Format.JSON:
        write(json_answer(command=command, catalogue=catalogue, as_of=as_of, inputs=inputs, result=result, warnings=warnings))
    else:
        write(render(_with_overlays(document, catalogue)))


def json_answer(*, command: str, catalogue: Catalogue, as_of: date, inputs: dict[str, Any], result: Any, warnings: tuple[str, ...]) -> str:
    """An answer in its JSON envelope."""
    from fitcheck.views.envelope import SCHEMA_VERSION, CatalogueRow, Envelope, OverlayRow
    from fitcheck.views.formats import dump

    overlays = tuple(OverlayRow(overlay.path, overlay.ids) for overlay in catalogue.overlays)
    known = CatalogueRow(catalogue.version, catalogue.digest, overlays)
    return dump(Envelope(SCHEMA_VERSION, command, as_of, known, inputs, result, warnings))


def _with_overlays(document: Document, catalogue: Catalogue) -> Document:
    if not catalogue.overlays:
        return document
    from fitcheck.views.document import Document, clean

    notes = tuple(clean(f"overlay in force: {overlay.path} ({len(overlay.ids)} records)") for overlay in catalogue.overlays)
    return Document(document.heading, document.parts, (*document.notes, *notes))


def render(document: Document) -> str:
    """A document in the text format asked."""
    if INVOCATION.format is Format.TABLE:
        from fitcheck.views import terminal

        is_terminal = sys.stdout.isatty()
        return terminal.render(document, width=terminal_width(is_terminal), colour=terminal.wants_colour(is_terminal))
    from fitcheck.views import formats

    writers = {Format.PLAIN: formats.plain, Format.CSV: formats.as_csv, Format.MD: formats.markdown}
    return writers[INVOCATION.format](document)


def terminal_width(is_terminal: bool) -> int:
    """COLUMNS where it is set, the terminal's own width, else a width that keeps one row on one line in most tables."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return int(columns)
    return shutil.get_terminal_size((80, 24)).columns if is_terminal else NON_TERMINAL_WIDTH


def write(text: str) -> None:
    """Text to standard output; characters that its encoding lacks are replaced, never fatal."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, errors="replace").decode(encoding))


def report_error(error: FitcheckError) -> None:
    """One clear error on standard error, as an object too where JSON was asked."""
    from fitcheck.views.document import clean

    if INVOCATION.format is Format.JSON:
        from fitcheck.views.formats import dump

        body = {"code": int(error.code), "message": error.message, "hint": error.hint, "nearest": list(error.nearest)}
        sys.stderr.write(dump({"error": body}))
        return
    sys.stderr.write(f"fitcheck: {clean(error.message)}\n")
    if error.nearest:
        sys.stderr.write(f"  did you mean: {clean(', '.join(error.nearest))}?\n")
    if error.hint:
        sys.stderr.write(f"  {clean(error.hint)}\n")
