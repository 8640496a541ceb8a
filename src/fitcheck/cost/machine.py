"""What a cluster costs to buy and how much power it draws, as the catalogue knows it on a day."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from math import ceil
from typing import Literal

from fitcheck.catalogue.hardware import Device, Power, Price
from fitcheck.catalogue.provenance import Source, worst
from fitcheck.cost.case import CostCase
from fitcheck.cost.money import tidy
from fitcheck.cost.rent import USD
from fitcheck.cost.report import Figure, Hire, given
from fitcheck.fit.sources import cite
from fitcheck.frozen import frozen
from fitcheck.units import counted_from

_STALE_DAYS = 90
_BOUGHT = ("list", "street")


@frozen
class Purchase:
    """What the cluster costs, and what belongs to it but has no known price in USD."""

    figure: Figure
    not_counted: tuple[str, ...]


def in_force(prices: Iterable[Price], case: CostCase) -> list[Price]:
    """Prices that hold on the day, the latest to begin first."""
    found = [
        price
        for price in prices
        if counted_from(price.since) <= case.as_of and (price.until is None or case.as_of < counted_from(price.until))
    ]
    return sorted(found, key=lambda price: (-counted_from(price.since).toordinal(), price.amount))


def purchase(case: CostCase) -> Purchase | None:
    """The price asked, else the latest list or street price in USD times the count, with the cluster's extras.

    None where no price in USD is known: amounts in other currencies are never converted.
    """
    spec, count = case.cluster, case.cluster.count
    if case.overrides.purchase_usd is not None:
        return Purchase(given(case.overrides.purchase_usd, "--price", "the whole cluster, as given"), ())
    device, bought, whose = spec.device, _prices(case, spec.device), ""
    if not bought and case.original is not None:
        device, bought = case.original, _prices(case, case.original)
        whose = f" of {device.id}, as {spec.device.id} has none in USD of its own"
    if not bought:
        return None
    price = bought[0]
    words = [f"{count} x ${price.amount:,} ({price.kind} price of {price.since}{whose})"]
    total, grades, sources = price.amount * count, [price.grade], cite(device.sources, price)
    not_counted = [] if spec.device.memory.unified else [f"the computer around the {spec.device.name}"]
    for extra in in_force(spec.named.extras, case) if spec.named else ():
        assert spec.named is not None
        if extra.currency != USD:
            not_counted.append(f"{spec.named.joined_by} ({extra.amount:,} {extra.currency}, no price in USD known)")
            continue
        total += extra.amount
        grades.append(extra.grade)
        sources += cite(spec.named.sources, extra)
        words.append(f"${extra.amount:,} for {spec.named.joined_by}")
    return Purchase(Figure(total, " + ".join(words), worst(grades), sources, "--price"), tuple(not_counted))


def _prices(case: CostCase, device: Device) -> list[Price]:
    return [price for price in in_force(device.prices, case) if price.kind in _BOUGHT and price.currency == USD]


def stale_price(case: CostCase) -> str | None:
    """A note where a variant's own price is much older than the newest list price of the machine it is a variant of."""
    if case.original is None or case.overrides.purchase_usd is not None:
        return None
    own, newer = _prices(case, case.cluster.device), [price for price in _prices(case, case.original) if price.kind == "list"]
    if not own or not newer or (counted_from(newer[0].since) - counted_from(own[0].since)).days <= _STALE_DAYS:
        return None
    theirs = f"{case.original.id} has been ${newer[0].amount:,} since {newer[0].since}"
    return f"the price of {case.cluster.device.id} is of {own[0].since} and may be out of date: {theirs} (--price)"


def watts(case: CostCase, state: Literal["idle", "busy"]) -> Figure | None:
    """Watts of the whole cluster in that state: as given, else the named cluster's, else its device's times the count.

    Figures at the wall go first, in the catalogue's order. Where nobody measured a busy machine, its power limit stands in.
    """
    asked = case.overrides.busy_watts if state == "busy" else case.overrides.idle_watts
    option = "--watts" if state == "busy" else "--idle-watts"
    if asked is not None:
        return given(asked, option, "the whole cluster, as given")
    spec = case.cluster
    if spec.named is not None:
        whole = _first(spec.named.power, state)
        if whole is not None:
            return _figure(whole, 1, spec.named.sources, option)
    for device in (spec.device, case.original):
        if device is None:
            continue
        each = _first(device.power, state) or (_first(device.power, "limit") if state == "busy" else None)
        if each is not None:
            return _figure(each, spec.count, device.sources, option)
    return None


def _first(power: tuple[Power, ...], state: str) -> Power | None:
    of_state = [figure for figure in power if figure.state == state]
    return next((figure for figure in of_state if figure.scope == "wall"), of_state[0] if of_state else None)


def _figure(power: Power, count: int, sources: dict[str, Source], option: str) -> Figure:
    scope = {"wall": "at the wall", "device": "the device alone", "adapter": "what the power supply can give"}[power.scope]
    about = ", ".join(part for part in ("power limit" if power.state == "limit" else None, power.condition, scope) if part)
    words = about if count == 1 else f"{count} x {power.value:f} W ({about})"
    return Figure(power.value * count, words, power.grade, cite(sources, power), option)


def hire(case: CostCase, busy_hours: Decimal | None, hours_per_month: Decimal) -> Hire | None:
    """The cluster's devices at the lowest hourly rent in force in USD; None where there is none."""
    offers = [price for price in in_force(case.cluster.device.prices, case) if price.kind == "rental_per_hour" and price.currency == USD]
    if not offers:
        return None
    lowest = min(offers, key=lambda price: price.amount)
    per_hour = lowest.amount * case.cluster.count
    sources = cite(case.cluster.device.sources, lowest)
    return Hire(
        seller=lowest.seller,
        usd_per_hour=tidy(per_hour),
        busy_hours=None if busy_hours is None else tidy(busy_hours),
        usd_per_month_busy=None if busy_hours is None else tidy(per_hour * busy_hours),
        clusters_needed=None if busy_hours is None else max(1, ceil(busy_hours / hours_per_month)),
        usd_per_month_always=tidy(per_hour * hours_per_month),
        sources=sources,
    )
