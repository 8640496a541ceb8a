"""Values of a GGUF header: taken from a buffer that may not hold them yet, and kept only while they are small."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, NoReturn

from fitcheck.errors import DataError
from fitcheck.sources.stored.text import named

MOST_KEPT_NUMBERS = 4096
"""Of one array: head counts and widths by layer are kept, lists of tokens are not."""
MOST_KEPT_TEXTS = 256
MOST_KEPT_TEXT_BYTES = 1 << 20
"""Of one text: chat templates are kept, a whole `tokenizer.json` is not."""
_MOST_ALL_NUMBERS = 1 << 18
_MOST_ALL_TEXT_BYTES = 1 << 24
MOST_TEXTS = 1 << 22
"""Of one array. Vocabularies have 262,144 tokens, and twice as many merges."""
_TELLING_TEXTS = 256
MOST_ARRAYS = 1 << 16
"""In an array of arrays, which no published file has; deeper ones are refused."""

_STRING, _ARRAY, _BOOL = 8, 9, 7
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
_NAMES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64", "float64")
_LENGTH = struct.Struct("<Q")


class Short(Exception):
    """The buffer ends before the value does: it is known to reach `needed` at least.

    Of an array of `texts` texts the whole likely takes `size` bytes and reaches `likely`.
    """

    def __init__(self, needed: int, texts: int = 0, start: int = 0, size: int = 0) -> None:
        super().__init__()
        self.needed, self.texts, self.size = needed, texts, size
        self.likely = max(needed, start + size)


class ArrayLength(NamedTuple):
    """An array's type, as GGUF names it, and how many elements it has."""

    type: str
    length: int


def refuse(file: str, what: str) -> NoReturn:
    """Raise the one error of a header that is not read."""
    raise DataError(f"{named(file)} {what}", hint="fetch the file again; if it stays so, it is not for this reader")


class Buffer:
    """The part of the file's start that is not yet understood. `at` is where reading stands, `end` where the bytes so far end."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.base = self.kept = self.at = 0
        self.data = b""

    @property
    def end(self) -> int:
        """Where the bytes so far end in the file."""
        return self.base + len(self.data)

    def add(self, more: bytes) -> None:
        """Go back to what was last kept, drop what lies before it, and put more bytes behind."""
        self.data = self.data[self.kept - self.base :] + more
        self.base = self.at = self.kept

    def keep(self) -> None:
        """What was read so far is understood."""
        self.kept = self.at

    def take(self, length: int) -> bytes:
        """The next bytes. Raises `Short` where they are not all there."""
        start = self.at - self.base
        if length > len(self.data) - start:
            raise Short(self.at + length)
        self.at += length
        return self.data[start : start + length]

    def whole(self, width: int) -> int:
        """The next unsigned number of so many bytes."""
        return int.from_bytes(self.take(width), "little")

    def skip(self, length: int) -> None:
        """Step over bytes that are there."""
        if length > self.end - self.at:
            raise Short(self.at + length)
        self.at += length


class Keeper:
    """Reads values and decides which are kept; `lengths` has the arrays, and what all kept values cost is bounded."""

    def __init__(self) -> None:
        self.lengths: dict[str, ArrayLength] = {}
        self.numbers = 0
        self.text_bytes = 0

    def value(self, buffer: Buffer, key: str) -> tuple[bool, Any]:
        """Whether the next value is kept, and the value. Raises `Short` or `DataError`."""
        kind = buffer.whole(4)
        if kind == _STRING:
            return self._text(buffer)
        if kind == _ARRAY:
            return self._array(buffer, key)
        return True, _scalar(buffer, kind, key)

    def _text(self, buffer: Buffer) -> tuple[bool, Any]:
        length = buffer.whole(8)
        if length > MOST_KEPT_TEXT_BYTES or self.text_bytes + length > _MOST_ALL_TEXT_BYTES:
            buffer.skip(length)
            return False, None
        text = buffer.take(length).decode("utf-8", "replace")
        self.text_bytes += length
        return True, text

    def _array(self, buffer: Buffer, key: str) -> tuple[bool, Any]:
        kind, length = buffer.whole(4), buffer.whole(8)
        if kind >= len(_NAMES):
            refuse(buffer.file, f"has an array {named(key)} of the type {kind}, which GGUF does not know")
        found: list[Any] | None = None
        if kind == _STRING:
            found = self._texts(buffer, length, key)
        elif kind == _ARRAY:
            _nested(buffer, key, length)
        else:
            found = self._numbers(buffer, kind, length, key)
        self.lengths[key] = ArrayLength(_NAMES[kind], length)
        return found is not None, found

    def _texts(self, buffer: Buffer, length: int, key: str) -> list[Any] | None:
        start = buffer.at
        _skip_texts(buffer, length, key)
        size = buffer.at - start
        if length > MOST_KEPT_TEXTS or self.text_bytes + size > _MOST_ALL_TEXT_BYTES:
            return None
        buffer.at = start
        self.text_bytes += size
        return [buffer.take(buffer.whole(8)).decode("utf-8", "replace") for _ in range(length)]

    def _numbers(self, buffer: Buffer, kind: int, length: int, key: str) -> list[Any] | None:
        form = _FORMATS[kind]
        width = struct.calcsize(f"<{form}")
        if length > MOST_KEPT_NUMBERS or self.numbers + length > _MOST_ALL_NUMBERS:
            buffer.skip(length * width)
            return None
        found = list(struct.unpack(f"<{length}{form}", buffer.take(length * width)))
        self.numbers += length
        return [_truth(number, buffer, key) for number in found] if kind == _BOOL else found


def _scalar(buffer: Buffer, kind: int, key: str) -> Any:
    form = _FORMATS.get(kind)
    if form is None:
        refuse(buffer.file, f"has a key {named(key)} of the type {kind}, which GGUF does not know")
    (value,) = struct.unpack(f"<{form}", buffer.take(struct.calcsize(f"<{form}")))
    return _truth(value, buffer, key) if kind == _BOOL else value


def _truth(value: int, buffer: Buffer, key: str) -> bool:
    if value not in (0, 1):
        refuse(buffer.file, f"has a key {named(key)} that is neither true nor false")
    return value == 1


def _skip_texts(buffer: Buffer, length: int, key: str) -> None:
    """Walk over texts without building any: half a million of them are the larger part of a header."""
    if length > MOST_TEXTS:
        refuse(buffer.file, f"has an array {named(key)} of {length:,} texts, and {MOST_TEXTS:,} is the most that is read")
    start, data, end, unpack = buffer.at - buffer.base, buffer.data, len(buffer.data), _LENGTH.unpack_from
    at = start
    for number in range(length):
        if at + 8 > end:
            raise Short(buffer.base + at + 8, length, buffer.at, _likely(at - start, number, length))
        at += 8 + unpack(data, at)[0]
        if at > end:
            raise Short(buffer.base + at, length, buffer.at, _likely(at - start, number + 1, length))
    buffer.at = buffer.base + at


def _likely(size: int, seen: int, length: int) -> int:
    """Bytes of all texts where some are seen, of which few tell nothing. In vocabularies the later ones are longer, by an eighth or so."""
    if seen < _TELLING_TEXTS:
        return size
    whole = size * length // seen
    return whole + (whole // 8 if 4 * seen < length else 0)


def _nested(buffer: Buffer, key: str, length: int) -> None:
    """Walk over an array of arrays, which is not kept."""
    if length > MOST_ARRAYS:
        refuse(buffer.file, f"has an array {named(key)} of {length:,} arrays, and {MOST_ARRAYS:,} is the most that is read")
    for _ in range(length):
        kind, inner = buffer.whole(4), buffer.whole(8)
        if kind == _STRING:
            _skip_texts(buffer, inner, key)
        elif kind == _ARRAY:
            refuse(buffer.file, f"has an array {named(key)} nested more than two deep")
        elif kind in _FORMATS:
            buffer.skip(inner * struct.calcsize(f"<{_FORMATS[kind]}"))
        else:
            refuse(buffer.file, f"has an array {named(key)} of the type {kind}, which GGUF does not know")
