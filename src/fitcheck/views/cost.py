"""How the answers to `cost` and `rates price` are laid out."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from fitcheck.cost.money import format_amount, format_millions, format_number, format_percent, format_unit_price, format_usd
from fitcheck.cost.report import BreakEven, Choice, CostReport, Hire, Move, PriceReport, RentOption
from fitcheck.fit.report import CitedSource
from fitcheck.units import format_instant
from fitcheck.views.document import Cell, Column, Document, Line, Table, Tone, cell, clean

TONES: dict[Choice, Tone] = {Choice.RENT: "good", Choice.OWN: "good", Choice.HYBRID: "warn", Choice.NEITHER: "quiet"}
_HOURS = {"peak": "peak hours", "offpeak": "off-peak hours", "flat": "one price all day"}


def price_document(report: PriceReport) -> Document:
    """What tokens cost at an instant, with the unit prices they come from."""
    rows = [_price_row("fresh input", report.fresh_input_tokens, report.per_mtok.input, report.fresh_input_amount, report)]
    if report.cached_input_tokens:
        rows.append(
            _price_row("cached input", report.cached_input_tokens, report.per_mtok.cached_input, report.cached_input_amount, report)
        )
    rows.append(_price_row("output", report.output_tokens, report.per_mtok.output, report.output_amount, report))
    columns = (Column("what"), Column("tokens", right=True), Column("per million", right=True), Column("amount", right=True))
    parts: list[Line | Table] = [
        Line("price", format_amount(report.amount, report.currency), "strong"),
        Line("hours", _HOURS[report.hour]),
        Line("in force", _period_words(report)),
    ]
    if report.tier_above_input_tokens is not None:
        parts.append(Line("tier", f"requests with more than {report.tier_above_input_tokens:,} tokens of input, charged as a whole"))
    if report.served_by is not None:
        parts.append(Line("answered by", report.served_by))
    parts += [Table("price", "Price", columns, tuple(rows)), _sources("sources", [("price", source) for source in report.sources])]
    return Document(clean(f"{report.rate} ({report.name}) at {format_instant(report.at)}"), tuple(parts), report.warnings)


def _price_row(what: str, tokens: int, price: Decimal | None, amount: Decimal, report: PriceReport) -> tuple[Cell, ...]:
    return (
        cell(what),
        cell(f"{tokens:,}"),
        cell(None if price is None else format_amount_exact(price, report.currency)),
        cell(format_amount(amount, report.currency)),
    )


def format_amount_exact(price: Decimal, currency: str) -> str:
    """A unit price with all its decimals and its currency."""
    return f"${format_unit_price(price)}" if currency == "USD" else f"{currency} {format_unit_price(price)}"


def _period_words(report: PriceReport) -> str:
    since = f"since {format_instant(report.price_since)}" if report.price_since else "since an unknown day"
    until = f" until {format_instant(report.price_until)}" if report.price_until else ""
    promotion = ", a promotion" if report.promotion else ""
    return f"{since}{until}{promotion}, {report.grade.value}"


def cost_document(report: CostReport, *, catalogue_version: str, as_of: str, why: bool) -> Document:
    """The whole answer, the arithmetic and the verdict last; with `why` every source too."""
    parts: list[Line | Table] = [Line("verdict", _headline(report), TONES[report.verdict])]
    parts.append(_workload_table(report))
    parts.append(_rent_table("rent", f"Rent: USD a month, cheapest first ({_load_words(report)})", report.rent))
    if report.rent_other_currencies:
        parts.append(_rent_table("rent_other_currencies", "Rent in other currencies, not converted", report.rent_other_currencies))
    if report.moves:
        parts.append(_moves(report))
    if report.assumptions:
        rows = tuple((cell(item.text), cell(item.option)) for item in report.assumptions)
        parts.append(Table("assumptions", "Assumed", (Column("what", wrap=True), Column("changed by", rank=1)), rows))
    if why:
        parts.append(_sources("sources", list(_cited(report))))
    if report.hire is not None:
        parts.append(Line("by the hour", _hire_words(report.hire)))
    parts.extend(Line(step.name, clean(step.text)) for step in report.steps[:-1])
    parts.append(Line("verdict", clean(report.steps[-1].text), TONES[report.verdict]))
    tokens = format_millions(report.workload.total_tokens)
    models = ", ".join(report.models)
    heading = f"Rent or own: {tokens} tokens a month, {models}"
    return Document(clean(heading), tuple(parts), (*report.warnings, _foot(report, catalogue_version, as_of, why=why)))


def _headline(report: CostReport) -> str:
    return clean(report.verdict.upper() + report.steps[-1].text.removeprefix(report.verdict.value))


def _workload_table(report: CostReport) -> Table:
    work = report.workload
    columns = (Column("part"), Column("tokens a month", right=True), Column("share", right=True), Column("source", reference=True))
    url = work.sources[0].url if work.sources else None
    rows = tuple((cell(name), cell(f"{tokens:,}"), cell(format_percent(share)), cell(url)) for name, tokens, share in work.parts)
    return Table("workload", clean(f"{format_millions(work.total_tokens)} tokens a month by {work.split_from}"), columns, rows)


def _load_words(report: CostReport) -> str:
    if report.load.billing == "offpeak":
        return "all of it off-peak"
    if report.load.schedule is not None:
        return f"{clean(report.load.schedule)}, {format_number(report.load.hours_per_week)} h a week"
    return "load even round the clock"


def _rent_table(key: str, title: str, options: tuple[RentOption, ...]) -> Table:
    columns = (
        Column("rate"),
        Column("model", rank=3),
        Column("billed", right=True),
        Column("off-peak", right=True, rank=1),
        Column("peak", right=True, rank=1),
        Column("in/M", right=True, rank=4),
        Column("cached/M", right=True, rank=4),
        Column("out/M", right=True, rank=4),
        Column("hours", rank=2),
    )
    rows = tuple(_rent_row(option) for option in options)
    return Table(key, title, columns, rows, empty="no card in the catalogue sells this on the day")


def _rent_row(option: RentOption) -> tuple[Cell, ...]:
    month, prices = option.amount_per_month, option.billed_per_mtok
    return (
        cell(option.rate),
        cell(option.model),
        cell(format_amount(month.billed, option.currency)),
        cell(format_amount(month.offpeak, option.currency)),
        cell(format_amount(month.peak, option.currency)),
        cell(format_unit_price(prices.input)),
        cell(None if prices.cached_input is None else format_unit_price(prices.cached_input)),
        cell(format_unit_price(prices.output)),
        cell(_peak_words(option.peak_share)),
    )


def _peak_words(peak_share: Decimal | None) -> str:
    if peak_share is None:
        return "none"
    return f"{format_percent(peak_share)} at peak" if peak_share else "off-peak"


def _moves(report: CostReport) -> Table:
    columns = (
        Column("changed", wrap=True),
        Column("own/month", right=True, rank=1),
        Column("out/M, busy", right=True, rank=2),
        Column("break-even out", right=True),
        Column("verdict"),
    )
    rows = tuple(_move_row(move) for move in report.moves)
    return Table("moves", f"What moves it: owning {report.same_model}, one assumption changed at a time", columns, rows)


def _move_row(move: Move) -> tuple[Cell, ...]:
    busy = move.usd_per_mtok_output_busy
    return (
        cell(move.change),
        cell(format_usd(move.usd_per_month)),
        cell(None if busy is None else format_usd(busy)),
        cell(_break_even_words(move.break_even) if busy is not None else None),
        Cell(move.verdict.value, TONES[move.verdict]),
    )


def _break_even_words(found: BreakEven) -> str:
    if found.output_tokens_per_month is None:
        return "never"
    volume = format_millions(found.output_tokens_per_month)
    return volume if found.reachable else f"{volume}, out of reach"


def _hire_words(hire: Hire) -> str:
    seller = f" at {clean(hire.seller)}" if hire.seller else ""
    busy = "hours of work not known (no speed)"
    if hire.busy_hours is not None and hire.usd_per_month_busy is not None:
        needed = f", so it needs {hire.clusters_needed} of them" if (hire.clusters_needed or 1) > 1 else ""
        busy = f"{format_number(hire.busy_hours)} h of work{needed} = {format_usd(hire.usd_per_month_busy)}"
    always = format_usd(hire.usd_per_month_always)
    return f"the same cluster rented{seller} at {format_usd(hire.usd_per_hour)} an hour: {busy}, all month {always}"


def _cited(report: CostReport) -> Iterator[tuple[str, CitedSource]]:
    yield from (("workload", source) for source in report.workload.sources)
    own = report.own
    if own is not None:
        figures = {
            "machine": own.purchase,
            "life": own.life_months,
            "residual": own.residual_share,
            "electricity": own.usd_per_kwh,
            "busy watts": own.busy_watts,
            "idle watts": own.idle_watts,
            "reading input": own.prefill_tok_per_s,
        }
        yield from ((name, source) for name, figure in figures.items() if figure is not None for source in figure.sources)
    yield from ((option.rate, source) for option in (*report.rent, *report.rent_other_currencies) for source in option.sources)


def _sources(key: str, cited: list[tuple[str, CitedSource]]) -> Table:
    rows = tuple((cell(name), cell(source.read.isoformat()), cell(source.url)) for name, source in dict.fromkeys(cited))
    return Table(key, "Sources", (Column("what"), Column("read", rank=1), Column("address", reference=True)), rows)


def _foot(report: CostReport, version: str, as_of: str, *, why: bool) -> str:
    age = "" if report.oldest_source_age_days is None else f", oldest source used read {report.oldest_source_age_days:,} days ago"
    return f"catalogue {version}, as of {as_of}{age}" + ("" if why else "; --why shows the sources")
