"""What moves the answer: the same sum with one assumption changed at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

from fitcheck.cost.money import format_number, format_usd, tidy
from fitcheck.cost.own import OwnMonth, OwnPlan, break_even_output_tokens, capacity_output_tokens, full_month, month_of, per_mtok
from fitcheck.cost.rent import month_amount
from fitcheck.cost.report import BreakEven, Choice, Move, UnitPrices
from fitcheck.cost.workload import Workload
from fitcheck.frozen import frozen

_LIVES_MONTHS = (24, 60)
_LESS_PRICE = Decimal("0.7")
_RESOLD = Decimal("0.5")
_HALF = Decimal("0.5")


@frozen
class Side:
    """Both sides of one comparison: the machine, the work, and the prices per million tokens of every card for the same model.

    `own_cached` is the share of the cached input that the machine's own cache hits: it reads the rest afresh. A machine that does not
    hold the model (`fits`) is never the answer.
    """

    plan: OwnPlan
    work: Workload
    cards: tuple[UnitPrices, ...]
    own_cached: Decimal = Decimal(1)
    fits: bool = True

    @property
    def own_work(self) -> Workload:
        """The work as the machine meets it."""
        return self.work.with_cache_hits(self.own_cached)

    @property
    def month(self) -> OwnMonth:
        """A month of the work on the machine."""
        return month_of(self.plan, self.own_work)

    @property
    def capacity(self) -> int:
        """The most output tokens of a month on the machine, at this mix."""
        return capacity_output_tokens(self.plan, self.own_work)

    @property
    def rent_usd(self) -> Decimal | None:
        """The cheapest card's price for the month's work, None where there is no card."""
        return min((month_amount(card, self.work) for card in self.cards), default=None)


def choose(side: Side) -> Choice:
    """The cheaper way for the same model: rent where both cost the same.

    A machine that cannot do all of the work may still do its part more cheaply: hybrid is the machine busy all month and the rest rented.
    """
    month, rent = side.month, side.rent_usd
    if not side.fits:
        return Choice.RENT if rent is not None else Choice.NEITHER
    able = month.utilisation <= 1
    if rent is None:
        return Choice.OWN if able else Choice.NEITHER
    if able:
        return Choice.OWN if month.total_usd < rent else Choice.RENT
    return Choice.HYBRID if hybrid_usd(side) < rent else Choice.RENT


def hybrid_usd(side: Side) -> Decimal:
    """The machine busy in all its hours, and what it cannot do rented."""
    month = side.month
    left = max(Decimal(0), 1 - 1 / month.utilisation) if month.utilisation else Decimal(0)
    return month.total_usd + (side.rent_usd or Decimal(0)) * left


def break_even(side: Side) -> BreakEven:
    """From which monthly output on owning costs no more than the cheapest card, and whether the machine can produce it."""
    rent = side.rent_usd
    volume = break_even_output_tokens(side.plan, side.own_work, rent) if rent is not None else None
    return BreakEven(volume, reachable=side.fits and volume is not None and volume <= side.capacity)


def moves(side: Side, one_user_tok_per_s: Decimal, splits: Mapping[str, Workload]) -> tuple[Move, ...]:
    """The answer as asked, then with each assumption changed; `splits` are the same volume by each other profile."""
    return tuple(_move(change, changed) for change, changed in _changes(side, one_user_tok_per_s, splits))


def _changes(side: Side, one_user_tok_per_s: Decimal, splits: Mapping[str, Workload]) -> Iterator[tuple[str, Side]]:
    plan = side.plan
    yield "as above", side
    for months in _LIVES_MONTHS:
        if months != plan.life_months:
            yield f"life of {months} months", replace(side, plan=replace(plan, life_months=months))
    yield "machine 30 % cheaper", replace(side, plan=replace(plan, purchase_usd=plan.purchase_usd * _LESS_PRICE))
    if plan.residual_share != _RESOLD:
        yield "half of its price left at the end", replace(side, plan=replace(plan, residual_share=_RESOLD))
    yield "electricity at twice the price", replace(side, plan=replace(plan, usd_per_kwh=plan.usd_per_kwh * 2))
    yield "twice the watts when busy", replace(side, plan=replace(plan, busy_watts=plan.busy_watts * 2))
    if plan.idle_watts:
        idle = plan.idle_watts * _HALF
        yield f"{format_number(idle)} W when idle, half as much", replace(side, plan=replace(plan, idle_watts=idle))
    if one_user_tok_per_s != plan.decode_tok_per_s:
        label = f"one user at a time ({format_number(one_user_tok_per_s)} tok/s)"
        yield label, replace(side, plan=replace(plan, decode_tok_per_s=one_user_tok_per_s))
    yield "twice the decode speed", replace(side, plan=replace(plan, decode_tok_per_s=plan.decode_tok_per_s * 2))
    if side.work.cached_input_tokens:
        yield "no input cached, on either side", replace(side, work=side.work.without_cache())
        if plan.prefill_tok_per_s is not None and side.own_cached:
            yield "no input cached on the machine only", replace(side, own_cached=Decimal(0))
    yield "ten times the volume", replace(side, work=side.work.times(10))
    yield from _other_splits(side, splits)
    if side.cards:
        yield "API prices halved", replace(side, cards=tuple(_scaled(card, _HALF) for card in side.cards))
        yield "API prices doubled", replace(side, cards=tuple(_scaled(card, Decimal(2)) for card in side.cards))


def _other_splits(side: Side, splits: Mapping[str, Workload]) -> Iterator[tuple[str, Side]]:
    """The same volume by those of the other profiles that cost the least and the most rented."""
    if not side.cards or not splits:
        return
    rented = {name: min(month_amount(card, work) for card in side.cards) for name, work in splits.items()}
    cheapest, dearest = min(rented, key=lambda name: rented[name]), max(rented, key=lambda name: rented[name])
    for name in dict.fromkeys((cheapest, dearest)):
        yield f"profile {name}, {format_usd(rented[name])} rented", replace(side, work=splits[name])


def _scaled(card: UnitPrices, factor: Decimal) -> UnitPrices:
    cached = None if card.cached_input is None else card.cached_input * factor
    return UnitPrices(card.input * factor, cached, card.output * factor)


def _move(change: str, side: Side) -> Move:
    busy = per_mtok(full_month(side.plan).total_usd, side.capacity)
    return Move(
        change=change,
        usd_per_month=tidy(side.month.total_usd),
        usd_per_mtok_output_busy=None if busy is None else tidy(busy),
        break_even=break_even(side),
        verdict=choose(side),
    )
