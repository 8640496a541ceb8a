"""A safetensors header as its own library writes it, read with one expression.

serde_json writes `{"__metadata__":{…},"name":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},…}` without a space, in this order and by
place, then spaces up to a multiple of eight (safetensors 0.8.0 `TensorInfo`, `Metadata::serialize`). A header of exactly that form needs no
JSON reader, whose tables for 62,000 tensors take longer to build and to check than the headers to fetch. Anything else is not judged here:
the strict reader says what it is.
"""

from __future__ import annotations

import re
from itertools import accumulate, chain, repeat

from fitcheck.frozen import frozen
from fitcheck.sources.store import StoredTensor
from fitcheck.sources.stored.text import MOST_COUNT

MOST_NAME = 4096
MOST_DIMENSIONS = 64


@frozen
class Compact:
    """The tensors in the order in which they lie, where they end, and the text of the metadata, `{}` where there is none."""

    tensors: tuple[StoredTensor, ...]
    end: int
    metadata: bytes


_METADATA = re.compile(rb'\{"__metadata__":(\{[^{}\\]{0,65536}\}),')
_NUMBER = "(?:0|[1-9][0-9]{0,18})"
_ENTRY = re.compile(
    rf'"([^"\\\x00-\x1f]{{0,{MOST_NAME}}})":\{{"dtype":"([A-Z0-9_]{{1,16}})","shape":\[([0-9,]{{0,{20 * MOST_DIMENSIONS}}})\],'
    rf'"data_offsets":\[({_NUMBER}),({_NUMBER})\]\}},'
)
_SHAPE = re.compile(rf"(?:{_NUMBER}(?:,{_NUMBER}){{0,{MOST_DIMENSIONS - 1}}})?")
_AROUND = len('"":{"dtype":"","shape":[],"data_offsets":[,]},')


def compact(raw: bytes, file: str, bits: dict[str, int], most_tensors: int) -> Compact | None:
    """The tensors of a header in the library's own form: each of a known dtype, as large as its shape says, behind the one before it.

    `bits` are those of an element of each dtype. None where the form is another, a name comes twice, or anything else is wrong.
    """
    found = _METADATA.match(raw)
    text = _text(raw[found.end() :] if found else raw[1:] if raw[:1] == b"{" else b"")
    if text is None or text.count('{"dtype"') > most_tensors:
        return None
    entries = _ENTRY.findall(text)
    if len(entries) * _AROUND + sum(map(len, chain.from_iterable(entries))) != len(text):
        return None
    metadata = found[1] if found else b"{}"
    if not entries:
        return Compact((), 0, metadata)
    names, dtypes, shapes, firsts, ends = zip(*entries, strict=True)  # columns, since a loop over half a million entries takes a while
    kinds = list(zip(dtypes, shapes, strict=True))
    sizes = {(dtype, shape): _sized(bits.get(dtype), shape) for dtype, shape in set(kinds)}
    each = [size for kind in kinds if (size := sizes[kind]) is not None]
    different = set(names)
    if len(each) != len(entries) or len(different) != len(entries) or "__metadata__" in different:
        return None
    lengths, dims = zip(*each, strict=True)
    if firsts != ("0", *ends[:-1]) or list(accumulate(lengths)) != list(map(int, ends)) or int(ends[-1]) > MOST_COUNT:
        return None
    return Compact(tuple(map(StoredTensor, names, dtypes, dims, lengths, repeat(file))), int(ends[-1]), metadata)


def _text(raw: bytes) -> str | None:
    """The entries, each with a comma behind it."""
    body = raw.rstrip(b" ")
    if body[-2:] != b"}}":
        return None
    try:
        return body[:-1].decode("utf-8") + ","
    except UnicodeDecodeError:
        return None


def _sized(bits: int | None, shape: str) -> tuple[int, tuple[int, ...]] | None:
    """Bytes of a tensor, and its shape as numbers."""
    if bits is None or _SHAPE.fullmatch(shape) is None:
        return None
    dims = tuple(int(number) for number in shape.split(",")) if shape else ()
    elements = 1
    for number in dims:
        elements *= number
    return (elements * bits // 8, dims) if elements * bits % 8 == 0 and max(dims, default=0) <= MOST_COUNT else None
