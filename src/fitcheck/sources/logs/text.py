"""A log's bytes as clean lines. They come from outside: of any size, with anything in them."""

from __future__ import annotations

import json
import re
import sys
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
DOCKER = '{"log":'
STANDARD_INPUT = "-"
_HINT = "give the log of an engine's start, or a benchmark's result"
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))? {1,4}"
_COLLECTED = re.compile(
    r"(?:[\w.-]{1,80} {0,40}\| )?"
    rf"(?:{_STAMP}(?:std(?:out|err) [FP] )?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,80} [\w.@/-]{1,80}(?:\[\d{1,9}\])?: )?"
)
"""What stands before a line that was collected: `docker compose logs` (`server-1  | `), `docker logs -t` and Kubernetes (an instant, with
containerd `stdout F`), the journal (`Nov 25 10:03:07 host unit[7]: `)."""


def read_log(path: Path) -> tuple[str, bool]:
    """The text of a file or a pipe (`-` is standard input), at most 64 MiB of it, and whether there was more.

    Raises `DataError` for what cannot be read.
    """
    try:
        raw = _from_input() if str(path) == STANDARD_INPUT else _from_file(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{_shown(path)}: {getattr(error, 'strerror', None) or 'not a path'}") from error
    cut = len(raw) > MOST_BYTES
    return _decoded(raw[:MOST_BYTES]), cut


def log_name(path: Path) -> str:
    """What answers call a log by."""
    return "stdin" if str(path) == STANDARD_INPUT else path.name


def _from_file(path: Path) -> bytes:
    if not path.exists():
        raise DataError(f"{_shown(path)}: there is no such file", hint=_HINT)
    if path.is_dir():
        raise DataError(f"{_shown(path)}: is a folder", hint=_HINT)
    with path.open("rb") as stream:
        return stream.read(MOST_BYTES + 1)


def _from_input() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise DataError("nothing comes on standard input", hint="write it as in: docker logs NAME 2>&1 | fitcheck calibrate -")
    return sys.stdin.buffer.read(MOST_BYTES + 1)


def _shown(path: Path) -> str:
    return ascii(str(path))[1:-1]


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
    if line.startswith(DOCKER):
        line = _undockered(line)
    if line.isprintable():
        return line
    line = _ESCAPES.sub("", line)
    return "".join(letter if letter.isprintable() else " " for letter in line)


def uncollected(line: str) -> str:
    """A clean line without what its collector wrote before it, so that the process that an engine names first comes first."""
    found = _COLLECTED.match(line)
    return line[found.end() :] if found is not None else line


def _undockered(line: str) -> str:
    try:
        inner = json.loads(line)
    except (ValueError, RecursionError):
        return line
    text = inner.get("log") if isinstance(inner, dict) else None
    return text.rstrip("\n") if isinstance(text, str) else line
