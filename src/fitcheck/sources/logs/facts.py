"""A term over ranks and devices: which of the printed figures counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from fitcheck.fit.printed import Fact
from fitcheck.sources.logs.reading import Figure, LogReading

_RANK = re.compile(r"(?<![A-Za-z])(TP|PP)(\d{1,4})(?!\d)")


def fact(figure: Figure | None) -> Fact | None:
    """A figure as `fit` knows it; None for none, or for one that is no whole number."""
    if figure is None or not isinstance(figure.value, int):
        return None
    return Fact(figure.value, figure.rounding, figure.line, f"{figure.file}:{figure.number}")


def per_place(figures: Iterable[Figure]) -> list[Figure]:
    """One figure for each process: the one with the finest rounding, of equals the first."""
    found: dict[str | None, Figure] = {}
    for figure in figures:
        best = found.get(figure.where)
        if best is None or figure.rounding < best.rounding:
            found[figure.where] = figure
    return list(found.values())


def over(reading: LogReading, term: str, choose: Callable[..., Figure]) -> Fact | None:
    """The largest or smallest (`choose`) of a term over processes."""
    figures = per_place(reading.all(term))
    return fact(choose(figures, key=lambda figure: figure.value)) if figures else None


def ratio(reading: LogReading, term: str) -> Decimal | None:
    """The first printed ratio of a term."""
    return next((figure.value for figure in reading.all(term) if isinstance(figure.value, Decimal)), None)


def count(reading: LogReading, term: str) -> int | None:
    """The first printed number of a term."""
    return next((figure.value for figure in reading.all(term) if isinstance(figure.value, int)), None)


def text(value: object) -> str | None:
    """A setting that is text, else None."""
    return value if isinstance(value, str) else None


def text_of(reading: LogReading, term: str) -> str | None:
    """The first printed text of a term."""
    return next((str(figure.value) for figure in reading.all(term)), None)


def whole(value: object, default: int | None = None) -> int | None:
    """A setting that is a whole number of 1 or more, else the default."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default


def decimal(value: object) -> Decimal | None:
    """A setting that is a number, else None."""
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def degrees(reading: LogReading) -> dict[str, Any]:
    """Parallel degrees as the settings state them, else as many ranks as are named; 1 where neither is."""
    named = ranks_named(reading.figures)
    return {name: whole(reading.setting(name)) or named.get(name, 1) for name in ("tp", "pp", "dp", "dcp")}


def ranks_named(figures: Iterable[Figure]) -> dict[str, int]:
    """Tensor and pipeline ranks by the highest that a process is named by: `Worker_PP0_TP1`, `TP7`, `DP0 TP3 EP3`."""
    found: dict[str, int] = {}
    for where in {figure.where for figure in figures if figure.where}:
        for name, number in _RANK.findall(where):
            found[name.lower()] = max(found.get(name.lower(), 1), int(number) + 1)
    return found


def devices_stated(reading: LogReading) -> int | None:
    """How many devices the settings or the ranks name, None where they name none."""
    found = degrees(reading)
    stated = any(setting.name in found for setting in reading.settings) or max(ranks_named(reading.figures).values(), default=1) > 1
    return int(found["tp"] * found["pp"] * found["dp"]) if stated else None


def summed(parts: list[Figure]) -> Fact | None:
    """The sum of some figures, with the line of the first."""
    values = [part for part in parts if isinstance(part.value, int)]
    if not values:
        return None
    total, rounding = sum(int(part.value) for part in values), sum(part.rounding for part in values)
    return Fact(total, rounding, values[0].line, f"{values[0].file}:{values[0].number}")
