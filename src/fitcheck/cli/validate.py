"""`fitcheck validate`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fitcheck.cli.common import INVOCATION, write
from fitcheck.errors import DataError, ExitCode
from fitcheck.views.document import Format

EXAMPLES = """
Examples:

  fitcheck validate

  fitcheck validate my-models.yaml my-machines.yaml

  fitcheck validate data --format github
"""
_SHIPPED = "shipped:"


class FindingFormat(StrEnum):
    """How findings are written."""

    TEXT = "text"
    PLAIN = "plain"
    JSON = "json"
    GITHUB = "github"


def validate(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Catalogue files, or folders of *.yaml, checked on top of the shipped catalogue."),
    ] = None,
    format_: Annotated[
        FindingFormat, typer.Option("--format", help="How the findings are written; github makes annotations.", rich_help_panel="Output")
    ] = FindingFormat.TEXT,
) -> None:
    """Check catalogue files: schema, references, sizes, prices. Without PATH, the shipped catalogue.

    docs/findings.md explains each finding.
    """
    import sys

    from fitcheck.catalogue.lint import lint
    from fitcheck.catalogue.load import data_folder, read_text
    from fitcheck.views import findings as views
    from fitcheck.views.terminal import wants_colour

    INVOCATION.format = Format.JSON if format_ is FindingFormat.JSON else Format.PLAIN
    shipped = sorted(data_folder().glob("*.yaml"))
    given = _files(paths) if paths else shipped
    own = {_whole(path) for path in given}
    beneath = [(f"{_SHIPPED}{path.name}", read_text(path)) for path in shipped if _whole(path) not in own]
    findings = lint([(_shown(path), read_text(path)) for path in given], beneath)
    writers = {
        FindingFormat.TEXT: lambda: views.as_text(findings, len(given), colour=wants_colour(sys.stdout.isatty())),
        FindingFormat.PLAIN: lambda: views.as_plain(findings),
        FindingFormat.JSON: lambda: views.as_json(findings, len(given)),
        FindingFormat.GITHUB: lambda: views.as_github(findings),
    }
    write(writers[format_]())
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(ExitCode.CATALOGUE_ERRORS)


def _files(paths: list[Path]) -> list[Path]:
    """The files asked for, each once. Raises `DataError` for a folder without any; a missing file is found when it is read."""
    found: dict[Path, Path] = {}
    for path in paths:
        inside = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        if not inside:
            raise DataError(f"{path}: no *.yaml files in this folder", hint="name the files, or the folder that holds them")
        for file in inside:
            found.setdefault(_whole(file), file)
    return list(found.values())


def _whole(path: Path) -> Path:
    """A path with its links followed, as far as that goes: a loop of links, or a working directory that is gone, is found on reading."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _shown(path: Path) -> str:
    """A path as people and GitHub look for it: from the working directory where it lies inside."""
    try:
        return _whole(path).relative_to(Path.cwd()).as_posix()
    except (OSError, ValueError):
        return str(path)
