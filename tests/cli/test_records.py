"""`models | hardware | rates | recipes`: lists and single records, with their sources."""

import json

import pytest

from tests.cli.run import fitcheck, inside


@pytest.mark.parametrize("command", ["models", "hardware", "rates", "recipes"])
@pytest.mark.parametrize("columns", [60, 80, 140])
def test_lists_keep_to_the_screen(command, columns):
    ran = fitcheck(command, columns=columns)
    assert ran.code == 0, ran.err
    # an id or an address is never broken, so that it can be copied: only a line that is one of them may be wider
    wide = [line for line in ran.out.splitlines() if len(line) > columns and max(map(len, line.split())) < columns - 20]
    assert wide == []


@pytest.mark.parametrize(
    ("command", "record", "words"),
    [
        (
            "models",
            "glm-5.3-flash",
            ["5,995 B per token", "147,619,840 B per sequence", "https://huggingface.co/zai-org/GLM-5.3-Flash", "withdrawn"],
        ),
        ("models", "deepseek-v3", ["70,272 B per token"]),
        ("hardware", "spark", ["130,663,006,208", "0.87", "measured", "4,699 USD"]),
        ("hardware", "spark-pair", ["dgx-spark", "cable"]),
        ("recipes", "glm-5.3-flash-2x-miaai-exl3-dflash2", ["exl3-4bpw", "https://github.com/MiaAI-Lab"]),
        ("rates", "deepseek/deepseek-flash", ["0.15", "0.003", "0.60", "1.20", "Asia/Shanghai", "2026-09-10T04:00Z"]),
    ],
)
def test_one_record_with_its_sources(command, record, words):
    ran = fitcheck(command, record, columns=200)
    assert ran.code == 0, ran.err
    for word in words:
        assert word in ran.out, word


@pytest.mark.parametrize("command", ["models", "hardware", "rates", "recipes"])
def test_an_unknown_id_exits_3_with_the_nearest(command):
    ran = fitcheck(command, "qwen3-8x")
    assert ran.code == 3
    assert "did you mean" in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    "arguments", [("models",), ("models", "gpt-oss-20b"), ("hardware",), ("hardware", "spark"), ("recipes",), ("rates",)]
)
def test_json_comes_in_the_envelope(arguments):
    answer = json.loads(fitcheck(*arguments, "--format", "json").out)
    assert answer["command"] == arguments[0]
    assert len(answer["catalogue"]["digest"]) == 64


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_a_price_is_never_without_its_currency(columns):
    out = inside("rates", columns=columns).out
    dollars, _, others = out.partition("\nCNY per million tokens\n")
    assert "\nUSD per million tokens\n" in dollars
    assert "zhipuai/" not in dollars
    assert "CNY 8.00" in others
    assert "CNY 28.00" in others
    assert "openai/" not in others


def test_programs_get_bare_prices_with_the_currency_beside_them():
    lines = inside("rates", "--format", "csv").out.splitlines()
    assert lines[0].startswith("rate,money,in/M,")
    assert next(line for line in lines if line.startswith("zhipuai/glm-5.3,")).startswith("zhipuai/glm-5.3,CNY,8.00,2.00,28.00,")


def test_one_rate_in_another_currency_says_it_with_each_price():
    out = " ".join(inside("rates", "zhipuai/glm-5.3", columns=120).out.split())
    assert "CNY 8.00 input, CNY 28.00 output" in out
    assert "Prices in CNY per million tokens" in out


@pytest.mark.parametrize("typed", ["DeepSeek/DeepSeek_Flash", "deepseek/deepseekflash", "DEEPSEEK/deepseek flash"])
def test_a_rate_is_found_however_it_is_written(typed):
    assert inside("rates", typed).out == inside("rates", "deepseek/deepseek-flash").out
    asked = ("--at", "2026-11-30T03:59Z", "--input", "1M", "--output", "1M")
    ran = inside("rates", "price", typed, *asked)
    assert "$1.50" in ran.out  # 0.30 in and 1.20 out, at peak
    assert ran.out == inside("rates", "price", "deepseek/deepseek-flash", *asked).out


def test_lists_are_as_of_a_day():
    early = fitcheck("recipes", "--as-of", "2026-06-30", "--format", "plain").out
    dates = [line.split("\t")[-1] for line in early.splitlines() if line.startswith("recipes\t")]
    assert dates
    assert max(dates) <= "2026-06-30"


def test_a_reader_that_goes_away_is_no_error():
    import subprocess
    import sys

    done = subprocess.run(
        f"{sys.executable} -m fitcheck rates --format plain | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("heading")
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
