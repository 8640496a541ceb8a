"""What engines printed is read as it was printed, and the predictions come as close as is written beside it."""

from decimal import Decimal

import pytest

from fitcheck.fit.calibrate import calibrate
from fitcheck.fit.calibrate_ask import calibration_case
from fitcheck.fit.printed import Fact
from fitcheck.sources.logs import read_logs
from fitcheck.sources.logs.printed import printed_of
from fitcheck.units import parse_bytes
from tests.conftest import AS_OF
from tests.sources.logs.golden import ROWS, model, write

IDS = [row["id"] for row in ROWS]
SIZES = ("weights", "weights_file", "kv", "needed", "state", "compute", "graphs", "activation", "non_torch", "total")


@pytest.fixture
def asked(tmp_path, catalogue):
    def answer(row):
        printed = printed_of(read_logs([write(tmp_path, row)]))
        return calibration_case(
            catalogue,
            printed,
            as_of=AS_OF,
            source="file:test.log",
            model=model(row["model"]) if "model" in row else None,
            cluster=row.get("cluster"),
        )

    return answer


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_what_was_printed_is_read(row, asked):
    printed = asked(row).printed
    for name, expected in row["reads"].items():
        value = getattr(printed, name)
        if isinstance(value, Fact):
            wanted = parse_bytes(expected) if name in SIZES else expected
            assert abs(value.value - wanted) <= 1, name
            assert value.line in row["lines"] or value.line.strip() in " ".join(row["lines"].split()), name
        elif isinstance(value, Decimal):
            assert value == Decimal(expected), name
        else:
            assert value == expected, name


@pytest.mark.parametrize("row", [row for row in ROWS if "settings" in row], ids=lambda row: row["id"])
def test_settings_reach_the_allocator_by_its_own_names(row, asked):
    assert row["settings"].items() <= asked(row).printed.named.items()


@pytest.mark.parametrize("row", [row for row in ROWS if "within" in row], ids=lambda row: row["id"])
def test_predictions_come_as_close_as_they_should(row, asked):
    errors = {line.term: line for line in calibrate(asked(row)).rows}
    for term, most in row["within"].items():
        assert errors[term].error is not None, errors[term].because
        assert abs(errors[term].error) <= most, errors[term]


@pytest.mark.parametrize("row", [row for row in ROWS if "overhead_gib" in row], ids=lambda row: row["id"])
def test_the_overhead_is_what_is_left_of_the_share(row, asked):
    measured = calibrate(asked(row)).measured
    assert measured.overhead_bytes / 1024**3 == pytest.approx(row["overhead_gib"], abs=0.02)


@pytest.mark.parametrize("row", [row for row in ROWS if "speeds" in row], ids=lambda row: row["id"])
def test_speeds_beside_the_start(row, asked):
    assert [f"{each.phase} {each.tok_per_s} of {each.users} users" for each in asked(row).printed.speeds] == row["speeds"]


@pytest.mark.parametrize("row", [row for row in ROWS if "not_compared" in row], ids=lambda row: row["id"])
def test_what_cannot_be_compared_is_said(row, asked):
    report = calibrate(asked(row))
    assert any(row["not_compared"] in text for text in report.not_compared)
    assert all(line.error is None for line in report.rows if line.term.startswith("KV cache"))


def test_every_row_names_its_source():
    assert all(row["source"].startswith("https://") for row in ROWS)
    assert len(set(IDS)) == len(IDS)
