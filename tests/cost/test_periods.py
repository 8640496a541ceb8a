"""Periods of a rate card: half-open, the latest to begin in force, the announced and the withdrawn never."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitcheck.catalogue.ratecards import Calendar, Rate, Schedule
from fitcheck.cost.tariff import Tariff, Tokens, demand_period, period_at, price, rule_at
from fitcheck.errors import UnknownFact

START = datetime(2026, 1, 1, tzinfo=UTC)
SOURCES = {"page": {"url": "https://example.com/prices", "read": "2026-03-01"}}


def card(periods: list[dict], **fields: object) -> Rate:
    body = {"kind": "rate", "id": "a/b", "provider": "a", "name": "B", "currency": "USD", "sources": SOURCES, **fields}
    return Rate.model_validate({**body, "periods": [{"source": "page", **period} for period in periods]})


def prices(amount: object) -> dict[str, str]:
    return {"input_per_mtok": str(amount), "output_per_mtok": str(amount)}


@given(st.lists(st.integers(1, 10_000), min_size=2, max_size=6, unique=True), st.integers(0, 11_000))
def test_of_periods_end_to_end_just_one_holds_at_each_instant(minutes, asked):
    edges = [START + timedelta(minutes=minute) for minute in sorted(minutes)]
    rate = card([{"from": begin, "until": end, "offpeak": prices(number)} for number, (begin, end) in enumerate(pairwise(edges))])
    moment = START + timedelta(minutes=asked)
    holding = [period for period in rate.periods if period.since <= moment < period.until]
    assert len(holding) == (edges[0] <= moment < edges[-1])
    assert period_at(rate, moment) == (holding[0] if holding else None)


def test_the_end_is_exclusive_and_the_start_inclusive():
    rate = card(
        [
            {"from": "2026-02-01T00:00Z", "until": "2026-03-01T00:00Z", "offpeak": prices(1)},
            {"from": "2026-03-01T00:00Z", "offpeak": prices(2)},
        ]
    )
    change = datetime(2026, 3, 1, tzinfo=UTC)
    found = [period_at(rate, moment).offpeak.input_per_mtok for moment in (change - timedelta(microseconds=1), change)]
    assert found == [1, 2]
    assert period_at(rate, datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)) is None


def test_a_new_price_is_in_force_even_where_the_old_one_was_left_open():
    rate = card([{"from": "2026-02-01T00:00Z", "offpeak": prices(1)}, {"from": "2026-03-01T00:00Z", "offpeak": prices(2)}])
    assert period_at(rate, datetime(2026, 4, 1, tzinfo=UTC)).offpeak.input_per_mtok == 2


@pytest.mark.parametrize("status", ["announced", "withdrawn"])
def test_what_was_announced_or_withdrawn_is_never_charged(status):
    rate = card(
        [{"from": "2026-02-01T00:00Z", "offpeak": prices(1)}, {"from": "2026-03-01T00:00Z", "status": status, "offpeak": prices(9)}]
    )
    assert period_at(rate, datetime(2026, 4, 1, tzinfo=UTC)).offpeak.input_per_mtok == 1
    only = card([{"from": "2026-03-01T00:00Z", "status": status, "offpeak": prices(9)}])
    with pytest.raises(UnknownFact, match="ever been in force"):
        demand_period(only, datetime(2026, 4, 1, tzinfo=UTC))


def test_a_price_waits_for_its_name():
    rate = card([{"from": "2026-02-01T00:00Z", "offpeak": prices(1)}], available_from="2026-02-10T00:00Z")
    with pytest.raises(UnknownFact, match="is valid only from 2026-02-10T00:00Z"):
        demand_period(rate, datetime(2026, 2, 9, 23, 59, tzinfo=UTC))
    assert period_at(rate, datetime(2026, 2, 10, tzinfo=UTC))


def test_the_rule_that_began_last_holds_and_before_the_first_there_are_no_windows():
    every_day = {"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "start": "00:00", "end": "12:00"}
    rules = [
        {"from": "2026-02-01T00:00Z", "windows": [every_day], "source": "page"},
        {"from": "2026-03-01T00:00Z", "windows": [], "source": "page"},
    ]
    schedule = Schedule.model_validate({"kind": "schedule", "id": "s", "timezone": "UTC", "rules": rules, "sources": SOURCES})
    rate = card([{"from": "2026-01-01T00:00Z", "offpeak": prices(1), "peak": prices(2), "schedule": "s"}])
    tariff = Tariff(rate, {"s": schedule}, {})
    amounts = [price(tariff, datetime(2026, month, 10, 6, tzinfo=UTC), Tokens(10**6, 0)).amount for month in (1, 2, 3)]
    assert amounts == [1, 2, 1]
    assert rule_at(schedule, START) is None
    begins = datetime(2026, 2, 1, tzinfo=UTC)
    assert rule_at(schedule, begins - timedelta(microseconds=1)) is None
    assert rule_at(schedule, begins) is schedule.rules[0]


def test_every_price_of_the_catalogue_holds_alone_in_its_time(catalogue):
    for rate in catalogue.all(Rate):
        for period in rate.periods:
            if period.status == "effective" and period.since is not None:
                assert period_at(rate, max(period.since, rate.available_from or period.since)) == period, rate.id
                if period.until is not None:
                    assert period_at(rate, period.until) != period, rate.id


def test_the_holidays_of_2026_are_days_off_and_no_weekday_is_missing(catalogue):
    days = catalogue.get(Calendar, "china-public-holidays").days
    golden_week = {day.isoformat() for day in days if day.month == 10}
    assert golden_week == {f"2026-10-0{number}" for number in range(1, 8)}  # State Council: 1 to 7 October
    assert Decimal(len(days)) == len(set(days))
