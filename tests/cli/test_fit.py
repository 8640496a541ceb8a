"""`fitcheck fit` on the screen, in a pipe, and when what was typed is wrong."""

import csv
import io
import json

import pytest

from tests.cli.run import fitcheck

DAY = ("--as-of", "2026-11-30")
ASK = ("fit", "glm-5.3-flash", "--cluster", "2xspark", *DAY)


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_no_line_is_wider_than_the_screen_but_for_addresses(columns):
    ran = fitcheck(*ASK, columns=columns)
    assert ran.code == 0
    wide = [line for line in ran.out.splitlines() if len(line) > columns and "http" not in line]
    assert wide == []


def test_a_stranger_reads_the_whole_answer():
    out = fitcheck(*ASK, "--context", "262144", columns=140).out
    for words in ("verdict", "FITS", "recipe (", "goes to", "tok/s", "https://", "Assumed", "--usable", "catalogue 20"):
        assert words in out, words
    for missing in ("\x1b", "None", "Traceback"):
        assert missing not in out


def test_plain_is_one_record_a_line():
    out = fitcheck(*ASK, "--format", "plain", columns=None).out
    checkpoints = [line.split("\t") for line in out.splitlines() if line.startswith("checkpoints\t")]
    assert ["checkpoints", "exl3-4bpw", "fits"] in [row[:3] for row in checkpoints]
    assert len({len(row) for row in checkpoints}) == 1


def test_csv_is_readable_as_csv():
    rows = list(csv.reader(io.StringIO(fitcheck(*ASK, "--format", "csv").out)))
    assert rows[0] == ["section", "name", "value"]
    assert any(row[:2] == ["checkpoints", "exl3-4bpw"] for row in rows)


def test_markdown_has_tables():
    out = fitcheck(*ASK, "--format", "md").out
    assert out.startswith("## GLM 5.3 Flash")
    assert "| checkpoint | verdict |" in out


def test_json_holds_the_contract_and_is_the_same_every_time():
    first, second = fitcheck(*ASK, "--format", "json"), fitcheck(*ASK, "--format", "json", columns=60)
    assert first.out == second.out
    answer = json.loads(first.out)
    assert set(answer) == {"schema_version", "command", "as_of", "catalogue", "inputs", "result", "warnings"}
    result = answer["result"]
    assert {"id", "verdict", "evidence", "bytes"} <= set(result["checkpoints"][0])
    assert result["evidence"]["kind"] == "recipe"
    assert isinstance(result["headroom_bytes"], int)
    [device] = result["devices"]
    assert sum(term["bytes"] for term in device["terms"]) == device["total_bytes"]
    assert {"name", "bytes", "formula", "grade", "sources"} <= set(device["terms"][0])
    assert {"low", "best", "high", "basis"} == set(result["speed"]["decode_tok_per_s"])
    assert list(result) == sorted(result)


def test_colour_only_on_a_terminal():
    assert "\x1b[" not in fitcheck(*ASK).out
    assert "\x1b[" not in fitcheck(*ASK, NO_COLOR="1").out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("fit", "glm-5.3-flsh", "--cluster", "2xspark"), 3, "did you mean: glm-5.3-flash"),
        (("fit", "glm-5.3-flash", "--cluster", "2xsprak"), 3, "did you mean:"),
        (("fit", "glm-5.3-flash", "--cluster", "0xspark"), 2, "0 devices"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--context", "-5"), 2, "'-5'"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--context", "2000000"), 2, "1,048,576"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--users", "0"), 2, "0 users"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--usable", "102"), 2, "102GiB"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--usable", "0GiB"), 2, "usable"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--tp", "3"), 2, "does not divide"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--kv-dtype", "int2"), 2, "unknown KV dtype"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--engine", "vlm"), 3, "vllm"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--checkpoint", "redhat"), 3, "redhat-nvfp4"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--place", "ngram=nvme"), 2, "parts known apart"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--place", "drafter=moon"), 2, "no place 'moon'"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--place", "drafter"), 2, "COMPONENT="),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--as-of", "yesterday"), 2, "YYYY-MM-DD"),
        (("fit", "glm-5.3-flash", "--cluster", "2xspark", "--overlay", "/nowhere.yaml"), 4, "no such file"),
        (("fit", "glm-5.3-flash"), 2, "--cluster"),
        (("fitt",), 2, "fit"),
    ],
)
def test_one_clear_error_and_its_exit_code(arguments, code, words):
    ran = fitcheck(*arguments)
    assert ran.code == code, ran
    assert words in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert len(ran.err.splitlines()) <= 8


def test_errors_are_objects_too_where_json_was_asked():
    ran = fitcheck("fit", "glm-5.3-flsh", "--cluster", "2xspark", "--format", "json")
    body = json.loads(ran.err)["error"]
    assert (ran.code, body["code"], body["nearest"][0]) == (3, 3, "glm-5.3-flash")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--checkpoint", "official-fp8"), 10),
        # 197,822,818,044 B on two: 92.1 GiB, + 5.2 GiB of overhead on a Spark + 0.4 GiB of caches: under 98, and by less than 5 %
        (("--checkpoint", "redhat-nvfp4", "--usable", "98GiB"), 0),
        (("--checkpoint", "redhat-nvfp4", "--usable", "98GiB", "--strict"), 11),
        (("--checkpoint", "nvfp4-spark"), 12),
    ],
)
def test_the_verdict_is_the_exit_code(options, code):
    assert fitcheck(*ASK, *options).code == code


def test_an_overlay_is_said_in_every_answer_and_in_the_digest(tmp_path):
    overlay = tmp_path / "mine.yaml"
    overlay.write_text(
        "my-box:\n  kind: device\n  name: My box\n  maker: me\n  chip: nvidia\n  memory:\n    sold: {value: 96 GiB, source: own}\n"
        "    visible:\n      - {value: 95 GiB, source: own}\n"
        '  sources:\n    own: {url: "https://example.org/box", read: "2026-11-30"}\n',
        encoding="utf-8",
    )
    ran = fitcheck("fit", "gpt-oss-120b", "--cluster", "my-box", "--overlay", str(overlay), *DAY)
    assert ran.code == 0, ran.err
    assert "overlay in force" in ran.out
    by_environment = fitcheck("fit", "gpt-oss-120b", "--cluster", "my-box", "--format", "json", *DAY, FITCHECK_OVERLAY=str(overlay))
    catalogue = json.loads(by_environment.out)["catalogue"]
    assert [entry["ids"] for entry in catalogue["overlays"]] == [["my-box"]]
    assert catalogue["digest"] != json.loads(fitcheck(*ASK, "--format", "json").out)["catalogue"]["digest"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("my-box:\n  kind: device\n  name: [unclosed\n", "mine.yaml:"),
        ("my-box:\n  kind: device\n  kind: device\n  name: My box\n", "duplicate key 'kind'"),
        ("my-box:\n  kind: gadget\n", "unknown kind 'gadget'"),
        ("my-box:\n  kind: device\n  name: My box\n", "maker"),
        ("- a list\n", "mine.yaml:1"),
        ("a: &x {kind: device}\nb: *x\n", "mine.yaml"),
    ],
)
def test_a_broken_overlay_is_one_clear_error(tmp_path, text, words):
    overlay = tmp_path / "mine.yaml"
    overlay.write_text(text, encoding="utf-8")
    ran = fitcheck("fit", "gpt-oss-120b", "--cluster", "my-box", "--overlay", str(overlay))
    assert ran.code == 4, ran
    assert words in ran.err
    assert "Traceback" not in ran.err


BOX = """my-box:
  kind: device
  name: NAME
  maker: me
  chip: nvidia
  memory:
    sold: {value: 96 GiB, source: own}
    visible:
      - {value: 95 GiB, source: own}
  sources:
    own: {url: "https://example.org/box", read: "2026-11-30"}
"""


def test_text_from_a_file_cannot_steer_the_terminal(tmp_path):
    overlay = tmp_path / "mine.yaml"
    ask = ("fit", "gpt-oss-120b", "--cluster", "my-box", "--overlay", str(overlay))
    overlay.write_text(BOX.replace("NAME", '"My \\e[31mred\\u202e box"'), encoding="utf-8")
    refused = fitcheck(*ask)
    assert (refused.code, refused.out) == (4, "")
    assert "mine.yaml:3: my-box: name holds the character U+001B" in refused.err
    assert not {"\x1b", "\u202e"} & set(refused.err)
    overlay.write_text(BOX.replace("NAME", "My [bold]red[/bold] box"), encoding="utf-8")
    assert "My [bold]red[/bold] box" in fitcheck(*ask).out
