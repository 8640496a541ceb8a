"""A log's bytes as clean lines. They come from outside: of any size, with anything in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from fitcheck.errors import DataError
from fitcheck.units import MIB

MOST_BYTES = 64 * MIB
"""What is read of one log: engines print what they allocate in their first megabytes."""

LINE_CHARACTERS = 32_768
"""What is read of one line: SGLang's line of all its arguments has about 10,000 characters."""

_ESCAPES = re.compile(r"\x1b\[[0-?]{0,40}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)?|\x1b.?")
_BREAKS = re.compile(r"\r\n|[\n\r]")
_DOCKER = '{"log":'


def read_log(path: Path) -> tuple[str, bool]:
    """The text of a file, at most 64 MiB of it, and whether there was more. Raises `DataError` for one that cannot be read."""
    try:
        if not path.is_file():
            raise DataError(f"{path}: there is no such file", hint="give the log of an engine's start, or a benchmark's result")
        with path.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {getattr(error, 'strerror', None) or 'not a path'}") from error
    cut = len(raw) > MOST_BYTES
    return _decoded(raw[:MOST_BYTES]), cut


def _decoded(raw: bytes) -> str:
    """UTF-16 where a mark says so, which is what PowerShell writes; else UTF-8, with what is not replaced."""
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return raw.decode(encoding, errors="replace")


def clean_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its number from 1, cut to a length, without escape sequences and control characters.

    A carriage return ends a line too (progress bars), without counting as one. Docker's JSON around a line is taken off.
    """
    number, start = 1, 0
    for found in _BREAKS.finditer(text):
        yield number, clean_line(text[start : min(found.start(), start + LINE_CHARACTERS)])
        number += found[0] != "\r"
        start = found.end()
    yield number, clean_line(text[start : start + LINE_CHARACTERS])


def clean_line(line: str) -> str:
    """A line as the tables of wordings read it."""
    if line.startswith(_DOCKER):
        line = _undockered(line)
    if line.isprintable():
        return line
    line = _ESCAPES.sub("", line)
    return "".join(letter if letter.isprintable() else " " for letter in line)


def _undockered(line: str) -> str:
    try:
        inner = json.loads(line)
    except (ValueError, RecursionError):
        return line
    text = inner.get("log") if isinstance(inner, dict) else None
    return text.rstrip("\n") if isinstance(text, str) else line
