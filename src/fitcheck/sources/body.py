"""The body of an HTTP answer, read with a cap: a whole file, or exactly the range that was asked.

Nothing a server says about a length is believed: bytes are counted as they come, and reading stops at what was asked or at the cap.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from fitcheck.errors import DataError, NetworkError

NEAR_BYTES = 64 * 1024**2
"""How far into a file a part may start to be read from the file's beginning, where a server answers no ranges: as far as headers go.

A GGUF file's keys and tokens take 5 to 12 MB, and its tensors are named after them. What lies before the part is read and dropped.
"""
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18}|\*)", re.IGNORECASE)
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_STEP = 64 * 1024

Chunks = Iterator[bytes]


class Truncated(Exception):
    """A body that ended before its time: worth another attempt."""


class Range(NamedTuple):
    """A part of a file: where it starts, and how many bytes of it are wanted."""

    start: int
    length: int

    @property
    def header(self) -> str:
        """The value of the Range header that asks for it."""
        return f"bytes={self.start}-{self.start + self.length - 1}"


class Body(NamedTuple):
    """What was read, and the size of the whole file where the answer says it. `ended` says that nothing was left unread."""

    data: bytes
    total_bytes: int | None
    ended: bool


def read_body(
    status: int, headers: Mapping[str, str], chunks: Chunks, wanted: Range | None, most_bytes: int, what: str, tick: Callable[[int], None]
) -> Body:
    """The body of a successful answer to a request for a whole file (`wanted` is None) or a part of one.

    `tick` is told of every piece that came. Raises `Truncated` for a body that ended early, `DataError` for a file larger than
    `most_bytes`, and `NetworkError` for an answer that is another range than was asked or cannot be read.
    """
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if status == 206:
        return _ranged(headers, chunks, wanted, encoding, what, tick)
    decoded = _decoded(chunks, encoding, what, tick)
    if wanted is None:
        return _whole(headers, decoded, encoding, most_bytes, what)
    if wanted.start > NEAR_BYTES:
        raise NetworkError(
            f"{what}: the server answers no byte ranges, and the part needed starts at byte {wanted.start:,}",
            hint="use a server that answers range requests, or a local copy",
        )
    data, ended = _take(_after(decoded, wanted.start), wanted.length)
    return Body(data, _length(headers) if encoding == "identity" else None, ended)


def _ranged(
    headers: Mapping[str, str], chunks: Chunks, wanted: Range | None, encoding: str, what: str, tick: Callable[[int], None]
) -> Body:
    found = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
    if wanted is not None and encoding not in ("", "identity"):
        raise NetworkError(
            f"{what}: the server sent a part of a compressed file ({encoding[:40]!a}), which was not asked for",
            hint="use a server that answers range requests as they are asked, or a local copy",
        )
    if wanted is None or found is None or found[1] is None:
        raise NetworkError(f"{what}: the server's answer is not the part that was asked (206 without a usable Content-Range)")
    first, last, total = int(found[1]), int(found[2]), None if found[3] == "*" else int(found[3])
    asked = wanted.start + wanted.length - 1
    short = last < asked and (total is None or last != total - 1)
    if first != wanted.start or last < first or last > asked or short or (total is not None and last >= total):
        raise NetworkError(f"{what}: the server sent bytes {first:,} to {last:,} where {wanted.start:,} to {asked:,} were asked")
    length = last - first + 1
    if _length(headers) not in (None, length):
        raise NetworkError(f"{what}: the server announces {_length(headers):,} bytes for a part of {length:,}")
    data, ended = _take(_counted(chunks, tick), length)
    if len(data) < length:
        raise Truncated(f"{len(data):,} of {length:,} bytes came")
    return Body(data, total, ended)


def beyond_end(headers: Mapping[str, str], wanted: Range | None) -> int | None:
    """The file's size where a 416 says that the part starts at or after its end, else None."""
    found = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
    if wanted is None or found is None or found[1] is not None or found[3] == "*":
        return None
    total = int(found[3])
    return total if total <= wanted.start else None


def _whole(headers: Mapping[str, str], chunks: Chunks, encoding: str, most_bytes: int, what: str) -> Body:
    announced = _length(headers)
    if announced is not None and announced > most_bytes:
        raise DataError(f"{what}: {announced:,} bytes, more than the {most_bytes:,} that are read of such a file")
    data, ended = _take(chunks, most_bytes + 1)
    if len(data) > most_bytes:
        raise DataError(f"{what}: larger than the {most_bytes:,} bytes that are read of such a file")
    return Body(data, len(data) if encoding == "identity" else None, ended)


def _length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("content-length", "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _take(chunks: Chunks, most_bytes: int) -> tuple[bytes, bool]:
    """At most so many bytes, and whether the body ended with them."""
    parts: list[bytes] = []
    left = most_bytes
    for chunk in chunks:
        parts.append(chunk[:left])
        left -= len(parts[-1])
        if left == 0:
            # asking for the next piece ends a body that is complete, so that its connection can be used again
            return b"".join(parts), len(chunk) == len(parts[-1]) and next((piece for piece in chunks if piece), None) is None
    return b"".join(parts), True


def _after(chunks: Chunks, start: int) -> Chunks:
    """The pieces of a body from a byte on; nothing of those before it is kept."""
    left = start
    for chunk in chunks:
        if len(chunk) > left:
            yield chunk[left:]
        left = max(0, left - len(chunk))


def _counted(chunks: Chunks, tick: Callable[[int], None]) -> Chunks:
    for chunk in chunks:
        tick(len(chunk))
        yield chunk


def _decoded(chunks: Chunks, encoding: str, what: str, tick: Callable[[int], None]) -> Chunks:
    """The pieces of a body without its compression, none larger than 64 KiB, so that a bomb costs no more than what is taken of it."""
    pieces = _counted(chunks, tick)
    if encoding in ("", "identity"):
        yield from pieces
        return
    if encoding not in _WINDOW_BITS:
        raise NetworkError(f"{what}: sent in an encoding nobody asked for ({encoding[:40]!a})")
    inflate = zlib.decompressobj(_WINDOW_BITS[encoding])
    try:
        for chunk in pieces:
            left = chunk
            while left and not inflate.eof:
                yield inflate.decompress(left, _STEP)
                left = inflate.unconsumed_tail
        while not inflate.eof and (rest := inflate.decompress(inflate.unconsumed_tail, _STEP)):
            yield rest
    except zlib.error as error:
        raise NetworkError(f"{what}: sent as {encoding}, which it is not") from error
    if not inflate.eof:
        raise Truncated("its compressed stream ended early")
