"""How the answer to `calibrate` is laid out."""

from __future__ import annotations

from collections.abc import Iterator

from fitcheck.fit.calibration import CalibrationReport, CalibrationRow
from fitcheck.fit.printed import PrintedSpeed
from fitcheck.units import format_gib, format_size
from fitcheck.views.document import Cell, Column, Document, Line, Table, Tone, cell, clean

GOOD, FAIR = 0.03, 0.10
"""Errors that are shown as good and as fair; beyond, or too little by more than the first, a prediction is bad."""


def calibrate_document(report: CalibrationReport, *, catalogue_version: str, as_of: str) -> Document:
    """The whole answer: what was read, prediction beside print, and what could not be compared."""
    name = report.model_name or report.model_printed or "a model that the log does not name"
    heading = f"{name} under {report.engine_name}{f' {report.version}' if report.version else ''}: prediction beside what was printed"
    parts: list[Line | Table] = [*_facts(report), _rows(report)]
    if report.speeds:
        parts.append(_speeds(report.speeds))
    parts.extend(Line("", clean(f"not compared: {text}"), "quiet") for text in report.not_compared)
    foot = f"catalogue {catalogue_version}, as of {as_of}; --yaml prints entries, 'fitcheck fit --calibrated' takes the log"
    return Document(clean(heading), tuple(parts), (*(clean(note) for note in report.notes), foot))


def _facts(report: CalibrationReport) -> Iterator[Line]:
    build = f", build {report.checkpoint}" if report.checkpoint else ""
    printed = f" (printed as {report.model_printed})" if report.model_printed and report.model else ""
    yield Line("model", clean(f"{report.model or report.model_printed or 'not known'}{build}{printed}"))
    yield Line("engine", clean(" ".join(part for part in (report.build or report.engine_name, report.version) if part)))
    device = report.device or report.device_printed or "not known"
    yield Line("ran on", clean(f"{report.devices}x {device}, tp {report.tp}, pp {report.pp}"))
    context = f"{report.context_tokens:,} tokens" if report.context_tokens else "not printed"
    yield Line("context", clean(f"{context}, KV dtype {report.kv_dtype}"))
    if report.settings:
        yield Line("settings", clean(", ".join(f"{name} {value}" for name, value in report.settings.items())))
    if report.measured is not None:
        yield Line("overhead", clean(f"{format_gib(report.measured.overhead_bytes)} measured: {report.measured.formula}"))


def _rows(report: CalibrationReport) -> Table:
    columns = (
        Column("term"),
        Column("printed", right=True),
        Column("predicted", right=True),
        Column("error %", right=True),
        Column("rounding %", right=True, rank=2),
        Column("where", rank=3),
        Column("how predicted", wrap=True, rank=1),
    )
    return Table("terms", "Term by term", columns, tuple(_row(row) for row in report.rows), "the log prints no memory")


def _row(row: CalibrationRow) -> tuple[Cell, ...]:
    rounding = f"{100 * row.rounding / row.printed:.2f}" if row.printed and row.rounding else None
    return (
        cell(row.term),
        cell(_amount(row, row.printed)),
        cell(_amount(row, row.predicted)),
        cell(None if row.error is None else f"{100 * row.error:+.2f}", _tone(row.error)),
        cell(rounding),
        cell(row.at or None),
        cell(row.formula),
    )


def _amount(row: CalibrationRow, value: int | None) -> str | None:
    if value is None:
        return None
    return f"{value:,} tokens" if row.unit == "tokens" else format_size(value) if value >= 0 else f"-{format_size(-value)}"


def _tone(error: float | None) -> Tone:
    if error is None:
        return "quiet"
    return "good" if abs(error) <= GOOD else "warn" if 0 < error <= FAIR else "bad"


def _speeds(speeds: tuple[PrintedSpeed, ...]) -> Table:
    columns = (
        Column("speed"),
        Column("tok/s", right=True),
        Column("users", right=True),
        Column("per"),
        Column("of what", wrap=True),
        Column("tool", rank=1),
    )
    rows = tuple(
        (
            cell(each.phase),
            cell(f"{each.tok_per_s:,.2f}"),
            cell(each.users or "not said"),
            cell(each.per),
            cell(each.workload),
            cell(each.tool),
        )
        for each in speeds
    )
    return Table("speeds", "Speeds in the benchmark results", columns, rows)
