"""Where a model that people name lies: a path, an address, an Ollama model, a repository on a hub; opened as a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fitcheck.sources.store import Store

if TYPE_CHECKING:
    from fitcheck.sources.transport import Progress

_STARTS = ("/", "./", "../", "~", ".\\", "..\\")
_ENDINGS = (".json", ".gguf", ".safetensors")


def is_path(text: str) -> bool:
    """Whether a text can only be meant as a path, by its form."""
    if "://" in text[:16] or not text.strip() or "\0" in text:
        return False
    return text.startswith(_STARTS) or (text.lower().endswith(_ENDINGS) and ":" not in text[2:])


def _is_folder(text: str) -> bool:
    try:
        return bool(text.strip()) and Path(text).is_dir()
    except (OSError, ValueError):
        return False


def is_explicit(text: str) -> bool:
    """Whether a text can mean nothing of the catalogue: a path, an address, `ollama:…`, `org/name@revision`."""
    from fitcheck.sources.hub_names import looks_like_repository
    from fitcheck.sources.ollama.names import PREFIX

    return "://" in text[:16] or is_path(text) or text.startswith(PREFIX) or ("@" in text and looks_like_repository(text))


def is_outside(text: str) -> bool:
    """Whether a text names something outside the catalogue: as `is_explicit`, an Ollama model's `name:tag`, or a folder that is there."""
    from fitcheck.sources.ollama.names import named

    return is_explicit(text) or named(text) is not None or _is_folder(text)


@contextmanager
def open_outside(text: str, *, offline: bool = False, progress: Progress | None = None) -> Iterator[Store]:
    """The store that a text names, closed in the end.

    Raises `UsageError` for a text that names nothing, `DataError` for a path where nothing is, `UnknownId` for an Ollama model that was not
    pulled; what is read later raises as its store says.
    """
    store = _opened(text, offline=offline, progress=progress)
    try:
        yield store
    finally:
        close = getattr(store, "close", None)
        if close is not None:
            close()


def _opened(text: str, *, offline: bool, progress: Progress | None) -> Store:
    if "://" in text[:16]:
        from fitcheck.sources.address import open_address

        return open_address(text, offline=offline, progress=progress)
    if is_path(text) or _is_folder(text):
        from fitcheck.sources.stored.folder import local_store

        return local_store(Path(text).expanduser())
    from fitcheck.sources.ollama.names import named

    name = named(text)
    if name is not None:
        from fitcheck.sources.ollama.store import open_store

        return open_store(name)
    from fitcheck.sources.hub import open_hub

    return open_hub(text, offline=offline, progress=progress)
