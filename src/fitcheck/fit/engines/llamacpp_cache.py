"""Caches and states that llama.cpp allocates, layer by layer.

Sources (build 11549): `llama_kv_cache` (`src/llama-kv-cache.cpp`), `llama_kv_cache_iswa`, `llama_kv_cache_dsa`, `llama_kv_cache_msa`,
`llama_kv_cache_dsv4`, `llama_memory_recurrent`, `llama_memory_hybrid_idx` (files of the same names). None pads a tensor further on the CPU;
on CUDA a tensor whose quantised row is no multiple of 512 elements ends with less than one such row more, which is left out here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from fitcheck.catalogue.layers import (
    Attention,
    Chunked,
    Compressed,
    CompressedWindow,
    Compressor,
    Cross,
    Indexer,
    Latent,
    Recurrent,
    Sliding,
    Stateless,
)
from fitcheck.errors import UnknownFact
from fitcheck.fit.engines.llamacpp_model import LlamaModel
from fitcheck.fit.engines.llamacpp_settings import PAD_CELLS, Run, pad, row_bytes


class Piece(NamedTuple):
    """What one layer of a kind keeps, and how many layers do."""

    name: str
    sort: Literal["cache", "state"]
    layers: int
    layer_bytes: int
    formula: str


def pieces(model: LlamaModel) -> tuple[Piece, ...]:
    """All that the main context keeps. Raises `UnknownFact` for what no source of llama.cpp tells."""
    if not model.rules.keeps:
        return ()
    return tuple(piece for group in model.groups for piece in _RULES[type(group)](group, model))


def _rows(group: Attention | Sliding | Chunked, model: LlamaModel, cells: int, name: str) -> Iterator[Piece]:
    """Keys and values (`llama_kv_cache`).

    Without flash attention values lie transposed, and every layer's row is as long as the longest of any layer (TAG_V_CACHE_VARIABLE).
    """
    run = model.run
    k_row = row_bytes(run.type_k, group.kv_heads * group.k_dim)
    v_elements = group.kv_heads * group.v_dim if run.fa else model.longest_v
    v_row = row_bytes(run.type_v, v_elements)
    longest = "" if run.fa else ", longest row"
    words = f"(K {group.kv_heads} x {group.k_dim} {run.type_k} {k_row:,} B + V {v_elements:,} {run.type_v}{longest} {v_row:,} B)"
    yield Piece(name, "cache", group.layers, (k_row + v_row) * cells * run.streams, f"{words} x {_cells(cells, run.streams)}")


def _cells(cells: int, streams: int) -> str:
    return f"{cells:,} cells" if streams == 1 else f"{cells:,} cells x {streams} streams"


def _attention(group: Attention, model: LlamaModel) -> Iterator[Piece]:
    """Layers of full attention.

    gemma3n.cpp gives the first 20 layers a cache (`n_layer_kv_from_start`), every fifth of full attention, whatever the file says.
    """
    owning = model.rules.owning_layers
    if owning is not None:
        group = group.model_copy(update={"layers": owning // 5})
    yield from _rows(group, model, model.run.cells, "KV, full attention")


def _sliding(group: Sliding | Chunked, model: LlamaModel) -> Iterator[Piece]:
    """Sliding and chunked layers keep a window where the architecture has one (`llama_kv_cache_iswa`), else everything."""
    rules, run = model.rules, model.run
    if not rules.windows or rules.window_layers not in (None, model.layers):
        yield from _rows(group, model, run.cells, "KV, sliding window kept whole")
        return
    window = rules.window_tokens or (group.window_tokens if isinstance(group, Sliding) else group.chunk_tokens)
    if rules.owning_layers is not None:
        group = group.model_copy(update={"layers": rules.owning_layers - rules.owning_layers // 5})
    yield from _rows(group, model, run.window_cells(window, shared=run.unified), f"KV, sliding window {window:,}")


def _latent(group: Latent, model: LlamaModel) -> Iterator[Piece]:
    """One latent row, and no values (`llama_kv_cache`: `has_v = !is_mla`)."""
    run = model.run
    row = row_bytes(run.type_k, group.latent_dim + group.rope_dim)
    words = f"({group.latent_dim} + {group.rope_dim}) {run.type_k} {row:,} B x {_cells(run.cells, run.streams)}"
    yield Piece("KV, latent (MLA)", "cache", group.layers, row * run.cells * run.streams, words)


def _indexer(group: Indexer, model: LlamaModel) -> Iterator[Piece]:
    """Index keys in the K cache's type (`llama_kv_cache_dsa`, `llama_kv_cache_msa`, `llama_memory_hybrid_idx`).

    Those of DeepSeek V4 are pooled and have streams of their own (`llama_kv_cache_dsv4`).
    """
    run, rules = model.run, model.rules
    if group.key_dim is None:
        raise UnknownFact(f"{model.family}: the width of an index key is not known")
    if rules.arch == "deepseek4":
        yield _per_sequence("index keys", group.layers, row_bytes(run.type_k, group.key_dim), _pooled(run.cells, group.pool_tokens), run)
        return
    row = row_bytes(run.type_k, rules.index_rows * group.key_dim)
    words = f"{rules.index_rows} x {group.key_dim} {run.type_k} {row:,} B"
    if rules.index_values:
        unused = row_bytes(run.type_v, _value_width(model))
        row, words = row + unused, f"({words} + unused V {unused:,} B)"
    yield Piece("index keys", "cache", group.layers, row * run.cells * run.streams, f"{words} x {_cells(run.cells, run.streams)}")


def _value_width(model: LlamaModel) -> int:
    """A value's width in the index cache of `llama_kv_cache_msa`, which has one head and the model's own value width."""
    return next(group.v_dim for group in model.groups if isinstance(group, Attention))


def _pooled(cells: int, ratio: int) -> int:
    return pad(max(1, -(-cells // ratio)), PAD_CELLS)


def _per_sequence(name: str, layers: int, row: int, cells: int, run: Run) -> Piece:
    """A cache of DeepSeek V4, which keeps a stream for each sequence even where `kv_unified` asks for one."""
    return Piece(name, "cache", layers, row * cells * run.sequences, f"{row:,} B x {_cells(cells, run.sequences)}")


def _compressed(group: Compressed | CompressedWindow, model: LlamaModel) -> Iterator[Piece]:
    """DeepSeek V4: a row for every 4 or 128 tokens (CSA, HCA), and a window of raw rows in all layers; keys only."""
    if model.rules.arch != "deepseek4" or group.row_dim is None:
        raise UnknownFact(f"llama.cpp has no rules for the compressed cache of {model.family}")
    run, row = model.run, row_bytes(model.run.type_k, group.row_dim)
    if isinstance(group, CompressedWindow):
        cells = run.window_cells(group.window_tokens, shared=False)
        yield _per_sequence(f"KV, raw window {group.window_tokens}", group.layers, row, cells, run)
        return
    if group.ratio not in (4, 128):
        raise UnknownFact(f"llama.cpp has no compressed cache of ratio {group.ratio}")
    yield _per_sequence(f"KV, compressed 1:{group.ratio}", group.layers, row, _pooled(run.cells, group.ratio), run)


def _state(name: str, layers: int, size: int, words: str, model: LlamaModel) -> Piece:
    """A state in f32, whatever the cache types: one for each sequence and, where the architecture can roll back, `n_rs_seq` snapshots."""
    snapshots = model.run.snapshots if model.rules.rollback else 0
    copies = model.run.sequences * (1 + snapshots)
    kept = f"{model.run.sequences} sequences" + (f" x {1 + snapshots} with snapshots" if snapshots else "")
    return Piece(name, "state", layers, size * copies, f"{words} x {kept}")


def _compressor(group: Compressor, model: LlamaModel) -> Iterator[Piece]:
    """`llama_dsv4_comp_state`: keys and scores, of 8 tokens with ratio 4 and of 128 with ratio 128."""
    size = group.window_tokens * (group.bytes_per_token + group.index_bytes_per_token)
    yield _state("compressor state", group.layers, size, f"{size:,} B (f32)", model)


def _recurrent(group: Recurrent, model: LlamaModel) -> Iterator[Piece]:
    """`llama_memory_recurrent`: `n_embd_r` + `n_embd_s` (`src/llama-hparams.cpp`) elements.

    The layer with an n-gram embedding has a row of `ple_conv_state` elements besides.
    """
    words = f"({group.conv_elements:,} + {group.state_elements:,}) x 4 B"
    yield _state("recurrent state", group.layers, 4 * (group.conv_elements + group.state_elements), words, model)
    if group.ngram_conv_elements:
        yield _state("n-gram convolution", 1, 4 * group.ngram_conv_elements, f"{group.ngram_conv_elements:,} x 4 B", model)


def _stateless(group: Stateless, model: LlamaModel) -> Iterator[Piece]:
    """Layers without attention keep nothing; those of deci.cpp have a cache of zero heads, of which transposed values get a whole row."""
    run = model.run
    if model.rules.values_everywhere and not run.fa:
        row = row_bytes(run.type_v, model.longest_v)
        words = f"longest V row {row:,} B x {_cells(run.cells, run.streams)}"
        yield Piece("V of layers without heads", "cache", group.layers, row * run.cells * run.streams, words)


def _cross(_group: Cross, _model: LlamaModel) -> Iterator[Piece]:
    """No cache: llama.cpp makes the keys and values of cross-attention anew from the encoder's output (t5.cpp)."""
    yield from ()


_RULES: dict[type[Any], Callable[[Any, LlamaModel], Iterator[Piece]]] = {
    Attention: _attention,
    Sliding: _sliding,
    Chunked: _sliding,
    Cross: _cross,
    Latent: _latent,
    Indexer: _indexer,
    Compressed: _compressed,
    CompressedWindow: _compressed,
    Compressor: _compressor,
    Recurrent: _recurrent,
    Stateless: _stateless,
}
