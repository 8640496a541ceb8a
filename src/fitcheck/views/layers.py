"""What a layer group keeps, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel


def kept(group: BaseModel) -> str:
    """What each layer of a group keeps, by the fields that are set."""
    kind = str(getattr(group, "kind", ""))
    return _WORDS[kind](group) if kind in _WORDS else _fields(group)


def _fields(group: BaseModel) -> str:
    values = ((name, getattr(group, name)) for name in type(group).model_fields if name not in ("kind", "layers"))
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values if value is not None)


def _heads(group: Any) -> str:
    heads = "1 KV head" if group.kv_heads == 1 else f"{group.kv_heads:,} KV heads"
    return f"{heads}, a key of {group.k_dim:,} and a value of {group.v_dim:,} elements each"


def _latent(group: Any) -> str:
    rotary = f" and {group.rope_dim:,} rotary" if group.rope_dim else ""
    expanded = ""
    if group.expanded_heads is not None:
        sizes = " and ".join(
            f"{name} of {size:,}" for name, size in (("keys", group.expanded_k_dim), ("values", group.expanded_v_dim)) if size is not None
        )
        expanded = f"; without MLA {group.expanded_heads:,} heads" + (f" with {sizes} elements" if sizes else "")
    return f"per token one latent of {group.latent_dim:,}{rotary} elements{expanded}"


def _indexer(group: Any) -> str:
    often = "per token" if group.pool_tokens == 1 else f"for every {group.pool_tokens:,} tokens"
    narrow = f" ({group.fp4_bytes_per_key:,} B in a 4-bit cache)" if group.fp4_bytes_per_key else ""
    return f"{often} an index key of {group.bytes_per_key:,} B{narrow}"


def _records(group: Any) -> str:
    return ", ".join(f"{size:,} B in {dtype}" for dtype, size in group.record_bytes.items())


def _compressor(group: Any) -> str:
    index = f" and {group.index_bytes_per_token:,} B of the index" if group.index_bytes_per_token else ""
    return f"{group.bytes_per_token:,} B{index} for each of the last {group.window_tokens:,} tokens"


def _recurrent(group: Any) -> str:
    words = f"per sequence a state of {group.state_elements:,} elements of {group.state_dtype_bytes} B"
    if group.conv_elements:
        words += f", and {group.conv_elements:,} of {group.conv_dtype_bytes} B for the convolution"
    if group.ngram_conv_elements:
        words += f", in one layer {group.ngram_conv_elements:,} more behind its n-gram embedding"
    return f"{words} ({group.flavour})" if group.flavour else words


_WORDS: dict[str, Callable[[Any], str]] = {
    "attention": lambda group: f"per token {_heads(group)}",
    "sliding": lambda group: f"for the last {group.window_tokens:,} tokens {_heads(group)}",
    "chunked": lambda group: f"for up to {group.chunk_tokens:,} tokens of the chunk {_heads(group)}",
    "cross": lambda group: f"for {f'{group.positions:,}' if group.positions else 'the'} positions of the encoder {_heads(group)}",
    "latent": _latent,
    "indexer": _indexer,
    "compressed": lambda group: f"for every {group.ratio:,} tokens one record: {_records(group)}",
    "compressed_window": lambda group: f"for each of the last {group.window_tokens:,} tokens one record: {_records(group)}",
    "compressor": _compressor,
    "recurrent": _recurrent,
    "none": lambda group: "nothing between tokens" if group else "",
}
