"""A part of a store as a store of its own: one file of a repository with what belongs to it, or one folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fitcheck.errors import DataError
from fitcheck.sources.hub import HubStore
from fitcheck.sources.hub_names import quoted
from fitcheck.sources.store import Span, StoredFile

SPLIT = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<parts>\d{5})(?P<ending>\.gguf|\.safetensors)", re.IGNORECASE)
"""How the parts of one model are named, by llama.cpp's gguf-split and by transformers alike."""


class Narrowed:
    """A `Store` that holds those files of another that a file or folder of it stands for."""

    def __init__(self, store: HubStore, *, file: str | None = None, folder: str | None = None) -> None:
        self._store = store
        self._place = file or folder or ""
        self._keeps = belongs_to_file(file) if file is not None else in_folder(folder or "")
        self._is_file = file is not None

    def __enter__(self) -> Narrowed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._store.close()

    @property
    def label(self) -> str:
        """`org/name@revision/path`."""
        return f"{self._store.label}/{ascii(self._place)[1:-1]}"

    @property
    def hub_id(self) -> str:
        """The repository's."""
        return self._store.hub_id

    @property
    def url(self) -> str:
        """The page of the file or folder at its commit."""
        page = self._store.url
        return f"{'/blob/'.join(page.rsplit('/tree/', 1)) if self._is_file else page}/{quoted(self._place)}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the whole store noticed."""
        return self._store.notes

    def files(self) -> tuple[StoredFile, ...]:
        """The files that belong together. Raises `DataError` where there is none."""
        found = tuple(file for file in self._store.files() if self._keeps(file.path))
        if not found or (self._is_file and all(file.path != self._place for file in found)):
            kind = "file" if self._is_file else "folder"
            raise DataError(
                f"{self._store.label}: it has no {kind} {self._place[:120]!a}", hint=f"its files are listed at {self._store.url}"
            )
        return found

    def read(self, path: str, most_bytes: int) -> bytes:
        """A whole file."""
        self._check(path)
        return self._store.read(path, most_bytes)

    def spans(self, wanted: Sequence[Span]) -> tuple[bytes, ...]:
        """Parts of files."""
        for span in wanted:
            self._check(span.path)
        return self._store.spans(wanted)

    def _check(self, path: str) -> None:
        if not self._keeps(path):
            raise DataError(f"{self.label}: {path[:120]!a} does not belong to it")


def belongs_to_file(file: str) -> Callable[[str], bool]:
    """Which paths a file stands for: itself, the other parts of a split model, and the JSON beside it that describes it."""
    folder, _, name = file.rpartition("/")
    split = SPLIT.fullmatch(name)

    def keeps(path: str) -> bool:
        beside, _, other = path.rpartition("/")
        if path == file or (beside == folder and other.endswith(".json")):
            return True
        found = SPLIT.fullmatch(other) if split is not None and beside == folder else None
        same = ("stem", "parts", "ending")
        return found is not None and split is not None and found.group(*same) == split.group(*same)

    return keeps


def in_folder(folder: str) -> Callable[[str], bool]:
    """Which paths lie in a folder."""
    return lambda path: path.startswith(f"{folder}/")
