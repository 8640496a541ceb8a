"""A document on a terminal: rich tables that adapt to the width, without markup and without wrapping numbers."""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Iterator

from rich import box
from rich.console import Group, JustifyMethod, OverflowMethod, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from fitcheck.views.console import console_to
from fitcheck.views.document import Cell, Column, Document, Line, Table, Tone

STACKED_BELOW = 60
_STYLES: dict[Tone, str] = {
    "plain": "",
    "good": "green",
    "warn": "yellow",
    "bad": "red",
    "quiet": "dim",
    "strong": "bold",
}
_GAP = 3


def render(document: Document, *, width: int, colour: bool) -> str:
    """The document as terminal text of that width; escape codes only where `colour` is true."""
    out = io.StringIO()
    console = console_to(out, colour=colour, width=width)
    # One print for everything: what rich does for each call costs more than the text.
    console.print(Group(*_blocks(document, width)), crop=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _blocks(document: Document, width: int) -> Iterator[RenderableType]:
    yield _hanging("", document.heading, width, "bold")
    label_width = max((len(part.key) for part in document.parts if isinstance(part, Line)), default=0)
    previous: Line | Table | None = None
    for part in document.parts:
        if isinstance(part, Table):
            yield ""
            yield from _table(part, width)
        else:
            if isinstance(previous, Table):
                yield ""
            label = f"  {part.key:<{label_width}}  " if part.key else "  "
            yield _hanging(label, part.text, width, _STYLES[part.tone])
        previous = part
    if document.notes:
        yield ""
        for note in document.notes:
            yield _hanging("note  ", note, width)


def _hanging(label: str, text: str, width: int, style: str = "") -> Text:
    """Text after a label, its further lines indented to where it began. Words longer than the line (addresses) stay whole."""
    room = max(12, width - len(label))
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    # The label's style is its own: as the base style it would hold for the text too.
    result = Text(overflow="ignore", no_wrap=True)
    result.append(label, style="dim")
    result.append(("\n" + " " * len(label)).join(lines), style=style)
    return result


def _table(table: Table, width: int) -> Iterator[RenderableType]:
    yield _hanging("", table.title, width, "bold")
    if not table.rows:
        yield Text(f"  {table.empty or 'none'}", style="dim")
        return
    whole = list(range(len(table.columns)))
    below = next((index for index, column in enumerate(table.columns) if column.below), None)
    if below is not None and _columns_that_fit(table, width) != whole:
        yield from _with_sentences(table, below, width)
        return
    shown, references = (table, []) if _columns_that_fit(table, width) == whole else _numbered_references(table)
    chosen = _columns_that_fit(shown, width)
    if width < STACKED_BELOW or chosen is None:
        yield from _stacked(table, width)
        return
    yield _grid(shown, chosen, width)
    left_out = [column.name for index, column in enumerate(shown.columns) if index not in chosen]
    if left_out:
        yield _hanging("  not shown at this width: ", ", ".join(left_out), width, "dim")
    for number, address in enumerate(references, start=1):
        yield Text(f"  {number:>2}  {address}", style="dim", no_wrap=True, overflow="ignore")


def _with_sentences(table: Table, below: int, width: int) -> Iterator[RenderableType]:
    """The table without its column `below`, whose text stands under each row instead."""
    kept = [index for index in range(len(table.columns)) if index != below]
    rest = table._replace(
        columns=tuple(table.columns[index] for index in kept), rows=tuple(tuple(row[index] for index in kept) for row in table.rows)
    )
    chosen = _columns_that_fit(rest, width)
    if width < STACKED_BELOW or chosen is None:
        yield from _stacked(table, width)
        return
    widths = {index: _column_width(rest, index) for index in chosen}
    heads = tuple(Cell(column.name, "quiet") for column in rest.columns)
    yield _aligned(rest, heads, widths)
    yield Text("─" * (sum(widths.values()) + _GAP * (len(widths) - 1)), no_wrap=True, overflow="ignore")
    for row, whole in zip(rest.rows, table.rows, strict=True):
        yield _aligned(rest, row, widths)
        if whole[below].text != "-":
            yield _hanging("    ", whole[below].text, width, _STYLES[whole[below].tone])
    left_out = [column.name for index, column in enumerate(rest.columns) if index not in widths]
    if left_out:
        yield _hanging("  not shown at this width: ", ", ".join(left_out), width, "dim")


def _aligned(table: Table, row: tuple[Cell, ...], widths: dict[int, int]) -> Text:
    line = Text(no_wrap=True, overflow="ignore")
    for place, (index, wanted) in enumerate(widths.items()):
        padding = " " * (wanted - len(row[index].text))
        right = table.columns[index].right
        line.append(" " * (_GAP if place else 0) + (padding if right else ""))
        line.append(row[index].text, style=_STYLES[row[index].tone])
        line.append("" if right else padding)
    return line


def _numbered_references(table: Table) -> tuple[Table, list[str]]:
    """The table with its addresses as numbers, and the addresses in the order of their numbers."""
    places = [index for index, column in enumerate(table.columns) if column.reference]
    if not places or len(table.columns) == 1:
        return table, []
    addresses = list(dict.fromkeys(row[place].text for row in table.rows for place in places if row[place].text != "-"))
    numbers = {address: str(number) for number, address in enumerate(addresses, start=1)}

    def numbered(index: int, value: Cell) -> Cell:
        return Cell(numbers.get(value.text, value.text), value.tone) if index in places else value

    rows = tuple(tuple(numbered(index, value) for index, value in enumerate(row)) for row in table.rows)
    columns = tuple(column._replace(right=True) if column.reference else column for column in table.columns)
    return table._replace(columns=columns, rows=rows), addresses


def _grid(table: Table, chosen: list[int], width: int) -> RichTable:
    grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 1))
    room = width - sum(_column_width(table, index) + _GAP for index in chosen) + _GAP
    for index in chosen:
        column = table.columns[index]
        # Widths are given, because they are known here and rich would measure every cell again. What is left goes to the column that wraps.
        wanted = _column_width(table, index)
        if column.wrap:
            longest = max(len(column.name), *(len(row[index].text) for row in table.rows))
            extra = max(0, min(room, longest - wanted))
            wanted, room = wanted + extra, room - extra
        overflow: OverflowMethod = "fold" if column.wrap else "crop"
        justify: JustifyMethod = "right" if column.right else "left"
        grid.add_column(Text(column.name), justify=justify, no_wrap=not column.wrap, overflow=overflow, width=wanted)
    for row in table.rows:
        grid.add_row(*(_text(row[index]) for index in chosen))
    return grid


def _text(value: Cell) -> Text:
    return Text(value.text, style=_STYLES[value.tone])


def _columns_that_fit(table: Table, width: int) -> list[int] | None:
    """Columns to show: all, less those of the highest rank until the table fits; None where even rank 0 does not."""
    chosen = list(range(len(table.columns)))
    while sum(_column_width(table, index) + _GAP for index in chosen) - _GAP > width:
        rank = max(table.columns[index].rank for index in chosen)
        if rank == 0:
            return None
        last = max(index for index in chosen if table.columns[index].rank == rank)
        chosen.remove(last)
    return chosen


def _column_width(table: Table, index: int) -> int:
    column: Column = table.columns[index]
    widest = max(len(row[index].text) for row in table.rows)
    return max(len(column.name), min(widest, column.width) if column.wrap else widest)


def _stacked(table: Table, width: int) -> Iterator[RenderableType]:
    label_width = max(len(column.name) for column in table.columns)
    for number, row in enumerate(table.rows):
        if number:
            yield ""
        for column, value in zip(table.columns, row, strict=True):
            if value.text != "-":
                yield _hanging(f"  {column.name:<{label_width}}  ", value.text, width, _STYLES[value.tone])


def wants_colour(is_terminal: bool) -> bool:
    """Colour only for a terminal, and not with a non-empty NO_COLOR or TERM=dumb."""
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
