"""The words of a cost answer: the arithmetic in sentences, and why the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from fitcheck.cost.money import format_millions, format_number, format_percent, format_unit_price, format_usd
from fitcheck.cost.moves import Side, hybrid_usd
from fitcheck.cost.own import full_month, per_mtok
from fitcheck.cost.report import BreakEven, Choice, OwnReport, Pace, RentOption, Step
from fitcheck.cost.workload import Workload
from fitcheck.fit.report import Verdict


def workload_words(work: Workload) -> str:
    """The workload as understood, in one line."""
    cached = f" + {format_millions(work.cached_input_tokens)} cached input" if work.cached_input_tokens else ""
    parts = f"{format_millions(work.fresh_input_tokens)} fresh input{cached} + {format_millions(work.output_tokens)} output"
    return f"{format_millions(work.total_tokens)} tokens a month = {parts}"


def split_words(work: Workload) -> str:
    """Where the split comes from, the shares, and how they are known."""
    shares = ", ".join(f"{format_percent(share)} {name}" for name, _, share in work.parts)
    return f"{work.split_from}: {shares}; {work.grade.value}"


def rent_words(option: RentOption, work: Workload, as_cheap: int) -> str:
    """A card's bill as a sum; `as_cheap` others cost the same."""
    prices = option.billed_per_mtok
    terms = [f"{format_millions(work.fresh_input_tokens)} x ${format_unit_price(prices.input)}"]
    if work.cached_input_tokens:
        cached_price = prices.input if prices.cached_input is None else prices.cached_input
        as_fresh = " (cached, charged as fresh)" if prices.cached_input is None else ""
        terms.append(f"{format_millions(work.cached_input_tokens)} x ${format_unit_price(cached_price)}{as_fresh}")
    terms.append(f"{format_millions(work.output_tokens)} x ${format_unit_price(prices.output)}")
    others = "" if as_cheap == 0 else f" (the same at {as_cheap} other{'s' if as_cheap > 1 else ''})"
    return f"{option.rate}: {' + '.join(terms)} per million = {format_usd(option.amount_per_month.billed)} a month{others}"


def own_steps(own: OwnReport, side: Side) -> Iterator[Step]:
    """Owning, line by line: the machine, its power, what it can do, and what its output costs when it never rests."""
    month, rent = side.month, side.rent_usd
    left = f" less {format_percent(own.residual_share.value)}" if own.residual_share.value else ""
    life = f"{format_usd(own.purchase.value)}{left} / {own.life_months.value:f} months"
    yield Step("machine", f"{own.purchase.words}: {life} = {format_usd(month.capital_usd)} a month")
    kwh = f"{format_number(month.busy_kwh + month.idle_kwh)} kWh x ${format_unit_price(own.usd_per_kwh.value)}"
    yield Step("power", f"{_power_words(own, side)} = {kwh} = {format_usd(month.energy_usd)} a month")
    part = min(Decimal(1), 1 / month.utilisation) if month.utilisation else Decimal(1)
    of_part = "" if part == 1 else " of the part of the work that it can do"
    times = f", {_times_words(month.total_usd / (rent * part))}{of_part}" if rent else ""
    total = format_usd(month.total_usd)
    yield Step("own", f"{format_usd(month.capital_usd)} + {format_usd(month.energy_usd)} = {total} a month{times}")
    for pace in own.paces:
        yield Step("capacity", _capacity_words(own, pace, side.own_work))
    yield from _busy_steps(own, side)


def _times_words(ratio: Decimal) -> str:
    return f"{format_number(ratio)} times the rent" if ratio >= 1 else f"{format_percent(ratio)} of the rent"


def _power_words(own: OwnReport, side: Side) -> str:
    month = side.month
    busy = f"{format_number(month.busy_hours)} h busy x {format_number(own.busy_watts.value)} W"
    if own.idle_watts is None:
        return f"{busy}, idle hours not charged (watts not known)"
    return f"{busy} + {format_number(month.idle_hours)} h idle x {format_number(own.idle_watts.value)} W"


def _capacity_words(own: OwnReport, pace: Pace, work: Workload) -> str:
    speed = f"{format_number(pace.decode_tok_per_s, 2)} tok/s ({pace.label})"
    hours = f"3,600 s x {format_number(own.usable_hours_per_month)} h"
    reading = ""
    if own.prefill_tok_per_s is not None and work.fresh_input_tokens:
        reading = f", less the time to read its input at {format_number(own.prefill_tok_per_s.value)} tok/s,"
    share = format_percent(Decimal(str(pace.utilisation)))
    if work.output_tokens == 0:
        return f"writing nothing, this work takes {share} of the month"
    tokens = format_millions(pace.capacity_output_tokens_per_month)
    return f"{speed} x {hours}{reading} = at most {tokens} output tokens a month; this work takes {share} of it"


def _busy_steps(own: OwnReport, side: Side) -> Iterator[Step]:
    for pace in own.paces:
        if pace.usd_per_mtok_output_busy is None:
            continue
        month = full_month(side.plan)
        cost = f"({format_usd(month.capital_usd)} + {format_usd(month.energy_usd)})"
        capacity = format_millions(pace.capacity_output_tokens_per_month)
        words = f"{pace.label}: {cost} / {capacity} = {format_usd(pace.usd_per_mtok_output_busy)} per million output"
        yield Step("busy all month", words)
        if pace.output_only_tokens_per_month > pace.capacity_output_tokens_per_month and pace.usd_per_mtok_output_only is not None:
            alone = format_millions(pace.output_only_tokens_per_month)
            only = f"{cost} / {alone} = {format_usd(pace.usd_per_mtok_output_only)} per million output"
            yield Step("output only", f"{pace.label}, no input to read: {only}")


def rented_words(option: RentOption, work: Workload) -> str:
    """What a million output tokens cost rented: alone, and with the input that goes with them."""
    words = f"{option.rate}: {format_usd(option.billed_per_mtok.output)} per million output alone"
    each = per_mtok(option.amount_per_month.billed, work.output_tokens)
    return words if each is None else f"{words}, {format_usd(each)} with the input that goes with it"


def break_even_words(found: BreakEven, own: OwnReport, work: Workload) -> str:
    """From which volume on owning would cost no more, and whether the machine gets there."""
    if work.output_tokens == 0:
        return "not known: the work writes no output to count"
    volume = found.output_tokens_per_month
    if volume is None:
        return "never: being busy costs more in electricity alone than the same work rented"
    if own.fits.verdict is Verdict.NO:
        return f"never with this machine, which does not hold the model: it would take {format_millions(volume)} output tokens a month"
    capacity = format_millions(own.capacity_output_tokens_per_month)
    asked = format_millions(work.output_tokens)
    if found.reachable:
        return f"from {format_millions(volume)} output tokens a month on owning costs no more ({asked} asked, {capacity} at most)"
    return f"never with this machine: it would take {format_millions(volume)} output tokens a month, and {capacity} is the most it can do"


def reason(choice: Choice, side: Side | None, cheapest: RentOption | None) -> str:
    """One sentence: what decides."""
    rent = f"{format_usd(cheapest.amount_per_month.billed)} a month at {cheapest.rate}" if cheapest else "no price in USD is known for it"
    if side is None:
        return rent
    month = side.month
    own = f"{format_usd(month.total_usd)} a month for owning"
    short = "" if month.utilisation <= 1 else f", which can do {format_percent(1 / month.utilisation)} of the work"
    if choice is Choice.HYBRID:
        return f"{format_usd(hybrid_usd(side))} a month with the machine always busy and the rest rented, against {rent}"
    if cheapest is None:
        return f"{rent}; {own}{short}"
    return f"{rent} against {own}{short}" if choice is Choice.RENT else f"{own} against {rent}"
