"""The quick reading of headers as the library writes them, which must answer as the reader of any JSON does."""

import json
import struct
from math import prod

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fitcheck.errors import DataError
from fitcheck.sources.stored.compact import compact
from fitcheck.sources.stored.safetensors import DTYPE_BITS
from tests.sources.stored.files import parse, save

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SHAPES = st.lists(st.integers(0, 5), max_size=4)
DTYPES = st.sampled_from(["F32", "BF16", "U8", "F8_E4M3", "I64"])
HEADERS = st.dictionaries(NAMES, st.tuples(DTYPES, SHAPES), max_size=5)
METADATA = st.none() | st.dictionaries(NAMES, NAMES, max_size=2)


def written(tensors, metadata=None, **options):
    """A header as serde_json writes it, and the bytes of the data."""
    header, end = {} if metadata is None else {"__metadata__": metadata}, 0
    for name, (dtype, shape) in tensors.items():
        size = prod(shape) * DTYPE_BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    return json.dumps(header, separators=(",", ":"), ensure_ascii=False, **options).encode(), end


def outcome(text, end):
    """What is read of a header, or what is said against it."""
    try:
        header = parse(struct.pack("<Q", len(text)) + text + bytes(end))
    except DataError as error:
        return error.message
    return sorted(header.tensors), header.metadata  # of tensors without elements, either may be said to lie first


def quick(text):
    return compact(text, "model.safetensors", DTYPE_BITS, 1 << 19)


def test_what_the_library_writes_is_read_quickly(tmp_path):
    path = tmp_path / "model.safetensors"
    arrays = {"b": np.zeros((3, 5), np.float16), "a.weight": np.zeros((2, 2, 2), np.int64), "one": np.array(1.5)}
    save(path, arrays, {"format": "pt"})
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    found = quick(raw[8 : 8 + length])
    assert {tensor.name: (tensor.shape, tensor.bytes) for tensor in found.tensors} == {
        name: (array.shape, array.nbytes) for name, array in arrays.items()
    }
    assert (found.end, json.loads(found.metadata)) == (sum(array.nbytes for array in arrays.values()), {"format": "pt"})


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"{",
        b'{"__metadata__":{}}',
        b'{"x": {"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',  # a space
        b'{"x":{"shape":[1],"dtype":"F32","data_offsets":[0,4]}}',  # another order
        b'{"x\\u0041":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',  # an escape
        b'{"x":{"dtype":"F32","shape":[01],"data_offsets":[0,4]}}',
        b'{"x":{"dtype":"F32","shape":[1,],"data_offsets":[0,4]}}',
        b'{"x":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}',
        b'{"x":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}',
        b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}',  # larger than its place
        b'{"x":{"dtype":"F4","shape":[1],"data_offsets":[0,0]}}',  # half a byte
        b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',  # a gap
        b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
        b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"__metadata__":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
        b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}',
        b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},}',
        b'{"x":{"dtype":"F32","shape":[9223372036854775807,9223372036854775807],"data_offsets":[0,4]}}',
    ],
)
def test_any_other_form_is_left_to_the_strict_reader(text):
    assert quick(text) is None


def test_more_tensors_than_are_read_are_not_looked_at():
    text, _ = written({str(number): ("U8", [1]) for number in range(9)})
    assert compact(text, "", DTYPE_BITS, 9) is not None
    assert compact(text, "", DTYPE_BITS, 8) is None


@settings(max_examples=300, deadline=None)
@given(HEADERS, METADATA, st.integers(0, 9))
def test_both_readers_find_the_same(tensors, metadata, padding):
    text, end = written({name: it for name, it in tensors.items() if name != "__metadata__"}, metadata)
    assert outcome(text + b" " * padding, end) == outcome(b"{ " + text[1:], end)


@settings(max_examples=1000, deadline=None)
@given(
    HEADERS,
    METADATA,
    st.lists(st.tuples(st.integers(1, 400), st.integers(0, 2), st.sampled_from(b'"\\{}[]:,.-01e9 xF4\x00\x7f\xff')), max_size=3),
)
@example({"x": ("F32", [1])}, None, [(2, 2, ord("x"))])
def test_both_readers_say_the_same_of_what_is_broken(tensors, metadata, edits):
    text, end = written(tensors, metadata)
    for place, kind, byte in edits:
        at = min(place, len(text))
        text = text[:at] + bytes([byte] if kind else []) + text[at + (kind < 2) :]
    quickly, strictly = outcome(text, end), outcome(b"{ " + text[1:], end)
    if isinstance(quickly, str) and isinstance(strictly, str):  # which count the space, and positions behind it
        return
    assert quickly == strictly
