"""`fitcheck cost` and `fitcheck rates` as a person, a pipe and a program see them."""

import json

import pytest

from tests.cli.run import fitcheck

DAY = ("--as-of", "2026-11-30")
FLASH = "deepseek/deepseek-flash"
PRICE = ("rates", "price", FLASH, "--input", "1M", "--output", "1M", "--at")


def test_the_arithmetic_is_on_the_screen_and_it_ends_in_rent():
    ran = fitcheck("cost", "--tokens", "50M", "--offpeak", *DAY, columns=140)
    assert (ran.code, ran.err) == (0, "")
    lines = [line.strip() for line in ran.out.splitlines() if line.strip() and not line.startswith(("note", "      "))]
    assert lines[-1].startswith("verdict")
    assert "rent: $" in lines[-1]
    for words in (
        "/ 36 months =",
        "kWh x $0.17",
        "tok/s (",
        "x 3,600 s x 730 h",
        "per million output",
        "break-even",
        "have no off-peak hours",
    ):
        assert words in ran.out, words
    for missing in ("\x1b", "None", "Decimal", "E+", "Traceback"):
        assert missing not in ran.out, missing


def test_the_worked_example_is_reproduced():
    ran = fitcheck(
        "cost", "glm-5.3-flash", "--tokens", "50M", "--cluster", "2xspark", "--speed", "21.8", "--watts", "190", *DAY, columns=140
    )
    assert "($261.06 + $23.58) / 57.29M = $4.97 per million output" in ran.out
    assert "zai/glm-5.3-flash: $0.50 per million output alone" in ran.out


def test_json_holds_what_programs_rely_on():
    answer = json.loads(fitcheck("cost", "glm-5.3-flash", "--tokens", "50M", "--format", "json", *DAY).out)
    result = answer["result"]
    assert answer["command"] == "cost"
    assert result["verdict"] == "rent"
    assert set(result["break_even"]) == {"output_tokens_per_month", "reachable"}
    option = next(option for option in result["rent"] if option["provider"] == "zai")
    assert option["model"] == "glm-5.3-flash"
    assert set(option["usd_per_month"]) == {"offpeak", "peak", "billed"}
    assert all(isinstance(amount, str) for amount in option["usd_per_month"].values())
    own = result["own"]
    assert isinstance(own["usd_per_month"], str)
    assert isinstance(own["capacity_output_tokens_per_month"], int)
    assert 0 < own["utilisation"] < 1
    assert own["cluster"]["count"] == 2


@pytest.mark.parametrize("columns", [80])
def test_no_line_is_wider_than_the_screen_but_for_addresses(columns):
    ran = fitcheck("cost", "glm-5.3-flash", "--tokens", "50M", *DAY, columns=columns)
    assert [line for line in ran.out.splitlines() if len(line) > columns and "http" not in line] == []


def test_a_rate_is_listed_shown_and_priced_by_one_command():
    assert f"rates\t{FLASH}\t" in fitcheck("rates", "--format", "plain", *DAY).out
    shown, before = fitcheck("rates", FLASH, "--format", "plain"), fitcheck("rates", "--format", "plain", FLASH)
    assert shown.out == before.out
    assert f"id\t{FLASH}" in shown.out
    priced = fitcheck(*PRICE, "2026-11-30T03:59Z")
    assert (priced.code, priced.err) == (0, "")
    assert "$1.50" in priced.out
    assert "peak hours" in priced.out


def test_a_price_in_json_has_its_usd_and_its_warnings():
    answer = json.loads(fitcheck(*PRICE, "2027-01-01T02:00Z", "--format", "json").out)
    assert answer["result"]["usd"] == "1.50"
    assert answer["warnings"] == answer["result"]["warnings"]
    assert "known to 2026-12-31 only" in answer["warnings"][0]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((*PRICE, "2026-08-18T00:00Z"), 4, "only from 2026-09-10T04:00Z"),
        ((*PRICE, "2026-11-30"), 2, "--at"),
        (("rates", "price", "deepseek/deepsek-flash", *PRICE[3:], "2026-11-30T04:00Z"), 3, "did you mean: deepseek/deepseek-flash"),
        (("rates", "deepseek/deepsek-flash"), 3, "did you mean: deepseek/deepseek-flash"),
        (("rates", *DAY, *PRICE[1:], "2026-11-30T04:00Z"), 2, "--as-of"),
        (("cost", "glm-5.3-flash"), 2, "--tokens"),
        (("cost", "--tokens", "50M", "--profile", "chta"), 3, "did you mean: chat"),
    ],
)
def test_what_is_wrong_has_its_exit_code(arguments, code, words):
    ran = fitcheck(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
