"""What happens at the edges of the process: output nobody can take, input without end, a working directory that is gone."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from fitcheck.catalogue.load import read_text
from fitcheck.errors import DataError
from tests.cli.run import fitcheck, inside

PROGRAM = f"{shlex.quote(sys.executable)} -m fitcheck"
FULL = "fitcheck: cannot write the answer: No space left on device\n"
CLOSED = "fitcheck: cannot write the answer: standard output is closed\n"


def shell(line, cwd=None):
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=30, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", ["fit glm-5.3-flash --cluster 2xspark", "models --format csv", "validate", "--help", "--version"])
def test_an_answer_that_cannot_be_written_is_a_data_error(words):
    assert shell(f"{PROGRAM} {words} >/dev/full") == (4, "", FULL)


def test_closed_and_full_streams_never_end_in_a_traceback():
    assert shell(f"{PROGRAM} --version >&-") == (4, "", CLOSED)
    assert shell(f"{PROGRAM} nothing 2>&-") == (2, "", "")
    assert shell(f"{PROGRAM} --version >/dev/full 2>/dev/full") == (4, "", "")


@pytest.mark.parametrize("words", ["models", "--help"])
def test_a_pipe_whose_reader_has_gone_ends_quietly(words):
    assert shell(f"{PROGRAM} {words} | true; exit ${{PIPESTATUS[0]}}") == (0, "", "")


@pytest.mark.parametrize("columns", ["²", "0", "9" * 5000])
def test_any_width_that_is_no_number_is_passed_over(columns):
    ran = fitcheck("models", "qwen3-8b", columns=None, COLUMNS=columns)
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize("command", [("models", "--overlay"), ("validate",)])
@pytest.mark.parametrize(
    ("name", "words"), [("pipe", "a pipe or device"), ("folder", "folder"), ("loop", "symbolic links"), ("/dev/zero", "a pipe or device")]
)
def test_what_is_no_file_is_refused_at_once(tmp_path, command, name, words):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    ran = inside(*command, str(tmp_path / name))
    assert (ran.code, ran.out) == (4, "")
    assert words in ran.err
    assert len(ran.err.splitlines()) <= 2


def test_a_file_that_is_larger_than_any_catalogue_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("fitcheck.catalogue.load.MAX_FILE_BYTES", 10)
    (tmp_path / "x.yaml").write_text("#" * 11, encoding="utf-8")
    with pytest.raises(DataError, match="larger than 10 bytes"):
        read_text(tmp_path / "x.yaml")


def test_a_working_directory_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    code, out, err = shell(f"rmdir {shlex.quote(str(gone))}; {PROGRAM} validate", cwd=gone)
    assert (code, err) == (0, "")
    assert "6 files" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fit", "x", "--cluster", "spark", "--users", "abc"), "--users takes a whole number, and 'abc' was given"),
        (("fit", "x", "--cluster", "spark", "--tp=1.5"), "--tp takes a whole number, and '1.5' was given"),
        (("fit", "x"), "--cluster is missing"),
        (("fit", "x", "--cluster"), "--cluster needs a value after it"),
        (("fit", "x", "--cluster", "spark", "--strict=1"), "--strict takes no value"),
        (("rates", "price"), "PROVIDER/ID is missing"),
        (("models", "a", "b"), "too many words: 'b'"),
        (("models", "--frmat"), "no option --frmat"),
    ],
)
def test_a_refused_option_is_two_lines_at_most_and_an_object_in_json(words, message):
    ran = inside(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[0] == f"fitcheck: {message}"
    assert len(ran.err.splitlines()) <= 3
    if words[-1] not in ("--cluster", "price"):
        body = json.loads(inside(words[0], "--format", "json", *words[1:]).err)["error"]
        assert (body["code"], body["message"]) == (2, message)


def test_a_choice_is_told_with_what_there_is():
    err = inside("validate", "--format", "xml").err
    assert err.startswith("fitcheck: --format takes one of text, plain, json, github, and 'xml' was given")


@pytest.mark.parametrize(
    "option", [("--users", "9" * 5000), ("--context", "9" * 5000), ("--usable", "9" * 5000 + "GiB"), ("--tp", "9" * 400)]
)
def test_a_number_of_thousands_of_digits_is_refused_in_one_line(option):
    ran = inside("fit", "glm-5.3-flash", "--cluster", "spark", *option)
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert len(ran.err) < 300


def test_the_help_has_examples_codes_and_whole_summaries():
    whole = inside("--help", columns=80).out
    assert "…" not in whole
    assert "..." not in whole.replace("[ARGS]...", "")
    assert "fitcheck fit glm-5.3-flash --cluster 2xspark" in whole
    for command in ("fit", "models", "hardware", "recipes", "rates", "validate", "recommend"):
        shown = inside(command, "--help", columns=80).out
        assert f"fitcheck {command}" in shown.partition("Examples:")[2], command
        assert "Exit codes: 0 answered" in shown
    assert "10 does not fit" in " ".join(inside("fit", "--help", columns=80).out.split())


def test_without_a_word_the_help_is_shown():
    ran = fitcheck()
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: fitcheck")
    assert "Traceback" not in ran.err


def test_places_are_read_in_any_case():
    ask = ("fit", "deepseek-v4.1-flash", "--cluster", "4xspark", "--format", "json")
    assert json.loads(inside(*ask, "--place", "NGram=NVMe").out)["inputs"]["place"] == {"ngram": "nvme"}
