"""`fitcheck validate`: formats, exit codes, what lies beneath, and text that must not reach a terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fitcheck.catalogue.lint import Finding, lint
from fitcheck.catalogue.load import read_text
from fitcheck.cli.common import INVOCATION
from fitcheck.cli.validate import validate
from fitcheck.errors import DataError
from fitcheck.views.document import clean
from fitcheck.views.findings import as_github, as_json, as_plain, as_text, summary

HERE = Path(__file__).parent
GOOD = (HERE / "good.yaml").read_text(encoding="utf-8")
ENGINE = "heron:\n  kind: engine\n  name: Heron\n  chips: [nvidia]\n  preference: 2\n  sources: {}\n"
ERROR = Finding("FC203", "error", "tern: says 4%, its bytes say\n8, or so", "data/a,b:c.yaml", 12, "check it")
WARNING = Finding("FC102", "warning", "tern: source 'old' is never used", "data/models.yaml", 3, "remove it")

app = typer.Typer()
app.command()(validate)


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A shipped catalogue of one good file, with the working directory beside it."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "models.yaml").write_text(GOOD, encoding="utf-8")
    monkeypatch.setattr("fitcheck.catalogue.load.data_folder", lambda: folder)
    monkeypatch.setattr(INVOCATION, "format", INVOCATION.format)  # put back afterwards, for tests in this process
    monkeypatch.chdir(tmp_path)
    return folder


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


@pytest.mark.usefixtures("shipped")
def test_the_shipped_catalogue_is_checked_without_a_path():
    assert run() == (0, "no findings in 1 file\n")


def test_errors_exit_20_and_warnings_0(shipped):
    file = shipped / "models.yaml"
    file.write_text(GOOD.replace("fraction: 0.87", "fraction: 0.999"), encoding="utf-8")
    code, out = run("--format", "plain")
    assert code == 0
    assert re.fullmatch(r"data/models\.yaml:\d+: FC407 warning: pier-one: a usable share of 0\.999 .*\n", out)
    file.write_text(GOOD.replace("fraction: 0.87", "fraction: 8.7"), encoding="utf-8")
    assert run("--format", "plain")[0] == 20


def test_a_file_is_checked_on_top_of_the_shipped_catalogue(shipped):
    mine = shipped.parent / "mine.yaml"
    mine.write_text(ENGINE.replace("Heron\n", "Heron\n  aliases: [gull]\n"), encoding="utf-8")
    code, out = run(mine, "--format", "plain")
    assert code == 20
    assert out == "mine.yaml:4: FC111 error: heron: 'gull' is also a name of the engine 'gullrun'\n"


def test_a_folder_is_its_yaml_files_and_a_file_is_read_once(shipped):
    (shipped / "more.yaml").write_text(ENGINE, encoding="utf-8")
    (shipped / "notes.txt").write_text("not a catalogue", encoding="utf-8")
    assert run(shipped, shipped / "more.yaml", "data/models.yaml") == (0, "no findings in 2 files\n")
    assert run(shipped / "more.yaml") == (0, "no findings in 1 file\n")


def test_a_missing_file_and_an_empty_folder_are_data_errors(shipped):
    with pytest.raises(DataError, match="no such file"):
        run("nowhere.yaml")
    (shipped.parent / "empty").mkdir()
    with pytest.raises(DataError, match=r"no \*\.yaml files"):
        run("empty")


def test_windows_files_are_read_alike(shipped):
    mine = shipped.parent / "mine.yaml"
    mine.write_bytes(b"\xef\xbb\xbf" + ENGINE.replace("preference: 2", "preference: two").replace("\n", "\r\n").encode())
    assert run(mine, "--format", "plain")[1].startswith("mine.yaml:5: FC003 error: heron: preference: ")
    assert lint([("x", read_text(mine))]) == lint([("x", read_text(mine).replace("\r\n", "\n"))])


def test_json_on_the_command_line(shipped):
    (shipped / "models.yaml").write_text(GOOD.replace("fraction: 0.87", "fraction: 8.7"), encoding="utf-8")
    code, out = run("--format", "json")
    answer = json.loads(out)
    assert code == 20
    assert answer["counts"] == {"errors": 1, "files": 1, "warnings": 0}
    assert [(one["id"], one["path"]) for one in answer["findings"]] == [("FC003", "data/models.yaml")]


# The formats


def test_plain_is_one_line_for_each():
    assert as_plain([ERROR, WARNING]) == (
        "data/a,b:c.yaml:12: FC203 error: tern: says 4%, its bytes say 8, or so\n"
        "data/models.yaml:3: FC102 warning: tern: source 'old' is never used\n"
    )
    assert as_plain([]) == ""


def test_github_annotations_are_escaped():
    assert as_github([ERROR, WARNING]) == (
        "::error file=data/a%2Cb%3Ac.yaml,line=12,title=FC203::tern: says 4%25, its bytes say 8, or so%0Acheck it\n"
        "::warning file=data/models.yaml,line=3,title=FC102::tern: source 'old' is never used%0Aremove it\n"
    )


def test_json_has_findings_and_counts():
    answer = json.loads(as_json([WARNING], 2))
    assert answer == {
        "counts": {"errors": 0, "files": 2, "warnings": 1},
        "findings": [
            {
                "hint": "remove it",
                "id": "FC102",
                "line": 3,
                "message": "tern: source 'old' is never used",
                "path": "data/models.yaml",
                "severity": "warning",
            }
        ],
    }


def test_text_is_grouped_by_file_and_says_what_each_id_asks_for():
    assert as_text([WARNING, WARNING], 2, colour=False) == (
        "data/models.yaml\n"
        "     3  FC102 warning  tern: source 'old' is never used\n"
        "     3  FC102 warning  tern: source 'old' is never used\n"
        "\n"
        "FC102  a source is never used: name it at the figures that rest on it, or remove it\n"
        "2 warnings in 2 files\n"
    )


def test_colour_only_where_it_is_asked_for():
    assert "\x1b[" not in as_text([ERROR], 1, colour=False)
    assert "\x1b[31mFC203 error" in as_text([ERROR], 1, colour=True)


def test_markup_in_data_is_shown_and_not_obeyed():
    finding = Finding("FC203", "error", "[red]x[/red] :smile: [link=https://example.org]y[/link]", "a.yaml", 1, "h")
    assert "[red]x[/red] :smile: [link=https://example.org]y[/link]" in as_text([finding], 1, colour=True)


@pytest.mark.parametrize(
    ("findings", "files", "line"),
    [
        ([], 1, "no findings in 1 file"),
        ([ERROR, WARNING, WARNING], 6, "1 error, 2 warnings in 6 files"),
        ([WARNING], 2, "1 warning in 2 files"),
    ],
)
def test_the_count(findings, files, line):
    assert summary(findings, files) == line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]8;;https://example.org\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\x", "x"),
        ("\x1bcreset", "reset"),
        ("a\x1b", "a"),
        ("two\nlines\r\nmore\ttab", "two lines  more tab"),
        ("abc\u202edef\u2066g\u200b\u061c\ufeff", "abcdefg"),
        ("\ud800x\U000e0041y\u00ad", "xy"),
        ("bell\x07 back\x08 del\x7f nul\x00", "bell back del nul"),
        ("größe 漢字 é", "größe 漢字 é"),
    ],
)
def test_text_from_files_cannot_steer_a_terminal(text, shown):
    assert clean(text) == shown
    finding = Finding("FC203", "error", text, text, 1, "h")
    for written in (as_plain([finding]), as_github([finding]), as_json([finding], 1), as_text([finding], 1, colour=False)):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", written)
