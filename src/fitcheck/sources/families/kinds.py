"""Which layer is of which kind: the spellings that configs have for it (architectures.md, section 0.5)."""

from __future__ import annotations

from fitcheck.sources.families.fields import MOST_LAYERS, Fields, Unsettled, shown, whole
from fitcheck.sources.families.groups import CHUNKED, FULL, LINEAR, NOTHING, SLIDING

_LAYER_TYPES = {
    "full_attention": FULL,
    "attention": FULL,
    "global_attention": FULL,
    "deepseek_sparse_attention": FULL,
    "indexed_attention": FULL,
    "qwen_sparse_attention": FULL,
    "minimax_m3_sparse": FULL,
    "sliding_attention": SLIDING,
    "local_attention": SLIDING,
    "chunked_attention": CHUNKED,
    "linear_attention": LINEAR,
    "mamba": LINEAR,
    "mamba2": LINEAR,
    "conv": LINEAR,
    "moe": NOTHING,
    "mlp": NOTHING,
}


def listed(fields: Fields, layers: int, *names: str) -> list[str] | None:
    """The kinds of a `layer_types` list, cut to the decoder's layers (draft layers are appended to it), or None without one."""
    for name in names or ("layer_types", "layers_block_type"):
        values = fields.sequence(name, layers)
        if values is None:
            continue
        for value in values[:layers]:
            if not isinstance(value, str) or value not in _LAYER_TYPES:
                raise Unsettled(f"{name} holds {shown(value)}, a kind of layer that is not known")
        return [_LAYER_TYPES[value] for value in values[:layers]]
    return None


def linear_or_full(fields: Fields, layers: int) -> int | None:
    """How many layers of `layer_types` have attention, all others being linear; None without the list."""
    kinds = listed(fields, layers)
    if kinds is None:
        return None
    if set(kinds) - {FULL, LINEAR}:
        raise Unsettled("layer_types has other layers than attention and linear ones")
    return kinds.count(FULL)


def indices(fields: Fields, name: str, layers: int) -> set[int]:
    """A list of layers, counted from 0."""
    values = fields.sequence(name)
    if values is None:
        raise Unsettled(f"{name} is missing")
    return {whole(value, name, layers - 1, 0) for value in values}


def every(layers: int, period: int, offset: int = -1) -> list[str]:
    """Full attention in every `period`th layer (the last of each period, or at `offset`), the others not."""
    return [FULL if index % period == offset % period else SLIDING for index in range(layers)]


def ones(fields: Fields, name: str, layers: int, one: str, zero: str) -> list[str]:
    """A list of 0 and 1."""
    return [one if value else zero for value in fields.counts(name, layers)]


def windowed(fields: Fields, layers: int, period: int | None = None, offset: int = -1) -> list[str]:
    """Sliding or full, by `layer_types`, `sliding_window_pattern` (a number or letters), `global_attn_every_n_layers` or the class's rule.

    `period` and `offset` are the class's own rule, where it has one. Without a `sliding_window` every layer is full.
    """
    if fields.raw("sliding_window") is None and not fields.has("layer_types"):
        return [FULL] * layers
    found = listed(fields, layers)
    if found is not None:
        return found
    pattern = fields.raw("sliding_window_pattern", "_sliding_window_pattern")
    if isinstance(pattern, str):
        return _letters(pattern, layers)
    given = fields.maybe("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers", most=MOST_LAYERS)
    if given or period:
        return every(layers, given or period or 1, offset)
    raise Unsettled("sliding_window is given, and neither layer_types nor sliding_window_pattern say which layers slide")


def _letters(pattern: str, layers: int) -> list[str]:
    """Local and global as letters (`LLLG`); the last layer is always global (transformers `Exaone4`, `check_is_sliding`)."""
    if not pattern or set(pattern) - {"L", "G"}:
        raise Unsettled(f"sliding_window_pattern is {shown(pattern)}")
    return [FULL if pattern[index % len(pattern)] == "G" or index == layers - 1 else SLIDING for index in range(layers)]
