"""A model's file at an address of the web, as a store: `https://host/path/model-Q4_K_M.gguf`, a `.safetensors` file, a `config.json`.

Of a split model the other parts are found by their names, and the `config.json` beside safetensors where there is one. http is read as well
as https, for servers in one's own network, and said so; credentials go over http to this machine only. A query (signed links carry their
secret there) is sent, and never shown, cited or written down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from fitcheck.errors import DataError, FitcheckError, NetworkError, UsageError
from fitcheck.sources.body import Range
from fitcheck.sources.cache import Cache, identity, key
from fitcheck.sources.fetch import Fetcher, Found, Wanted, clipped
from fitcheck.sources.hub_names import check_path
from fitcheck.sources.narrowed import SPLIT
from fitcheck.sources.store import Span, StoredFile
from fitcheck.sources.weburl import WebAddress, is_loopback, origin, public_url
from fitcheck.sources.wire import Answer, Get, Patience
from fitcheck.units import format_instant, format_size

if TYPE_CHECKING:
    from fitcheck.sources.transport import Progress, Transport

MOST_PARTS = 1000
_READABLE = (".gguf", ".safetensors", ".json")
_PROBE_BYTES = 64
"""What is asked of a file to learn whether it is there and how long it is."""


class AddressStore:
    """A `Store` of one file on the web and what belongs to it. Close it, or use it in a `with` statement.

    Raises `UsageError` for an address that names no file a reader knows.
    """

    def __init__(
        self, address: WebAddress, cache: Cache, *, offline: bool, progress: Progress | None = None, patience: Patience | None = None
    ) -> None:
        self._address = address
        self._progress = progress
        self._patience = patience
        self._fetcher = Fetcher(cache, self._connect, offline=offline)
        self._files: dict[str, StoredFile] = {}
        self._resolved: dict[str, str] = {}
        self._notes: list[str] = []
        parts = urlsplit(address.url)
        self._name = unquote(parts.path.rpartition("/")[2])
        if not self._name.lower().endswith(_READABLE):
            hint = "an address ends in .gguf, .safetensors or config.json, or is the page of a repository on the hub"
            raise UsageError(f"{self.label}: names no file of a model", hint=hint)
        check_path(self._name, self.label)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            self._notes.append(f"{self.label}: read over http, so anyone on the way could have changed it")

    def __enter__(self) -> AddressStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._fetcher.close()

    @property
    def label(self) -> str:
        """Host and path: no scheme, no credentials, no query."""
        return public_url(self._address.url).partition("://")[2]

    @property
    def hub_id(self) -> None:
        """None: it is of no hub."""

    @property
    def url(self) -> str:
        """The address without credentials and query."""
        return public_url(self._address.url)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noticed: an unsafe connection, an answer of the past, a cache that cannot be written."""
        warning = self._fetcher.cache.warning
        return (*self._notes, warning) if warning is not None else tuple(self._notes)

    def files(self) -> tuple[StoredFile, ...]:
        """The file and what belongs to it, by path. Raises `DataError` where a part of it is not there."""
        if not self._files:
            names = part_names(self._name, self.label)
            found = self._fetch([Span(name, 0, _PROBE_BYTES) for name in names])
            files = {name: _stored(name, one) for name, one in zip(names, found, strict=True)}
            if self._name.lower().endswith(".safetensors"):
                files |= self._beside("config.json")
                files |= self._beside(*part_zero(names))
            self._files = files
        return tuple(self._files[name] for name in sorted(self._files))

    def read(self, path: str, most_bytes: int) -> bytes:
        """A whole file. Raises `DataError` for one that does not belong to it or is larger than `most_bytes`."""
        file = self._file(path)
        too_large = DataError(f"{self._shown(path)}: larger than the {format_size(most_bytes)} that are read of such a file")
        if file.bytes is not None and file.bytes > most_bytes:
            raise too_large
        found = self._ask([self._wanted(path, most_bytes, None)])[0]
        if len(found.data) > most_bytes:
            raise too_large
        return found.data

    def spans(self, wanted: Sequence[Span]) -> tuple[bytes, ...]:
        """Parts of files, all asked at once; each as long as wanted, or shorter where its file ends."""
        spans = clipped(wanted, self._file)
        places = [place for place, span in enumerate(spans) if span.length]
        results = [b""] * len(spans)
        for place, found in zip(places, self._fetch([spans[place] for place in places]), strict=True):
            results[place] = found.data
        return tuple(results)

    def _beside(self, *names: str) -> dict[str, StoredFile]:
        """Those of some files that are there, as far as a server that may call anything a page can tell: a config, or a first shard.

        Raises `NetworkError` where the server does not say.
        """
        files: dict[str, StoredFile] = {}
        for name in names:
            try:
                found = self._ask([self._wanted(name, _PROBE_BYTES, Range(0, _PROBE_BYTES))], _check_beside)[0]
            except DataError:
                continue
            except NetworkError:
                if self._fetcher.offline:
                    continue
                raise
            begins = found.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" if name.endswith(".json") else found.data[8:9] == b"{"
            files |= {name: _stored(name, found)} if begins else {}
        return files

    def _file(self, path: str) -> StoredFile:
        self.files()
        if path not in self._files:
            raise DataError(f"{self.label}: {path[:120]!a} does not belong to it")
        return self._files[path]

    def _shown(self, path: str) -> str:
        return f"{self.label.rpartition('/')[0]}/{ascii(path)[1:-1]}"

    def _connect(self) -> Transport:
        from fitcheck.sources.transport import Transport

        return Transport(progress=self._progress, patience=self._patience)

    def _fetch(self, spans: list[Span]) -> tuple[Found, ...]:
        return self._ask([self._wanted(span.path, span.length, Range(span.start, span.length)) for span in spans])

    def _wanted(self, path: str, most_bytes: int, part: Range | None) -> Wanted:
        parts = urlsplit(self._address.url)
        url = urlunsplit(parts._replace(path=f"{parts.path.rpartition('/')[0]}/{quote(path)}")) if path != self._name else self._address.url
        get = Get(url, self._shown(path), most_bytes, part, self._address.authorization, shortcut=self._resolved.get(url))
        place = part if part is not None else ("whole",)
        return Wanted(get, (key("web", identity(self._address.authorization), url, *place),), fixed=False)

    def _ask(self, wanted: list[Wanted], check: Callable[[Answer, Get], None] | None = None) -> tuple[Found, ...]:
        if not wanted:
            return ()
        found = self._fetcher.fetch(wanted, self.label, check or self._check)
        for one, what in zip(found, wanted, strict=True):
            if one.answer is not None and origin(one.answer.url) != origin(what.get.url):
                self._resolved[what.get.url] = one.answer.url
            elif one.as_of is not None and not any("offline" in note for note in self._notes):
                self._notes.append(f"{self.label}: offline, so as it was on {format_instant(one.as_of)}")
        return found

    def _check(self, answer: Answer, get: Get) -> None:
        """Raise what a status means, or that the file is another than it was a moment ago."""
        if answer.status not in (200, 206):
            raise _refusal(answer.status, get.what, self._address.authorization is not None)
        file = self._files.get(unquote(urlsplit(get.url).path.rpartition("/")[2]))
        etag = answer.headers.get("etag")
        if file is not None and file.etag is not None and etag is not None and etag != file.etag:
            raise NetworkError(f"{get.what}: changed while it was read", hint="try again")


def part_names(name: str, where: str) -> tuple[str, ...]:
    """The names of all parts of a split model, from one of them; just the name of a file that is not split. Raises `DataError`."""
    split = SPLIT.fullmatch(name)
    if split is None:
        return (name,)
    part, parts = int(split["part"]), int(split["parts"])
    if part == 0 and split["ending"].lower() == ".safetensors":
        part = 1  # which `part_zero` adds
    if not 1 <= part <= parts <= MOST_PARTS:
        raise DataError(f"{where}: part {part:,} of {parts:,} is no part of a split model")
    return tuple(f"{split['stem']}-{number:05}-of-{parts:05}{split['ending']}" for number in range(1, parts + 1))


def part_zero(names: tuple[str, ...]) -> tuple[str, ...]:
    """The shard before the first, where there may be one: OpenAI counts those of gpt-oss from 0 to the count itself."""
    split = SPLIT.fullmatch(names[0])
    return (f"{split['stem']}-{0:05}-of-{split['parts']}{split['ending']}",) if split is not None else ()


def _check_beside(answer: Answer, get: Get) -> None:
    """Of what may be missing: whatever a server refuses is (object stores answer 403), and what it cannot answer is not known."""
    if answer.status in (200, 206):
        return
    if answer.status == 429 or answer.status >= 500:
        raise _refusal(answer.status, get.what, False)
    raise DataError(f"{get.what}: there is no such file (status {answer.status})")


def _stored(name: str, found: Found) -> StoredFile:
    etag = found.answer.headers.get("etag") if found.answer is not None else None
    return StoredFile(name, found.total_bytes, etag)


def _refusal(status: int, what: str, with_password: bool) -> FitcheckError:
    if status in (404, 410):
        return DataError(
            f"{what}: there is no such file (status {status})", hint="all parts of a split model lie in one place, with their names"
        )
    if status in (401, 403):
        hint = (
            "the password may be wrong"
            if with_password
            else "a signed link may have expired; a password is given as https://user:password@host/…"
        )
        return NetworkError(f"{what}: the server refuses access (status {status})", hint=hint)
    if status == 429:
        return NetworkError(f"{what}: the server has had too many requests (status 429)", hint="wait a few minutes")
    return NetworkError(f"{what}: the server {'is out of order' if status >= 500 else 'does not answer this'} (status {status})")
