"""What people call an Ollama model, and where Ollama keeps those it has pulled.

Grammar, as in Ollama's `types/model/name.go`: `[host/][namespace/]model[:tag]`, by default `registry.ollama.ai`, `library` and `latest`;
letters, digits, `_`, `-` and `.` (no `.` in a namespace, `:` only in a host), each part beginning with a letter, digit or `_`. Here
`ollama:NAME` always means such a model; a bare name does only where it holds what no other kind of name does: a `:tag` (`llama3.2:3b`,
`user/model:q8_0`) or the host of a hub that Ollama pulls from (`hf.co/org/name`). Names of the catalogue, paths and addresses go first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from fitcheck.errors import UsageError

PREFIX = "ollama:"
HOST, NAMESPACE, TAG = "registry.ollama.ai", "library", "latest"
HUBS = ("hf.co", "huggingface.co")
SERVICE = Path("/usr/share/ollama/.ollama/models")
"""Where the Linux service keeps them: its user's home is `/usr/share/ollama` (Ollama's `docs/faq`, `scripts/install.sh`)."""
TREES = ("manifests-v2", "manifests")
"""Manifests by name, the newer tree first (Ollama's `manifest/manifest.go`, `namedManifestRefs`)."""

MOST_NAMES = 10_000
_LETTERS = "A-Za-z0-9_"
_NAME = re.compile(
    rf"(?:(?:(?P<host>[{_LETTERS}][{_LETTERS}.:-]{{0,349}})/)?(?P<namespace>[{_LETTERS}][{_LETTERS}-]{{0,79}})/)?"
    rf"(?P<model>[{_LETTERS}][{_LETTERS}.-]{{0,79}})(?::(?P<tag>[{_LETTERS}][{_LETTERS}.-]{{0,79}}))?"
)


class OllamaName(NamedTuple):
    """A whole name."""

    host: str
    namespace: str
    model: str
    tag: str

    @property
    def shortest(self) -> str:
        """As Ollama itself lists it: without the host and the namespace that are the usual ones, with the tag."""
        place = "" if (self.host, self.namespace) == (HOST, NAMESPACE) else f"{self.namespace}/"
        return f"{f'{self.host}/' if self.host != HOST else ''}{place}{self.model}:{self.tag}"

    def same_as(self, other: OllamaName) -> bool:
        """Whether both mean the same model; case does not count."""
        return tuple(map(str.lower, self)) == tuple(map(str.lower, other))


def parse_name(text: str) -> OllamaName:
    """A name, with or without `ollama:` before it. Raises `UsageError` for what is none."""
    found = _NAME.fullmatch(text.removeprefix(PREFIX))
    if found is None:
        raise UsageError(f"{text[:120]!a} is no name of an Ollama model", hint="such as ollama:llama3.2:3b or hf.co/org/name:Q4_K_M")
    return OllamaName(found["host"] or HOST, found["namespace"] or NAMESPACE, found["model"], found["tag"] or TAG)


def named(text: str) -> OllamaName | None:
    """The Ollama model that a text means by its form alone, else None. Raises `UsageError` where only the `ollama:` is right."""
    if text.startswith(PREFIX):
        return parse_name(text)
    found = _NAME.fullmatch(text)
    if found is None or re.match(r"[A-Za-z]:[\\/]", text):
        return None
    return parse_name(text) if found["tag"] or (found["host"] or "").lower() in HUBS else None


def folders(environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Where models may lie, in the order in which they are looked for: `OLLAMA_MODELS` alone, else the home's folder and the service's."""
    given = (os.environ if environ is None else environ).get("OLLAMA_MODELS", "").strip().strip("\"'")
    if given:
        return (Path(given),)
    try:
        return Path.home() / ".ollama" / "models", SERVICE
    except RuntimeError:
        return (SERVICE,)


def local_names(folder: Path) -> Iterator[tuple[OllamaName, Path]]:
    """Names and manifests of one folder. Raises `OSError` where it cannot be read."""
    found: set[tuple[str, ...]] = set()
    for tree in TREES:
        for path in islice(_manifests(folder / tree, 4), MOST_NAMES):
            name = _from_path(path)
            key = tuple(map(str.lower, name)) if name else ()
            if name is not None and key not in found:
                found.add(key)
                yield name, path


def _manifests(folder: Path, depth: int) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir()):
        if depth == 1:
            if not entry.is_dir():
                yield entry
        elif not entry.is_symlink():
            yield from _manifests(entry, depth - 1)


def _from_path(path: Path) -> OllamaName | None:
    host, namespace, model, tag = path.parts[-4:]
    found = _NAME.fullmatch(f"{host}/{namespace}/{model}:{tag}")
    return OllamaName(host, namespace, model, tag) if found and found["tag"] == tag else None
