"""Prices at an instant, to the cent, and when there are none."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

import fitcheck
from fitcheck.cost.ask import find_tariff, read_instant, read_request
from fitcheck.cost.hours import parse_schedule
from fitcheck.cost.quote import quote
from fitcheck.cost.tariff import Tokens, blend, demand_period, price, week_split
from fitcheck.errors import ExitCode, UnknownFact, UsageError
from tests.golden import rows

FLASH = "deepseek/deepseek-flash"
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize("row", rows("rates.yaml"), ids=lambda row: f"{row['rate']}@{row['at']}")
def test_an_instant_costs_what_the_card_said(catalogue, row):
    tokens = read_request(str(row["input"]), str(row["output"]), str(row.get("cached", 0)))
    report = quote(find_tariff(catalogue, row["rate"]), read_instant(row["at"]), tokens)
    assert report.usd == Decimal(row["usd"]), f"{row['sum']} ({row['source']})"
    assert report.usd == report.fresh_input_amount + report.cached_input_amount + report.output_amount


def test_a_name_has_no_price_before_its_first_date(catalogue):
    with pytest.raises(UnknownFact, match="only from 2026-09-10T04:00Z on") as caught:
        quote(find_tariff(catalogue, FLASH), read_instant("2026-08-18T00:00Z"), Tokens(1, 1))
    assert caught.value.code is ExitCode.DATA


def test_a_price_that_nobody_dated_is_known_from_the_day_it_was_read(catalogue):
    card = find_tariff(catalogue, "baseten/zai-org/GLM-5.3-Flash")
    read = min(source.read for source in card.rate.sources.values())
    with pytest.raises(UnknownFact, match=f"known only from {read.isoformat()}T00:00Z"):
        quote(card, read_instant("2026-09-01T00:00Z"), Tokens(1, 1))


def test_a_name_that_ended_has_no_price(catalogue):
    with pytest.raises(UnknownFact, match="no price of deepseek/deepseek-chat is known"):
        quote(find_tariff(catalogue, "deepseek/deepseek-chat"), NOW, Tokens(1, 1))


@pytest.mark.parametrize(("at", "warned"), [("2026-12-31T15:59Z", False), ("2026-12-31T16:00Z", True), ("2027-01-01T02:00Z", True)])
def test_past_the_known_holidays_it_warns(catalogue, at, warned):
    report = quote(find_tariff(catalogue, FLASH), read_instant(at), Tokens(1, 1))
    assert bool(report.warnings) is warned
    if warned:
        assert "known to 2026-12-31 only" in report.warnings[0]


def test_other_currencies_are_not_called_dollars(catalogue):
    report = quote(find_tariff(catalogue, "zhipuai/glm-5.3"), NOW, Tokens(1_000_000, 1_000_000))
    assert (report.usd, report.amount, report.currency) == (None, Decimal(36), "CNY")


def test_cached_input_without_a_price_is_refused(catalogue):
    with pytest.raises(UnknownFact, match="no known price for cached input"):
        quote(find_tariff(catalogue, "novita/openai/gpt-oss-120b"), NOW, Tokens(10, 1, cached=5))


@pytest.mark.parametrize("text", ["2026-11-30", "2026-11-30T04:00", "soon", "", "0001-01-01T00:00+14:00", "9999-12-31T23:59Z"])
def test_an_instant_needs_a_time_and_a_zone(text):
    with pytest.raises(UsageError, match="--at"):
        read_instant(text)


@pytest.mark.parametrize(
    ("request_", "named"),
    [(("-5", "1", "0"), "--input"), (("1", "nan", "0"), "--output"), (("1", "1", "1.5"), "--cached"), (("1", "1", "2"), "--cached")],
)
def test_a_wrong_count_names_its_field(request_, named):
    with pytest.raises(UsageError, match=named):
        read_request(*request_)


def test_the_week_has_35_peak_and_133_offpeak_hours(catalogue):
    card = find_tariff(catalogue, FLASH)
    split = week_split(card, demand_period(card.rate, NOW), NOW, None)
    assert (split.peak_hours, split.offpeak_hours) == (35, 133)


def test_every_day_was_49_hours(catalogue):
    card, then = find_tariff(catalogue, "deepseek/deepseek-v4-flash"), datetime(2026, 8, 20, tzinfo=UTC)
    split = week_split(card, demand_period(card.rate, then), then, None)
    assert (split.peak_hours, split.offpeak_hours) == (49, 119)


def test_cheap_windows_leave_the_rest_at_full_price(catalogue):
    card = find_tariff(catalogue, "alibaba/deepseek-v4-flash-0731")
    split = week_split(card, demand_period(card.rate, NOW), NOW, None)
    assert (split.peak_hours, split.offpeak_hours) == (7 * 14, 7 * 10)


@pytest.mark.parametrize(
    ("low", "high", "average"), [("0.15", "0.30", "0.18125"), ("0.003", "0.006", "0.003625"), ("0.60", "1.20", "0.725")]
)
def test_an_even_load_pays_the_average(catalogue, low, high, average):
    card = find_tariff(catalogue, FLASH)
    split = week_split(card, demand_period(card.rate, NOW), NOW, None)
    assert blend(Decimal(high), Decimal(low), split) == Decimal(average)


def test_a_load_of_no_hours_pays_offpeak(catalogue):
    card = find_tariff(catalogue, FLASH)
    never = parse_schedule("Sun 02:00-03:00 Europe/Berlin")
    spring = datetime(2026, 3, 25, tzinfo=UTC)  # the hour that the clocks skip on 2026-03-29
    split = week_split(card, demand_period(card.rate, NOW), spring, never)
    assert split.peak_hours + split.offpeak_hours == 0
    assert blend(Decimal(2), Decimal(1), split) == 1


def test_the_price_of_two_requests_is_the_sum_of_their_prices(catalogue):
    card = find_tariff(catalogue, FLASH)
    one, other = Tokens(700, 300, cached=200), Tokens(11, 5)
    both = Tokens(711, 305, cached=200)
    assert price(card, NOW, one).amount + price(card, NOW, other).amount == price(card, NOW, both).amount


def test_python_finds_a_rate_as_the_command_does():
    """0.75 is what the card asks for a million in and a million out off peak, see `tests/golden/rates.yaml`."""
    quoted = fitcheck.price("DeepSeek/DeepSeek_Flash", at="2026-11-30T04:00Z", input=10**6, output=10**6)
    assert (quoted.rate, quoted.amount) == ("deepseek/deepseek-flash", Decimal("0.75"))
