"""A local folder, or a single weight file, as a store.

What may be read is what a listing shows, so a name that an index or a config invents (`../x`, an absolute path, a backslash, NUL) finds
nothing. A link to a regular file counts as that file, as in the Hugging Face cache, where every file is a link into `blobs`; links to
folders are not followed, so a folder is listed once and never in a circle. Hidden files and folders are left out.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from fitcheck.errors import DataError
from fitcheck.sources.store import Span, StoredFile
from fitcheck.sources.stored.series import OF_ANY_MODEL
from fitcheck.sources.stored.text import named

MOST_ENTRIES = 20_000
"""Files and folders. The largest published repositories have some 500."""
MOST_DEPTH = 8
_SERIES = re.compile(r"^(.+)-\d{5}-of-(\d{5})(\.gguf|\.safetensors)$")
_BESIDE = ("config.json", "model.safetensors.index.json")


class FolderStore:
    """Files below a folder; or some of them, where `only` names them."""

    def __init__(self, root: Path, label: str, only: frozenset[str] | None = None) -> None:
        self.root = root
        self.label = label
        self.only = only
        self.sizes: dict[str, int] | None = None

    @property
    def hub_id(self) -> None:
        """None: it is of no hub."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing: a folder is what it is."""
        return ()

    @property
    def url(self) -> str:
        """`file:` and the folder's or file's own name: where it lies on this machine is nobody's business."""
        return f"file:{quote(self.label.rpartition('/')[2], safe='@')}"

    def files(self) -> tuple[StoredFile, ...]:
        """Every file by path. Raises `DataError` for a folder that cannot be listed or has more entries than any model."""
        return tuple(StoredFile(path, size) for path, size in self._listed().items())

    def _listed(self) -> dict[str, int]:
        if self.sizes is None:
            self.sizes = dict(sorted(_entries(self.root, self.label) if self.only is None else _some(self.root, self.only)))
        return self.sizes

    def read(self, path: str, most_bytes: int) -> bytes:
        """A whole file of the listing. Raises `DataError` for one that is not there or is larger."""
        raw = self._part(Span(path, 0, most_bytes + 1))
        if len(raw) > most_bytes:
            raise DataError(
                f"{named(path)} is larger than {most_bytes:,} bytes", hint="no file of this kind is: look whether it is what its name says"
            )
        return raw

    def spans(self, wanted: Sequence[Span]) -> tuple[bytes, ...]:
        """Parts of files of the listing, shorter where a file ends."""
        return tuple(self._part(span) for span in wanted)

    def _part(self, span: Span) -> bytes:
        size = self._listed().get(span.path)
        if size is None:
            raise DataError(f"{named(span.path)}: {named(self.label)} has no such file", hint="only files below the folder are read")
        if span.start < 0 or span.length < 0:
            raise DataError(f"{named(span.path)}: a part of {span.length:,} bytes from {span.start:,} does not exist")
        try:
            with (self.root / span.path).open("rb") as stream:
                stream.seek(min(span.start, size))
                return stream.read(min(span.length, size))
        except OSError as error:
            raise DataError(f"{named(span.path)}: {error.strerror or 'cannot be read'}") from error


def local_store(path: Path) -> FolderStore:
    """The store of a folder, or of a file: then of the series it belongs to, with a config and an index that lie beside it.

    Raises `DataError` where there is neither.
    """
    try:
        if path.is_dir():
            return FolderStore(path, _label(path.resolve()))
        if path.is_file():
            return FolderStore(path.parent, _file_label(path), _beside(path))
    except (OSError, ValueError):
        pass
    raise DataError(
        f"{named(str(path))}: there is no such file or folder", hint="a folder with a model's files, or a .gguf or .safetensors file"
    )


def _file_label(path: Path) -> str:
    """The file's name, behind that of its folder where it says nothing."""
    return f"{_label(path.resolve().parent)}/{path.name}" if OF_ANY_MODEL.fullmatch(path.name) else path.name


def _label(folder: Path) -> str:
    """The folder's name, or what a snapshot in the Hugging Face cache is one of: `org/name@revision`."""
    cached = folder.parent.parent.name
    if folder.parent.name == "snapshots" and cached.startswith("models--"):
        return f"{cached.removeprefix('models--').replace('--', '/', 1)}@{folder.name}"
    return folder.name or "folder"


def _beside(path: Path) -> frozenset[str]:
    """The names that one file of a model stands for."""
    series = _SERIES.match(path.name)
    names = {path.name}
    if series:
        count = int(series[2])
        names |= {f"{series[1]}-{number:05d}-of-{series[2]}{series[3]}" for number in range(min(count, MOST_ENTRIES) + 1)}
    if path.suffix == ".safetensors":
        names |= {_BESIDE[0], *(_BESIDE[1:] if series else ())}
    return frozenset(names)


def _some(root: Path, names: frozenset[str]) -> Iterator[tuple[str, int]]:
    for name in names:
        size = _size(root / name)
        if size is not None:
            yield name, size


def _entries(root: Path, label: str) -> Iterator[tuple[str, int]]:
    waiting, seen = [("", 0)], 0
    while waiting:
        folder, depth = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MOST_ENTRIES:
                        raise DataError(f"{named(label)} has more than {MOST_ENTRIES:,} files", hint="name the model's own folder")
                    if entry.name.startswith("."):
                        continue
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if depth < MOST_DEPTH:
                            waiting.append((path, depth + 1))
                    elif (size := _size(entry)) is not None:
                        yield path, size
        except OSError as error:
            raise DataError(f"{named(folder or label)}: {error.strerror or 'cannot be listed'}") from error


def _size(entry: os.DirEntry[str] | Path) -> int | None:
    """Bytes of a regular file, or of the one a link points at; None for anything else and for a link that leads nowhere."""
    try:
        found = entry.stat()
    except (OSError, ValueError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
