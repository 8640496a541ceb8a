"""The index of a sharded checkpoint (`model.safetensors.index.json`): which file holds which tensor."""

from __future__ import annotations

from fitcheck.errors import DataError
from fitcheck.frozen import frozen
from fitcheck.sources.store import Store
from fitcheck.sources.stored.text import named, strict_json

MOST_INDEX_BYTES = 64 * 1024 * 1024
"""Kimi K3's index of 497,220 tensors takes some 50 MB."""
_MOST_TENSORS = 1 << 20
MOST_SHARDS = 10_000


@frozen
class Index:
    """The files of an index, by path within the store, its tensors' names, and their bytes where it says them (`metadata.total_size`)."""

    path: str
    shards: tuple[str, ...]
    total_bytes: int | None
    names: tuple[str, ...]


def read_index(store: Store, path: str) -> Index:
    """An index, its shards' names checked: each is a plain file name beside it. Raises `DataError`."""
    found = strict_json(store.read(path, MOST_INDEX_BYTES), path, _MOST_TENSORS + 1000, reals=True)
    weights = found.get("weight_map") if isinstance(found, dict) else None
    if not isinstance(weights, dict) or not weights:
        raise DataError(f"{named(path)} has no weight_map, so is not an index", hint="fetch the file again")
    names = {_checked(name, path) for name in set(map(_text, weights.values()))}
    if len(names) > MOST_SHARDS:
        raise DataError(f"{named(path)} names {len(names):,} files, and {MOST_SHARDS:,} is the most that is read")
    folder = path.rpartition("/")[0]
    described = found.get("metadata")
    total = described.get("total_size") if isinstance(described, dict) else None
    if isinstance(total, float) and total.is_integer():
        total = int(total)
    settled = total if type(total) is int and total > 0 else None
    return Index(path, tuple(sorted(f"{folder}/{name}" if folder else name for name in names)), settled, tuple(weights))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _checked(name: str, path: str) -> str:
    """A shard's name, or `DataError` for one that is not the plain name of a file beside the index."""
    plain = bool(name) and not name.startswith(".") and len(name) <= 255 and name.isprintable() and not set(name) & set('/\\:*?"<>|\0')
    if not plain:
        raise DataError(
            f"{named(path)} names a file {named(name)!r}, which is not the plain name of a file beside it",
            hint="nothing outside the model's folder is read; do not trust this repository",
        )
    return name
