"""Which blocks slide, by how much: `attention.sliding_window`, its pattern, and each architecture's own rule where the file has none.

llama.cpp build 11549, `load_arch_hparams` in `src/models/<architecture>.cpp`, `llama_model_base::load_swa_pattern` and
`llama_hparams::set_swa_pattern`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fitcheck.sources.families.fields import MOST_LAYERS, MOST_TOKENS, Unsettled
from fitcheck.sources.families.groups import CHUNKED, FULL, SLIDING
from fitcheck.sources.gguf_model.keys import Keys
from fitcheck.sources.gguf_model.shape import Shape


class Kinds(NamedTuple):
    """The kind of every block, the draft blocks last, and the window of those that slide."""

    kinds: list[str]
    window: int | None = None
    sliding_kind: str = SLIDING


Windows = Callable[[Keys, Shape], Kinds]


def none(_keys: Keys, shape: Shape) -> Kinds:
    """Full attention in every block; a window in the file is not looked at."""
    return Kinds([FULL] * shape.blocks)


def window_of(keys: Keys) -> int | None:
    """The window, or None where it is absent or 0."""
    return keys.maybe("attention.sliding_window", most=MOST_TOKENS, least=0) or None


def everywhere(keys: Keys, shape: Shape) -> Kinds:
    """One window on every layer where it is shorter than the context, as the config's own families have it (Mistral 7B, Phi-3).

    llama.cpp itself keeps everything for them (phi3.cpp: "Phi SWA is currently disabled"; llama.cpp for Mistral-7B-v0.1).
    """
    window, context = window_of(keys), keys.maybe("context_length", most=MOST_TOKENS)
    if window is None or (context is not None and window >= context):
        return none(keys, shape)
    return Kinds([SLIDING] * shape.layers + [FULL] * shape.draft, window)


def in_all(keys: Keys, shape: Shape) -> Kinds:
    """The file's window on every layer with attention (lfm2.cpp)."""
    window = window_of(keys)
    return none(keys, shape) if window is None else Kinds([SLIDING] * shape.layers + [FULL] * shape.draft, window)


def every(period: int | None, *, full_first: bool = False, default: int | None = None, needed: bool = False) -> Windows:
    """A full layer in every `period` blocks, the last or the first of them; `None` where only the file can tell.

    `default` is the window where the file has none, `needed` says that llama.cpp does not load a file without one.
    """

    def kinds(keys: Keys, shape: Shape) -> Kinds:
        window = window_of(keys)
        if window is None and default is not None:
            window = default
            keys.rule(f"attention.sliding_window = {default}, llama.cpp's default")
        if window is None:
            if needed:
                raise Unsettled("attention.sliding_window is missing")
            return none(keys, shape)
        return Kinds(_pattern(keys, shape, period, full_first), window)

    return kinds


def _pattern(keys: Keys, shape: Shape, period: int | None, full_first: bool, kind: str = SLIDING) -> list[str]:
    name = "attention.sliding_window_pattern"
    if isinstance(keys.raw(name), list):
        marks = keys.marks(name, shape.blocks, shape.layers) or []
        return [kind if mark else FULL for mark in marks] + [FULL] * (shape.blocks - len(marks))
    if period is None:
        raise Unsettled(f"{name} is missing")
    given = keys.maybe(name, most=MOST_LAYERS, least=0)
    if given is None:
        keys.rule(f"{name} = {period}, llama.cpp's rule for the architecture")
    each = period if given is None else given
    full = 0 if full_first else each - 1
    return [FULL if each and index % each == full else kind for index in range(shape.layers)] + [FULL] * shape.draft


def exaone4(keys: Keys, shape: Shape) -> Kinds:
    """EXAONE 4: the model of 64 layers slides whatever its file says (exaone4.cpp); others where the file has a window."""
    return every(4, default=4096 if shape.layers == 64 else None)(keys, shape)


def llama4(keys: Keys, shape: Shape) -> Kinds:
    """Llama 4: chunks of 8192 tokens in three of four layers, unless the file says that the window is 0 (llama4.cpp)."""
    if keys.raw("attention.sliding_window") == 0:
        return none(keys, shape)
    keys.rule("chunks of 8192 tokens, llama.cpp's rule for the architecture")
    return Kinds(_pattern(keys, shape, 4, full_first=False, kind=CHUNKED), 8192, CHUNKED)
