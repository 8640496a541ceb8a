"""An Ollama manifest: the layers that make up a model, each a blob named by its digest.

Ollama's `manifest/manifest.go` (manifests and lists of them), `manifest/layer.go`, `server/images.go` (media types) and
`types/model/config.go`. A manifest comes from a registry: nothing in it becomes a path but 64 hexadecimal digits.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from platform import machine
from typing import Any, NamedTuple

from fitcheck.errors import DataError

MOST_BYTES = 16 * 1024**2
MOST_LAYERS = 1 << 16
MOST_LAYER_BYTES = 1 << 60
LIST = "application/vnd.ollama.manifest.list.v2+json"
_KIND = "application/vnd.ollama.image."
_DIGEST = re.compile(r"sha256[:-]([0-9a-fA-F]{64})")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.+@-]*){0,15}")
WEIGHTS = ("model", "projector", "adapter", "draft", "tensor")


class Layer(NamedTuple):
    """One layer: its kind (`model`, `projector`, `tensor`, `json`, `params`, …), the digest in hexadecimal, and its size."""

    kind: str
    digest: str
    bytes: int
    name: str | None = None


class Manifest(NamedTuple):
    """A model's layers in their order, its config blob, and the runner and format where the manifest says them."""

    layers: tuple[Layer, ...]
    config: Layer | None
    runner: str | None
    format: str | None


def read_manifest(raw: bytes, where: str, blob: Callable[[str], bytes]) -> Manifest:
    """The manifest, or of a list of them the one that Ollama takes on this machine.

    `blob` reads a manifest that a list only refers to, by its digest. Raises `DataError` for anything that is not one.
    """
    found = _object(raw, where)
    if found.get("mediaType") != LIST:
        return _manifest(found, where)
    children = [child for child in _list(found.get("manifests"), "manifests", where) if isinstance(child, dict)]
    for runner in _runners():
        for child in children:
            if str(child.get("runner", "")).lower() == runner:
                return _manifest(_whole(child, runner, where, blob), where)
    raise DataError(f"{where}: its list of manifests has none for a runner that is known ({', '.join(_runners())})")


def _whole(child: dict[str, Any], runner: str, where: str, blob: Callable[[str], bytes]) -> dict[str, Any]:
    """An entry of a list, with the manifest that it refers to where it is not written out."""
    found = child
    if child.get("layers") is None and isinstance(child.get("digest"), str):
        referred = _object(blob(_digest(child["digest"], where)), where)
        found = {**referred, "runner": referred.get("runner") or runner, "format": referred.get("format") or child.get("format")}
    if found.get("mediaType") == LIST:
        raise DataError(f"{where}: a list of manifests within a list")
    return found


def _runners() -> tuple[str, ...]:
    """Runners in Ollama's order (`runnerPreferences`)."""
    apple = sys.platform == "darwin" and machine() == "arm64"
    return ("mlx", "ollama", "llamacpp") if apple else ("ollama", "llamacpp", "mlx")


def read_object(raw: bytes) -> dict[str, Any]:
    """A small JSON object (parameters, a config), or an empty one where it is none."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _object(raw: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except RecursionError:
        raise DataError(f"{where}: nested too deeply") from None
    except ValueError as error:
        raise DataError(f"{where}: not JSON: {ascii(str(error))[1:-1][:120]}") from None
    if not isinstance(found, dict):
        raise DataError(f"{where}: a manifest is a JSON object, and this is a {type(found).__name__}")
    return found


def _manifest(found: dict[str, Any], where: str) -> Manifest:
    layers = tuple(_layer(entry, where) for entry in _list(found.get("layers"), "layers", where))
    config = found.get("config")
    known = isinstance(config, dict) and isinstance(config.get("digest"), str) and bool(config["digest"])
    runner, form = (value if isinstance(value := found.get(name), str) and value.isidentifier() else None for name in ("runner", "format"))
    return Manifest(layers, _layer({"mediaType": "config", **config}, where) if known and isinstance(config, dict) else None, runner, form)


def _list(value: Any, name: str, where: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > MOST_LAYERS:
        raise DataError(f"{where}: {name} is no list of at most {MOST_LAYERS:,} entries")
    return value


def _layer(entry: Any, where: str) -> Layer:
    if not isinstance(entry, dict):
        raise DataError(f"{where}: a layer is a JSON object, and one is a {type(entry).__name__}")
    media, size = entry.get("mediaType"), entry.get("size")
    if type(size) is not int or not 0 <= size <= MOST_LAYER_BYTES:
        raise DataError(f"{where}: the size of a layer is {ascii(size)[:40]}, not a number of bytes")
    kind, _, options = media.partition(";") if isinstance(media, str) else ("", "", "")
    given = entry.get("name") or next((part.strip()[5:] for part in options.split(";") if part.strip().startswith("name=")), None)
    name = given if isinstance(given, str) and len(given) <= 300 and _NAME.fullmatch(given) else None
    return Layer(kind.strip().removeprefix(_KIND), _digest(entry.get("digest"), where), size, name)


def _digest(value: Any, where: str) -> str:
    found = _DIGEST.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise DataError(f"{where}: {ascii(value)[:80]} is no SHA-256 digest")
    return found[1].lower()
