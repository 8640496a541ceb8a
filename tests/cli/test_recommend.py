"""`fitcheck recommend` on the screen, in a pipe, and when what was typed is wrong."""

import csv
import io
import json

import pytest

from tests.cli.run import fitcheck, inside

ASK = ("recommend", "--cluster", "2xspark", "--as-of", "2026-11-30")


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_no_line_is_wider_than_the_screen_but_for_addresses(columns):
    ran = fitcheck(*ASK, "--why", "--limit", "5", columns=columns)
    assert ran.code == 0, ran.err
    assert [line for line in ran.out.splitlines() if len(line) > columns and "http" not in line] == []
    for words in ("glm-5.3-flash", "39 against 42", "kimi-k2"):
        assert words in " ".join(ran.out.split()), words
    for missing in ("None", "Traceback", "\x1b"):
        assert missing not in ran.out


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_build_verdict_and_evidence_are_shown_at_any_width(columns):
    ran = inside("recommend", "--cluster", "spark", "--limit", "40", "--as-of", "2026-11-30", columns=columns)
    rows = ran.out.partition("What runs")[2].partition("What just misses")[0]
    whole = " ".join(rows.split())
    for words in (
        "exl3-2.05bpw",
        "fits",
        "recipe (1)",
        "its build has 2.05 bits a weight; the score is of the makers' weights",
        "ds4-q2",
        "tight",
    ):
        assert words in whole or (columns == 200 and words in rows), words
    dropped = whole.partition("not shown at this width:")[2]
    assert not {"build", "verdict", "evidence", "why"} & set(dropped.replace(",", "").split())
    assert [line for line in ran.out.splitlines() if len(line) > columns and len(line.split()) > 2 and "http" not in line] == []


def test_a_row_that_runs_by_a_recipes_word_alone_says_so_beside_it():
    ran = inside("recommend", "--cluster", "spark", "--limit", "2", "--as-of", "2026-11-30", columns=120)
    row = " ".join(ran.out.partition("2   deepseek-v4.1-flash")[2].partition("What just misses")[0].split())
    assert row.startswith("ds4-q2 tight recipe (1) 39 (full) 9.3 -50.92 - - ")
    assert "arithmetic says no (50.92 GiB short on the device)" in row
    assert "deepseek-v4.1-flash-1x-antirez-ds4-q2" in row


def test_what_misses_by_far_is_one_line_on_the_screen_and_whole_for_programs():
    screen = " ".join(inside(*ASK, columns=100).out.split())
    # of 2 Sparks: 8 are four times as many; minimax-m3 runs on 5, these on 9 and 11. Kimi K2's 1,029,192,275,722 B are 13 of 61 layers on
    # two ranks of the fullest of five stages: 102.1 GiB, with vLLM's 5.2 GiB on a Spark past the 121.69 x 0.87 = 105.9 GiB of ten units
    assert "2 more miss by far: deepseek-v4-pro (fits on 9x), kimi-k2 (fits on 11x)" in screen
    misses = screen.partition("What just misses")[2].partition("2 more miss")[0]
    assert "minimax-m3" in misses
    assert "kimi-k2" not in misses
    result = json.loads(inside(*ASK, "--format", "json").out)["result"]
    assert {miss["model"]: miss["near"] for miss in result["misses"]} == {
        "glm-5.1": True,
        "glm-5.3": True,
        "minimax-m3": True,
        "deepseek-v4-pro": False,
        "kimi-k2": False,
    }
    plain = inside(*ASK, "--format", "plain").out
    assert sum(line.startswith("misses\t") for line in plain.splitlines()) == 5


def test_a_pipe_gets_every_row_and_a_screen_twelve():
    lines = fitcheck(*ASK, "--format", "plain", columns=None).out.splitlines()
    rows = [line.split("\t") for line in lines if line.startswith("rows\t")]
    assert rows[0][2:4] == ["glm-5.3-flash", "exl3-4bpw"]
    assert len(rows) > 12
    assert len({len(row) for row in rows}) == 1
    table = fitcheck(*ASK, columns=None).out
    assert f"12 of {len(rows)}; --limit {len(rows)} shows all" in table
    limited = fitcheck(*ASK, "--format", "csv", "--limit", "2").out
    assert sum(row[0] == "rows" for row in csv.reader(io.StringIO(limited))) == 2


def test_json_holds_the_contract_and_is_the_same_every_time():
    first, second = (fitcheck(*ASK, "--format", "json", columns=columns) for columns in (60, 140))
    assert first.out == second.out
    answer = json.loads(first.out)
    assert answer["command"] == "recommend"
    assert answer["inputs"]["cluster"] == {"device": "dgx-spark", "count": 2}
    assert answer["inputs"]["context_tokens"] == 32_768  # not asked, and judged all the same
    result = answer["result"]
    assert {"model", "checkpoint", "verdict", "evidence", "headroom_bytes", "score", "decode_tok_per_s", "why"} <= set(result["rows"][0])
    assert result["rows"][0]["evidence"].startswith("recipe (")
    assert len(result["rows"]) == result["rows_total"] > 12
    assert {"index", "version", "score", "date", "of"} <= set(result["rows"][0]["score"])
    assert {"low", "best", "high", "basis"} == set(result["rows"][0]["decode_tok_per_s"])
    assert {"model", "checkpoint", "short_by_bytes", "fits_on", "note"} <= set(result["misses"][0])
    assert all({"model", "reason"} <= set(row) for row in result["unknown"])


def test_why_names_recipes_and_scores_with_their_addresses():
    out = fitcheck(*ASK, "--limit", "3", "--why", columns=140).out
    for words in ("Why each stands there", "Recipes and scores", "https://", "decodes 27.1 tok/s", "5 recipes show exl3-4bpw"):
        assert words in out, words


def test_where_nothing_fits_the_nearest_miss_is_told():
    ran = fitcheck("recommend", "--cluster", "rtx-4090", "--context", "512k", "--engine", "llama.cpp", "--as-of", "2026-11-30")
    assert ran.code == 0
    assert "none of the" in ran.out
    assert "short on each device" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--cluster", "2xsprak"), 3, "did you mean: 2xspark"),
        (("--cluster", "0xspark"), 2, "0 devices"),
        (("--cluster", "2xspark", "--context", "-5"), 2, "--context: cannot read '-5'"),
        (("--cluster", "2xspark", "--context", "0"), 2, "--context: '0'"),
        (("--cluster", "2xspark", "--engine", "mlx"), 2, "--engine mlx: MLX is not known to run on DGX Spark"),
        (("--cluster", "2xspark", "--users", "0"), 2, "0 users"),
        (("--cluster", "2xspark", "--limit", "0"), 2, "--limit 0"),
        (("--cluster", "2xspark", "--engine", "vlm"), 3, "vllm"),
        (("--cluster", "2xspark", "--as-of", "yesterday"), 2, "YYYY-MM-DD"),
        (("--cluster", "2xspark", "--overlay", "/nowhere.yaml"), 4, "no such file"),
        ((), 2, "--cluster"),
    ],
)
def test_one_clear_error_and_its_exit_code(arguments, code, words):
    ran = fitcheck("recommend", *arguments)
    assert ran.code == code, ran
    assert words in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_an_overlay_adds_a_model(tmp_path):
    overlay = tmp_path / "mine.yaml"
    overlay.write_text(
        "my-box:\n  kind: device\n  name: My box\n  maker: me\n  chip: nvidia\n  memory:\n    sold: {value: 96 GiB, source: own}\n"
        "    visible:\n      - {value: 95 GiB, source: own}\n"
        '  sources:\n    own: {url: "https://example.org/box", read: "2026-11-30"}\n',
        encoding="utf-8",
    )
    ran = fitcheck("recommend", "--cluster", "2xmy-box", "--overlay", str(overlay), "--as-of", "2026-11-30")
    assert ran.code == 0, ran.err
    assert "overlay in force" in ran.out
