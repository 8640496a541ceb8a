"""`fitcheck inspect`."""

# Annotations are evaluated as they stand (no `from __future__ import annotations`): typer would compile each text again at start-up.

from typing import TYPE_CHECKING, Annotated

import typer

from fitcheck.cli.common import INVOCATION, AsOfOption, FormatOption, OverlayOption, day_of_answer, emit, open_catalogue, write
from fitcheck.cli.model import OfflineOption, in_catalogue, read_outside
from fitcheck.errors import UsageError
from fitcheck.views.document import Format

if TYPE_CHECKING:
    from datetime import date

    from fitcheck.catalogue.load import Catalogue
    from fitcheck.sources.store_record import Reading
    from fitcheck.sources.stored.reading import ReadBuild
    from fitcheck.views.inspect import InspectReport

EXAMPLES = """
Examples:

  fitcheck inspect Qwen/Qwen3-30B-A3B

  fitcheck inspect unsloth/Qwen3-30B-A3B-GGUF --build q4-k-m

  fitcheck inspect ./models/llama-3.1-8b --yaml > mine.yaml

  fitcheck inspect ollama:qwen3:30b
"""


def inspect(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="A hub's org/name[@revision], a folder, a .gguf or .safetensors file, an address, ollama:NAME."
        ),
    ],
    build: Annotated[
        str | None, typer.Option(metavar="ID", help="The GGUF build to read exactly, where there are several; others count as whole files.")
    ] = None,
    yaml: Annotated[bool, typer.Option("--yaml", help="Print a catalogue entry that 'fitcheck validate' accepts.")] = False,
    offline: OfflineOption = False,
    as_of: AsOfOption = None,
    format_: FormatOption = Format.TABLE,
    overlay: OverlayOption = None,
) -> None:
    """Show what is understood of a model where it lies: layer groups, parts to the byte, what is not known and why. No weights are read."""
    from fitcheck.views.inspect import inspect_document

    INVOCATION.format = format_
    if yaml and format_ is not Format.TABLE:
        raise UsageError("--yaml and --format exclude each other", hint="leave one of them out")
    day = day_of_answer(as_of)
    catalogue = open_catalogue(overlay)
    reading = _reading(catalogue, source, day, build, offline=offline)
    if yaml:
        write(_entry(reading))
        return
    report = _report(reading)
    emit(
        inspect_document(report),
        command="inspect",
        catalogue=catalogue,
        as_of=day,
        inputs={"source": report.source, "build": build},
        result=report,
        warnings=report.unknown,
    )


def _reading(catalogue: "Catalogue", source: str, day: "date", build: str | None, *, offline: bool) -> "Reading":
    """What lies there; for a name that the catalogue has its own record, and nothing is read."""
    if not in_catalogue(catalogue, source, day):
        return read_outside(source, day, wanted=build, offline=offline)
    from fitcheck.catalogue.lookup import find_model
    from fitcheck.sources.store_record import Reading
    from fitcheck.sources.stored.builds import Listing

    record = find_model(catalogue, source, day)
    return Reading(record, Listing((), ()), (), None, None, (), ("the catalogue's own record: nothing was read",))


def _entry(reading: "Reading") -> str:
    from fitcheck.views.document import clean
    from fitcheck.views.record_yaml import as_entry

    if reading.model.architecture is None:
        comments = [f"not known: {clean(reason)}" for reason in reading.unknown]
    else:
        comments = [clean(note) for note in (*reading.unknown, *reading.notes)]
    return as_entry(reading.model, tuple(comments))


def _report(reading: "Reading") -> "InspectReport":
    from fitcheck.sources.record import slug
    from fitcheck.views.inspect import BuildRow, InspectReport, PartRow
    from fitcheck.views.models import kv_by_dtype

    builds = tuple(
        BuildRow(
            build=slug(found.build.id),
            files=len(found.build.files) + len(found.build.towers) + len(found.build.drafters),
            format=found.format.name,
            label=found.format.label,
            why=found.format.why,
            header_bytes=found.header_bytes,
            exact=found.read,
            tensors=found.contents.tensors,
            parameters=found.contents.parameters,
            stored_as=found.contents.kinds,
        )
        for found in reading.read
    )
    parts = tuple(
        PartRow(slug(found.build.id), part, size, found.contents.parameters_by_part.get(part))
        for found in reading.read
        for part, size in sorted((found.contents.parts or _whole_parts(found)).items(), key=lambda item: -item[1])
    )
    source = next(iter(reading.model.sources.values()))
    return InspectReport(
        source=source.title or source.url,
        url=source.url,
        model=reading.model,
        kv=kv_by_dtype(reading.model),
        builds=builds,
        parts=parts,
        unknown=reading.unknown,
        notes=reading.notes,
    )


def _whole_parts(found: "ReadBuild") -> dict[str, int]:
    """The components of a build whose headers were not read."""
    return {part.kind.value: part.bytes for part in found.contents.components}
