"""docs/accuracy.md is current, and what it publishes holds: on logs, on llama.cpp's own counts, on whole devices."""

import importlib
import sys

import pytest

from fitcheck.units import GIB
from tests.conftest import ROOT

DATA = ROOT / "tests" / "data" / "accuracy"


@pytest.fixture(scope="module", autouse=True)
def _scripts_importable():
    sys.path.insert(0, str(ROOT / "scripts"))
    yield
    sys.path.remove(str(ROOT / "scripts"))


@pytest.fixture(scope="module")
def figures():
    return importlib.import_module("accuracy_figures")


@pytest.fixture(scope="module")
def whole():
    return importlib.import_module("accuracy_whole")


@pytest.fixture(scope="module")
def answers(figures):
    return figures.answers()


def test_the_page_is_current(monkeypatch, capsys):
    page = importlib.import_module("write_accuracy")
    monkeypatch.setattr(sys, "argv", ["write_accuracy.py", "--check"])
    assert page.main() == 0, capsys.readouterr().err


def test_what_vllm_counts_itself_is_counted_or_explained():
    vllm = importlib.import_module("accuracy_vllm")
    found = vllm.counts()
    assert len(found) >= 1020
    assert sum(count.equal for count in found) >= 0.97 * len(found)
    assert [count.row for count in found if not count.equal and vllm.cause_of(count.row) is None] == []


def test_errors_on_logs_as_asked(figures, answers):
    measured = figures.Measures.of(answer.error for answer in answers)
    assert measured.rows == 167
    assert measured.median <= 0.001
    assert measured.p90 <= 0.032
    assert measured.within_3 >= 0.86
    assert measured.unknown <= 0.05 * measured.rows


def test_errors_on_logs_with_what_their_sources_state(figures, answers):
    measured = figures.Measures.of(answer.told for answer in answers)
    assert measured.median <= 0.001
    assert measured.p90 <= 0.01
    assert measured.within_3 >= 0.95
    assert measured.under == 0
    assert measured.unknown <= 0.05 * measured.rows


def test_the_plain_formula_is_right_on_fewer_than_two_in_five(figures, answers):
    assert figures.Measures.of(answer.plain for answer in answers).within_3 < 0.4


def test_every_miss_is_explained_and_every_explanation_is_of_a_miss(figures, answers):
    off = {answer.row["id"] for answer in answers if answer.error is None or abs(answer.error) > figures.MISS}
    explained = [name for miss in figures.notes()["misses"] for name in miss["rows"]]
    assert len(explained) == len(set(explained))
    assert off == set(explained)


def test_llamacpp_is_counted_to_the_byte(figures):
    wrong = [row for row, equal in figures.exact_rows() if not equal]
    assert not wrong


def test_whole_devices(whole, catalogue):
    logs, _ = whole.whole_logs(catalogue)
    stock, _, _ = whole.whole_recipes(catalogue)
    assert sum(device.good for device in logs + stock) >= 0.8 * len(logs + stock)


def test_overheads_of_logs_that_were_read_later(whole, catalogue):
    used, unseen = whole.whole_unseen(catalogue)
    assert all(abs(device.overhead - device.seen) < 0.8 * GIB for device in used)
    assert all(abs(device.error) < 0.01 for device in used)
    assert sum(device.good for device in unseen) >= 0.5 * len(unseen)


def test_caches_of_logs_that_were_read_later(figures, whole, catalogue):
    # printed to 0.01 GiB, and the concurrency to two decimals
    rows = {row["id"]: row for row in figures.read_rows("unseen")}
    for device in (device for kind in whole.whole_unseen(catalogue) for device in kind):
        assert device.cache == pytest.approx(rows[device.name]["kv_bytes"], rel=0.005), device.name


def test_every_whole_device_that_is_missed_has_its_cause(figures, whole, catalogue):
    logs, _ = whole.whole_logs(catalogue)
    stock, _, _ = whole.whole_recipes(catalogue)
    explained = {name for entry in figures.notes()["devices"] for name in entry["rows"]}
    assert {device.name for device in logs + stock if not device.good} == explained


@pytest.mark.parametrize("name", ["architectures", "logs", "devices", "unseen"])
def test_every_row_says_where_it_is_from(figures, name):
    for row in figures.read_rows(name):
        assert row["source"] == "address not known" or row["source"].startswith(("https://", "pypi:")), row


def test_the_figures_stay_small():
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 500_000
