"""The formats: terminal styles, Markdown as a renderer reads it, CSV as a spreadsheet does."""

import csv
import io

import pytest
from markdown_it import MarkdownIt

from fitcheck.views.document import Cell, Column, Document, Line, Table
from fitcheck.views.formats import as_csv, markdown, plain
from fitcheck.views.terminal import render

ADDRESS = "https://example.org/a_b*c/~d?x=1&y=(2)#frag"
TABLE = Table(
    "t", "Title", (Column("what"), Column("how many", right=True)), ((Cell("a|b"), Cell("1,234,567")), (Cell(ADDRESS), Cell("-")))
)
DOCUMENT = Document(
    "Heading *with* stars",
    (Line("verdict", "FITS: all of it", "good"), Line("link", f"see {ADDRESS}, or not"), TABLE),
    ("first note", "- second <b>note</b> &lt;", "3. third"),
)


def test_headings_and_facts_are_not_dim_and_labels_are():
    text = render(DOCUMENT, width=80, colour=True)
    assert "\x1b[1mHeading *with* stars\x1b[0m" in text
    assert "\x1b[1mTitle\x1b[0m" in text
    assert "\x1b[2m  verdict  \x1b[0m\x1b[32mFITS: all of it\x1b[0m" in text
    assert f"\x1b[2m  link     \x1b[0msee {ADDRESS}, or not" in text
    assert "\x1b[2mnote  \x1b[0mfirst note" in text


def test_markdown_keeps_addresses_as_links_and_notes_apart():
    html = MarkdownIt("commonmark").enable("table").render(markdown(DOCUMENT))
    assert html.count(f'href="{ADDRESS.replace("&", "&amp;")}"') == 2
    assert "<h2>Heading *with* stars</h2>" in html
    assert "<li>first note</li>\n<li>- second &lt;b&gt;note&lt;/b&gt; &amp;lt;</li>\n<li>3. third</li>" in html
    assert "<td>a|b</td>" in html
    assert "</a>, or not</li>" in html


@pytest.mark.parametrize(
    "text", ["1) one", "+ plus", "# heading", "> quote", "~~gone~~", "<https://x.y>", "[a](b)", "a_b_c", "\\", "`x`", "*"]
)
def test_markdown_shows_text_as_it_is(text):
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown(Document("h", (Line("", text),))))
    shown = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f"<li>{shown}</li>" in html or text.startswith("<https")


def test_csv_begins_with_what_was_asked():
    asked = {"command": "fit", "cluster": {"device": "spark", "count": 2}, "checkpoint": None, "models": ["a", "b"]}
    rows = list(csv.reader(io.StringIO(as_csv(DOCUMENT, asked))))
    assert rows[:6] == [
        ["section", "name", "value"],
        ["question", "heading", "Heading *with* stars"],
        ["question", "command", "fit"],
        ["question", "cluster.device", "spark"],
        ["question", "cluster.count", "2"],
        ["question", "models", "a b"],
    ]
    assert ["t", "a|b", "1234567"] in rows


def test_numbers_for_programs_have_no_separators():
    assert "t\ta|b\t1234567\n" in plain(DOCUMENT)


@pytest.mark.parametrize("text", ["--checkpoint", "--place drafter=gpu", "-15.93", "-", "+4", "-1,234.5", "12 %", "plain", ""])
def test_csv_leaves_options_and_numbers_as_they_are(text):
    table = Table("t", "T", (Column("x"), Column("y")), ((Cell(text), Cell("z")),))
    assert next(csv.reader(io.StringIO(as_csv(Document("h", (table,))).split("\r\n", 1)[1])))[0] == text.replace(",", "")


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "@SUM(A1)", "--cmd|'/c calc'!A0", "--a(b)", "\uff1d1"]
)
def test_csv_never_begins_a_formula(text):
    table = Table("t", "T", (Column("x"), Column("y")), ((Cell(text), Cell("z")),))
    assert next(csv.reader(io.StringIO(as_csv(Document("h", (table,))).split("\r\n", 1)[1])))[0] == f"'{text}"
