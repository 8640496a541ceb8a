"""Lint: nothing in a good catalogue, exactly one finding for each mistake, and never an exception."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitcheck.catalogue.lint import MEANINGS, lint
from fitcheck.catalogue.load import read_text
from tests.catalogue.lint_mutations import MUTATIONS

HERE = Path(__file__).parent
GOOD = (HERE / "good.yaml").read_text(encoding="utf-8")
BAD = sorted((HERE / "bad").glob("*.yaml"))
DOCUMENTATION = HERE.parent.parent / "docs" / "findings.md"


def found(text, base=()):
    return [(finding.id, finding.line) for finding in lint([("x.yaml", text)], base)]


def expected(text):
    """The golden first line of a bad file: `# expect: FC001@5, FC002@9`."""
    return sorted((finding, int(line)) for finding, line in re.findall(r"(FC\d{3})@(\d+)", text.splitlines()[0]))


def test_a_good_catalogue_has_no_findings():
    assert lint([("good.yaml", GOOD)]) == []


def test_the_shipped_catalogue_has_no_errors():
    files = sorted((HERE.parent.parent / "data").glob("*.yaml"))
    assert [finding for finding in lint([(file.name, read_text(file)) for file in files]) if finding.severity == "error"] == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[f"{mutation.id}-{index}" for index, mutation in enumerate(MUTATIONS)])
def test_each_mistake_is_found_once_and_at_its_line(mutation):
    assert GOOD.count(mutation.old) == 1
    mutated = GOOD.replace(mutation.old, mutation.new)
    piece = mutation.at or mutation.new.lstrip("\n").split("\n")[0]
    assert mutated.count(piece) == 1
    line = mutated[: mutated.index(piece)].count("\n") + 1
    assert found(mutated) == [(mutation.id, line)]


@pytest.mark.parametrize("file", BAD, ids=[file.stem for file in BAD])
def test_bad_files_give_what_their_first_line_says(file):
    text = file.read_bytes().decode()
    assert sorted(found(text)) == expected(text)


def test_every_finding_is_shown_by_a_mistake():
    shown = {mutation.id for mutation in MUTATIONS} | {one for file in BAD for one, _ in expected(file.read_text(encoding="utf-8"))}
    assert shown | {"FC008"} == set(MEANINGS)


def test_every_finding_is_documented_as_it_is():
    rows = re.findall(r"^\| (FC\d{3}) \| (error|warning) \| (.+?) \|", DOCUMENTATION.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(finding_id, known.severity, known.meaning) for finding_id, known in MEANINGS.items()]


def test_findings_carry_the_severity_and_hint_of_their_id():
    for mutation in MUTATIONS:
        for finding in lint([("x.yaml", GOOD.replace(mutation.old, mutation.new))]):
            assert (finding.severity, finding.hint) == (MEANINGS[finding.id].severity, MEANINGS[finding.id].hint)


def test_findings_come_in_the_order_of_files_and_lines():
    broken = "one:\n  kind: engine\n  speed: 7\ntwo:\n  kind: motor\n"
    findings = lint([("b.yaml", broken), ("a.yaml", broken.replace("one", "three").replace("two", "four"))])
    places = list(dict.fromkeys((finding.path, finding.line) for finding in findings))
    assert places == [("b.yaml", 1), ("b.yaml", 3), ("b.yaml", 5), ("a.yaml", 1), ("a.yaml", 3), ("a.yaml", 5)]


def test_all_problems_of_a_record_are_told_in_words():
    text = "pier:\n  kind: engine\n  name: 7\n  chips: [nvidia]\n  preference: first\n  sources: {}\n"
    messages = [finding.message for finding in lint([("x.yaml", text)])]
    assert [message.split(": ")[:2] for message in messages] == [["pier", "name"], ["pier", "preference"]]


# Several files and what lies beneath


def test_a_record_in_two_files_is_found_in_the_second():
    other = "gullrun:\n  kind: engine\n  name: Gullrun\n  chips: [nvidia]\n  preference: 1\n  sources: {}\n"
    (finding,) = lint([("good.yaml", GOOD), ("more.yaml", other)])
    assert (finding.id, finding.path, finding.line) == ("FC008", "more.yaml", 1)
    assert "good.yaml:" in finding.message


def test_references_resolve_in_what_lies_beneath():
    overlay = "heron:\n  kind: cluster\n  name: Heron\n  device: pier-one\n  count: 4\n  joined_by: a switch\n  sources: {}\n"
    assert found(overlay, [("good.yaml", GOOD)]) == []
    assert found(overlay) == [("FC106", 4)]


def test_nothing_is_reported_about_what_lies_beneath():
    broken = GOOD.replace("fraction: 0.87", "fraction: 8.7")
    assert found("", [("good.yaml", broken)]) == [("FC010", 1)]


def test_a_record_replaces_the_one_beneath():
    overlay = "gullrun:\n  kind: engine\n  name: Gullrun\n  aliases: [gull]\n  chips: [nvidia]\n  preference: 1\n  sources: {}\n"
    assert found(overlay, [("good.yaml", GOOD)]) == []


def test_a_name_taken_beneath_is_found_in_the_overlay():
    overlay = "g-ull:\n  kind: engine\n  name: Ull\n  chips: [nvidia]\n  preference: 1\n  sources: {}\n"
    assert found(overlay, [("good.yaml", GOOD)]) == [("FC111", 1)]


def test_a_broken_record_does_not_break_those_that_name_it():
    assert found(GOOD.replace("maker: Quayside\n", "maker: Quayside\n  colour: grey\n")) == [("FC003", 68)]


# Nothing makes lint raise

NASTY = st.sampled_from(
    [
        *[
            "",
            "0",
            "-1",
            "1e400000",
            '"1e400000"',
            "9" * 39,
            "9" * 400,
            '"NaN"',
            '"Infinity"',
            "0.000000000000000001",
            "true",
            "~",
            "[]",
            "{}",
        ],
        *['"0001-01-01T00:00+14:00"', '"9999-12-31T23:59-14:00"', '"0001-01"', '"9999-12"', '"2026-02-30"', "12:30", '"24:00"'],
        *['"999999999999999999999999999999 TiB"', '"1 GiB"', '"-1 B"', "../../etc/passwd", '"\\0"', '"\\ud800"', "!!int x", "*x", "&x y"],
    ]
)
VALUE = re.compile(r'(?<=: )(?:"[^"]*"|[^\s,{}\[\]"]+)(?=[,}\n])')
SPANS = [match.span() for match in VALUE.finditer(GOOD)]


@settings(max_examples=150, deadline=None, database=None)
@given(st.lists(st.tuples(st.sampled_from(SPANS), NASTY), min_size=1, max_size=3, unique_by=lambda change: change[0]))
def test_no_value_makes_lint_raise(changes):
    text = GOOD
    for (start, end), value in sorted(changes, reverse=True):
        text = text[:start] + value + text[end:]
    for finding in lint([("x.yaml", text)]):
        assert finding.id in MEANINGS
        assert 1 <= finding.line <= text.count("\n") + 1


@settings(max_examples=150, deadline=None, database=None)
@given(st.text(max_size=200), st.text(max_size=50))
def test_no_text_makes_lint_raise(text, more):
    for finding in lint([("x.yaml", text), ("y.yaml", f"a:\n  kind: model\n  name: {more}\n")], [("z.yaml", more)]):
        assert finding.path in {"x.yaml", "y.yaml"}


@settings(max_examples=60, deadline=None, database=None)
@given(st.integers(0, len(GOOD)), st.integers(0, 40), st.text(alphabet=":-{}[]\"'#&*!\n \t\x00\x1b\u2028ax1", max_size=6))
def test_no_damage_makes_lint_raise(start, length, junk):
    lint([("x.yaml", GOOD[:start] + junk + GOOD[start + length :])])
