"""Headers of safetensors files: as the library reads them, and what it or we refuse."""

import json
import struct
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open

from fitcheck.errors import DataError
from fitcheck.sources.stored.safetensors import DTYPE_BITS, MOST_HEADER_BYTES, MOST_TENSORS, header_length
from tests.sources.stored.files import parse, safetensors_bytes, save


def library(path):
    """Names, dtypes and shapes as the library says them, or None where it refuses the file."""
    try:
        with safe_open(path, "np") as opened:
            return {name: (opened.get_slice(name).get_dtype(), tuple(opened.get_slice(name).get_shape())) for name in opened.keys()}  # noqa: SIM118
    except SafetensorError:
        return None


def ours(raw):
    return {tensor.name: (tensor.dtype, tensor.shape) for tensor in parse(raw).tensors}


def with_header(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype="F32", shape=(1,), places=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(places)}


def test_a_file_by_the_library_reads_as_the_library_does(tmp_path):
    path = tmp_path / "model.safetensors"
    arrays = {
        "b": np.zeros((3, 5), np.float16),
        "a.weight": np.zeros((2, 2, 2), np.int64),
        "empty": np.zeros((0, 4), np.uint8),
        "one": np.array(1.5),
    }
    save(path, arrays, {"format": "pt"})
    header = parse(path.read_bytes())
    assert ours(path.read_bytes()) == library(path)
    assert {tensor.name: tensor.bytes for tensor in header.tensors} == {name: array.nbytes for name, array in arrays.items()}
    assert header.metadata == {"format": "pt"}
    assert header.header_bytes + sum(array.nbytes for array in arrays.values()) == path.stat().st_size


@pytest.mark.parametrize("dtype", sorted(DTYPE_BITS))
def test_every_dtype_takes_the_bytes_that_the_library_says(dtype, tmp_path):
    path = tmp_path / "model.safetensors"
    for size in range(1, 257):  # of 32 elements: only the right size is taken
        raw = safetensors_bytes({"x": (dtype, (8, 4), size)})
        path.write_bytes(raw)
        if library(path) is not None:
            assert size == 32 * DTYPE_BITS[dtype] // 8
            assert ours(raw) == {"x": (dtype, (8, 4))}
            return
    pytest.fail("the library takes no size")


HOSTILE = {
    "nothing": (b"", "only 0 bytes"),
    "a length of 2^63": (struct.pack("<Q", 1 << 63) + b"{}", "9,223,372,036,854,775,808 bytes, and the file has"),
    "a length of 2^64 - 1": (struct.pack("<Q", (1 << 64) - 1) + b"{}", "18,446,744,073,709,551,615"),
    "a length of nothing": (struct.pack("<Q", 0) + b"{}", "0 bytes, which cannot hold one"),
    "cut short": (safetensors_bytes({"x": ("F32", (4,), 16)})[:-4], "its header accounts for"),
    "more than it accounts for": (safetensors_bytes({"x": ("F32", (4,), 16)}) + b"....", "its header accounts for"),
    "not JSON": (with_header(b"{nothing}"), "not readable as JSON"),
    "not UTF-8": (with_header(b'{"\xff":1}'), "not UTF-8"),
    "a list": (with_header([1]), "not a JSON object"),
    "deep": (with_header(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "nested too deeply"),
    "NaN": (with_header(b'{"x":{"dtype":"F32","shape":[NaN],"data_offsets":[0,4]}}', bytes(4)), "NaN is not a number"),
    "Infinity": (with_header(b'{"x":{"dtype":"F32","shape":[-Infinity],"data_offsets":[0,4]}}', bytes(4)), "-Infinity is not a number"),
    "a key twice": (with_header(b'{"x":%b,"x":%b}' % ((json.dumps(entry()).encode(),) * 2), bytes(4)), "'x' is given twice"),
    "a nested key twice": (
        with_header(b'{"x":{"dtype":"F32","dtype":"F16","shape":[1],"data_offsets":[0,4]}}', bytes(4)),
        "'dtype' is given twice",
    ),
    "a real number": (with_header({"x": entry(shape=[1.0])}, bytes(4)), "1.0 is not whole"),
    "true for one": (with_header({"x": entry(shape=[True])}, bytes(4)), "not of whole numbers below 2\\^63"),
    "a negative size": (with_header({"x": entry(shape=[-1])}, bytes(4)), "not of whole numbers below 2\\^63"),
    "2^63": (with_header({"x": entry(shape=[1 << 63])}, bytes(4)), "not of whole numbers below 2\\^63"),
    "an end of 2^63": (with_header({"x": entry(places=[0, 1 << 63])}, bytes(4)), "an end below 2\\^63"),
    "a shape that is a text": (with_header({"x": {**entry(), "shape": "1"}}, bytes(4)), "not a list of at most 64 numbers"),
    "a thousand digits": (
        with_header(b'{"x":{"dtype":"F32","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,4]}}', bytes(4)),
        "Exceeds the limit",
    ),
    "a product of 2^64": (with_header({"x": entry(shape=[1 << 32, 1 << 32])}, bytes(4)), "do not take the 4 bytes"),
    "2^63 and 0": (with_header({"x": entry(shape=[1 << 62, 0, 1 << 62])}, bytes(4)), "do not take the 4 bytes"),
    "an unknown dtype": (with_header({"x": entry("F5")}, bytes(4)), "of the dtype F5"),
    "a dtype of a list": (with_header({"x": {**entry(), "dtype": ["F32"]}}, bytes(4)), "safetensors does not know"),
    "a shape too small": (with_header({"x": entry(shape=[2])}, bytes(4)), "do not take the 4 bytes"),
    "half a byte": (with_header({"x": entry("F4", [3], [0, 2])}, bytes(2)), "do not take the 2 bytes"),
    "an end before its beginning": (with_header({"x": entry(places=[4, 0])}, bytes(4)), "not a beginning and an end"),
    "three places": (with_header({"x": entry(places=[0, 2, 4])}, bytes(4)), "not a beginning and an end"),
    "overlapping": (with_header({"x": entry(places=[0, 4]), "y": entry(places=[2, 6])}, bytes(6)), "two tensors claim before the tensor y"),
    "twice the same place": (with_header({"x": entry(), "y": entry()}, bytes(4)), "two tensors claim"),
    "a gap": (with_header({"x": entry(places=[0, 4]), "y": entry(places=[8, 12])}, bytes(12)), "a gap before the tensor y"),
    "not from 0": (with_header({"x": entry(places=[4, 8])}, bytes(8)), "a gap before the tensor x"),
    "beyond the file": (with_header({"x": entry("U8", [1 << 40], [0, 1 << 40])}, bytes(4)), "its header accounts for"),
    "a key too many": (with_header({"x": {**entry(), "more": [[[]]]}}, bytes(4)), "not a dtype, a shape and data_offsets"),
    "a key missing": (with_header({"x": {"dtype": "F32", "shape": [1]}}, bytes(4)), "not a dtype, a shape and data_offsets"),
    "metadata of numbers": (with_header({"__metadata__": {"x": 1}}), "not a table of texts"),
    "a name of 5,000": (with_header({"x" * 5000: entry()}, bytes(4)), "a name of 5,000 characters"),
    "half a character": (with_header(b'{"\\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)), "name is not text"),
    "minus nothing": (with_header(b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[-0,4]}}', bytes(4)), "-0 is not a whole number"),
    "many dimensions": (with_header({"x": entry(shape=[1] * 65)}, bytes(4)), "not a list of at most 64 numbers"),
    "a control character": (with_header({"\x1b]0;x\x07": entry("F5")}, bytes(4)), r"\\x1b\]0;x\\x07 of the dtype"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_header_is_refused_with_one_clear_error(name):
    raw, words = HOSTILE[name]
    with pytest.raises(DataError, match=words) as caught:
        parse(raw)
    assert caught.value.message.startswith("model.safetensors")
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 400


def test_a_header_above_the_librarys_cap_is_refused_before_it_is_asked_for():
    with pytest.raises(DataError, match="100,000,000 is the most"):
        header_length(struct.pack("<Q", MOST_HEADER_BYTES + 1), "x", None)
    assert header_length(struct.pack("<Q", MOST_HEADER_BYTES), "x", None) == MOST_HEADER_BYTES


def test_more_entries_than_any_model_are_refused_before_they_are_built():
    raw = with_header(b'{"x":[' + b"{}," * (MOST_TENSORS * 17) + b"0]}")
    with pytest.raises(DataError, match="more than 8,388,608 entries"):
        parse(raw)


def test_a_control_character_in_the_files_name_reaches_no_terminal():
    with pytest.raises(DataError) as caught:
        parse(b"", file="a\x1b[31m\n.safetensors")
    assert caught.value.message.isprintable()


def test_without_a_size_the_end_is_not_checked():
    raw = safetensors_bytes({"x": ("F32", (4,), 16)})
    assert parse(raw[:-16], size=None).tensors[0].bytes == 16


TENSORS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(lambda name: name != "__metadata__"),
    st.tuples(st.sampled_from(sorted(DTYPE_BITS)), st.lists(st.integers(0, 5), max_size=3)),
    max_size=5,
)


@settings(max_examples=200, deadline=None)
@given(tensors=TENSORS, cut=st.integers(-2, 2), swap=st.integers(0, 400), byte=st.integers(0, 255))
def test_whatever_we_take_the_library_takes(tmp_path_factory, tensors, cut, swap, byte):
    raw = bytearray(safetensors_bytes({n: (d, s, prod(s) * DTYPE_BITS[d] // 8) for n, (d, s) in tensors.items()}))
    if swap < len(raw) and swap % 3 == 0:
        raw[swap] = byte
    raw = bytes(raw[:cut] if cut < 0 else raw + bytes(cut))
    path = tmp_path_factory.getbasetemp() / "law.safetensors"
    path.write_bytes(raw)
    try:
        found = ours(raw)
    except DataError:
        return
    assert found == library(path)
