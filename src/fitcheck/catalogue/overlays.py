"""What an overlay may not hold: an answer would rest on it."""

from __future__ import annotations

from collections.abc import Iterator

from fitcheck.catalogue.lint import lint
from fitcheck.catalogue.load import KINDS, Catalogue, aliases_written, normalise
from fitcheck.catalogue.text import Block
from fitcheck.errors import DataError

_MANY = ("model", "device", "recipe", "rate")
"""Kinds with many records, of which the lint reads only those that an overlay can have to do with."""

_LAYERED = "FC008"
"""One overlay may replace a record of another: the later counts."""


def check_overlays(catalogue: Catalogue) -> None:
    """Raise `DataError` with the first error that `fitcheck validate` finds in an overlay, at its file and line."""
    catalogue.blocks("model")  # a text that cannot be read, or a record that does not keep its form, is told first
    _, overlays = catalogue.texts
    beneath = [("shipped", "".join(block.text.rstrip("\n") + "\n" for block in _concerned(catalogue)))]
    for finding in lint(overlays.items(), beneath):
        if finding.severity == "error" and finding.id != _LAYERED:
            hint = f"{finding.id}: {finding.hint}; 'fitcheck validate {finding.path}' shows every finding"
            raise DataError(f"{finding.path}:{finding.line}: {finding.message}", hint=hint)


def _concerned(catalogue: Catalogue) -> Iterator[Block]:
    """The shipped records that an overlay names, or shares a name with, and all of the kinds that are few."""
    _, overlays = catalogue.texts
    written = "\n".join(overlays.values())
    of_kind = {kind: catalogue.blocks(kind).values() for kind in KINDS}
    own = {normalise(name) for blocks in of_kind.values() for block in blocks if block.path in overlays for name in _names(block)}
    for kind, blocks in of_kind.items():
        for block in blocks:
            shares = kind not in _MANY or block.id in written or any(normalise(name) in own for name in _names(block))
            if block.path not in overlays and shares:
                yield block


def _names(block: Block) -> tuple[str, ...]:
    return block.id, *aliases_written(block)
