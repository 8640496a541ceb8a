"""What an address of the web stands for: the page of a hub is the hub's store at that revision and file, any other is a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from fitcheck.errors import UsageError
from fitcheck.sources.cache import Cache, default_directory
from fitcheck.sources.hub import HubStore
from fitcheck.sources.hub_names import Repository, access, parse_repository
from fitcheck.sources.narrowed import Narrowed
from fitcheck.sources.web import AddressStore
from fitcheck.sources.weburl import origin, parse_web_address, shown_url

if TYPE_CHECKING:
    from fitcheck.sources.transport import Progress

_HUB_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co"})
_NO_MODELS = frozenset({"datasets", "spaces", "collections", "docs", "blog", "papers", "api", "models", "organizations", "settings"})
_FILE_PAGES = frozenset({"blob", "resolve", "raw"})
_PAGE = "such as https://huggingface.co/org/name or https://huggingface.co/org/name/blob/main/model.gguf"


def open_address(text: str, *, offline: bool = False, progress: Progress | None = None) -> HubStore | Narrowed | AddressStore:
    """The store of an address. Raises `UsageError` for one that is none, is of a scheme that is not read, or names no model's file."""
    scheme = text.strip().partition("://")[0].lower()
    if scheme == "file":
        raise UsageError("file:// addresses are not read", hint="give the path itself, such as /models/model.gguf")
    if scheme not in ("http", "https"):
        raise UsageError(f"{scheme[:20]!a} addresses are not read", hint="write it as https://host/path")
    address = parse_web_address(text.strip())
    who = access(offline=offline)
    path = _path_on_hub(who.endpoint, address.url)
    if path is None:
        return AddressStore(address, Cache(default_directory()), offline=who.offline, progress=progress)
    if address.authorization is not None:
        raise UsageError(f"{shown_url(address.url)}: a hub takes no password in its address", hint="give the token in HF_TOKEN")
    repository, file, folder = hub_page(path, shown_url(address.url))
    store = HubStore(repository, who, Cache(default_directory()), progress=progress)
    return Narrowed(store, file=file, folder=folder) if file or folder else store


def _path_on_hub(endpoint: str, url: str) -> str | None:
    """The path of a hub's page, within the hub; None for an address elsewhere. Pages of huggingface.co are read from HF_ENDPOINT too."""
    path = urlsplit(url).path
    prefix = urlsplit(endpoint).path
    if origin(url) == origin(endpoint) and path.startswith(f"{prefix}/"):
        return path.removeprefix(prefix)
    return path if origin(url).host in _HUB_HOSTS else None


def hub_page(path: str, shown: str) -> tuple[Repository, str | None, str | None]:
    """The repository that a page of a hub shows, and the file or folder in it. Raises `UsageError` for a page of something else."""
    parts = [part for part in path.split("/") if part]
    if len(parts) < 2 or parts[0] in _NO_MODELS:
        raise UsageError(f"{shown} is not the page of a model", hint=_PAGE)
    name, kind, rest = "/".join(unquote(part) for part in parts[:2]), parts[2:3], parts[3:]
    if not kind:
        return parse_repository(name), None, None
    if not rest or (kind[0] != "tree" and kind[0] not in _FILE_PAGES):
        raise UsageError(f"{shown} is not a page of a model's files", hint=_PAGE)
    count = 3 if rest[:2] in (["refs", "pr"], ["refs", "convert"]) else 1
    repository = parse_repository(f"{name}@{'/'.join(unquote(part) for part in rest[:count])}")
    place = "/".join(unquote(part) for part in rest[count:]) or None
    if kind[0] == "tree":
        return repository, None, place
    if place is None:
        raise UsageError(f"{shown} names no file", hint=_PAGE)
    return repository, place, None
