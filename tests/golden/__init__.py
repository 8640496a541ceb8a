"""Golden tables: YAML that a non-programmer can check, each row with its source."""

from pathlib import Path
from typing import Any

from fitcheck.catalogue.text import parse


def rows(name: str) -> list[Any]:
    """The rows of a table; a row without a source is refused."""
    path = Path(__file__).parent / name
    table, _ = parse(path.read_text(encoding="utf-8"), name)
    assert table
    assert all(row.get("source") for row in table), f"{name}: a row without its source"
    return table
