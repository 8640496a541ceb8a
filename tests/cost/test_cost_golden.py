"""A month rented and owned: by hand, what is refused, and what an answer must hold."""

from datetime import date
from decimal import Decimal

import pytest

from fitcheck.cost.ask import ARTICLE_MODELS, cost_case
from fitcheck.cost.compare import cost
from fitcheck.cost.report import Choice
from fitcheck.errors import UnknownId, UsageError
from tests.conftest import AS_OF
from tests.golden import rows

CENT = Decimal("0.000001")


def answer(catalogue, *models, as_of=AS_OF, **options):
    return cost(cost_case(catalogue, models, as_of=as_of, **{"tokens": "50M", **options}))


def near(found, expected):
    return abs(Decimal(str(found)) - Decimal(expected)) <= CENT


@pytest.mark.parametrize("row", rows("cost.yaml"), ids=lambda row: row["name"])
def test_a_month_costs_what_the_sum_says(catalogue, row):
    day = date.fromisoformat(row.get("as_of", AS_OF.isoformat()))
    report = answer(catalogue, *row["models"], as_of=day, **row["options"])
    work, expected = report.workload, row["rent"]
    assert [work.fresh_input_tokens, work.cached_input_tokens, work.output_tokens] == row["workload"], row["source"]
    option = next(option for option in report.rent if option.rate == expected["card"])
    assert near(option.usd_per_month.billed, expected["usd"]), row["source"]
    for name in ("offpeak", "peak"):
        assert name not in expected or near(getattr(option.usd_per_month, name), expected[name]), row["source"]
    assert "peak_share" not in expected or near(option.peak_share, expected["peak_share"]), row["source"]
    assert option.cached_charged_as_fresh == expected.get("cached_as_fresh", False)
    if "per_mtok" in expected:
        prices = option.billed_per_mtok
        assert [prices.input, prices.cached_input, prices.output] == [Decimal(price) for price in expected["per_mtok"]]
    own, found = row.get("own", {}), report.own
    assert "usd_per_month" not in own or near(found.usd_per_month, own["usd_per_month"]), row["source"]
    assert "capacity" not in own or found.capacity_output_tokens_per_month == own["capacity"], row["source"]
    assert "per_mtok_busy" not in own or near(found.usd_per_mtok_output_busy, own["per_mtok_busy"]), row["source"]
    assert "utilisation" not in own or near(found.utilisation, own["utilisation"]), row["source"]
    assert "verdict" not in row or report.verdict == row["verdict"], row["source"]


def test_alone_it_ends_in_rent_and_compares_the_same_model(catalogue):
    report = answer(catalogue, offpeak=True)
    assert report.verdict is Choice.RENT
    assert report.models == ARTICLE_MODELS
    assert report.own.model == report.same_model
    cheapest = next(option for option in report.rent if option.rate == report.cheapest_rent)
    assert cheapest.model == report.own.model
    assert report.steps[-1].text.startswith("rent: ")
    billed = [option.usd_per_month.billed for option in report.rent]
    assert billed == sorted(billed)
    for option in report.rent:
        assert option.usd_per_month.offpeak <= option.usd_per_month.billed <= option.usd_per_month.peak, option.rate
        assert option.usd_per_month.billed == option.usd_per_month.offpeak, option.rate


def test_of_several_models_the_best_scored_in_one_index_version_is_owned(catalogue):
    # Artificial Analysis, rebased by 2026-10-03: GLM 5.3 Flash 42, DeepSeek V4.1 Flash 39; V4 Flash's 50 is of another version.
    report = answer(catalogue)
    assert report.own.model == "glm-5.3-flash"
    assert "42, Artificial Analysis" in report.own.recipe.because


def test_every_card_of_the_models_is_there_once(catalogue):
    report = answer(catalogue, "deepseek-v4.1-flash")
    shown = {option.rate for option in report.rent}
    assert len(shown) == len(report.rent)
    assert {"deepseek/deepseek-flash", "deepseek/deepseek-v4-flash", "tencent/deepseek-v4.1-flash"} <= shown
    earlier = answer(catalogue, "deepseek-v4-flash", as_of=date(2026, 9, 9))
    assert "deepseek/deepseek-v4-flash" in {option.rate for option in earlier.rent}  # it served V4 Flash until 2026-09-10
    assert {option.model for option in report.rent} == {"deepseek-v4.1-flash"}


def test_dollars_and_yuan_are_never_in_one_list(catalogue):
    report = answer(catalogue, "glm-5.3-flash")
    assert {option.currency for option in report.rent} == {"USD"}
    assert {(option.currency, option.usd_per_month) for option in report.rent_other_currencies} == {("CNY", None)}


def test_the_speed_is_a_recipes_and_the_faster_way_decides(catalogue):
    own = answer(catalogue, "glm-5.3-flash").own
    assert own.recipe.trust == "high"
    assert [pace.decode_tok_per_s for pace in own.paces] == sorted(pace.decode_tok_per_s for pace in own.paces)
    assert own.capacity_output_tokens_per_month == own.paces[-1].capacity_output_tokens_per_month
    assert own.utilisation == own.paces[-1].utilisation


def test_the_articles_recipe_can_be_asked_for_though_its_build_was_withdrawn(catalogue):
    recipe = "glm-5.3-flash-2x-tonyd2wild-mtp4"
    report = answer(catalogue, "glm-5.3-flash", recipe=recipe, watts="190")
    assert report.own.recipe.id == recipe
    assert report.own.capacity_output_tokens_per_month == 57_290_400  # 21.8 x 3,600 x 730
    assert any("withdrawn" in warning for warning in report.warnings)
    assert answer(catalogue, "glm-5.3-flash").own.recipe.id != recipe


def test_before_any_recipe_owning_is_not_judged_and_the_day_is_named(catalogue):
    report = answer(catalogue, "glm-5.3-flash", as_of=date(2026, 8, 26))
    assert report.own is None
    assert "by 2026-08-26 no recipe" in report.own_missing
    assert report.verdict is Choice.RENT
    nothing = answer(catalogue, "glm-5.3-flash", as_of=date(2026, 1, 1))
    assert nothing.verdict is Choice.NEITHER
    assert any("no card in the catalogue sells glm-5.3-flash on 2026-01-01" in warning for warning in nothing.warnings)


def test_a_machine_works_only_while_work_arrives(catalogue):
    all_week = answer(catalogue, "glm-5.3-flash", speed="100", input="0", output="1")
    office = answer(catalogue, "glm-5.3-flash", speed="100", input="0", output="1", schedule="Mon-Fri 09:00-17:00 Europe/Berlin")
    assert all_week.own.capacity_output_tokens_per_month == 262_800_000  # 100 x 3,600 x 730
    assert office.own.capacity_output_tokens_per_month == 62_571_428  # x 40 / 168


def test_each_assumption_names_the_option_that_changes_it(catalogue):
    report = answer(catalogue, "glm-5.3-flash")
    options = " ".join(item.option or "" for item in report.assumptions)
    for option in ("--profile", "--offpeak", "--price", "--months", "--residual", "--electricity", "--watts", "--idle-watts", "--recipe"):
        assert option in options, option
    given = answer(catalogue, "glm-5.3-flash", months="48", residual="0.1", electricity="0.3", price="9000", watts="200", idle_watts="50")
    left = " ".join(item.option or "" for item in given.assumptions)
    for option in ("--months", "--residual", "--electricity", "--price", "--watts", "--idle-watts"):
        assert option not in left, option


def test_long_requests_are_charged_at_their_tier(catalogue):
    short = answer(catalogue, "minimax-m3", cluster="spark", input="1000", output="1000")
    long = answer(catalogue, "minimax-m3", cluster="spark", input="600000", output="600000")
    own_card = [next(option for option in report.rent if option.rate == "minimax/MiniMax-M3") for report in (short, long)]
    assert [option.tier_above_input_tokens for option in own_card] == [None, 512_000]
    assert [option.usd_per_month.billed for option in own_card] == [25 * Decimal("1.50"), 25 * Decimal("3.00")]  # 0.30 + 1.20, then twice


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"tokens": "0"}, "--tokens"),
        ({"tokens": "-5"}, "--tokens"),
        ({"tokens": "nan"}, "--tokens"),
        ({"tokens": "9999999T"}, "--tokens"),
        ({"months": "0"}, "--months"),
        ({"months": "-3"}, "--months"),
        ({"months": "1.5"}, "--months"),
        ({"electricity": "nan"}, "--electricity"),
        ({"electricity": "inf"}, "--electricity"),
        ({"electricity": "-0.1"}, "--electricity"),
        ({"electricity": "0.30 EUR"}, "EUR"),
        ({"electricity": "€0.30"}, "€"),
        ({"price": "9000 CHF"}, "CHF"),
        ({"residual": "1.5"}, "--residual"),
        ({"watts": "0"}, "--watts"),
        ({"idle_watts": "-1"}, "--idle-watts"),
        ({"speed": "0"}, "--speed"),
        ({"prefill": "inf"}, "--prefill"),
        ({"schedule": "Mon-Fri 17:00-09:00 Europe/Berlin"}, "--schedule"),
        ({"schedule": "Mon-Fri 09:00-17:00 Mars/Base"}, "Mars/Base"),
        ({"schedule": "Mon-Fri 09:00-17:00", "offpeak": True}, "--offpeak"),
        ({"input": "100"}, "--output"),
        ({"cached": "100"}, "--input"),
        ({"input": "100", "output": "10", "cached": "200"}, "--cached"),
        ({"input": "0", "output": "0"}, "--input"),
        ({"input": "1", "output": "1", "profile": "chat"}, "--profile"),
        ({"recipe": "glm-5.3-flash-4x-jnardiello-fp8-dflash2"}, "--recipe"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_field_named(catalogue, options, named):
    with pytest.raises(UsageError) as caught:
        answer(catalogue, "glm-5.3-flash", **options)
    assert named in caught.value.message


@pytest.mark.parametrize(
    ("models", "options", "nearest"),
    [
        ((), {"profile": "chta"}, "chat"),
        (("glm-5.3-flsh",), {}, "glm-5.3-flash"),
        ((), {"cluster": "2xsprak"}, "2xspark"),
        ((), {"recipe": "x"}, None),
    ],
)
def test_unknown_names_get_the_nearest(catalogue, models, options, nearest):
    with pytest.raises(UnknownId) as caught:
        answer(catalogue, *models, **options)
    assert nearest is None or nearest in caught.value.nearest
