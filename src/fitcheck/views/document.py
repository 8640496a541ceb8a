"""An answer laid out, before anyone chose a format: headings, lines, tables.

A view turns a report into a `Document`; a renderer turns a document into text. So all formats show the same things, and neither
side computes.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Literal, NamedTuple

_ESCAPE_SEQUENCE = "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b[ -/]*[0-~]?"
_UNPRINTABLE = (
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)


def clean(text: str) -> str:
    """Text from outside without escape sequences, control characters and characters that turn or hide text; on one line.

    So it can never steer a terminal, a page or an annotation.
    """
    if text.isprintable():
        return text
    spaced = re.sub(_ESCAPE_SEQUENCE, "", text.replace("\r", "\n")).replace("\n", " ").replace("\t", " ")
    return re.sub(_UNPRINTABLE, "", spaced)


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    PLAIN = "plain"
    JSON = "json"
    CSV = "csv"
    MD = "md"


Tone = Literal["plain", "good", "warn", "bad", "quiet", "strong"]


class Cell(NamedTuple):
    """One value of a table: its text and how it is meant."""

    text: str
    tone: Tone = "plain"


class Column(NamedTuple):
    """A column's heading, with its unit. Columns of higher `rank` go first when the screen is narrow; rank 0 never goes.

    One that may `wrap` needs `width` characters at the least. A `reference` (an address) may leave its row where the screen is narrow: it
    is then numbered and listed below the table. A `below` column (a sentence) goes under its row where it would push another out.
    """

    name: str
    right: bool = False
    rank: int = 0
    wrap: bool = False
    reference: bool = False
    width: int = 28
    below: bool = False


class Table(NamedTuple):
    """A titled table. `key` names it in the formats that hold one table per section."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    empty: str | None = None


class Line(NamedTuple):
    """One line of text: a fact (`key` and text), or a sentence (no key)."""

    key: str
    text: str
    tone: Tone = "plain"


class Document(NamedTuple):
    """A heading, then lines and tables in order, then notes."""

    heading: str
    parts: tuple[Line | Table, ...]
    notes: tuple[str, ...] = ()


def cell(value: object, tone: Tone = "plain") -> Cell:
    """A cell of any value; None is shown as a dash."""
    return Cell("-" if value is None else clean(str(value)), tone)
