"""The answer to `rates price`: what tokens cost at an instant, with the unit prices and why they are the ones."""

from __future__ import annotations

from datetime import datetime

from fitcheck.cost.money import tidy
from fitcheck.cost.rent import USD
from fitcheck.cost.report import PriceReport, UnitPrices
from fitcheck.cost.tariff import Tariff, Tokens, price
from fitcheck.fit.sources import cite


def quote(tariff: Tariff, at: datetime, tokens: Tokens) -> PriceReport:
    """The price of one request at an instant. Raises `UnknownFact` where there is none, with the first date of the name."""
    priced, rate = price(tariff, at, tokens), tariff.rate
    amount, cached_price = tidy(priced.amount), priced.prices.cached_input_per_mtok
    return PriceReport(
        rate=rate.id,
        name=rate.name,
        provider=rate.provider,
        at=at,
        usd=amount if rate.currency == USD else None,
        amount=amount,
        currency=rate.currency,
        fresh_input_tokens=tokens.fresh,
        cached_input_tokens=tokens.cached,
        output_tokens=tokens.output,
        fresh_input_amount=tidy(priced.fresh_input),
        cached_input_amount=tidy(priced.cached_input),
        output_amount=tidy(priced.output),
        per_mtok=UnitPrices(
            input=tidy(priced.prices.input_per_mtok),
            cached_input=None if cached_price is None else tidy(cached_price),
            output=tidy(priced.prices.output_per_mtok),
        ),
        hour=priced.hour,
        tier_above_input_tokens=priced.tier_above_input_tokens,
        price_since=priced.period.since,
        price_until=priced.period.until,
        promotion=priced.period.promotion,
        served_by=priced.served_by,
        grade=priced.period.grade,
        sources=cite(rate.sources, priced.period),
        warnings=priced.warnings,
    )
