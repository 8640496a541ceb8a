"""A document as plain lines, CSV or Markdown, and a whole answer as JSON."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

from fitcheck.units import format_instant
from fitcheck.views.document import Document, Line, Table


def plain(document: Document) -> str:
    """One record per line, tab-separated, its section's name first; a line that starts with `#` names the columns. For grep and cut."""
    lines = [f"heading\t{document.heading}"]
    for part in document.parts:
        if isinstance(part, Line):
            lines.append(f"{part.key or 'text'}\t{part.text}")
        else:
            lines.append("#" + "\t".join([part.key, *(column.name for column in part.columns)]))
            lines.extend("\t".join([part.key, *(value.text for value in row)]) for row in part.rows)
    lines.extend(f"note\t{note}" for note in document.notes)
    return "\n".join(lines) + "\n"


def as_csv(document: Document) -> str:
    """RFC 4180 rows. A document of one table is that table; else each row starts with its section, and headings come per section."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    tables = [part for part in document.parts if isinstance(part, Table)]
    lines = [part for part in document.parts if isinstance(part, Line)]
    if len(tables) == 1 and not lines:
        writer.writerow([column.name for column in tables[0].columns])
        writer.writerows([_safe(value.text) for value in row] for row in tables[0].rows)
        return out.getvalue()
    writer.writerow(["section", "name", "value"])
    writer.writerows(["answer", _safe(line.key), _safe(line.text)] for line in lines)
    for table in tables:
        writer.writerow(["section", *(column.name for column in table.columns)])
        writer.writerows([table.key, *(_safe(value.text) for value in row)] for row in table.rows)
    writer.writerows(["note", "", _safe(note)] for note in document.notes)
    return out.getvalue()


def _safe(text: str) -> str:
    """Text that a spreadsheet will not run as a formula; a lone dash and numbers stay as they are."""
    risky = text[:1] in ("=", "+", "@") or (text[:1] == "-" and len(text) > 1 and not text[1].isdigit())
    return f"'{text}" if risky else text


def markdown(document: Document) -> str:
    """GitHub-flavoured Markdown: a heading, a list of facts, tables."""
    blocks = [f"## {_escape(document.heading)}"]
    facts = [f"- **{_escape(part.key)}**: {_escape(part.text)}" if part.key else f"- {_escape(part.text)}" for part in _lines(document)]
    if facts:
        blocks.append("\n".join(facts))
    blocks.extend(_markdown_table(part) for part in document.parts if isinstance(part, Table))
    if document.notes:
        blocks.append("\n".join(f"> {_escape(note)}" for note in document.notes))
    return "\n\n".join(blocks) + "\n"


def _lines(document: Document) -> Iterator[Line]:
    return (part for part in document.parts if isinstance(part, Line))


def _markdown_table(table: Table) -> str:
    head = [f"### {_escape(table.title)}", ""]
    if not table.rows:
        return "\n".join([*head, _escape(table.empty or "none")])
    head.append("| " + " | ".join(_escape(column.name) for column in table.columns) + " |")
    head.append("|" + "|".join("---:" if column.right else "---" for column in table.columns) + "|")
    return "\n".join(head + ["| " + " | ".join(_escape(value.text) for value in row) + " |" for row in table.rows])


def _escape(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in text)


def to_json(value: Any) -> Any:
    """A report as JSON values: dataclasses become objects, money and other decimals strings, days and instants ISO 8601."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_json(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(to_json(key)): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Fraction):
        return float(value)
    return value


def dump(value: Any) -> str:
    """JSON text with sorted keys, so that the same answer is the same bytes."""
    return json.dumps(to_json(value), indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"
