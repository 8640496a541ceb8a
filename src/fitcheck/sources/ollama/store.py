"""A local Ollama model as a `Store`: its layers as files, read from the blobs of the models folder. No daemon is asked."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from fitcheck.errors import DataError, UnknownId
from fitcheck.sources.ollama.manifest import MOST_BYTES, WEIGHTS, Layer, Manifest, read_manifest, read_object
from fitcheck.sources.ollama.names import OllamaName, folders, local_names
from fitcheck.sources.store import Span, StoredFile

_SMALL_BYTES = 1 << 20
_HEAD_BYTES = 1 << 16
_FILES = {"params": "params.json", "template": "template.txt", "system": "system.txt", "messages": "messages.json"}
_STEMS = {"model": ("model", ".gguf"), "projector": ("mmproj", ".gguf"), "draft": ("draft", ".gguf"), "adapter": ("adapter", ".lora")}
_SPLIT_NUMBER = b"\x08\0\0\0\0\0\0\0split.no\x02\0\0\0"
"""A GGUF key `split.no` of 16 bits: its length, its name and its type; two bytes of value follow."""


class OllamaStore:
    """The files of one model, named as in a repository.

    `model.gguf` (`model-00001-of-00002.gguf` where it is split), `mmproj.gguf` and `draft.gguf`, or each tensor's `.safetensors` beside
    `config.json`. `notes` say what the model's own parameters and manifest settle for whoever runs it: the context, the runner.
    """

    def __init__(self, folder: Path, name: OllamaName, manifest: Path) -> None:
        self.folder = folder
        self.name = name
        self._path = manifest

    @property
    def label(self) -> str:
        """`ollama:llama3.2:3b`."""
        return f"ollama:{self.name.shortest}"

    @property
    def hub_id(self) -> None:
        """None: it is of no hub."""

    @property
    def url(self) -> str:
        """`file:` and the model's name."""
        return f"file:{quote(self.name.shortest, safe='/:')}"

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest. Raises `DataError` for one that leads out of the folder or makes no sense."""
        root, place = self.folder.resolve(), self._path.resolve()
        if not place.is_relative_to(root):
            raise DataError(f"{self.label}: its manifest lies outside the models folder")
        return read_manifest(
            _read(place, MOST_BYTES, self.label), self.label, lambda digest: _read(self._blob(digest), MOST_BYTES, self.label)
        )

    @cached_property
    def _layers(self) -> dict[str, Layer]:
        """Layers by the path that they get here."""
        kinds = Counter(layer.kind for layer in self.manifest.layers)
        if not any(kinds[kind] for kind in ("model", "tensor")):
            raise self._without_weights()
        found: dict[str, Layer] = {}
        seen: Counter[str] = Counter()
        for layer in [*self._parts(), *(layer for layer in self.manifest.layers if layer.kind != "model")]:
            seen[layer.kind] += 1
            path = _path(layer, seen[layer.kind], kinds[layer.kind])
            if path in found:
                raise DataError(f"{self.label}: two layers of its manifest are called {path}")
            found[path] = layer
        return found

    def _parts(self) -> list[Layer]:
        """The parts of the model's GGUF file, in the order of their `split.no`: the manifest's order need not be that (`server/images.go`).

        The first part holds the tokenizer too, so that its own number may lie anywhere in it.
        """
        parts = [layer for layer in self.manifest.layers if layer.kind == "model"]
        if len(parts) < 2:
            return parts
        numbers = {layer: number for layer in parts if (number := self._split_number(layer)) is not None}
        unknown = [layer for layer in parts if layer not in numbers]
        return sorted(parts, key=lambda layer: numbers.get(layer, 0)) if len(unknown) <= 1 else parts

    def _split_number(self, layer: Layer) -> int | None:
        head = self._part_of(f"part {layer.digest[:12]}", layer, 0, _HEAD_BYTES)
        at = head.find(_SPLIT_NUMBER)
        value = head[at + len(_SPLIT_NUMBER) :][:2] if at >= 0 else b""
        return int.from_bytes(value, "little") if len(value) == 2 else None

    def _without_weights(self) -> DataError:
        config = self._config()
        if isinstance(config.get("remote_host"), str):
            return DataError(f"{self.label} runs on Ollama's servers: no weights are here", hint="a model that was pulled, or its hub id")
        return DataError(f"{self.label}: its manifest names no weights", hint=f"ollama pull {self.name.shortest}")

    def _config(self) -> Mapping[str, object]:
        layer = self.manifest.config
        try:
            return read_object(_read(self._blob(layer.digest), _SMALL_BYTES, self.label)) if layer else {}
        except DataError:
            return {}

    def files(self) -> tuple[StoredFile, ...]:
        """Every layer, by path. Raises `DataError` for weights that are not there, or not of the size that the manifest says."""
        for path, layer in self._layers.items():
            if layer.kind in WEIGHTS:
                self._checked(path, layer)
        return tuple(StoredFile(path, layer.bytes, layer.digest) for path, layer in sorted(self._layers.items()))

    def read(self, path: str, most_bytes: int) -> bytes:
        """A whole layer. Raises `DataError` for one that is not there or is larger than `most_bytes`."""
        return _read(self._checked(path, self._layer(path)), most_bytes, f"{self.label}: {path}")

    def spans(self, wanted: Sequence[Span]) -> tuple[bytes, ...]:
        """Parts of layers, each cut at its layer's end."""
        return tuple(self._part_of(path, self._layer(path), start, length) for path, start, length in wanted)

    def _part_of(self, path: str, layer: Layer, start: int, length: int) -> bytes:
        place = self._checked(path, layer)
        try:
            with place.open("rb") as stream:
                stream.seek(min(start, layer.bytes))
                return stream.read(max(0, min(length, layer.bytes - start)))
        except (OSError, ValueError) as error:
            raise DataError(f"{self.label}: {path}: {getattr(error, 'strerror', None) or 'cannot be read'}") from error

    def _layer(self, path: str) -> Layer:
        layer = self._layers.get(path)
        if layer is None:
            raise DataError(f"{self.label} has no {ascii(path)[:80]}")
        return layer

    def _checked(self, path: str, layer: Layer) -> Path:
        place = self._blob(layer.digest)
        try:
            found = place.stat()
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            reason = "is not there: the pull was not finished" if missing else f"cannot be read: {error.strerror}"
            hint = f"ollama pull {self.name.shortest}" if missing else "run as a user who may read Ollama's models"
            raise DataError(f"{self.label}: the blob of {path} {reason}", hint=hint) from None
        if not stat.S_ISREG(found.st_mode) or found.st_size != layer.bytes:
            raise DataError(
                f"{self.label}: the blob of {path} has {found.st_size:,} bytes and its manifest says {layer.bytes:,}",
                hint=f"ollama pull {self.name.shortest}",
            )
        return place

    def _blob(self, digest: str) -> Path:
        """`blobs/sha256-…`; early versions wrote `sha256:…` (Ollama's `server/fixblobs.go`)."""
        blobs = self.folder / "blobs"
        old = blobs / f"sha256:{digest}"
        return old if not (blobs / f"sha256-{digest}").exists() and old.exists() else blobs / f"sha256-{digest}"

    @cached_property
    def num_ctx(self) -> int | None:
        """The context that the model's own parameters ask for."""
        layer = next((layer for layer in self.manifest.layers if layer.kind == "params"), None)
        try:
            value = read_object(_read(self._blob(layer.digest), _SMALL_BYTES, self.label)).get("num_ctx") if layer else None
        except DataError:
            return None
        return value if type(value) is int and 0 < value < 1 << 40 else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What its parameters and manifest settle."""
        kinds = Counter(layer.kind for layer in self.manifest.layers)
        found = [f"its own parameters set num_ctx to {self.num_ctx:,} tokens"] if self.num_ctx else []
        if kinds["adapter"]:
            found.append(f"{kinds['adapter']} adapter(s) are loaded beside the weights")
        if self.manifest.runner:
            found.append(f"Ollama runs it with {self.manifest.runner}")
        return tuple(found)


def open_store(name: OllamaName, environ: Mapping[str, str] | None = None) -> OllamaStore:
    """The local model of that name. Raises `UnknownId` with the nearest local names where it was not pulled."""
    known: list[str] = []
    refused: OSError | None = None
    looked = folders(environ)
    for folder in looked:
        try:
            for found, manifest in local_names(folder):
                if found.same_as(name):
                    return OllamaStore(folder, found, manifest)
                known.append(found.shortest)
        except OSError as error:
            refused = error
    if refused is not None and not known:
        raise DataError(
            f"Ollama's models cannot be read: {refused.strerror or 'no access'}",
            hint="run as a user who may read them, or set OLLAMA_MODELS",
        ) from refused
    nearest = tuple(get_close_matches(name.shortest, known, n=3, cutoff=0.4))
    where = " or ".join(ascii(str(folder))[1:-1] for folder in looked)
    raise UnknownId(f"no Ollama model {name.shortest} was pulled into {where}", hint=f"ollama pull {name.shortest}", nearest=nearest)


def _path(layer: Layer, number: int, of: int) -> str:
    if layer.kind == "json" and layer.name:
        return layer.name
    if layer.kind == "tensor":
        return f"{layer.name or f'tensor-{number:05d}'}.safetensors"
    if layer.kind not in _STEMS:
        plain = layer.kind if layer.kind.isidentifier() and layer.kind.isascii() else "layer"
        return _FILES[layer.kind] if of == 1 and layer.kind in _FILES else f"{plain}-{number}"
    stem, ending = _STEMS[layer.kind]
    return f"{stem}{ending}" if of == 1 else f"{stem}-{number:05d}-of-{of:05d}{ending}"


def _read(path: Path, most_bytes: int, what: str) -> bytes:
    try:
        if not path.is_file():
            raise DataError(f"{what}: {ascii(path.name)[1:-1]} is not there")
        size = path.stat().st_size
        with path.open("rb") as stream:
            raw = stream.read(min(size, most_bytes) + 1)
    except (OSError, ValueError) as error:
        raise DataError(f"{what}: {getattr(error, 'strerror', None) or 'cannot be read'}") from error
    if len(raw) > most_bytes:
        raise DataError(f"{what}: larger than {most_bytes:,} bytes")
    return raw
