from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitcheck.errors import UsageError
from fitcheck.units import (
    counted_from,
    format_gib,
    format_instant,
    format_size,
    parse_bandwidth,
    parse_bytes,
    parse_context,
    parse_instant,
    parse_volume,
    short_bandwidth,
    short_size,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("128 GB", 128_000_000_000),
        ("102GiB", 109_521_666_048),  # 102 x 1,073,741,824
        ("121.69 gib", 130_663_642_563),  # 121.69 x 1,073,741,824 = 130,663,642,562.56
        ("64KiB", 65_536),
        ("1 TB", 1_000_000_000_000),
        ("197_822_818_044 B", 197_822_818_044),
    ],
)
def test_sizes_are_read_with_their_unit(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["128", "", "GB", "-3 GB", "1e9 B", "nan GB", "12 Gb/s", "1.2.3 GB", "5 iB"])
def test_a_size_without_a_clear_unit_is_refused(text):
    with pytest.raises(UsageError, match="as a size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("936GB/s", 936_000_000_000),
        ("3.35 TB/s", 3_350_000_000_000),
        ("936gb/s", 936_000_000_000),
        ("1GiB/sec", 1_073_741_824),
    ],
)
def test_bandwidths_are_bytes_a_second(text, expected):
    assert parse_bandwidth(text) == expected


@pytest.mark.parametrize("text", ["936Gb/s", "936 Gbit/s", "936gbps", "936GB", "GB/s", "936", ""])
def test_bits_and_bare_numbers_are_no_bandwidth(text):
    with pytest.raises(UsageError, match=r"bits a second|as a bandwidth") as caught:
        parse_bandwidth(text)
    assert "936GB/s" in caught.value.hint


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (25_769_803_776, "24GiB"),  # 24 x 1,073,741,824
        (80_000_000_000, "80GB"),
        (25_757_220_864, "24564MiB"),  # 24,564 x 1,048,576, as nvidia-smi prints an RTX 4090
        (576, "576B"),
        (130_663_006_208, "127600592KiB"),  # MemTotal of a DGX Spark: 127,600,592 kB
        (25_286_017_025, "25286017025B"),
    ],
)
def test_a_short_size_is_exact(size, text):
    assert short_size(size) == text


@given(st.integers(1, 10**16))
def test_short_texts_are_read_back(value):
    assert parse_bytes(short_size(value)) == value
    assert parse_bandwidth(short_bandwidth(value)) == value


@pytest.mark.parametrize(
    ("text", "expected"), [("262144", 262_144), ("128k", 131_072), ("1M", 1_048_576), ("32,768", 32_768), ("0.5k", 512)]
)
def test_context_lengths_are_binary(text, expected):
    assert parse_context(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("50M", 50_000_000), ("2.5B", 2_500_000_000), ("500k", 500_000), ("7", 7)])
def test_volumes_are_decimal(text, expected):
    assert parse_volume(text) == expected


@pytest.mark.parametrize("text", ["-5", "0", "1.5", "k", "12x", "inf", "nan", "", "10 MM"])
def test_counts_that_make_no_sense_are_refused(text):
    with pytest.raises(UsageError):
        parse_context(text)
    with pytest.raises(UsageError):
        parse_volume(text)


def test_a_month_counts_from_its_end():
    assert counted_from("2026-09") == date(2026, 9, 30)
    assert counted_from("2024-02") == date(2024, 2, 29)
    assert counted_from("2026-09-10") == date(2026, 9, 10)


def test_an_instant_needs_a_time_and_a_zone():
    assert format_instant(parse_instant("2026-08-17T00:00+08:00")) == "2026-08-16T16:00Z"
    for text in ("2026-08-17", "2026-08-17T00:00", "yesterday"):
        with pytest.raises(ValueError, match=r".+"):
            parse_instant(text)


def test_sizes_are_shown_with_their_unit():
    assert format_gib(130_663_006_208) == "121.69 GiB"
    assert format_size(576) == "576 B"
    assert format_size(147_619_840) == "140.8 MiB"  # 147,619,840 / 1,048,576 = 140.78


@given(st.integers(min_value=0, max_value=2**60))
def test_bytes_print_and_parse_back(size_bytes):
    assert parse_bytes(f"{size_bytes} B") == size_bytes


@given(st.integers(min_value=1, max_value=10**6))
def test_binary_and_decimal_units_differ_by_what_they_should(count):
    assert parse_bytes(f"{count} GiB") == count * 1024**3
    assert parse_bytes(f"{count} GB") == count * 1000**3
