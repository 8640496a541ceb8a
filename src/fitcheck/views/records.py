"""What all records have in common when they are shown: figures with their grade and sources, and the table of sources."""

from __future__ import annotations

from decimal import Decimal

from fitcheck.catalogue.provenance import Cited, Source
from fitcheck.views.document import Cell, Column, Table, cell

CITED = (Column("grade"), Column("source", wrap=True, width=10), Column("note", wrap=True, rank=5))
"""Columns of what `cited` gives: a figure's grade and source stay at any width."""


def cited(figure: Cited) -> tuple[Cell, Cell, Cell]:
    """How a figure is known: its grade, its sources by their short names, its note."""
    return cell(figure.grade.value), cell(", ".join(figure.source)), cell(figure.note)


def known_by(figure: Cited) -> str:
    """How a figure is known, in brackets after it."""
    return f"({figure.grade.value}; {', '.join(figure.source)})"


def plain_number(value: Decimal) -> str:
    """A decimal number as it was written, with thousands separators."""
    return f"{value:,f}"


def sources_table(sources: dict[str, Source]) -> Table:
    """Sources of a record."""
    rows = tuple((cell(key), cell(source.read.isoformat()), cell(source.url), cell(source.via)) for key, source in sources.items())
    columns = (Column("source"), Column("read", rank=2), Column("address", reference=True), Column("read there through", rank=3, wrap=True))
    return Table("sources", "Sources", columns, rows)
