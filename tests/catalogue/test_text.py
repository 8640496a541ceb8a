"""YAML's traps, each shut: what plain text becomes, what is refused and where, and that nothing else ever comes out."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fitcheck.catalogue.hardware import Engine
from fitcheck.catalogue.load import aliases_written, build, read_text
from fitcheck.catalogue.text import MAX_DEPTH, YamlProblem, parse, scan_records, split_records

AS_WRITTEN = [
    ("no", "no"),
    ("Yes", "Yes"),
    ("on", "on"),
    ("TRUE", "TRUE"),
    ("12:30", "12:30"),
    ("12:30:45", "12:30:45"),
    ("010", "010"),
    ("0x1F", "0x1F"),
    ("0b11", "0b11"),
    ("1_000", "1_000"),
    ("1e-3", "1e-3"),
    (".5", ".5"),
    ("+1", "+1"),
    (".inf", ".inf"),
    (".nan", ".nan"),
    ("2026-09-10", "2026-09-10"),
    ("2026-09-10 12:00:00", "2026-09-10 12:00:00"),
    ("=", "="),
    ("'7'", "7"),
    ('"true"', "true"),
    ("!!str 12", "12"),
    ("true", True),
    ("false", False),
    ("null", None),
    ("~", None),
    ("", None),
    ("0", 0),
    ("-12", -12),
    ("197822818044", 197822818044),
    ("0.10", Decimal("0.10")),
    ("0.1e-2", Decimal("0.001")),
    ("[a, 1, 0.5]", ["a", 1, Decimal("0.5")]),
    ("{x: no, y: 010}", {"x": "no", "y": "010"}),
]

REFUSED = [
    ("a: 1\nb: 2\na: 3", 3, "duplicate"),
    ("a:\n  b: {c: 1, c: 2}", 2, "duplicate"),
    ('a: 1\n"a": 2', 2, "duplicate"),
    ("a: &x 1\nb: *x", 2, "alias"),
    ("a: &x [1]\nb:\n  - 0\n  - [*x]", 4, "alias"),
    ("a: &x\n  <<: *x", 2, "alias"),
    ("a: *nowhere", 1, "alias"),
    ("a: 1\n---\nb: 2", 2, "unreadable"),
    ("a:\n\tb: 1", 2, "unreadable"),
    ("a: b: c", 1, "unreadable"),
    ("a: [1, 2", 2, "unreadable"),
    ('a: "open', 1, "unreadable"),
    ("a: 1\n? [x, y]\n: z", 2, "unreadable"),
    ("a: !!int seven", 1, "unreadable"),
    ("a: !!float seven", 1, "unreadable"),
    ("a: !!bool yes", 1, "unreadable"),
    ("a: !!null none", 1, "unreadable"),
    ("a: !!timestamp 2026-09-10", 1, "unreadable"),
    ("a: !!set {b}", 1, "unreadable"),
    ("a: !own 1", 1, "unreadable"),
    ("a: !!python/name:os.system", 1, "unreadable"),
    (f"a: {'9' * 40}", 1, "unreadable"),
    ("a: 1.0e400", 1, "unreadable"),
    ("a: 1.0e99999999999999999999", 1, "unreadable"),
    ("a: 0.0000000000000000000000000000000000000000001", 1, "unreadable"),
    ("a: " + "[" * 70 + "]" * 70, 1, "unreadable"),
    ("a: \x00", None, "unreadable"),
    ("a: \x1b[31m", None, "unreadable"),
    ("a: \ud800", None, "unreadable"),
]


@pytest.mark.parametrize(("written", "value"), AS_WRITTEN)
def test_plain_text_becomes_only_what_the_catalogue_means(written, value):
    read, _ = parse(f"a: {written}", "x.yaml")
    assert read == {"a": value}
    assert type(read["a"]) is type(value)


@pytest.mark.parametrize(("text", "line", "trap"), REFUSED)
def test_refused_with_line_and_sort(text, line, trap):
    with pytest.raises(YamlProblem) as caught:
        parse(text, "x.yaml")
    assert (caught.value.line, caught.value.trap) == (line, trap)


def test_lines_are_counted_from_where_the_text_stands_in_its_file():
    _, lines = parse("a:\n  b:\n    - 1\n    - {c: 2}", "x.yaml", first_line=101)
    assert lines["a",] == 101
    assert lines["a", "b"] == 102
    assert lines["a", "b", 1] == 104
    assert lines["a", "b", 1, "c"] == 104


def test_nesting_up_to_the_limit_is_read():
    depth = MAX_DEPTH - 1
    value, _ = parse(f"a: {'[' * depth}{']' * depth}", "x.yaml")
    for _ in range(depth):
        value = value[0] if isinstance(value, list) else value["a"]
    assert value == []


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_absurd_nesting_is_refused_quickly(depth):
    for text in ("a: " + "[" * depth, "a: " + "{a: " * depth, "a: " + "- " * depth):
        with pytest.raises(YamlProblem):
            parse(text, "x.yaml")


def test_a_billion_laughs_are_refused_before_they_grow():
    levels = "".join(f"\n  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30))
    with pytest.raises(YamlProblem) as caught:
        parse(f"lol:\n  l0: &l0 ha{levels}", "x.yaml")
    assert (caught.value.line, caught.value.trap) == (3, "alias")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_records_are_split_alike_for_every_line_ending(ending):
    text = ending.join(["# note", "", "---", "one:", "  kind: engine", '"two":', "  kind: device # comment", "..."]) + ending
    assert [(block.id, block.kind, block.line) for block in split_records(text, "x.yaml")] == [("one", "engine", 4), ("two", "device", 6)]


def test_a_byte_order_mark_is_no_part_of_the_first_id(tmp_path):
    file = tmp_path / "bom.yaml"
    file.write_bytes(b"\xef\xbb\xbfone:\n  kind: engine\n")
    assert [block.id for block in split_records(read_text(file), "x.yaml")] == ["one"]


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n"])
def test_a_file_without_records_is_empty_not_broken(text):
    assert split_records(text, "x.yaml") == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- a\n- b\n", 1),
        ("one:\n  kind: engine\n- two:\n", 3),
        ("  kind: engine\none:\n", 1),
        ("one:\n  kind: engine\n{two: 2}\n", 3),
        ("&anchor one:\n", 1),
        ("!tag one:\n", 1),
        ("? one\n: 1\n", 1),
        ("%YAML 1.2\n", 1),
        ("--- {one: 1}\n", 1),
        ("one:\n  kind: engine\none:\n", 3),
        ("just words\n", 1),
    ],
)
def test_what_cannot_stand_at_the_start_of_a_line(text, line):
    with pytest.raises(YamlProblem) as caught:
        split_records(text, "x.yaml")
    assert caught.value.line == line


def test_every_problem_of_a_file_is_told_and_the_sound_records_are_kept():
    blocks, problems = scan_records("- a\none:\n  kind: engine\n}\ntwo:\n  kind: engine\none:\n  kind: engine\n", "x.yaml")
    assert [(block.id, block.line) for block in blocks] == [("one", 2), ("two", 5), ("one", 7)]
    assert [(problem.line, problem.trap) for problem in problems] == [(1, "unreadable"), (4, "unreadable"), (7, "duplicate")]


@pytest.mark.parametrize(
    "text", ["one: 1\n", "one:\n", "one: [kind, engine]\n", '"o\\x6ee":\n  kind: engine\n', "one: text\n  kind: engine\n"]
)
def test_a_record_that_is_no_mapping_of_its_id_is_a_data_error(text):
    (block,) = split_records(text, "x.yaml")
    with pytest.raises(YamlProblem):
        build(Engine, block)


@pytest.mark.parametrize("figure", ['value: "3 Gigs", source: s', "value: 3, source: []", "value: 1.0e30, source: s"])
def test_a_figure_that_no_reader_takes_is_a_data_error_with_its_file(figure):
    text = f"one:\n  kind: engine\n  name: One\n  chips: [nvidia]\n  preference: 1\n  overhead: {{engine: one, {figure}}}\n"
    (block,) = split_records(text, "x.yaml")
    with pytest.raises(YamlProblem, match=r"^x\.yaml:\d: one: "):
        build(Engine, block)


def test_aliases_are_seen_without_parsing():
    (block,) = split_records("one:\n  kind: engine\n  aliases: [uno, \"eins\", 'un']\n  note: {aliases: [no]}\n", "x.yaml")
    assert aliases_written(block) == ["uno", "eins", "un"]


YAMLISH = st.lists(
    st.one_of(
        st.sampled_from(
            [*"ab:-?,[]{}#&*!|>'\"%@`~ \n\t\r\x00\x1b\x85\u2028\ufeff", "\n  ", ": ", "- ", "!!int ", "1.0e999999999", "*a", "&a "]
        ),
        st.text(max_size=3),
    ),
    max_size=40,
).map("".join)


@settings(max_examples=300, deadline=None, database=None)
@given(YAMLISH)
def test_parse_raises_nothing_but_its_own_problem(text):
    try:
        parse(text, "x.yaml")
    except YamlProblem:
        return


@settings(max_examples=400, deadline=None, database=None)
@example("one:\n  kind: engine\x85two: 1\n")
@example("one:\n\u2028- x\n")
@example("one:\n\x0c*x\n")
@given(YAMLISH)
def test_splitting_raises_nothing_but_its_own_problem(text):
    blocks, problems = scan_records(text, "x.yaml")
    if problems:
        with pytest.raises(YamlProblem, match=re.escape(str(problems[0]))):
            split_records(text, "x.yaml")
    else:
        assert split_records(text, "x.yaml") == blocks
