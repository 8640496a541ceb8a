"""The one envelope that every command's JSON comes in."""

from __future__ import annotations

from datetime import date
from typing import Any

from fitcheck.frozen import frozen

SCHEMA_VERSION = "1.0"


@frozen
class OverlayRow:
    """An overlay in force and the records it adds or replaces."""

    path: str
    ids: tuple[str, ...]


@frozen
class CatalogueRow:
    """Which catalogue the answer was made from."""

    version: str
    digest: str
    overlays: tuple[OverlayRow, ...]


@frozen
class Envelope:
    """What every command's JSON holds. `inputs` are those that the command resolved, defaults included."""

    schema_version: str
    command: str
    as_of: date
    catalogue: CatalogueRow
    inputs: dict[str, Any]
    result: Any
    warnings: tuple[str, ...]
