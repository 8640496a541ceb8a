"""JSON from outside, read strictly, and names from outside, made fit for a terminal."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from fitcheck.errors import DataError

MOST_COUNT = (1 << 63) - 1
"""No length, shape or offset of a real file comes near it."""
_MOST_NAME = 120
_POINTER = b"version "
"""A safetensors file that began so would have a header of 2 EB."""


def named(path: str) -> str:
    """A file's or tensor's name for a message: no control characters, and not longer than a line."""
    text = ascii(path)[1:-1]
    return text if len(text) <= _MOST_NAME else f"{text[:_MOST_NAME]}..."


def refuse_pointer(raw: bytes, file: str) -> None:
    """Raise `DataError` for what stands in place of a large file that was not fetched, by its first bytes (git-lfs `docs/spec.md`)."""
    if raw.startswith(_POINTER):
        hint = "run 'git lfs pull' in its folder; on a hub, whoever published it left the file out"
        raise DataError(f"{named(file)} is a pointer of Git LFS: the file itself was not fetched", hint=hint)


def strict_json(raw: bytes, file: str, most_commas: int, *, reals: bool = False) -> Any:
    """The value of a JSON text whose size is already bounded.

    Refuses what JSON readers differ about: a key given twice, at any depth, NaN and Infinity, minus zero, bytes that are not UTF-8, and,
    unless `reals`, numbers that are not whole. Whole numbers may be of any size: those who use them bound them. A value costs Python some
    50 times its text, so texts with more than `most_commas` parts are refused before anything is built. Raises `DataError` naming the file.
    """
    if max(raw.count(b","), raw.count(b"{"), raw.count(b"[")) > most_commas:
        raise DataError(f"{named(file)}: more than {most_commas:,} entries", hint="no published model comes near it: the file is broken")
    whole = _not_minus_zero if b"-0" in raw and _MINUS_ZERO.search(raw) else None  # a function of ours for each number is slow
    try:
        text = raw.decode("utf-8")
        return json.loads(
            text, object_pairs_hook=unique_keys, parse_constant=_no_constant, parse_float=float if reals else _no_real, parse_int=whole
        )
    except RecursionError:
        raise DataError(f"{named(file)}: nested too deeply") from None
    except UnicodeDecodeError:
        raise DataError(f"{named(file)}: not UTF-8") from None
    except ValueError as error:
        raise DataError(f"{named(file)}: not readable as JSON: {named(str(error))}", hint="fetch the file again") from None


_MINUS_ZERO = re.compile(rb"[\[,:\s]-0")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a JSON text. Raises `ValueError` for a key that is given twice, of which readers take either."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"the key {named(twice)!r} is given twice")
    return found


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def _not_minus_zero(digits: str) -> int:
    if digits == "-0":
        raise ValueError("-0 is not a whole number")
    return int(digits)


def _no_real(digits: str) -> Any:
    raise ValueError(f"the number {digits[:20]} is not whole")
