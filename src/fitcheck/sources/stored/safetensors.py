"""The header of a safetensors file, from the bytes at its start.

Eight bytes give the header's length, then JSON gives each tensor's dtype, shape and place. The two steps are apart so that a caller can ask
for the lengths of all shards at once, and then for all headers. Rules: safetensors 0.8.0 `safetensors/src/tensor.rs` (`read_metadata`,
`Metadata::validate`), and stricter where a file that breaks them is broken: duplicate keys, which the library takes the last of.
"""

from __future__ import annotations

from typing import Any, NoReturn

from fitcheck.errors import DataError
from fitcheck.frozen import frozen
from fitcheck.sources.store import StoredTensor
from fitcheck.sources.stored.compact import MOST_DIMENSIONS, MOST_NAME, compact
from fitcheck.sources.stored.text import MOST_COUNT, named, refuse_pointer, strict_json

LENGTH_BYTES = 8
MOST_HEADER_BYTES = 100_000_000
"""`MAX_HEADER_SIZE` of the library."""
MOST_TENSORS = 1 << 19
"""In one file. All 96 shards of Kimi K3 hold 497,220."""
_MOST_COMMAS = 16 * MOST_TENSORS

DTYPE_BITS: dict[str, int] = {
    **dict.fromkeys(["F4"], 4),
    **dict.fromkeys(["F6_E2M3", "F6_E3M2"], 6),
    **dict.fromkeys(["BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"], 8),
    **dict.fromkeys(["I16", "U16", "F16", "BF16"], 16),
    **dict.fromkeys(["I32", "U32", "F32"], 32),
    **dict.fromkeys(["C64", "F64", "I64", "U64"], 64),
}
"""Bits of an element of each dtype that safetensors 0.8.0 reads (`Dtype::bitsize`), all 22 of them."""


@frozen
class SafetensorsHeader:
    """The tensors of a file in the order in which they lie, the free text that came with them, and the bytes that precede the data."""

    tensors: tuple[StoredTensor, ...]
    metadata: dict[str, str]
    header_bytes: int


def header_length(raw: bytes, file: str, file_bytes: int | None) -> int:
    """Bytes of the JSON header that follows the first eight. Raises `DataError` where the file cannot hold it or it is too large."""
    if len(raw) < LENGTH_BYTES:
        _refuse(file, f"only {len(raw)} bytes long, so not a safetensors file")
    refuse_pointer(raw, file)
    length = int.from_bytes(raw[:LENGTH_BYTES], "little")
    if file_bytes is not None and length > file_bytes - LENGTH_BYTES:
        _refuse(file, f"says that its header takes {length:,} bytes, and the file has {file_bytes:,}")
    if length > MOST_HEADER_BYTES:
        _refuse(file, f"says that its header takes {length:,} bytes, and {MOST_HEADER_BYTES:,} is the most that safetensors reads")
    if length < 2:
        _refuse(file, f"says that its header takes {length} bytes, which cannot hold one")
    return length


def parse_header(raw: bytes, file: str, length: int, file_bytes: int | None) -> SafetensorsHeader:
    """The header in these bytes, which follow the first eight.

    Every tensor has a known dtype, a size that its shape gives, and its own place: places begin at 0, touch, do not overlap and end where
    the file does, if its size is known. Raises `DataError` for the first thing that is wrong.
    """
    if len(raw) < length:
        _refuse(file, f"ends within its header: {len(raw):,} of {length:,} bytes")
    raw = raw[:length]
    found = compact(raw, file, DTYPE_BITS, MOST_TENSORS)
    if found is not None:
        tensors, end, metadata = found.tensors, found.end, _metadata(strict_json(found.metadata, file, _MOST_COMMAS), file)
    else:
        tensors, end, metadata = _any_form(raw, file)
    size = LENGTH_BYTES + length + end
    if file_bytes is not None and size != file_bytes:
        _refuse(file, f"has {file_bytes:,} bytes, and its header accounts for {size:,}")
    return SafetensorsHeader(tensors, metadata, LENGTH_BYTES + length)


def _any_form(raw: bytes, file: str) -> tuple[tuple[StoredTensor, ...], int, dict[str, str]]:
    """The tensors, where they end, and the metadata of a header in any form that JSON allows. Raises `DataError`."""
    found = strict_json(raw, file, _MOST_COMMAS)
    if not isinstance(found, dict):
        _refuse(file, "has a header that is not a JSON object")
    metadata = _metadata(found.pop("__metadata__", None), file)
    if len(found) > MOST_TENSORS:
        _refuse(file, f"declares {len(found):,} tensors, and {MOST_TENSORS:,} is the most that is read")
    if any("\ud800" <= character <= "\udfff" for name in found if not name.isascii() for character in name):
        _refuse(file, "has a tensor whose name is not text")
    placed = sorted(_placed(name, entry, file) for name, entry in found.items())
    end, tensors = 0, []
    for start, stop, name, dtype, shape in placed:
        if start != end:
            _refuse(file, f"has a {'gap' if start > end else 'place that two tensors claim'} before the tensor {named(name)}")
        end = stop
        tensors.append(StoredTensor(name, dtype, shape, stop - start, file))
    return tuple(tensors), end, metadata


def _metadata(value: Any, file: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        _refuse(file, "has __metadata__ that is not a table of texts")
    return value


_KEYS = {"dtype", "shape", "data_offsets"}


def _placed(name: str, entry: Any, file: str) -> tuple[int, int, str, str, tuple[int, ...]]:
    """Where a tensor begins and ends, and what it is: checked by itself."""
    if len(name) > MOST_NAME:
        _refuse(file, f"has a tensor with a name of {len(name):,} characters")
    if type(entry) is not dict or entry.keys() != _KEYS:
        _refuse(file, f"has an entry {named(name)} that is not a dtype, a shape and data_offsets")
    dtype, shape, places = entry["dtype"], entry["shape"], entry["data_offsets"]
    bits = DTYPE_BITS.get(dtype) if type(dtype) is str else None
    if bits is None:
        _refuse(file, f"has a tensor {named(name)} of the dtype {named(str(dtype))}, which safetensors does not know")
    if type(shape) is not list or len(shape) > MOST_DIMENSIONS:
        _refuse(file, f"has a tensor {named(name)} whose shape is not a list of at most {MOST_DIMENSIONS} numbers")
    elements = 1
    for number in shape:
        if type(number) is not int or not 0 <= number <= MOST_COUNT:
            _refuse(file, f"has a tensor {named(name)} whose shape is not of whole numbers below 2^63")
        elements *= number
    if type(places) is not list or [type(place) for place in places] != [int, int] or not 0 <= places[0] <= places[1] <= MOST_COUNT:
        _refuse(file, f"has a tensor {named(name)} whose data_offsets are not a beginning and an end below 2^63")
    start, stop = places
    if elements * bits != 8 * (stop - start):
        _refuse(file, f"has a tensor {named(name)} whose shape and dtype do not take the {stop - start:,} bytes that it claims")
    return start, stop, name, dtype, tuple(shape)


def _refuse(file: str, what: str) -> NoReturn:
    raise DataError(f"{named(file)} {what}", hint="fetch the file again; if it stays so, it was written wrongly")
