"""Machines described in words. Expected bytes are worked out by hand: GiB is 1024³, GB is 1000³."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitcheck.catalogue.described import MOST_BYTES, MOST_BYTES_PER_S, Described, parse_described
from fitcheck.catalogue.lookup import find_cluster
from fitcheck.errors import UnknownId, UsageError
from fitcheck.units import GIB
from tests.cli.run import inside

CHIPS = [None, "nvidia", "amd", "apple", "intel", "cpu"]


@pytest.mark.parametrize(
    ("spec", "count", "visible", "bandwidth", "chip", "unified"),
    [
        ("24GiB", 1, 25_769_803_776, None, "nvidia", False),
        ("2x24GiB@936GB/s", 2, 25_769_803_776, 936_000_000_000, "nvidia", False),
        ("2 × 24 gib @ 936 gb/s", 2, 25_769_803_776, 936_000_000_000, "nvidia", False),
        ("24GiB@936GB/s*2", 2, 25_769_803_776, 936_000_000_000, "nvidia", False),
        ("8x80GB@3.35TB/s:amd", 8, 80_000_000_000, 3_350_000_000_000, "amd", False),
        ("96GiB unified:apple", 1, 103_079_215_104, None, "apple", True),
        ("96GiB:apple", 1, 103_079_215_104, None, "apple", True),
        ("96GiB:unified:amd@256GB/s", 1, 103_079_215_104, 256_000_000_000, "amd", True),
        ("96GiB@256GB/s unified amd", 1, 103_079_215_104, 256_000_000_000, "amd", True),
        ("16GiB:intel", 1, 17_179_869_184, None, "intel", False),
        ("64GiB@80GB/s:cpu", 1, 68_719_476_736, 80_000_000_000, "cpu", True),
    ],
)
def test_a_machine_as_it_is_described(catalogue, spec, count, visible, bandwidth, chip, unified):
    found = find_cluster(catalogue, spec)
    memory = found.device.memory
    assert (found.count, memory.visible[0].value, found.device.chip, memory.unified) == (count, visible, chip, unified)
    assert (memory.bandwidth_bytes_per_s.value if memory.bandwidth_bytes_per_s else None) == bandwidth
    assert find_cluster(catalogue, found.label).device == found.device


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("24GiB@936Gb/s", "bits a second"),
        ("24GiB@936Gbit/s", "bits a second"),
        ("24GiB@", "cannot read '24GiB@' as a machine"),
        ("24GiB@936", "as a machine"),
        ("24GiB@0GB/s", "of bandwidth makes no sense"),
        ("24GiB@936GB/s@2GB/s", "as a machine"),
        ("24@936GB/s", "as a machine"),
        ("0GiB", "'0GiB' of memory makes no sense"),
        ("9999999999TiB", "of memory makes no sense"),
        ("24GiB:foo", "'foo' is no chip"),
        ("24GiB:amd:intel", "names 2 chips"),
        ("24G", "cannot read '24G' as a size"),
        ("0x24GiB", "a cluster of 0 devices"),
        ("9999x24GiB", "a cluster of 9999 devices"),
        (f"{'9' * 60}GiB", "60 digits"),
    ],
)
def test_a_description_that_cannot_be_read_says_what_to_write(catalogue, spec, message):
    with pytest.raises(UsageError, match=message) as caught:
        find_cluster(catalogue, spec)
    assert caught.value.hint


@pytest.mark.parametrize("spec", ["5070ti", "2x5070Ti", "24", "2x16", "rtx 24g"])
def test_what_only_begins_with_a_number_is_an_unknown_device(catalogue, spec):
    with pytest.raises(UnknownId, match="unknown device") as caught:
        find_cluster(catalogue, spec)
    assert "2x24GiB@936GB/s" in caught.value.hint


@given(
    size=st.one_of(st.integers(1, MOST_BYTES), st.integers(1, 400).map(lambda gib: gib * GIB)),
    rate=st.none() | st.integers(1, MOST_BYTES_PER_S),
    chip=st.sampled_from(CHIPS),
    unified=st.booleans(),
)
def test_what_is_printed_is_read_back_as_it_was(size, rate, chip, unified):
    machine = Described(size, rate, chip, unified or chip in ("apple", "cpu"))
    assert parse_described(machine.text) == machine


@given(st.text(alphabet="0123456789.,_ xX*@:/GgBbiITMKsunifedamplt-", max_size=40))
def test_any_text_is_a_description_or_one_clear_error(text):
    try:
        machine = parse_described(text)
    except UsageError:
        return
    assert parse_described(machine.text) == machine


@pytest.mark.parametrize(
    ("spec", "share"),
    [
        ("96GiB:apple", "0.75"),
        ("24GiB:apple", "0.66"),  # data/engines.yaml: about 75 % above 36 GB, about two thirds below
    ],
)
def test_macos_limits_every_engine_on_a_described_mac(catalogue, spec, share):
    device = find_cluster(catalogue, spec).device
    assert {(usable.engine, str(usable.fraction)) for usable in device.usable} == {("mlx", share), ("llama.cpp", share)}
    assert set(device.usable[0].source) <= set(device.sources)


def test_fit_takes_a_description_and_says_what_it_takes_for_granted():
    ran = inside("fit", "gpt-oss-20b", "--cluster", "2x24GiB@936GB/s", "--format", "json", "--as-of", "2026-11-30")
    answer = json.loads(ran.out)
    assert (ran.code, answer["inputs"]["cluster"]) == (0, {"device": "24GiB@936GB/s", "count": 2})
    assumed = [row["text"] for row in answer["result"]["assumptions"] if row["option"] == "--cluster"]
    assert any("nvidia" in text for text in assumed)
    assert answer["result"]["cluster"]["visible_bytes"] == 25_769_803_776


def test_recommend_takes_a_description():
    answer = json.loads(inside("recommend", "--cluster", "24GiB", "--format", "json", "--as-of", "2026-11-30").out)
    assert answer["inputs"]["cluster"] == {"device": "24GiB", "count": 1}
    assert answer["result"]["rows"]
    assert answer["result"]["assumptions"][0]["option"] == "--cluster"


def test_cost_says_which_options_a_described_machine_needs():
    asked = ("cost", "gpt-oss-120b", "--tokens", "50M", "--cluster", "2x48GiB", "--as-of", "2026-11-30", "--format", "json")
    missing = []
    for options in ([], ["--speed", "60"], ["--speed", "60", "--price", "9000"]):
        missing.append(json.loads(inside(*asked, *options).out)["result"]["own_missing"])
    assert [option in text for option, text in zip(["--speed", "--price", "--watts"], missing, strict=True)] == [True] * 3
    full = json.loads(inside(*asked, "--speed", "60", "--price", "9000", "--watts", "700").out)["result"]
    assert full["own"]["cluster"]["device"] == "48GiB"
    assert full["own_missing"] is None


def test_hardware_shows_a_description():
    ran = inside("hardware", "24GiB@936GB/s:amd")
    assert ran.code == 0
    assert "936 GB/s" in ran.out
