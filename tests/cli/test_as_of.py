"""Records as of a day: nothing that came later is shown."""

import json
from datetime import date

import pytest

from fitcheck.catalogue.dated import device_on, in_force, model_on, rate_on, recipe_on
from fitcheck.catalogue.hardware import Device
from fitcheck.catalogue.lookup import find_recipe
from fitcheck.catalogue.models import Model
from fitcheck.catalogue.ratecards import Rate
from tests.cli.run import inside


@pytest.mark.parametrize(("day", "price"), [("2025-11-01", "3,999 USD"), ("2026-02-22", "3,999 USD"), ("2026-11-30", "4,699 USD")])
def test_hardware_shows_the_price_in_force(day, price):
    out = inside("hardware", "spark", "--as-of", day, columns=200).out
    assert f"  price      {price}, the " in out
    assert ("4,699" in out) == (day == "2026-11-30")


def test_the_list_of_hardware_shows_the_price_in_force():
    out = inside("hardware", "--as-of", "2025-11-01", "--format", "json").out
    spark = next(device for device in json.loads(out)["result"]["devices"] if device["id"] == "dgx-spark")
    assert [price["amount"] for price in spark["prices"]] == ["3000", "3999"]


def test_a_price_ends_where_the_next_of_its_kind_begins(catalogue):
    prices = catalogue.get(Device, "dgx-spark").prices
    assert [(str(price.amount), price.currency) for price in in_force(prices, date(2026, 2, 22))] == [
        ("3503", "CHF"),
        ("3999", "USD"),
        ("3000", "USD"),
    ]
    assert device_on(catalogue.get(Device, "dgx-spark"), date(2024, 12, 31)).prices == ()


def test_a_model_has_the_builds_and_their_status_of_the_day(catalogue):
    model = catalogue.get(Model, "glm-5.3-flash")
    early, late = model_on(model, date(2026, 8, 29)), model_on(model, date(2026, 8, 30))
    assert early.checkpoint("nvidia-nvfp4") is None
    assert [event.status.value for event in early.checkpoint("libertai-nvfp4").events] == ["effective"]
    assert late.checkpoint("libertai-nvfp4").events[-1].status.value == "withdrawn"
    assert all(score.date <= "2026-08-29" for score in early.scores)


def test_models_that_were_not_out_are_not_listed():
    listed = {model["id"] for model in json.loads(inside("models", "--as-of", "2026-08-25", "--format", "json").out)["result"]["models"]}
    assert "deepseek-v3" in listed
    assert "glm-5.3-flash" not in listed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("models", "glm-5.3-flash", "--as-of", "2026-08-25"), "glm-5.3-flash was not released by 2026-08-25: it is from 2026-08-26"),
        (
            ("recipes", "glm-5.3-flash-2x-tonyd2wild-mtp4", "--as-of", "2026-08-26"),
            "the recipe glm-5.3-flash-2x-tonyd2wild-mtp4 was not public by 2026-08-26: it is from 2026-08-27",
        ),
        (("rates", "deepseek/deepseek-v4-pro", "--as-of", "2026-04-23"), "no price of deepseek/deepseek-v4-pro was known by 2026-04-23"),
    ],
)
def test_what_came_later_is_said_so(words, message):
    ran = inside(*words)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith(f"fitcheck: {message}\n")


def test_a_recipe_stands_until_it_is_withdrawn(catalogue):
    recipe = find_recipe(catalogue, "GLM-5.3-flash 2x tonyd2wild mtp4")
    assert recipe_on(recipe, date(2026, 8, 29)).events == ()
    assert len(recipe_on(recipe, date(2026, 8, 30)).events) == 1


def test_a_rate_has_the_prices_known_on_the_day(catalogue):
    rate = catalogue.get(Rate, "deepseek/deepseek-v4-pro")
    assert rate_on(rate, date(2026, 4, 23)) is None
    assert [str(period.offpeak.input_per_mtok) for period in rate_on(rate, date(2026, 4, 26)).periods] == ["1.74", "0.435"]
    assert rate_on(rate, date(2026, 11, 30)) == rate
    announced = catalogue.get(Rate, "google/gemini-3.6-flash")  # a price from 2027 on that its source had told of
    assert announced.periods[-1] in rate_on(announced, date(2026, 11, 30)).periods
