"""How rate cards are listed and shown: prices in force, history, windows, sources."""

from __future__ import annotations

from decimal import Decimal

from fitcheck.catalogue.ratecards import PricePeriod, Rate, Schedule, TokenPrices
from fitcheck.units import format_instant
from fitcheck.views.document import Cell, Column, Document, Line, Table, cell
from fitcheck.views.records import sources_table


def rates_list(rates: tuple[Rate, ...], current: dict[str, PricePeriod | None]) -> Document:
    """All rates with the prices in force; `current` holds each rate's period by id."""
    columns = (
        Column("rate"),
        Column("money", rank=3),
        Column("input/M", right=True),
        Column("cached/M", right=True, rank=2),
        Column("output/M", right=True),
        Column("peak in/M", right=True, rank=2),
        Column("peak out/M", right=True, rank=2),
        Column("hours", rank=3),
        Column("from", rank=4),
    )
    rows = tuple(_rate_row(rate, current[rate.id]) for rate in rates)
    return Document(
        f"{len(rates)} rates, per million tokens",
        (Table("rates", "Rates", columns, rows),),
        ("'fitcheck rates PROVIDER/ID' shows one with its history; 'fitcheck rates price' prices an instant",),
    )


def _rate_row(rate: Rate, period: PricePeriod | None) -> tuple[Cell, ...]:
    if period is None:
        return (cell(rate.id), cell(rate.currency), *(cell(None) for _ in range(7)))
    peak = period.peak
    return (
        cell(rate.id),
        cell(rate.currency),
        cell(f"{period.offpeak.input_per_mtok:f}"),
        cell(_money(period.offpeak.cached_input_per_mtok)),
        cell(f"{period.offpeak.output_per_mtok:f}"),
        cell(_money(peak.input_per_mtok) if peak else None),
        cell(_money(peak.output_per_mtok) if peak else None),
        cell(period.schedule or "flat"),
        cell(format_instant(period.since) if period.since else None),
    )


def _money(value: Decimal | None) -> str | None:
    return None if value is None else f"{value:f}"


def rate_document(rate: Rate, schedules: tuple[Schedule, ...]) -> Document:
    """One rate: its whole price history, what it serves, its windows, its sources."""
    parts: list[Line | Table] = [Line("id", rate.id), Line("currency", f"{rate.currency} per million tokens")]
    if rate.available_from:
        parts.append(Line("valid from", format_instant(rate.available_from)))
    parts.append(_history(rate))
    if rate.serves:
        served = tuple(
            (cell(entry.model or "not in the catalogue"), cell(format_instant(entry.since) if entry.since else None))
            for entry in rate.serves
        )
        parts.append(Table("serves", "Answered by", (Column("model"), Column("from")), served))
    parts.extend(_windows(schedule) for schedule in schedules)
    parts.append(sources_table(rate.sources))
    return Document(rate.name, tuple(parts), (rate.note,) if rate.note else ())


def _history(rate: Rate) -> Table:
    columns = (
        Column("from"),
        Column("until", rank=2),
        Column("when"),
        Column("input", right=True),
        Column("cached", right=True, rank=1),
        Column("output", right=True),
        Column("status", rank=3),
        Column("note", rank=4, wrap=True),
    )
    rows: list[tuple[Cell, ...]] = []
    for period in rate.periods:
        rows.append(_history_row(period, "off-peak" if period.peak else "all day", period.offpeak))
        if period.peak:
            rows.append(_history_row(period, "peak", period.peak))
        rows.extend(_history_row(period, f"input over {tier.above_input_tokens:,}", tier) for tier in period.tiers)
    return Table("prices", "Prices per million tokens", columns, tuple(rows))


def _history_row(period: PricePeriod, when: str, prices: TokenPrices) -> tuple[Cell, ...]:
    status = "promotion" if period.promotion else period.status.value
    return (
        cell(format_instant(period.since) if period.since else "start not known"),
        cell(format_instant(period.until) if period.until else None),
        cell(when),
        cell(f"{prices.input_per_mtok:f}"),
        cell(_money(prices.cached_input_per_mtok)),
        cell(f"{prices.output_per_mtok:f}"),
        cell(status),
        cell(period.note),
    )


def _windows(schedule: Schedule) -> Table:
    rows = []
    for rule in schedule.rules:
        for window in rule.windows:
            hours = f"{window.start:%H:%M}-{window.end:%H:%M}"
            rows.append((cell(format_instant(rule.since)), cell(" ".join(window.days)), cell(hours), cell(rule.holidays)))
    columns = (Column("from"), Column("days"), Column("hours"), Column("not on", rank=1))
    return Table("schedule", f"{schedule.window_name} hours in {schedule.timezone}", columns, tuple(rows))
