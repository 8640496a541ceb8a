"""What all commands share: options, the catalogue, output, errors."""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fitcheck.errors import DataError, FitcheckError, UsageError
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
WIDEST = 10_000
_CODES = "Exit codes: 0 answered, 2 usage, 3 unknown id, 4 data problem"


@dataclass
class Invocation:
    """How this process was asked to answer; errors follow the same format."""

    format: Format = Format.TABLE


INVOCATION = Invocation()


def epilog(examples: str, codes: str = "") -> str:
    r"""Examples and exit codes below a help text; `\b` keeps a command on its line, so that it can be copied."""
    lines = [line for line in examples.splitlines() if line.strip()]
    return "\n".join(["\b", *lines, "", f"{_CODES}{codes}."])


def format_asked(words: list[str]) -> Format:
    """JSON where the words of the command line ask for it, for errors that come before they are parsed."""
    pairs = zip(words, [*words[1:], ""], strict=False)
    asked = any(word == "--format=json" or (word == "--format" and after == "json") for word, after in pairs)
    return Format.JSON if asked else Format.TABLE


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
    """The shipped catalogue with the overlays of the command line and of FITCHECK_OVERLAY (paths joined as in PATH).

    Raises `DataError` for an overlay that holds an error of `fitcheck validate`.
    """
    from fitcheck.catalogue.load import load_catalogue

    from_environment = [Path(part) for part in os.environ.get("FITCHECK_OVERLAY", "").split(os.pathsep) if part]
    catalogue = load_catalogue(*from_environment, *(overlays or []))
    if catalogue.overlays:
        from fitcheck.catalogue.overlays import check_overlays

        check_overlays(catalogue)
    return catalogue


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
        question = {"command": command, "as_of": as_of, "catalogue": catalogue.version, **inputs}
        write(render(_with_overlays(document, catalogue), question))


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

    notes = tuple(
        clean(f"overlay in force: {overlay.path} ({len(overlay.ids)} record{'' if len(overlay.ids) == 1 else 's'})")
        for overlay in catalogue.overlays
    )
    return Document(document.heading, document.parts, (*document.notes, *notes))


def render(document: Document, question: dict[str, Any]) -> str:
    """A document in the text format asked; `question` is what was asked, for the format that has no heading to say it in."""
    if INVOCATION.format is Format.TABLE:
        from fitcheck.views import terminal

        is_terminal = sys.stdout.isatty()
        return terminal.render(document, width=terminal_width(is_terminal), colour=terminal.wants_colour(is_terminal))
    from fitcheck.views import formats

    if INVOCATION.format is Format.CSV:
        return formats.as_csv(document, question)
    return formats.plain(document) if INVOCATION.format is Format.PLAIN else formats.markdown(document)


def terminal_width(is_terminal: bool) -> int:
    """COLUMNS where it is set, the terminal's own width, else a width that keeps one row on one line in most tables."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and columns.strip("0"):
        return int(columns) if len(columns) < len(str(WIDEST)) else WIDEST
    return shutil.get_terminal_size((80, 24)).columns if is_terminal else NON_TERMINAL_WIDTH


def write(text: str) -> None:
    """Text to standard output, at once; characters that its encoding lacks are replaced, never fatal."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, errors="replace").decode(encoding))
    sys.stdout.flush()


def unanswered(error: OSError) -> DataError:
    """The error for an answer that could not be written. Nothing is written after it: what is still held back goes nowhere."""
    _give_up(sys.__stdout__)
    where = f"{error.filename}: " if error.filename else "cannot write the answer: "
    return DataError(f"{where}{error.strerror or type(error).__name__}")


def _give_up(stream: Any) -> None:
    with suppress(AttributeError, OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _shortened(text: str) -> str:
    """Text in which a number of hundreds of digits does not fill the screen."""
    return re.sub(r"\d{60,}", lambda found: f"{found[0][:20]}... ({len(found[0])} digits)", text)


def report_error(error: FitcheckError) -> None:
    """One clear error on standard error, as an object where JSON was asked; where nobody can read it the exit code has to do."""
    try:
        sys.stderr.write(_error_text(error))
        sys.stderr.flush()
    except (AttributeError, OSError):
        _give_up(sys.__stderr__)


def _error_text(error: FitcheckError) -> str:
    if INVOCATION.format is Format.JSON:
        from fitcheck.views.formats import dump

        body = {"code": int(error.code), "message": _shortened(error.message), "hint": error.hint, "nearest": list(error.nearest)}
        return dump({"error": body})
    from fitcheck.views.document import clean

    lines = [f"fitcheck: {clean(_shortened(error.message))}"]
    if error.nearest:
        lines.append(f"  did you mean: {clean(', '.join(error.nearest))}?")
    if error.hint:
        lines.append(f"  {clean(error.hint)}")
    return "\n".join(lines) + "\n"
