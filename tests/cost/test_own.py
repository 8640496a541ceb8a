"""Splitting a volume, and the sums of owning: by hand, and as laws."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitcheck.catalogue.provenance import Grade
from fitcheck.catalogue.ratecards import Profile
from fitcheck.cost.moves import Side, break_even, choose, hybrid_usd, moves
from fitcheck.cost.own import (
    HOURS_PER_MONTH,
    OwnPlan,
    break_even_output_tokens,
    capacity_output_tokens,
    capital_per_month,
    full_month,
    month_of,
    per_mtok,
)
from fitcheck.cost.rent import month_amount
from fitcheck.cost.report import Choice, UnitPrices
from fitcheck.cost.tariff import Tokens
from fitcheck.cost.workload import Workload, from_profile, from_request, largest_remainder

D = Decimal
SPARKS = OwnPlan(D(9398), 36, D(0), D(190), D(100), D("0.17"), D("21.8"), None)
ZAI = UnitPrices(D("0.15"), D("0.03"), D("0.50"))


def work(fresh: int, cached: int, output: int) -> Workload:
    return Workload(fresh + cached + output, fresh, cached, output, "hand", Grade.ASSUMED)


def test_the_worked_example():
    # cost-facts: 9,398 / 1,095 days = 8.58; 0.19 kW x 24 h x 0.17 = 0.78; 21.8 x 86,400 = 1,883,520 tokens; 9.36 / 1.8835 = 4.97
    a_day = D(24) / 730  # of a month: 36 months are 3 x 365 days
    full = full_month(SPARKS)
    assert round(full.capital_usd * a_day, 2) == D("8.58")
    assert round(full.energy_usd * a_day, 2) == D("0.78")
    assert round(full.total_usd * a_day, 2) == D("9.36")
    tokens = capacity_output_tokens(SPARKS, work(0, 0, 1))
    assert round(tokens * a_day) == 1_883_520
    assert round(per_mtok(full.total_usd, tokens), 2) == D("4.97")
    assert round(full.energy_usd * 10**6 / tokens, 2) == D("0.41")  # power alone


def test_the_break_even_by_hand():
    # 100 a month and 100 W idle (73 kWh, 12.41); 1M tokens take 1M / 100 / 3,600 = 2.7778 h of 90 W more = 0.25 kWh = 0.0425.
    plan = OwnPlan(D(3600), 36, D(0), D(190), D(100), D("0.17"), D(100), None)
    asked = work(0, 0, 1_000_000)
    # 112.41 / (0.50 - 0.0425) = 245.7049 million, and 100 x 3,600 x 730 = 262.8 million are possible
    assert break_even_output_tokens(plan, asked, D("0.50")) == 245_704_919
    assert capacity_output_tokens(plan, asked) == 262_800_000
    assert break_even(Side(plan, asked, (ZAI,))).reachable
    assert not break_even(Side(OwnPlan(D(3600), 36, D(0), D(190), D(100), D("0.17"), D(50), None), asked, (ZAI,))).reachable
    assert break_even_output_tokens(plan, asked, D("0.0425")) is None
    assert break_even_output_tokens(plan, work(5, 0, 0), D(1)) is None


def test_half_of_the_price_left_is_half_of_the_capital():
    assert capital_per_month(OwnPlan(D(9398), 36, D("0.5"), D(1), None, D(1), D(1), None)) * 2 == capital_per_month(SPARKS)


def test_idle_hours_that_nobody_measured_are_not_charged():
    plan = OwnPlan(D(3600), 36, D(0), D(1000), None, D(1), D(100), None)
    assert month_of(plan, work(0, 0, 360_000)).energy_usd == 1  # one hour of 1 kW


def test_what_is_over_the_capacity_is_not_charged_for():
    month = month_of(SPARKS, work(0, 0, 4 * 57_290_400))
    assert month.utilisation == 4
    assert month.total_usd == full_month(SPARKS).total_usd


def test_rent_is_chosen_where_both_cost_the_same():
    plan = OwnPlan(D(36), 36, D(0), D(1), D(1), D(0), D(1000), None)
    assert choose(Side(plan, work(0, 0, 2_000_000), (ZAI,))) is Choice.RENT  # 1.00 on both sides
    assert choose(Side(plan, work(0, 0, 2_000_001), (ZAI,))) is Choice.OWN


def test_without_a_card_a_machine_that_can_is_owned_and_one_that_cannot_is_not():
    assert choose(Side(SPARKS, work(0, 0, 1000), ())) is Choice.OWN
    assert choose(Side(SPARKS, work(0, 0, 60_000_000), ())) is Choice.NEITHER


def test_hybrid_is_the_machine_and_the_rest_rented():
    plan = OwnPlan(D(3600), 36, D(0), D(0), D(0), D(0), D(200), None)
    side = Side(plan, work(0, 0, 1_051_200_000), (ZAI,))  # twice what 200 x 3,600 x 730 gives
    assert hybrid_usd(side) == 100 + D("262.80")
    assert choose(side) is Choice.HYBRID


def test_each_move_changes_one_thing():
    side = Side(SPARKS, work(0, 1000, 1000), (ZAI,))
    found = {move.change: move for move in moves(side, D(10), {})}
    assert found["life of 60 months"].usd_per_month < found["as above"].usd_per_month < found["life of 24 months"].usd_per_month
    busy = {name: move.usd_per_mtok_output_busy for name, move in found.items()}
    assert abs(busy["as above"] - D("4.968277")) < D("0.000001")
    assert abs(busy["twice the decode speed"] * 2 - busy["as above"]) < D("0.000001")
    assert busy["one user at a time (10 tok/s)"] > busy["as above"]
    # 0.38 kW x 730 h x 0.17 = 47.158 in place of 23.579
    assert abs(busy["twice the watts when busy"] - (D(9398) / 36 + D("47.158")) * 10**6 / 57_290_400) < D("0.000001")
    assert busy["twice the watts when busy"] == busy["electricity at twice the price"]
    assert abs(found["machine 30 % cheaper"].usd_per_month - (found["as above"].usd_per_month - D(9398) * D("0.3") / 36)) < D("0.000001")


tokens = st.integers(1, 10**12)
plans = st.builds(
    OwnPlan,
    st.integers(1, 10**6).map(D),
    st.integers(1, 120),
    st.sampled_from([D(0), D("0.25")]),
    st.integers(100, 5000).map(D),
    st.none() | st.integers(0, 100).map(D),
    st.sampled_from([D(0), D("0.17"), D("0.4")]),
    st.sampled_from([D("0.5"), D("21.8"), D(400)]),
    st.none() | st.sampled_from([D(200), D("967.5")]),
    st.sampled_from([HOURS_PER_MONTH, D(100)]),
)


@given(st.integers(0, 10**15), st.lists(st.integers(0, 10**9), min_size=1, max_size=5).filter(any))
def test_parts_add_up_and_none_is_off_by_one(total, weights):
    parts = largest_remainder(total, weights)
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        assert abs(Fraction(total * weight, sum(weights)) - part) < 1


@given(st.integers(1, 10**9), st.integers(0, 10**5), st.integers(0, 10**5), st.integers(0, 10**5))
def test_a_volume_split_by_a_request_keeps_its_total(total, fresh, cached, output):
    if fresh + cached + output:
        split = from_request(total, Tokens(fresh + cached, output, cached))
        assert split.fresh_input_tokens + split.cached_input_tokens + split.output_tokens == total


@pytest.mark.parametrize("name", ["chat", "rag", "agent", "batch"])
def test_the_profiles_split_a_volume_by_their_shares(catalogue, name):
    profile = catalogue.get(Profile, name)
    split = from_profile(50_000_000, profile)
    assert split.fresh_input_tokens == 50_000_000 * profile.input_share
    assert split.cached_input_tokens == 50_000_000 * profile.cached_share
    assert split.output_tokens == 50_000_000 * profile.output_share
    assert split.sources


@given(plans, tokens, tokens)
@settings(max_examples=100)
def test_owning_costs_capital_and_power_within_its_bounds(plan, fresh, output):
    month, asked = month_of(plan, work(fresh, 0, output)), work(fresh, 0, output)
    assert abs(month.busy_hours + month.idle_hours - HOURS_PER_MONTH) < D("1e-20")
    assert capital_per_month(plan) <= month.total_usd <= full_month(plan).total_usd
    capacity = capacity_output_tokens(plan, asked)
    assert (month.utilisation <= 1) == (output <= capacity) or abs(month.utilisation - 1) < D("1e-9")


@given(plans, st.integers(1, 10**9), st.integers(0, 10**9), st.integers(2, 50))
@settings(max_examples=100)
def test_cost_is_linear_in_volume(plan, output, fresh, times):
    one, many = work(fresh, 0, output), work(fresh * times, 0, output * times)
    assert month_amount(ZAI, many) == month_amount(ZAI, one) * times
    if month_of(plan, many).utilisation <= 1:
        standing = month_of(plan, work(0, 0, 0)).total_usd
        difference = (month_of(plan, many).total_usd - standing) - (month_of(plan, one).total_usd - standing) * times
        assert abs(difference) < D("1e-15")


@given(plans, st.integers(1, 10**9), st.integers(0, 10**9))
@settings(max_examples=100)
def test_at_the_break_even_both_sides_cost_the_same(plan, output, fresh):
    asked = work(fresh, 0, output)
    volume = break_even_output_tokens(plan, asked, month_amount(ZAI, asked))
    if volume is None or volume > capacity_output_tokens(plan, asked):
        return
    scale = D(volume) / output
    owned = month_of(plan, asked)
    idle = plan.idle_watts or D(0)
    running = (plan.busy_watts - idle) * owned.busy_hours / 1000 * plan.usd_per_kwh
    standing = capital_per_month(plan) + idle * HOURS_PER_MONTH / 1000 * plan.usd_per_kwh
    if owned.utilisation <= 1:
        per_token = month_amount(ZAI, asked) / output
        assert abs(standing + running * scale - month_amount(ZAI, asked) * scale) <= per_token + D("1e-9")
