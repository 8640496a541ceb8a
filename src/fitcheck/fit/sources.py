"""Citations: names of sources in a record to the addresses they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from fitcheck.catalogue.provenance import Cited, Source
from fitcheck.fit.report import CitedSource


def cite(sources: dict[str, Source], figure: Cited) -> tuple[CitedSource, ...]:
    """The sources a figure rests on, in its order. Names that the record does not define are passed over (`validate` reports them)."""
    found = (sources.get(key) for key in figure.source)
    return tuple(CitedSource(source.url, source.read, source.title) for source in found if source is not None)


def oldest(sources: Iterable[CitedSource]) -> date | None:
    """The day on which the oldest of these was read."""
    return min((source.read for source in sources), default=None)
