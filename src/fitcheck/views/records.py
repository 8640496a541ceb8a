"""How any catalogue record is shown: each figure with its grade and source."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from fitcheck.catalogue.provenance import BytesFigure, Cited, Source
from fitcheck.units import format_gib
from fitcheck.views.document import Cell, Column, Document, Table, cell


def sources_table(sources: dict[str, Source]) -> Table:
    """Sources of a record."""
    rows = tuple((cell(key), cell(source.read.isoformat()), cell(source.url), cell(source.via)) for key, source in sources.items())
    columns = (Column("source"), Column("read", rank=2), Column("address", reference=True), Column("read there through", rank=3, wrap=True))
    return Table("sources", "Sources", columns, rows)


def record_document(record: BaseModel, title: str, sources: dict[str, Source], note: str | None) -> Document:
    """Any record, one figure to a row: its path, value, grade and sources."""
    columns = (
        Column("field"),
        Column("value", wrap=True),
        Column("grade", rank=2),
        Column("source", rank=1),
        Column("note", wrap=True, rank=3),
    )
    skipped = {"sources", "kind", "note"}
    rows = tuple(row for name in type(record).model_fields if name not in skipped for row in _figure_rows(name, getattr(record, name)))
    return Document(title, (Table("fields", "Fields", columns, rows), sources_table(sources)), (note,) if note else ())


def _figure_rows(path: str, value: Any) -> Iterator[tuple[Cell, ...]]:
    if value is None or value == ():
        return
    if isinstance(value, tuple) and all(isinstance(item, str) for item in value):
        yield (cell(path), cell(", ".join(value)), cell(None), cell(None), cell(None))
    elif isinstance(value, tuple):
        for number, item in enumerate(value, start=1):
            yield from _figure_rows(f"{path} {number}", item)
    elif isinstance(value, Cited):
        yield (cell(path), cell(_figure_text(value)), cell(value.grade.value), cell(", ".join(value.source)), cell(value.note))
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _figure_rows(f"{path}.{name}", getattr(value, name))
    else:
        yield (cell(path), cell(_scalar_text(value)), cell(None), cell(None), cell(None))


def _figure_text(figure: Cited) -> str:
    own = {name: getattr(figure, name) for name in type(figure).model_fields if name not in ("source", "grade", "note")}
    if isinstance(figure, BytesFigure):
        own.pop("printed")
        own["value"] = f"{figure.value:,} B ({figure.printed or format_gib(figure.value)})"
    shown = [
        _scalar_text(value) if name == "value" else f"{name} {_scalar_text(value)}" for name, value in own.items() if value is not None
    ]
    return ", ".join(shown)


def _scalar_text(value: Any) -> str:
    if isinstance(value, BytesFigure):
        return _figure_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)
