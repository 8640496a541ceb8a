"""Amounts of money and large counts, as they are reported and as people read them."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

_BILLIONTH = Decimal("0.000000001")
_CENT = Decimal("0.01")
_MILLION = 10**6
_BILLION = 10**9


def tidy(amount: Decimal) -> Decimal:
    """An amount rounded to a billionth, with two decimals at least: `0.75`, `1.50`, `0.003625`."""
    rounded = amount.quantize(_BILLIONTH, ROUND_HALF_EVEN).normalize()
    exponent = rounded.as_tuple().exponent
    return rounded.quantize(_CENT) if isinstance(exponent, int) and exponent > -2 else rounded


def format_usd(amount: Decimal) -> str:
    """US dollars to the cent, and to three figures below a cent: `$273.90`, `$0.00362`."""
    return f"-${_figures(-amount)}" if amount < 0 else f"${_figures(amount)}"


def format_amount(amount: Decimal, currency: str) -> str:
    """An amount with its currency's sign or code: `$0.75`, `CNY 5.60`."""
    return format_usd(amount) if currency == "USD" else f"{currency} {_figures(amount)}"


def format_unit_price(price: Decimal) -> str:
    """A price per million tokens without its sign, as printed on rate cards: two decimals, more only where the price has them."""
    return f"{tidy(price):,f}"


def _figures(amount: Decimal) -> str:
    if amount == 0 or amount >= _CENT:
        return f"{amount:,.2f}"
    return f"{amount.quantize(Decimal(1).scaleb(amount.adjusted() - 2), ROUND_HALF_EVEN).normalize():f}"


def format_millions(tokens: int) -> str:
    """A count of tokens, in millions or billions where it is large: `9,500`, `17.75M`, `1.236B`."""
    for suffix, scale in (("B", _BILLION), ("M", _MILLION)):
        if tokens >= scale:
            return f"{_trim(Decimal(tokens) / scale, 3)}{suffix}"
    return f"{tokens:,}"


def format_number(value: Decimal, digits: int = 1) -> str:
    """A number with at most so many decimals: `21.8`, `190`."""
    return _trim(value, digits)


def format_percent(share: Decimal) -> str:
    """A share of 1 in per cent, with two decimals at most: `35.5 %`, `under 0.01 %`."""
    percent = share * 100
    return "under 0.01 %" if 0 < percent < _CENT else f"{_trim(percent, 2)} %"


def _trim(value: Decimal, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
