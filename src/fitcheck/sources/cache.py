"""What was read over the network, kept in the user's cache directory so that it is not asked for twice.

An entry is one file: a checksum, a few facts, and the bytes. It is written beside its place and renamed into it, so processes can share the
directory; one that is cut off, altered or of another version is as if it were not there. The directory is for its owner alone (0700, files
0600). A directory that cannot be used means work without a cache, said once.

A key never holds a token. It holds who asked: the hash of the token for what only its holder may read, and `public` for the rest. So what
was read of a gated or private repository with one token is not served without that token.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkstemp
from typing import NamedTuple

PUBLIC = "public"
MOST_CACHED_BYTES = 512 * 1024**2
_LEFT_AFTER_SWEEP = 0.8
_MAGIC = b"fitcheck1\n"
_DIGEST_BYTES = 32
_MOST_FACTS_BYTES = 4096
_STALE_S = 3600.0
_PRIVATE = 0o700


class Entry(NamedTuple):
    """What was read, and when: `total_bytes` is the size of the whole file where the server said it."""

    data: bytes
    etag: str | None
    total_bytes: int | None
    read_at: datetime


def identity(secret: str | None) -> str:
    """Who asks, as a key holds it: `public`, or a hash that says nothing about the token."""
    return PUBLIC if secret is None else hashlib.sha256(b"fitcheck cache\0" + secret.encode()).hexdigest()[:32]


def key(*parts: str | int | None) -> str:
    """The name of an entry: a hash of its parts, so that no address or query can be read from a directory listing."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def default_directory() -> Path:
    """`FITCHECK_CACHE`, else the place where this system keeps caches."""
    own = os.environ.get("FITCHECK_CACHE")
    if own:
        return Path(own).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "fitcheck" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fitcheck"
    shared = os.environ.get("XDG_CACHE_HOME", "")  # which counts only where it is absolute, as its specification says
    return (Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache") / "fitcheck"


class Cache:
    """Entries by key. `warning` says why nothing is kept, where that is so; None is a cache that holds nothing on purpose."""

    def __init__(self, directory: Path | None, most_bytes: int = MOST_CACHED_BYTES) -> None:
        self.warning: str | None = None
        self._most_bytes = most_bytes
        self._unswept_bytes: int | None = None
        self._root = directory / "http-1" if directory is not None else None
        self._prepared = False
        self._folders: set[Path] = set()

    def read(self, name: str) -> Entry | None:
        """The entry of a key, or None where there is none that is whole."""
        if not self._usable():
            return None
        path = self._path(name)
        try:
            with path.open("rb") as stream:
                raw = stream.read(self._most_bytes + 1)
        except OSError:
            return None
        entry = _unpacked(raw, name)
        with suppress(OSError):
            if entry is None:
                path.unlink()
            else:
                os.utime(path)  # what was used last is dropped last
        return entry

    def write(self, name: str, data: bytes, etag: str | None, total_bytes: int | None) -> None:
        """Keep an entry, for all or not at all."""
        if len(data) > self._most_bytes // 4 or not self._usable():
            return
        raw = _packed(name, Entry(data, etag, total_bytes, datetime.now(UTC)))
        try:
            path = self._path(name)
            if path.parent not in self._folders:
                path.parent.mkdir(mode=_PRIVATE, exist_ok=True)
                self._folders.add(path.parent)
            descriptor, temporary = mkstemp(prefix="tmp-", dir=path.parent)  # which makes it readable by its owner alone
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(raw)
                Path(temporary).replace(path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            self._sweep(len(raw))
        except OSError as error:
            self._give_up(error)

    def _path(self, name: str) -> Path:
        assert self._root is not None
        return self._root / name[:2] / name

    def _usable(self) -> bool:
        """Whether there is a directory to use: made for its owner alone where it was missing, and never one of somebody else."""
        if self._root is None or self._prepared:
            return self._root is not None
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.name == "posix":
                found = self._root.lstat()
                if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                    raise PermissionError(0, "the directory belongs to somebody else")
                if stat.S_IMODE(found.st_mode) != _PRIVATE:
                    self._root.chmod(_PRIVATE)
        except OSError as error:
            self._give_up(error)
            return False
        self._prepared = True
        return True

    def _give_up(self, error: OSError) -> None:
        self.warning = f"nothing is cached: {error.strerror or type(error).__name__} ({ascii(str(self._root))[1:-1]})"
        self._root = None

    def _sweep(self, written_bytes: int) -> None:
        """Drop the oldest entries past the limit: looked at with the first entry written, and after each sixteenth of the limit."""
        if self._unswept_bytes is not None:
            self._unswept_bytes += written_bytes
            if self._unswept_bytes < self._most_bytes // 16:
                return
        self._unswept_bytes = 0
        entries = sorted(self._entries())
        size = sum(entry_bytes for _, entry_bytes, _ in entries)
        if size <= self._most_bytes:
            return
        for _, entry_bytes, path in entries:
            if size <= self._most_bytes * _LEFT_AFTER_SWEEP:
                return
            with suppress(OSError):
                path.unlink(missing_ok=True)
            size -= entry_bytes

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        """When each was used last, its size, and where it is; what a process left half written is removed."""
        assert self._root is not None
        for path in self._root.glob("??/*"):
            with suppress(OSError):
                found = path.lstat()
                if path.name.startswith("tmp-") and time.time() - found.st_mtime > _STALE_S:
                    path.unlink()
                elif stat.S_ISREG(found.st_mode):
                    yield found.st_mtime, found.st_size, path


def _packed(name: str, entry: Entry) -> bytes:
    facts = {"key": name, "etag": entry.etag, "total": entry.total_bytes, "at": entry.read_at.isoformat(), "length": len(entry.data)}
    content = json.dumps(facts).encode() + b"\n" + entry.data
    return _MAGIC + hashlib.sha256(content).digest() + content


def _unpacked(raw: bytes, name: str) -> Entry | None:
    start = len(_MAGIC) + _DIGEST_BYTES
    content = raw[start:]
    if not raw.startswith(_MAGIC) or hashlib.sha256(content).digest() != raw[len(_MAGIC) : start]:
        return None
    end = content.find(b"\n", 0, _MOST_FACTS_BYTES)
    try:
        facts = json.loads(content[:end])
        data = content[end + 1 :]
        if facts["key"] != name or facts["length"] != len(data):
            return None
        return Entry(data, facts["etag"], facts["total"], datetime.fromisoformat(facts["at"]))
    except (ValueError, KeyError, TypeError):
        return None
