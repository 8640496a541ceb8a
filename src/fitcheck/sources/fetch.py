"""Requests answered from the cache where that is right, and over the network where it is not.

What is addressed by a commit never changes, so it is asked for once. Anything else is asked for each time, with its ETag where the server
gave one; offline, what was read last stands in, and its day is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from fitcheck.errors import DataError, NetworkError
from fitcheck.sources.cache import Cache, Entry
from fitcheck.sources.store import Span, StoredFile
from fitcheck.sources.wire import Answer, Each, Get

if TYPE_CHECKING:
    from fitcheck.sources.transport import Transport

MOST_SPAN_BYTES = 128 * 1024**2
"""Past any header: safetensors itself reads none larger than 100 MB. Whoever asks for more asks for weights."""
MOST_CALL_BYTES = 1024**3
_OFFLINE = "run it once without --offline (and without HF_HUB_OFFLINE) to have it cached"


class Wanted(NamedTuple):
    """A request, the keys under which its answer may lie (it is kept under the first), and whether that answer can never change."""

    get: Get
    keys: tuple[str, ...]
    fixed: bool


class Found(NamedTuple):
    """What came of it.

    `answer` is the server's own, None where the cache answered; `as_of` is when an answer that may have changed since was read.
    """

    data: bytes
    total_bytes: int | None
    answer: Answer | None
    as_of: datetime | None = None


class Fetcher:
    """A cache in front of a transport that is only made once something has to be asked."""

    def __init__(self, cache: Cache, connect: Callable[[], Transport], *, offline: bool) -> None:
        self.cache = cache
        self.offline = offline
        self._connect = connect
        self._transport: Transport | None = None

    def close(self) -> None:
        """End the connections."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def fetch(self, wanted: Sequence[Wanted], what: str, check: Callable[[Answer, Get], None]) -> tuple[Found, ...]:
        """What each asks for, in their order; all that is not cached is asked at once.

        `check` is given every answer, and raises what its status means where that is an error: nothing of such an answer is kept.
        """
        kept = [self._kept(one) for one in wanted]
        found: dict[int, Found] = {}
        for index, (one, entry) in enumerate(zip(wanted, kept, strict=True)):
            if entry is not None and (one.fixed or self.offline):
                found[index] = Found(entry.data, entry.total_bytes, None, None if one.fixed else entry.read_at)
            elif self.offline:
                raise NetworkError(f"{one.get.what}: not in the cache, and offline nothing is asked of a server", hint=_OFFLINE)
        asked = [index for index in range(len(wanted)) if index not in found]
        if asked:
            requests = [_with_etag(wanted[index].get, kept[index]) for index in asked]

            def take(place: int, answer: Answer) -> None:
                index = asked[place]
                found[index] = self._taken(wanted[index], kept[index], answer, check)

            self.ask(requests, what, take)
        return tuple(found[index] for index in range(len(wanted)))

    def keep(self, name: str, data: bytes, etag: str | None = None) -> None:
        """Keep bytes under another key too."""
        self.cache.write(name, data, etag, len(data))

    def _kept(self, one: Wanted) -> Entry | None:
        for name in one.keys:
            entry = self.cache.read(name)
            if entry is not None:
                return entry
        return None

    def ask(self, requests: Sequence[Get], what: str, each: Each | None = None) -> tuple[Answer, ...]:
        """Answers, as the transport's `get_all` gives them: by themselves they are not kept."""
        if self.offline:
            raise NetworkError(f"{what}: not in the cache, and offline nothing is asked of a server", hint=_OFFLINE)
        if self._transport is None:
            self._transport = self._connect()
        return self._transport.get_all(requests, what, each)

    def _taken(self, one: Wanted, entry: Entry | None, answer: Answer, check: Callable[[Answer, Get], None]) -> Found:
        if answer.status == 304 and entry is not None:
            return Found(entry.data, entry.total_bytes, answer)
        check(answer, one.get)
        body = answer.body
        etag = answer.headers.get("etag")
        self.cache.write(one.keys[0], body.data, etag if etag and len(etag) < 256 else None, body.total_bytes)
        return Found(body.data, body.total_bytes, answer)


def clipped(wanted: Sequence[Span], file: Callable[[str], StoredFile]) -> tuple[Span, ...]:
    """Spans that end where their file does, as far as its size is known.

    Raises `DataError` for one that is longer than any header, and for more in all than a model's headers take.
    """
    found = []
    for span in wanted:
        size = file(span.path).bytes
        if span.start < 0 or span.length < 0 or span.length > MOST_SPAN_BYTES or span.start > 1 << 62:
            raise DataError(f"{span.path[:120]!a}: {span.length:,} bytes from {span.start:,} on are no header, so they are not read")
        found.append(span if size is None else span._replace(length=max(0, min(span.length, size - span.start))))
    total = sum(span.length for span in found)
    if total > MOST_CALL_BYTES:
        raise DataError(f"{total:,} bytes of headers are more than any model has, so they are not read")
    return tuple(found)


def _with_etag(get: Get, entry: Entry | None) -> Get:
    return get if entry is None or entry.etag is None else get._replace(etag=entry.etag)
