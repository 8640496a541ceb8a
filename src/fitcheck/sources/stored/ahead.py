"""What the reading of a model is sure to want, asked in one round instead of one after another."""

from __future__ import annotations

from collections.abc import Sequence

from fitcheck.errors import DataError
from fitcheck.sources.store import Span, Store, StoredFile
from fitcheck.sources.stored.builds import find_builds
from fitcheck.sources.stored.reading import MOST_FILES
from fitcheck.sources.stored.safetensors import LENGTH_BYTES

_CONFIG, _INDEX = "config.json", ".index.json"


class Ahead:
    """A store that has some parts of its files at hand already."""

    def __init__(self, store: Store, parts: dict[Span, bytes]) -> None:
        self._store = store
        self._parts = parts
        self.label, self.url, self.hub_id = store.label, store.url, store.hub_id

    @property
    def notes(self) -> tuple[str, ...]:
        """What the store noticed."""
        return self._store.notes

    def files(self) -> tuple[StoredFile, ...]:
        """Every file, by path."""
        return self._store.files()

    def read(self, path: str, most_bytes: int) -> bytes:
        """A whole file."""
        size = next((file.bytes for file in self.files() if file.path == path), None)
        known = self._parts.get(Span(path, 0, size)) if size is not None and size <= most_bytes else None
        return known if known is not None and len(known) == size else self._store.read(path, most_bytes)

    def spans(self, wanted: Sequence[Span]) -> tuple[bytes, ...]:
        """Parts of files: of those that are not at hand, all are asked at once."""
        missing = [span for span in wanted if span not in self._parts]
        found = dict(zip(missing, self._store.spans(missing), strict=True)) if missing else {}
        return tuple(self._parts[span] if span in self._parts else found[span] for span in wanted)


def asked_ahead(store: Store, most_bytes: int) -> Store:
    """The store with the config at its root and the lengths of all headers at hand, where both are wanted whatever the config says.

    That is so where no index could spare the headers. `most_bytes` bounds the config. Raises what the store raises.
    """
    files = store.files()
    size = next((file.bytes for file in files if file.path == _CONFIG), None)
    if size is None or size > most_bytes or any(file.path.endswith(_INDEX) for file in files):
        return store
    try:
        builds = [build for build in find_builds(store).builds if build.problem is None and build.kind == "safetensors"]
    except DataError:
        return store
    weights = dict.fromkeys(file.path for build in builds for file in (*build.files, *build.drafters))
    if not 0 < len(weights) <= MOST_FILES:
        return store
    spans = [Span(_CONFIG, 0, size), *(Span(path, 0, LENGTH_BYTES) for path in weights)]
    return Ahead(store, dict(zip(spans, store.spans(spans), strict=True)))
