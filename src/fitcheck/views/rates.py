"""How rate cards are listed and shown: prices in force, history, windows, sources."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from fitcheck.catalogue.ratecards import PricePeriod, Rate, Schedule, TokenPrices
from fitcheck.units import format_instant
from fitcheck.views.document import Cell, Column, Document, Line, Table, Tone, cell, clean
from fitcheck.views.records import sources_table

_STATUS_TONES: dict[str, Tone] = {"withdrawn": "bad", "announced": "warn", "promotion": "warn"}


def rates_list(rates: tuple[Rate, ...], current: dict[str, PricePeriod | None], *, apart: bool) -> Document:
    """All rates with the prices in force; `current` holds each rate's period by id. A promotion says so at any width.

    With `apart` each currency has a table of its own, titled by it, and a price in another than USD its currency in its cell; else there is
    one table of bare numbers, with the currency in a column.
    """
    note = "'fitcheck rates PROVIDER/ID' shows one with its history; 'fitcheck rates price' prices an instant"
    currencies = sorted({rate.currency for rate in rates}, key=lambda code: (code != "USD", code)) if apart else []
    tables = [
        _rates_table(f"{code} per million tokens", tuple(rate for rate in rates if rate.currency == code), current, apart=True)
        for code in currencies
    ] or [_rates_table("Rates", rates, current, apart=False)]
    return Document(f"{len(rates)} rates, per million tokens", tuple(tables), (note,))


def _rates_table(title: str, rates: tuple[Rate, ...], current: dict[str, PricePeriod | None], *, apart: bool) -> Table:
    columns = (
        Column("rate"),
        *(() if apart else (Column("money"),)),
        Column("in/M", right=True),
        Column("cached/M", right=True, rank=2),
        Column("out/M", right=True),
        Column("peak in/M", right=True, rank=2),
        Column("peak out/M", right=True, rank=2),
        Column("hours", rank=3),
        Column("from", rank=4),
        Column("price"),
    )
    return Table("rates", title, columns, tuple(_rate_row(rate, current[rate.id], apart=apart) for rate in rates))


def _rate_row(rate: Rate, period: PricePeriod | None, *, apart: bool) -> tuple[Cell, ...]:
    names = (cell(rate.id),) if apart else (cell(rate.id), cell(rate.currency))
    if period is None:
        return (*names, *(cell(None) for _ in range(7)), cell("none", "quiet"))
    peak, currency = period.peak, rate.currency if apart else "USD"
    return (
        *names,
        cell(_money(period.offpeak.input_per_mtok, currency)),
        cell(_money(period.offpeak.cached_input_per_mtok, currency)),
        cell(_money(period.offpeak.output_per_mtok, currency)),
        cell(_money(peak.input_per_mtok, currency) if peak else None),
        cell(_money(peak.output_per_mtok, currency) if peak else None),
        cell(period.schedule or "flat"),
        cell(format_instant(period.since) if period.since else None),
        cell("promo", "warn") if period.promotion else cell("list"),
    )


def _money(value: Decimal | None, currency: str) -> str | None:
    """An amount, with its currency unless that is USD, which the heading says."""
    return None if value is None else f"{value:f}" if currency == "USD" else f"{currency} {value:f}"


def rate_document(rate: Rate, schedules: tuple[Schedule, ...], current: PricePeriod | None, day: date) -> Document:
    """One rate as it is known on a day: the price in force, its history, what it serves, its windows, its sources."""
    parts: list[Line | Table] = [Line("id", clean(rate.id)), Line("currency", f"{rate.currency} per million tokens")]
    if rate.available_from:
        parts.append(Line("valid from", format_instant(rate.available_from)))
    parts.append(Line(f"on {day.isoformat()}", _in_force(current, rate.currency), "plain" if current else "bad"))
    parts.append(_history(rate))
    if rate.serves:
        served = tuple(
            (cell(entry.model or "not in the catalogue"), cell(format_instant(entry.since) if entry.since else None))
            for entry in rate.serves
        )
        parts.append(Table("serves", "Answered by", (Column("model"), Column("from")), served))
    parts.extend(_windows(schedule) for schedule in schedules)
    parts.append(sources_table(rate.sources))
    return Document(clean(rate.name), tuple(parts), (clean(rate.note),) if rate.note else ())


def _in_force(period: PricePeriod | None, currency: str) -> str:
    if period is None:
        return "no price in force"
    since = f"since {format_instant(period.since)}" if period.since else "since an unknown day"
    words = [f"{_pair(period.offpeak, currency)}{' off-peak' if period.peak else ''}"]
    words += [f"{_pair(period.peak, currency)} at peak"] if period.peak else []
    return f"{'; '.join(words)}, {since}{', a promotion' if period.promotion else ''}"


def _pair(prices: TokenPrices, currency: str) -> str:
    return f"{currency} {prices.input_per_mtok:f} input, {currency} {prices.output_per_mtok:f} output"


def _history(rate: Rate) -> Table:
    columns = (
        Column("from"),
        Column("until", rank=3),
        Column("when", wrap=True, width=10),
        Column("input", right=True),
        Column("cached", right=True, rank=2),
        Column("output", right=True),
        Column("status"),
        Column("note", rank=4, wrap=True),
    )
    rows: list[tuple[Cell, ...]] = []
    for period in rate.periods:
        rows.append(_history_row(period, "off-peak" if period.peak else "all day", period.offpeak, rate.currency))
        if period.peak:
            rows.append(_history_row(period, "peak", period.peak, rate.currency))
        rows.extend(_history_row(period, f"input over {tier.above_input_tokens:,}", tier, rate.currency) for tier in period.tiers)
    return Table("prices", f"Prices in {rate.currency} per million tokens", columns, tuple(rows))


def _history_row(period: PricePeriod, when: str, prices: TokenPrices, currency: str) -> tuple[Cell, ...]:
    status = "promotion" if period.promotion else period.status.value
    return (
        cell(format_instant(period.since) if period.since else "start not known"),
        cell(format_instant(period.until) if period.until else None),
        cell(when),
        cell(_money(prices.input_per_mtok, currency)),
        cell(_money(prices.cached_input_per_mtok, currency)),
        cell(_money(prices.output_per_mtok, currency)),
        cell(status, _STATUS_TONES.get(status, "plain")),
        cell(period.note),
    )


def _days(days: tuple[str, ...]) -> str:
    """Three or more days in a row by the first and the last of them."""
    whole = "mon tue wed thu fri sat sun"
    listed = " ".join(days)
    return "every day" if listed == whole else f"{days[0]}-{days[-1]}" if len(days) > 2 and listed in whole else listed


def _windows(schedule: Schedule) -> Table:
    rows = []
    for rule in schedule.rules:
        for window in rule.windows:
            hours = f"{window.start:%H:%M}-{window.end:%H:%M}"
            rows.append((cell(format_instant(rule.since)), cell(_days(window.days)), cell(hours), cell(rule.holidays)))
    columns = (Column("from"), Column("days"), Column("hours"), Column("not on", rank=1))
    return Table("schedule", f"{schedule.window_name} hours in {schedule.timezone}", columns, tuple(rows))
