"""A model repository on a Hugging Face style hub, as a store.

A repository of any number of shards costs one request for its listing; each shard then costs what its reader asks for. A file's address is
resolved once: later parts of it are asked of the host that the hub redirected to, which never sees the token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from fitcheck.errors import DataError, NetworkError, UsageError
from fitcheck.sources.body import Range
from fitcheck.sources.cache import PUBLIC, Cache, default_directory, identity, key
from fitcheck.sources.fetch import Fetcher, Found, Wanted, clipped
from fitcheck.sources.hub_errors import Asked, check
from fitcheck.sources.hub_listing import (
    MOST_LISTING_BYTES,
    MOST_PAGES,
    Listing,
    dump_listing,
    next_page,
    parse_listing,
    parse_page,
    with_files,
)
from fitcheck.sources.hub_names import Access, Repository, access, parse_repository, quoted
from fitcheck.sources.store import Span, StoredFile
from fitcheck.sources.weburl import origin, public_url
from fitcheck.sources.wire import Answer, Get, Patience
from fitcheck.units import format_instant, format_size

if TYPE_CHECKING:
    from fitcheck.sources.transport import Progress, Transport


def open_hub(name: str, *, offline: bool = False, progress: Progress | None = None) -> HubStore:
    """The store of `org/name` or `org/name@revision`, with endpoint and token from the environment. Raises `UsageError` for a bad name."""
    return HubStore(parse_repository(name), access(offline=offline), Cache(default_directory()), progress=progress)


class HubStore:
    """A `Store` over a hub. Close it, or use it in a `with` statement; `notes` says what a reader of its answers should know."""

    def __init__(
        self, repository: Repository, access: Access, cache: Cache, *, progress: Progress | None = None, patience: Patience | None = None
    ) -> None:
        self.repository = repository
        self._access = access
        self._progress = progress
        self._patience = patience
        self._fetcher = Fetcher(cache, self._connect, offline=access.offline)
        self._listing: Listing | None = None
        self._sizes: dict[str, StoredFile] = {}
        self._resolved: dict[str, str] = {}
        self._notes: list[str] = []

    def __enter__(self) -> HubStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections; what was read stays readable."""
        self._fetcher.close()

    @property
    def label(self) -> str:
        """`org/name@revision`, as it was asked."""
        return str(self.repository)

    @property
    def hub_id(self) -> str:
        """`org/name`."""
        return self.repository.id

    @property
    def url(self) -> str:
        """The page of the repository at its commit, or at the revision asked as long as the commit is not known."""
        revision = self._listing.commit if self._listing is not None else self.repository.revision
        return f"{self._page}/tree/{quote(revision, safe='')}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noticed: a new name, an answer of the past, a cache that cannot be written."""
        warning = self._fetcher.cache.warning
        return (*self._notes, warning) if warning is not None else tuple(self._notes)

    @property
    def commit(self) -> str:
        """The commit that the revision stands for."""
        return self._listed().commit

    def files(self) -> tuple[StoredFile, ...]:
        """Every file at the commit, by path. Raises `DataError` where there is no such repository or revision, else `NetworkError`."""
        return self._listed().files

    def read(self, path: str, most_bytes: int) -> bytes:
        """A whole file. Raises `DataError` for one that is not there or too large, `NetworkError` where it does not come as listed."""
        file = self._file(path)
        name = self._asked(path).name
        too_large = DataError(f"{name}: larger than the {format_size(most_bytes)} that are read of such a file")
        if file.bytes is not None and file.bytes > most_bytes:
            raise too_large
        wanted = Wanted(self._get(path, most_bytes), self._keys("file", path), fixed=True)
        found = self._fetch([(path, wanted)], name)[0]
        if len(found.data) > most_bytes:
            raise too_large
        if file.bytes is not None and len(found.data) != file.bytes:
            raise NetworkError(f"{name}: {len(found.data):,} bytes came, and the listing says {file.bytes:,}")
        return found.data

    def spans(self, wanted: Sequence[Span]) -> tuple[bytes, ...]:
        """Parts of files, all asked at once; each as long as wanted, or shorter where its file ends."""
        parts: list[tuple[str, Wanted]] = []
        places: list[int] = []
        for place, span in enumerate(clipped(wanted, self._file)):
            if span.length:
                get = self._get(span.path, span.length, Range(span.start, span.length))
                parts.append((span.path, Wanted(get, self._keys("part", span.path, span.start, span.length), fixed=True)))
                places.append(place)
        results = [b""] * len(wanted)
        for place, (path, _), found in zip(places, parts, self._fetch(parts, self.repository.id), strict=True):
            size = self._sizes[path].bytes
            if size is not None and found.total_bytes not in (None, size):
                raise NetworkError(f"{self._asked(path).name}: the server says {found.total_bytes:,} bytes, and the listing {size:,}")
            results[place] = found.data
        return tuple(results)

    @property
    def _page(self) -> str:
        return f"{public_url(self._access.endpoint)}/{self.repository.id}"

    @property
    def _authorization(self) -> str | None:
        return f"Bearer {self._access.token}" if self._access.token is not None else None

    def _connect(self) -> Transport:
        from fitcheck.sources.transport import Transport

        return Transport(progress=self._progress, patience=self._patience)

    def _asked(self, file: str | None) -> Asked:
        access = self._access
        return Asked(self.repository, self._page, file, access.token is not None, origin(access.endpoint), access.withheld)

    def _get(self, path: str, most_bytes: int, part: Range | None = None) -> Get:
        """The request for a file or a part of it: by its commit, so that its answer never changes."""
        url = f"{self._access.endpoint}/{self._name}/resolve/{self._listed().commit}/{quoted(path)}"
        return Get(url, self._asked(path).name, most_bytes, part, self._authorization, shortcut=self._resolved.get(path))

    @property
    def _name(self) -> str:
        """What the hub calls the repository today, so that its files are not redirected one by one."""
        listing = self._listed()
        try:
            return parse_repository(listing.id).id
        except UsageError:
            return self.repository.id

    def _file(self, path: str) -> StoredFile:
        self._listed()
        if path not in self._sizes:
            raise DataError(f"{self.label}: it has no file {path[:120]!a}", hint=f"its files are listed at {self.url}")
        return self._sizes[path]

    def _keys(self, *parts: str | int) -> tuple[str, ...]:
        listing = self._listed()
        return (self._key(PUBLIC if listing.public else identity(self._access.token), listing.commit, *parts),)

    def _key(self, who: str, *parts: str | int) -> str:
        return key("hub", self._access.endpoint, who, self.repository.id.lower(), *parts)

    def _fetch(self, parts: list[tuple[str, Wanted]], what: str) -> tuple[Found, ...]:
        """Answers for files or their parts; where the hub sent us for one is where its next part is asked for."""
        paths = {wanted.get.url: path for path, wanted in parts}
        found = self._fetcher.fetch([wanted for _, wanted in parts], what, lambda answer, get: check(answer, self._asked(paths[get.url])))
        for (path, _), one in zip(parts, found, strict=True):
            if one.answer is not None and origin(one.answer.url) != origin(self._access.endpoint):
                self._resolved[path] = one.answer.url
        return found

    def _listed(self) -> Listing:
        if self._listing is None:
            listing = self._ask_listing()
            self._sizes = {file.path: file for file in listing.files}
            self._listing = listing
            if listing.id.lower() != self.repository.id.lower():
                self._notes.append(f"{self.repository.id} is called {ascii(listing.id)[1:-1]} today")
        return self._listing

    def _ask_listing(self) -> Listing:
        """The listing in one request, or more where there are too many files for one, and kept for whoever may read it."""
        repository = self.repository
        url = f"{self._access.endpoint}/api/models/{repository.id}/revision/{quote(repository.revision, safe='')}?blobs=true"
        keys = tuple(dict.fromkeys(self._key(who, repository.revision) for who in (identity(self._access.token), PUBLIC)))
        found = self._fetcher.fetch([Wanted(self._api_get(url), keys, repository.fixed)], self.label, self._check_api)[0]
        listing = parse_listing(found.data, self.label)
        if repository.fixed and listing.commit != repository.revision:
            raise NetworkError(f"{self.label}: the hub answers with another commit, {listing.commit}")
        if found.as_of is not None:
            self._notes.append(f"{self.label}: offline, so as it was on {format_instant(found.as_of)}")
        if found.answer is not None:
            data = found.data
            if not listing.complete:
                listing = self._ask_tree(listing)
                data = dump_listing(listing)
            who = PUBLIC if listing.public else identity(self._access.token)
            for revision in sorted({repository.revision, listing.commit}):
                self._fetcher.keep(self._key(who, revision), data, found.answer.headers.get("etag"))
        return listing

    def _ask_tree(self, listing: Listing) -> Listing:
        """The listing with the files of a repository too large for one answer, page by page."""
        files: list[StoredFile] = []
        url: str | None = f"{self._access.endpoint}/api/models/{self.repository.id}/tree/{listing.commit}?recursive=true"
        for _ in range(MOST_PAGES):
            if url is None:
                return with_files(listing, files, self.label)
            get = self._api_get(url)
            answer = self._fetcher.ask([get], self.label)[0]
            self._check_api(answer, get)
            files += parse_page(answer.body.data, self.label)
            url = next_page(answer.headers, url, self._access.endpoint)
        raise DataError(f"{self.label}: its listing has more than {MOST_PAGES} pages")

    def _api_get(self, url: str) -> Get:
        return Get(url, self.label, MOST_LISTING_BYTES, authorization=self._authorization)

    def _check_api(self, answer: Answer, get: Get) -> None:  # noqa: ARG002 - one signature for all that is asked
        check(answer, self._asked(None))
