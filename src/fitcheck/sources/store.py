"""A place that holds a model's files, wherever it is: what all readers of outside models are written against.

Only metadata is ever read through it: configs, listings, indexes, and the first bytes of weight files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from fitcheck.frozen import frozen

ReadAt = Callable[[int, int], bytes]
"""Bytes of one file from a start, at most so many: fewer only where the file ends."""


@frozen
class StoredFile:
    """A file of a listing: its path within the store with `/`, and its size where the listing says it."""

    path: str
    bytes: int | None
    etag: str | None = None


class Span(NamedTuple):
    """A part of one file."""

    path: str
    start: int
    length: int


class StoredTensor(NamedTuple):
    """A tensor as a weight file declares it. `dtype` is the file's own name (`BF16`, `F8_E4M3`, `U8`; GGUF: `Q4_K`)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    file: str


class Store(Protocol):
    """What a folder, a hub repository, an address and an Ollama model have in common."""

    @property
    def label(self) -> str:
        """How answers name it: `org/name@revision`, a folder's name. Holds no secret."""

    @property
    def url(self) -> str:
        """Where it lies, as a source is cited: `https://…`, or `file:` with the last part of a local path. Holds no secret."""

    @property
    def hub_id(self) -> str | None:
        """`org/name` where the store is of a repository on a hub, else None."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noticed while reading, that whoever gets an answer should know."""

    def files(self) -> tuple[StoredFile, ...]:
        """Every file, by path. Raises `DataError` or `NetworkError` where they cannot be listed."""

    def read(self, path: str, most_bytes: int) -> bytes:
        """A whole file. Raises `DataError` for one that is not there or is larger than `most_bytes`, of which no more is then read."""

    def spans(self, wanted: Sequence[Span]) -> tuple[bytes, ...]:
        """Parts of files, all asked at once; each as long as wanted, or shorter where its file ends."""
