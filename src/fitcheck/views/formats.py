"""A document as plain lines, CSV or Markdown, and a whole answer as JSON."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

from fitcheck.units import format_instant
from fitcheck.views.document import Document, Line, Table, clean

_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
_HARMLESS = re.compile(r"-|[+-]?\d[\d,]*(?:\.\d+)?%?|--[a-z][a-z-]*(?: [A-Za-z0-9_.=]+)?")
_ADDRESS = re.compile(r"https?://[^\s<>\"|`\\]+")
_BLOCK_START = re.compile(r"^(?:[-+](?=\s|$)|\d+(?=[.)](?:\s|$)))")


def plain(document: Document) -> str:
    """One record per line, tab-separated, its section's name first; a line that starts with `#` names the columns. For grep and cut."""
    lines = [f"heading\t{document.heading}"]
    for part in document.parts:
        if isinstance(part, Line):
            lines.append(f"{part.key or 'text'}\t{part.text}")
        else:
            lines.append("#" + "\t".join([part.key, *(column.name for column in part.columns)]))
            lines.extend("\t".join([part.key, *(_value(value.text) for value in row)]) for row in part.rows)
    lines.extend(f"note\t{note}" for note in document.notes)
    return "\n".join(lines) + "\n"


def as_csv(document: Document, question: Mapping[str, Any] | None = None) -> str:
    """RFC 4180 rows. A document of one table is that table; else each row starts with its section, and headings come per section.

    `question` is what was asked: it comes first, as rows of name and value.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    tables = [part for part in document.parts if isinstance(part, Table)]
    lines = [part for part in document.parts if isinstance(part, Line)]
    if len(tables) == 1 and not lines:
        writer.writerow([column.name for column in tables[0].columns])
        writer.writerows([_safe(_value(value.text)) for value in row] for row in tables[0].rows)
        return out.getvalue()
    writer.writerow(["section", "name", "value"])
    writer.writerow(["question", "heading", _safe(document.heading)])
    writer.writerows(["question", name, _safe(clean(str(value)))] for name, value in _facts(to_json(question or {})))
    writer.writerows(["answer", _safe(line.key), _safe(_value(line.text))] for line in lines)
    for table in tables:
        writer.writerow(["section", *(column.name for column in table.columns)])
        writer.writerows([table.key, *(_safe(_value(value.text)) for value in row)] for row in table.rows)
    writer.writerows(["note", "", _safe(note)] for note in document.notes)
    return out.getvalue()


def _facts(values: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Each scalar by its path; what was not asked is left out."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _facts(value, f"{path}{name}.")
        elif isinstance(value, list):
            yield from [(f"{path}{name}", " ".join(str(item) for item in value))] if value else []
        elif value is not None:
            yield f"{path}{name}", value


def _value(text: str) -> str:
    """A cell as programs read it: a number without thousands separators."""
    return text.replace(",", "") if _GROUPED.fullmatch(text) else text


def _safe(text: str) -> str:
    """Text that a spreadsheet will not run as a formula; a lone dash, numbers and our own options stay as they are."""
    return f"'{text}" if text[:1] in _FORMULA and text and not _HARMLESS.fullmatch(text) else text


def markdown(document: Document) -> str:
    """GitHub-flavoured Markdown: a heading, a list of facts, tables, a list of notes."""
    blocks = [f"## {_escape(document.heading)}"]
    facts = [f"- **{_escape(part.key)}**: {_escape(part.text)}" if part.key else f"- {_opening(part.text)}" for part in _lines(document)]
    if facts:
        blocks.append("\n".join(facts))
    blocks.extend(_markdown_table(part) for part in document.parts if isinstance(part, Table))
    if document.notes:
        blocks.append("### Notes")
        blocks.append("\n".join(f"- {_opening(note)}" for note in document.notes))
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
    """Text that Markdown shows as it is, with addresses as links."""
    pieces, end = [], 0
    for found in _ADDRESS.finditer(text):
        address = found[0].rstrip(".,;:!?'*_")
        if address.endswith(")") and "(" not in address:
            address = address.rstrip(")")
        pieces += [_escape_words(text[end : found.start()]), f"<{address}>"]
        end = found.start() + len(address)
    return "".join([*pieces, _escape_words(text[end:])]) if pieces else _escape_words(text)


def _escape_words(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#&~" else letter for letter in text)


def _opening(text: str) -> str:
    """As `_escape`, at the start of an item, where a dash, a plus or a number would open a list."""
    escaped = _escape(text)
    start = _BLOCK_START.match(escaped)
    at = start.end() if start and escaped[0] not in "+-" else 0
    return f"{escaped[:at]}\\{escaped[at:]}" if start else escaped


def to_json(value: Any) -> Any:
    """A report as JSON values: dataclasses become objects, money and other decimals strings, days and instants ISO 8601."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
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
