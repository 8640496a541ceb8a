"""A hub's listing of a repository at a revision: commit, files with sizes, and who may read them.

`GET /api/models/{id}/revision/{revision}?blobs=true` says all of it in one request. A hub may cut that list off in large repositories
(huggingface_hub #3565), so one of more than 1,000 files is listed by `/api/models/{id}/tree/{commit}?recursive=true`, page by page.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit

from fitcheck.errors import DataError, NetworkError
from fitcheck.frozen import frozen
from fitcheck.sources.hub_names import check_path, is_commit
from fitcheck.sources.store import StoredFile
from fitcheck.sources.weburl import MOST_CHARACTERS, origin, shown_url

MOST_LISTING_BYTES = 16 * 1024**2
MOST_RELIABLE_FILES = 1000
MOST_FILES = 100_000
MOST_PAGES = 200
_MOST_SIZE = 1 << 62
_COMPLETE = "fitcheck_complete"
_NEXT = re.compile(r'<([^<>]{1,4096})>\s*;\s*rel="?next"?', re.IGNORECASE)


@frozen
class Listing:
    """What a repository holds at a commit. `public` says that anyone may read it; `id` is its name today.

    `complete` is false where the hub may have left files out.
    """

    id: str
    commit: str
    files: tuple[StoredFile, ...]
    public: bool
    gated: bool
    complete: bool


def parse_listing(raw: bytes, where: str) -> Listing:
    """The API's answer about a repository. Raises `NetworkError` for what no hub answers, `DataError` for paths that lead elsewhere."""
    value = _json(raw, where)
    if not isinstance(value, dict) or not is_commit(value.get("sha")):
        raise NetworkError(f"{where}: the server does not answer as a Hugging Face hub does", hint="check HF_ENDPOINT")
    siblings = value.get("siblings")
    entries = siblings if isinstance(siblings, list) else []
    files = [_file(entry, "rfilename", "blobId", where) for entry in entries if isinstance(entry, dict)]
    gated = value.get("gated") not in (None, False)
    name = value.get("id")
    return Listing(
        id=name if isinstance(name, str) and name.isprintable() and len(name) < 200 else "",
        commit=value["sha"],
        files=_by_path(files),
        public=value.get("private") is False and not gated,
        gated=gated,
        complete=value.get(_COMPLETE) is True or 0 < len(files) <= MOST_RELIABLE_FILES,
    )


def parse_page(raw: bytes, where: str) -> list[StoredFile]:
    """The files on one page of a tree."""
    value = _json(raw, where)
    if not isinstance(value, list):
        raise NetworkError(f"{where}: the server does not list files as a Hugging Face hub does", hint="check HF_ENDPOINT")
    return [_file(entry, "path", "oid", where) for entry in value if isinstance(entry, dict) and entry.get("type") == "file"]


def next_page(headers: dict[str, str], url: str, endpoint: str) -> str | None:
    """The address of the page that follows `url`, None for the last.

    It is asked of the endpoint itself, whatever host the link names: a mirror may pass on the original's, or know itself by another name.
    Raises `NetworkError` for a link that says nothing of where to go on, as a listing that ends there would be taken for the whole.
    """
    found = _NEXT.search(headers.get("link", ""))
    if found is None:
        return None
    try:
        following: str = urljoin(url, found[1])
        if origin(following) == origin(endpoint):
            return following
        query = urlsplit(following).query
    except ValueError:
        query = ""
    if not query or len(query) > MOST_CHARACTERS or not query.isprintable():
        raise NetworkError(f"{shown_url(url)}: the listing goes on at something that is no page of it", hint="check HF_ENDPOINT")
    return str(urlunsplit(urlsplit(url)._replace(query=query)))


def with_files(listing: Listing, files: list[StoredFile], where: str) -> Listing:
    """The listing with these files, which are all. Raises `DataError` for more than anyone publishes."""
    if len(files) > MOST_FILES:
        raise DataError(f"{where}: more than {MOST_FILES:,} files")
    return Listing(listing.id, listing.commit, _by_path(files), listing.public, listing.gated, complete=True)


def dump_listing(listing: Listing) -> bytes:
    """A listing as the API would write it, for the cache."""
    siblings = [{"rfilename": file.path, "size": file.bytes, "blobId": file.etag} for file in listing.files]
    whole = {"id": listing.id, "sha": listing.commit, "private": not listing.public, "gated": listing.gated, "siblings": siblings}
    return json.dumps({**whole, _COMPLETE: True}).encode()


def _by_path(files: list[StoredFile]) -> tuple[StoredFile, ...]:
    unique = {file.path: file for file in files}
    return tuple(unique[path] for path in sorted(unique))


def _json(raw: bytes, where: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise NetworkError(f"{where}: the server's listing is not readable as JSON", hint="check HF_ENDPOINT") from error


def _file(entry: dict[str, Any], path: str, blob: str, where: str) -> StoredFile:
    lfs = entry.get("lfs")
    lfs = lfs if isinstance(lfs, dict) else {}
    etag = lfs.get("sha256") or lfs.get("oid") or entry.get(blob)
    size = lfs.get("size", entry.get("size"))
    return StoredFile(
        path=check_path(entry.get(path), where),
        bytes=size if isinstance(size, int) and not isinstance(size, bool) and 0 <= size < _MOST_SIZE else None,
        etag=etag if isinstance(etag, str) and etag.isprintable() and len(etag) <= 128 else None,
    )
