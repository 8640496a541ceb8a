"""Wordings as data: a row says which words of which engine give which figures, and where that was seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from fitcheck.sources.logs.reading import TERMS, Figure
from fitcheck.units import GIB, KIB, MIB

NUM = r"-?\d[\d,]{0,24}(?:\.\d{1,12})?"
"""A number as logs print it. Bounded, as every repetition in these tables is, so that no line can make a search slow."""

SCALES = {"GiB": GIB, "MiB": MIB, "KiB": KIB, "B": 1, "": 1}
SHOWN_CHARACTERS = 160


class Row(NamedTuple):
    """One wording. Each named group of `pattern` is a term of `reading.TERMS` (or `where`: the device the line names).

    `word` is a text without which the pattern cannot match, so that most lines cost no search. `unit` scales its sizes: what the engines
    call GB is 1024³ in all of them. `seen` names versions that print it, `source` where that was read. A row that is printed `once` a
    process begins another run when it comes again.
    """

    word: str
    pattern: str
    unit: str
    seen: str
    source: str
    once: bool = False


class Hit(NamedTuple):
    """Figures that one row found in one line; `once` names the row if it begins another run of the process when it comes again."""

    figures: tuple[Figure, ...]
    once: str | None


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A row's pattern, compiled when it is first needed."""
    return re.compile(pattern)


def match_rows(rows: tuple[Row, ...], text: str, where: str | None, file: str, number: int) -> Iterator[Hit]:
    """What the rows find in one line of text, which is already clean."""
    for row in rows:
        if row.word in text:
            found = compiled(row.pattern).search(text)
            if found is not None:
                figures = tuple(_figures(row, found, where, file, number))
                if figures or row.once:
                    yield Hit(figures, row.word if row.once else None)


def _figures(row: Row, found: re.Match[str], where: str | None, file: str, number: int) -> Iterator[Figure]:
    groups = found.groupdict()
    place = groups.pop("where", None) or where
    start = max(0, found.start())
    line = found.string[start : start + SHOWN_CHARACTERS].strip()
    for term, text in groups.items():
        if text is not None:
            value, rounding = read_value(term, text, row.unit)
            if value is not None:
                yield Figure(term, value, rounding, place, file, number, line)


def read_value(term: str, text: str, unit: str) -> tuple[int | Decimal | str | None, int]:
    """The value of a term's text with half of its last digit in bytes; None for a number that no engine means."""
    sort = TERMS[term]
    if sort == "text":
        return text.strip(), 0
    digits = text.replace(",", "")
    number = Decimal(digits)
    if sort == "ratio":
        return number, 0
    if sort == "count":
        return (int(number), 0) if 0 <= number < 1 << 62 else (None, 0)
    scale = SCALES[unit]
    size = int((number * scale).to_integral_value())
    places = len(digits.partition(".")[2])
    rounding = -(-scale // (2 * 10**places)) if places or scale > 1 else 0
    return (size, rounding) if abs(size) < 1 << 62 else (None, 0)
