"""What the work costs through each rate card of a model: off-peak, at peak, and as it would be billed."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from fitcheck.catalogue.ratecards import PricePeriod, TokenPrices
from fitcheck.cost.case import CostCase
from fitcheck.cost.money import tidy
from fitcheck.cost.report import NotPriced, PerMonth, RentOption, UnitPrices
from fitcheck.cost.tariff import MTOK, Tariff, WeekSplit, blend, first_known, period_at, tier_for, week_split
from fitcheck.cost.workload import Workload
from fitcheck.fit.sources import cite
from fitcheck.frozen import frozen

USD = "USD"


@frozen
class Rents:
    """Every card that serves one of the models on the day, cheapest first, other currencies apart, and those without a price then."""

    usd: tuple[RentOption, ...]
    others: tuple[RentOption, ...]
    not_priced: tuple[NotPriced, ...]
    """Cards of one of the models whose price is not known yet on the day: those that ended are over."""
    tiers_unread: tuple[str, ...]
    """Cards whose price depends on a request's length, which is not known: charged as for short ones."""

    def as_cheap(self, option: RentOption) -> int:
        """How many other cards for the same model cost just as much."""
        alike = [other for other in self.usd if other.model == option.model]
        return sum(other.amount_per_month.billed == option.amount_per_month.billed for other in alike) - 1

    def cheapest(self, model: str) -> RentOption | None:
        """The cheapest card in USD for a model."""
        return next((option for option in self.usd if option.model == model), None)


def rents(case: CostCase, models: frozenset[str]) -> Rents:
    """Rate cards whose name is answered by one of the models at the instant priced."""
    options: list[RentOption] = []
    not_priced: list[NotPriced] = []
    tiers_unread: list[str] = []
    for tariff in case.tariffs:
        model = tariff.rate.model_at(case.priced_at)
        if model is None or model not in models:
            continue
        period = period_at(tariff.rate, case.priced_at)
        if period is None:
            first = first_known(tariff.rate)
            if first is not None and case.priced_at < first:
                not_priced.append(NotPriced(tariff.rate.id, first.date()))
        else:
            options.append(_option(case, tariff, period, model))
            if period.tiers and case.workload.request_input_tokens is None:
                tiers_unread.append(tariff.rate.id)
    makers = {model.id: _letters(model.developer) for model in case.known_models.values()}
    ordered = sorted(options, key=lambda option: _order(option, makers))
    usd = tuple(option for option in ordered if option.currency == USD)
    others = tuple(option for option in ordered if option.currency != USD)
    return Rents(usd, others, tuple(not_priced), tuple(tiers_unread))


def _order(option: RentOption, makers: dict[str, str]) -> tuple[object, ...]:
    """Cheapest first; of equals the model's own maker, then by id."""
    by_another = _letters(option.provider) != makers.get(option.model)
    return option.currency, option.amount_per_month.billed, by_another, option.rate


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _option(case: CostCase, tariff: Tariff, period: PricePeriod, model: str) -> RentOption:
    rate, work = tariff.rate, case.workload
    tier = tier_for(period, work.request_input_tokens or 0)
    offpeak: TokenPrices = tier or period.offpeak
    peak: TokenPrices = tier or period.peak or period.offpeak
    split = week_split(tariff, period, case.priced_at, case.load)
    billed = _billed(offpeak, peak, split, all_offpeak=case.offpeak)
    month = PerMonth(month_amount(_charged(offpeak), work), month_amount(_charged(peak), work), month_amount(billed, work))
    has_hours = period.schedule is not None and tier is None
    return RentOption(
        provider=rate.provider,
        rate=rate.id,
        name=rate.name,
        model=model,
        currency=rate.currency,
        usd_per_month=month if rate.currency == USD else None,
        amount_per_month=month,
        billed_per_mtok=billed,
        peak_share=(Decimal(0) if case.offpeak else split.peak_share) if has_hours else None,
        cached_charged_as_fresh=work.cached_input_tokens > 0 and billed.cached_input is None,
        tier_above_input_tokens=tier.above_input_tokens if tier else None,
        promotion=period.promotion,
        price_until=period.until,
        grade=period.grade,
        sources=cite(rate.sources, period),
    )


def _charged(prices: TokenPrices) -> UnitPrices:
    return UnitPrices(prices.input_per_mtok, prices.cached_input_per_mtok, prices.output_per_mtok)


def _billed(offpeak: TokenPrices, peak: TokenPrices, split: WeekSplit, *, all_offpeak: bool) -> UnitPrices:
    low, high = _charged(offpeak), _charged(peak)
    if all_offpeak or low == high:
        return low
    known = low.cached_input is not None and high.cached_input is not None
    return UnitPrices(
        input=blend(high.input, low.input, split),
        cached_input=blend(high.cached_input or Decimal(0), low.cached_input or Decimal(0), split) if known else None,
        output=blend(high.output, low.output, split),
    )


def month_amount(prices: UnitPrices, work: Workload) -> Decimal:
    """What a month's work costs at these prices; cached input without a price of its own is charged as fresh."""
    cached = prices.input if prices.cached_input is None else prices.cached_input
    total = prices.input * work.fresh_input_tokens + cached * work.cached_input_tokens + prices.output * work.output_tokens
    return total / MTOK


def tidied(option: RentOption) -> RentOption:
    """The option with its amounts as they are reported."""
    month = option.amount_per_month
    month = PerMonth(tidy(month.offpeak), tidy(month.peak), tidy(month.billed))
    prices = option.billed_per_mtok
    cached = None if prices.cached_input is None else tidy(prices.cached_input)
    return replace(
        option,
        usd_per_month=month if option.currency == USD else None,
        amount_per_month=month,
        billed_per_mtok=UnitPrices(tidy(prices.input), cached, tidy(prices.output)),
    )
