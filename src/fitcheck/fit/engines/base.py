"""The interface that every engine module keeps: an architecture and settings in, the terms of the fullest device out."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, NamedTuple

from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UnknownId, UsageError
from fitcheck.fit.state import KvDtype


class StateTerm(NamedTuple):
    """Bytes of one sort on the fullest device, and the formula they come from.

    `cache` grows with the context, `state` is fixed per sequence, `compute` is neither (buffers that an engine sets apart).
    """

    name: str
    sort: Literal["cache", "state", "compute"]
    bytes: int
    formula: str


class Settings(NamedTuple):
    """What an engine is asked to hold: `users` sequences of `context` tokens, split over devices; `named` are the engine's own settings.

    Settings of the engine's own win over `context` and `users` (llama.cpp: `n_ctx` is the whole context, `n_seq_max` the sequences).
    """

    context: int
    users: int
    kv_dtype: KvDtype
    tp: int = 1
    pp: int = 1
    dp: int = 1
    dcp: int = 1
    named: dict[str, Any] = {}  # noqa: RUF012 - never written to


class Ledger(NamedTuple):
    """State and cache on the fullest device: `bytes` in all, of which `kv_bytes` grow and `state_bytes` are fixed per sequence."""

    terms: tuple[StateTerm, ...]

    @property
    def kv_bytes(self) -> int:
        """Caches that grow with the context, as this engine allocates them."""
        return sum(term.bytes for term in self.terms if term.sort == "cache")

    @property
    def state_bytes(self) -> int:
        """State that is fixed per sequence."""
        return sum(term.bytes for term in self.terms if term.sort == "state")

    @property
    def compute_bytes(self) -> int:
        """Buffers that hold neither; not part of `bytes`."""
        return sum(term.bytes for term in self.terms if term.sort == "compute")

    @property
    def bytes(self) -> int:
        """Caches and state together, without weights and buffers."""
        return self.kv_bytes + self.state_bytes


Allocate = Callable[[Architecture, Settings], tuple[StateTerm, ...]]

MODULES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llama.cpp": "llamacpp",
    "ik-llama.cpp": "ikllamacpp",
    "mlx": "mlx",
    "tensorrt-llm": "tensorrt",
}
"""Engines whose allocators are modelled, and their modules; each has a function `allocate`."""

_SPELLED = {"".join(filter(str.isalnum, name)): module for name, module in MODULES.items()} | {
    "ikllama": "ikllamacpp",
    "mlxlm": "mlx",
    "trtllm": "tensorrt",
}
"""Modules by an engine's letters alone: `llama-cpp`, `ik_llama.cpp` and `mlx_lm` are what people write."""


def module_of(engine: str) -> str | None:
    """The module that models an engine, whatever the case and the marks of its name; None where there is none."""
    return _SPELLED.get("".join(filter(str.isalnum, engine.lower())))


def allocator(engine: str) -> Allocate:
    """The engine's `allocate`. Raises `UnknownId` for an engine whose allocator is not modelled."""
    module = module_of(engine)
    if module is None:
        raise UnknownId(f"the allocator of {ascii(engine)[:80]} is not modelled", hint=f"modelled: {', '.join(MODULES)}")
    found: Allocate = import_module(f"fitcheck.fit.engines.{module}").allocate
    return found


LLAMA_CPP = ("llamacpp", "ikllamacpp")
"""The modules of engines that read what only a GGUF file says."""


def check_told(architecture: Architecture, engine: str) -> None:
    """Raise `UnknownFact` where the architecture was read from a file that says too little for the engine."""
    if architecture.only_llama_cpp and module_of(engine) not in LLAMA_CPP:
        raise UnknownFact(f"{engine} needs what the GGUF file does not say: {'; '.join(architecture.only_llama_cpp)}")


def reject_unknown(named: dict[str, Any], known: set[str], engine: str) -> None:
    """Raise `UsageError` for a setting that the engine does not have."""
    for name in named:
        if name not in known:
            raise UsageError(f"{engine} has no setting {ascii(name)[:80]}", hint=f"known: {', '.join(sorted(known))}")
