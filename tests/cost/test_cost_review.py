"""What a review of `cost` found wrong, each with the right value."""

import json
from datetime import date
from decimal import Decimal

import pytest

from fitcheck.cost.report import Choice
from fitcheck.errors import UnknownId, UsageError
from tests.cli.run import fitcheck
from tests.cost.test_cost_golden import answer

FLASH = "glm-5.3-flash"


def test_a_schedule_without_an_hour_that_week_is_refused(catalogue):
    with pytest.raises(UsageError, match=r"--schedule: .* has no hour of that week"):
        answer(catalogue, FLASH, as_of=date(2027, 3, 28), schedule="Sun 02:00-03:00 Europe/Berlin")


def test_a_machine_that_does_not_hold_the_model_is_never_the_answer(catalogue):
    report = answer(catalogue, "glm-5.2", tokens="50B", cluster="spark", speed="100000")
    assert (report.own.fits.verdict, report.verdict) == ("no", Choice.RENT)
    assert report.own.fits.short_by_bytes > 90 * 1024**3
    assert {move.verdict for move in report.moves} == {Choice.RENT}
    assert not report.break_even.reachable
    assert any("runs glm-5.2" in item.text for item in report.assumptions)
    assert answer(catalogue, FLASH).own.fits.verdict in ("fits", "tight")


def test_usual_text_decides_where_several_users_wrote_it(catalogue):
    """Of the GLM recipe several users wrote structured text only; DeepSeek's recipe has usual text for several too."""
    assert "structured only, the best case for speculation" in answer(catalogue, FLASH).own.paces[-1].label
    assert "best case for speculation" not in answer(catalogue, "deepseek-v4.1-flash").own.paces[-1].label


def test_a_given_speed_keeps_the_recipes_prefill_and_the_output_only_figure(catalogue):
    report = answer(catalogue, FLASH, speed="21.8", watts="190")
    pace = report.own.paces[0]
    assert report.own.prefill_tok_per_s is not None
    assert pace.capacity_output_tokens_per_month < pace.output_only_tokens_per_month == 57_290_400
    assert round(pace.usd_per_mtok_output_only, 2) == Decimal("4.97")  # (9,398 / 36 + 0.19 x 730 x 0.17) / 57.2904
    none = answer(catalogue, "glm-5.2", cluster="spark", speed="10")
    assert any("--speed was given without --prefill" in item.text for item in none.assumptions)


def test_ended_cards_are_no_note_and_later_ones_say_from_when(catalogue):
    assert answer(catalogue).not_priced == ()
    early = answer(catalogue, FLASH, as_of=date(2026, 9, 1))
    assert early.not_priced
    assert all(card.price_known_from > date(2026, 9, 1) for card in early.not_priced)
    assert any("(price known only from 2026-" in words for words in early.warnings)


def test_the_machines_own_cache_can_hit_less(catalogue):
    full, half, none = (answer(catalogue, FLASH, own_cached=share).own for share in ("1", "0.5", "0"))
    assert full.utilisation < half.utilisation < none.utilisation
    assert any("82.6 %" in words for words in answer(catalogue, FLASH, profile="agent").warnings)
    assert any("no provider's batch discount" in words for words in answer(catalogue, FLASH, profile="batch").warnings)
    assert "no input cached on the machine only" in {move.change for move in answer(catalogue, FLASH).moves}


def test_owning_not_judged_stands_in_the_headline_and_the_warnings(catalogue):
    report = answer(catalogue, FLASH, as_of=date(2026, 8, 26))
    assert report.steps[-1].text.startswith("rent (owning not judged: ")
    assert any(words.startswith("owning was not judged") for words in report.warnings)


def test_more_work_than_the_machine_can_do_is_compared_by_its_part(catalogue):
    own = answer(catalogue, FLASH, tokens="229161600", input="0", output="1", speed="21.8", watts="190")
    words = next(step.text for step in own.steps if step.name == "own")
    assert "9.9 times the rent of the part of the work that it can do" in words  # 284.63 / (114.58 / 4)


def test_a_model_that_no_machine_of_the_cluster_holds_is_said_even_without_a_speed(catalogue):
    """Kimi K2 has a trillion weights; two Sparks hold 243 GiB."""
    missing = answer(catalogue, "kimi-k2", cluster="2xspark").own_missing
    assert missing.startswith("kimi-k2 does not fit on 2x dgx-spark: its best build ")


def test_whether_a_build_of_unpublished_size_fits_is_a_note(catalogue):
    """The recipe's build of this model has no published size, as `fit` says too."""
    warnings = answer(catalogue, "glm-4.7-flash", cluster="spark", speed="50").warnings
    assert any(words.startswith("whether glm-4.7-flash fits is not known: ") for words in warnings)


def test_the_one_user_speed_that_turns_the_verdict_is_named(catalogue):
    """1 user and 4 at once cost the same machine; at a price between both busy figures the answer turns."""
    report = answer(catalogue, FLASH, tokens="270M", input="0", output="1", price="500", electricity="0")
    assert report.verdict is Choice.OWN
    assert "with one user at a time (27.1 tok/s) it would be " in report.reason


def test_hours_beyond_a_month_need_several_rented_clusters(catalogue):
    unknown = answer(catalogue, "glm-5.2", cluster="h100").hire
    assert unknown is not None
    assert (unknown.busy_hours, unknown.clusters_needed) == (None, None)
    hire = answer(catalogue, "glm-5.2", cluster="h100", tokens="36M", input="0", output="1", speed="10").hire
    assert (hire.busy_hours, hire.clusters_needed) == (1000, 2)  # 36M / 10 / 3,600 of 730 h


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"profile": ""}, "--profile"),
        ({"idle_watts": "500"}, "--idle-watts"),
        ({"own_cached": "1.5"}, "--own-cached"),
        ({"schedule": "Mon 09:00-10:00 Mars/Base"}, "--schedule"),
    ],
)
def test_refused_with_the_option_named(catalogue, options, named):
    with pytest.raises(UsageError) as caught:
        answer(catalogue, FLASH, **options)
    assert named in caught.value.message


def test_thousands_are_read(catalogue):
    assert answer(catalogue, FLASH, price="$9,398").own.purchase.value == 9398


def test_a_rates_name_points_to_its_command(catalogue):
    for name in ("anthropic/claude-haiku-5-5", "claude-haiku-5-5"):
        with pytest.raises(UnknownId) as caught:
            answer(catalogue, name)
        assert "fitcheck rates price anthropic/claude-haiku-5-5" in caught.value.hint


def test_a_name_that_another_model_answers_is_said(catalogue):
    words = answer(catalogue, "deepseek-v4-flash").warnings
    assert any(
        "deepseek/deepseek-v4-flash is not deepseek-v4-flash any more: deepseek-v4.1-flash answers since 2026-09-10" in w for w in words
    )


def test_a_partner_box_without_a_price_takes_the_originals(catalogue):
    bought = answer(catalogue, FLASH, cluster="2x msi-edgexpert").own.purchase
    assert bought.value == 9398
    assert "of dgx-spark, as msi-edgexpert has none in USD of its own" in bought.words


def test_a_partners_old_price_is_flagged(catalogue):
    warnings = answer(catalogue, FLASH, cluster="2x dell-pro-max-gb10").warnings
    assert any("the price of dell-pro-max-gb10 is of 2025-11-19 and may be out of date" in words for words in warnings)


def test_watts_of_a_whole_server_with_the_price_of_a_bare_device_are_flagged(catalogue):
    report = answer(catalogue, FLASH, cluster="h100", speed="100")
    assert any(words.startswith("mixed scope") for words in report.warnings)


def test_watts_below_the_idle_ones_known_are_said(catalogue):
    assert any(words.startswith("--watts is below the idle") for words in answer(catalogue, FLASH, watts="50").warnings)


def test_the_zone_is_echoed_and_the_request_is_in_the_inputs():
    ran = fitcheck("cost", FLASH, "--tokens", "1M", "--input", "3", "--output", "2", "--cached", "1",
                   "--schedule", "Mon 09:00-10:00", "--as-of", "2026-11-30", "--format", "json")  # fmt: skip
    inputs = json.loads(ran.out)["inputs"]
    assert inputs["schedule"] == "Mon 09:00-10:00 UTC"
    assert (inputs["input_tokens"], inputs["output_tokens"], inputs["cached_tokens"]) == (3, 2, 1)
    assert "--as-of" in fitcheck("cost", "--tokens", "1M", "--as-of", "soon").err
    narrow = fitcheck("cost", FLASH, "--tokens", "50M", "--as-of", "2026-11-30", columns=80).out
    assert "break-even out" in narrow
