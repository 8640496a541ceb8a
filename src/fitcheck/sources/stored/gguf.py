"""The header of a GGUF file (versions 2 and 3), read in windows from its start.

A header has no length of its own: keys and values come first, tokens among them, then the tensors. It is read in windows that grow, and
what is understood is dropped, so that two or three range requests are enough and memory stays small. Format: ggml `docs/gguf.md`; limits as
in `ggml/src/gguf.cpp` of llama.cpp build 11549 where it has one, else ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fitcheck.frozen import frozen
from fitcheck.sources.store import ReadAt, Span, Store, StoredTensor
from fitcheck.sources.stored.ggml_types import TYPES
from fitcheck.sources.stored.gguf_values import ArrayLength, Buffer, Keeper, Short, refuse
from fitcheck.sources.stored.text import named, refuse_pointer

FIRST_WINDOW_BYTES = 128 * 1024
"""Holds the whole header of a split file after its first, of an `mmproj`, and of a model whose tokens lie elsewhere."""
NEXT_WINDOW_BYTES = 64 * 1024
"""Each further window reaches to where the header likely ends, as what is read of the vocabulary tells, and is this long at least. Where
nothing tells, it is an eighth of what was read."""
GUESSED_WINDOWS = 6
"""So many windows are guessed; each later one doubles what was read, so that no file can ask for its header in a thousand steps."""
MOST_WINDOW_BYTES = 16 * 1024 * 1024
AT_ONCE = 8
"""Files whose windows are in memory together."""
MOST_HEADER_BYTES = 64 * 1024 * 1024
"""Four times the largest vocabulary with its merges and scores."""
MOST_KEYS = 1 << 16
MOST_TENSORS = 1 << 19
MOST_NAME_BYTES = 256
"""llama.cpp refuses tensor names of 64 bytes and more (`GGML_MAX_NAME`)."""
MOST_KEY_BYTES = (1 << 16) - 1
MOST_DIMENSIONS = 4
_INFO_BYTES = 72
"""Of one tensor: its name with a length of 8 bytes, 4 for the number of dimensions, 8 for each, 4 for the type and 8 for the place."""
_MODEL, _TOKENS, _TYPES, _SCORES, _MERGES = (f"tokenizer.ggml.{name}" for name in ("model", "tokens", "token_type", "scores", "merges"))
DEFAULT_ALIGNMENT = 32
MOST_ALIGNMENT = 1 << 20
_OLDER = (b"lmgg", b"fmgg", b"tjgg", b"algg", b"GGML", b"GGMF", b"GGJT", b"GGLA")


@frozen
class GgufHeader:
    """What a file says of itself.

    `metadata` has each key's value but those of long arrays, whose lengths are in `lengths` (as are those of the arrays kept) and long
    texts. `tensors` have their outermost dimension first, as in other formats. `data_start` is where the first byte of a weight may lie.
    """

    file: str
    version: int
    metadata: dict[str, Any]
    lengths: dict[str, ArrayLength]
    tensors: tuple[StoredTensor, ...]
    header_bytes: int
    data_start: int

    @property
    def split(self) -> tuple[int, int, int] | None:
        """Number (from 0), count and tensors in all of a file that is one of several, else None."""
        found = [self.metadata.get(f"split.{name}") for name in ("no", "count", "tensors.count")]
        counted = [value for value in found if type(value) is int and value >= 0]
        return (counted[0], counted[1], counted[2]) if len(counted) == 3 and counted[1] > 1 else None


def read_gguf(read: ReadAt, file: str, file_bytes: int | None = None) -> GgufHeader:
    """The header of one file. Raises `DataError` for one that is not GGUF, of a version that is not read, or malformed."""
    reading = GgufReading(file, file_bytes)
    while reading.header is None:
        reading.feed(read(*reading.wanted))
    return reading.header


def read_ggufs(store: Store, files: Iterable[tuple[str, int | None]]) -> tuple[GgufHeader, ...]:
    """The headers of several files in the order given. Raises as `read_gguf` does.

    The first windows of all are asked at once, which is enough for most files of a split; the next ones of `AT_ONCE` files together.
    """
    readings = [GgufReading(path, size) for path, size in files]
    waiting = readings
    while waiting:
        found = store.spans([Span(reading.file, *reading.wanted) for reading in waiting])
        for reading, data in zip(waiting, found, strict=True):
            reading.feed(data)
        waiting = [reading for reading in readings if reading.header is None][:AT_ONCE]
    return tuple(reading.header for reading in readings if reading.header is not None)


class GgufReading:
    """A header on its way: asks for windows (`wanted`: start and length) until `header` is there."""

    def __init__(self, file: str, file_bytes: int | None) -> None:
        self.file, self.file_bytes = file, file_bytes
        self.header: GgufHeader | None = None
        self.buffer = Buffer(file)
        self.keeper = Keeper()
        self.window = FIRST_WINDOW_BYTES
        self.windows = 0
        self.version = 0
        self.counts = (0, 0)
        self.metadata: dict[str, Any] = {}
        self.reading = ""
        self.tokens: tuple[int, int] | None = None
        self.keys: set[str] = set()
        self.infos: dict[str, tuple[int, int, tuple[int, ...]]] = {}

    @property
    def wanted(self) -> tuple[int, int]:
        """Where the next window starts and how long it is."""
        return self.buffer.end, min(self.window, MOST_HEADER_BYTES - self.buffer.end)

    def feed(self, data: bytes) -> None:
        """Take the window that was wanted, or less where the file ends. Raises `DataError`."""
        _, length = self.wanted
        ended = len(data) < length
        self.windows += 1
        self.buffer.add(data[:length])
        try:
            self._go_on()
        except Short as short:
            if ended:
                refuse(self.file, f"ends within its header, after {self.buffer.end:,} bytes")
            if short.needed > MOST_HEADER_BYTES or self.buffer.end >= MOST_HEADER_BYTES:
                refuse(self.file, f"has a header of more than {MOST_HEADER_BYTES // 1024**2} MiB")
            least = NEXT_WINDOW_BYTES if self.windows < GUESSED_WINDOWS else self.buffer.end
            self.window = min(max(least, self._likely(short) - self.buffer.end), MOST_WINDOW_BYTES)

    def _go_on(self) -> None:
        """Read on from what is already understood; what is left of the buffer is read again with the next window."""
        if not self.version:
            refuse_pointer(self.buffer.data, self.file)
            self._begin()
        tensors, keys = self.counts
        while len(self.keys) < keys:
            self._key()
            self.buffer.keep()
        while len(self.infos) < tensors:
            self._info()
            self.buffer.keep()
        self.header = self._finished()

    def _likely(self, short: Short) -> int:
        """Where the header likely ends, and a fiftieth more; where nothing tells, an eighth of what was read further on.

        Behind the tokens come a type of 4 bytes for each, and scores of 4 bytes, or for `gpt2` merges, which repeat almost every token with
        a space in it (gguf-py `vocab.py`, `gguf_writer.py`); at the end stand the tensors.
        """
        count, size = self.tokens or ((short.texts, short.size) if self.reading == _TOKENS else (0, 0))
        merged = self.metadata.get(_MODEL) == "gpt2"
        later = {_TYPES: 4 * count, _SCORES: 0 if merged else 4 * count, _MERGES: size + count if merged else 0}
        behind = sum(taken for key, taken in later.items() if key not in self.keys and key != self.reading)
        rest = short.likely + behind + _INFO_BYTES * (self.counts[0] - len(self.infos)) - self.buffer.end
        told = count or short.texts or len(self.keys) == self.counts[1]
        return self.buffer.end + max(rest + rest // 50, 0 if told else self.buffer.end // 8)

    def _begin(self) -> None:
        magic = self.buffer.take(4)
        if magic != b"GGUF":
            if magic in _OLDER:
                refuse(self.file, "is of a format before GGUF (GGML, GGJT), which nothing reads any more")
            refuse(self.file, "is GGUF in big-endian order, which is not read" if magic == b"FUGG" else "is not a GGUF file")
        version = self.buffer.whole(4)
        if version and version & 0xFFFF == 0:
            refuse(self.file, "is GGUF in big-endian order, which is not read: its weights do not load on little-endian machines either")
        if version not in (2, 3):
            refuse(self.file, f"is GGUF of version {version}, and versions 2 and 3 are read")
        tensors, keys = self.buffer.whole(8), self.buffer.whole(8)
        if tensors > MOST_TENSORS or keys > MOST_KEYS:
            refuse(
                self.file,
                f"declares {tensors:,} tensors and {keys:,} keys, and {MOST_TENSORS:,} and {MOST_KEYS:,} are the most that are read",
            )
        self.version, self.counts = version, (tensors, keys)
        self.buffer.keep()

    def _key(self) -> None:
        self.reading = key = self._name(MOST_KEY_BYTES, "a key")
        if key in self.keys:
            refuse(self.file, f"gives the key {named(key)} twice")
        start = self.buffer.at
        kept, value = self.keeper.value(self.buffer, key)
        if key == _TOKENS and key in self.keeper.lengths:
            self.tokens = (self.keeper.lengths[key].length, self.buffer.at - start)
        self.keys.add(key)
        if kept:
            self.metadata[key] = value

    def _name(self, most: int, what: str) -> str:
        length = self.buffer.whole(8)
        if length > most:
            refuse(self.file, f"has {what} of {length:,} bytes")
        try:
            return self.buffer.take(length).decode("utf-8")
        except UnicodeDecodeError:
            refuse(self.file, f"has {what} that is not UTF-8")

    def _info(self) -> None:
        name = self._name(MOST_NAME_BYTES, "a tensor with a name")
        if name in self.infos:
            refuse(self.file, f"has two tensors of the name {named(name)}")
        count = self.buffer.whole(4)
        if count > MOST_DIMENSIONS:
            refuse(self.file, f"has a tensor {named(name)} of {count:,} dimensions, and {MOST_DIMENSIONS} is the most in ggml")
        dimensions = tuple(self.buffer.whole(8) for _ in range(count))
        kind, offset = self.buffer.whole(4), self.buffer.whole(8)
        self.infos[name] = (kind, offset, dimensions)

    def _finished(self) -> GgufHeader:
        header_bytes, alignment = self.buffer.at, self.metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if type(alignment) is not int or not 0 < alignment <= MOST_ALIGNMENT or alignment & (alignment - 1):
            refuse(self.file, f"has general.alignment {named(str(alignment))}, which is not a power of two")
        data_start = -(-header_bytes // alignment) * alignment
        sized = [(offset, self._size(name, kind, dims), name, kind, dims) for name, (kind, offset, dims) in self.infos.items()]
        end = 0
        for offset, size, name, _kind, _dims in sorted(sized):
            if offset % alignment:
                refuse(self.file, f"has a tensor {named(name)} that is not aligned to {alignment} bytes")
            if offset < end:
                refuse(self.file, f"has a tensor {named(name)} that begins before the one in front of it ends")
            end = offset + size
        if self.file_bytes is not None and self.infos and data_start + end > self.file_bytes:
            refuse(self.file, f"has {self.file_bytes:,} bytes, and its tensors end at {data_start + end:,}: it is cut short")
        tensors = tuple(StoredTensor(name, TYPES[kind].name, dims[::-1], size, self.file) for _, size, name, kind, dims in sized)
        return GgufHeader(self.file, self.version, self.metadata, self.keeper.lengths, tensors, header_bytes, data_start)

    def _size(self, name: str, kind: int, dimensions: tuple[int, ...]) -> int:
        """Bytes of a tensor; the first dimension is that of a row."""
        found = TYPES.get(kind)
        if found is None:
            refuse(self.file, f"has a tensor {named(name)} of ggml type {kind}, which is not known")
        elements = 1
        for number in dimensions:
            elements *= number
            if elements >= 1 << 63:
                refuse(self.file, f"has a tensor {named(name)} of 2^63 elements or more")
        columns = dimensions[0] if dimensions else 1
        size = found.size(columns, elements // columns if columns else 0)
        if size is None:
            refuse(self.file, f"has a tensor {named(name)} whose rows of {columns:,} are not whole blocks of {found.name} ({found.block})")
        return size


def open_store(store: Store, path: str) -> ReadAt:
    """The bytes of one file of a store, as `read_gguf` takes them. Raises what the store raises."""

    def read(start: int, length: int) -> bytes:
        return store.spans([Span(path, start, length)])[0]

    return read


__all__ = ["ArrayLength", "GgufHeader", "GgufReading", "open_store", "read_gguf", "read_ggufs"]
