"""SGLang 0.5.23: token pools, windowed pools and pools of recurrent state, on one rank.

Read in PyPI `sglang` 0.5.23, below `sglang/srt`: `model_executor/pool_configurator.py` (bytes per token), `mem_cache/memory_pool.py` and
`mem_cache/swa_memory_pool.py` (tensors), `mem_cache/kv_cache_configurator.py` (which pool, and how many states). A pool of N tokens has N
rows and one page more, which takes the writes of padding tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

from fitcheck.catalogue.layers import Attention, Chunked, Compressed, Cross, Indexer, Latent, Recurrent, Sliding, Stateless
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact
from fitcheck.fit.engines import sglang_v4
from fitcheck.fit.engines.base import Settings, StateTerm
from fitcheck.fit.engines.sglang_ask import Asked, ask, drawn
from fitcheck.fit.engines.sglang_families import MLA, OWN_SWA_SHAPE, SWA_POOL, WHOLE_WITH_HOST_CACHE
from fitcheck.fit.engines.sglang_rows import Row, head_row, index_bytes, latent_row
from fitcheck.fit.engines.sglang_state import state_terms
from fitcheck.fit.engines.sglang_swa import pool_sizes

Heads = Attention | Sliding | Chunked


def allocate(architecture: Architecture, settings: Settings) -> tuple[StateTerm, ...]:
    """What SGLang allocates on a rank so that the users fit. Raises `UnknownFact` for what its sources or the config do not settle."""
    asked = ask(architecture, settings)
    _answerable(architecture)
    if any(isinstance(group, Compressed) for group in architecture.groups):
        return tuple(sglang_v4.terms(architecture, asked))
    if any(isinstance(group, Sliding | Chunked) for group in architecture.groups) and _has_windowed_pool(architecture.family, asked):
        return tuple(_two_pools(architecture, asked))
    return tuple(_one_pool(architecture, asked))


def _has_windowed_pool(family: str, asked: Asked) -> bool:
    host = family in WHOLE_WITH_HOST_CACHE and asked.named.get("enable_hierarchical_cache")
    return family in SWA_POOL and not host and not asked.named.get("disable_hybrid_swa_memory")


def _answerable(architecture: Architecture) -> None:
    kinds = {type(group) for group in architecture.groups}
    if Cross in kinds:
        raise UnknownFact(
            "SGLang keeps an encoder's keys and values in its token pool, as many as the input has, which is not in the config"
        )
    if kinds == {Stateless}:
        raise UnknownFact(f"{architecture.family} keeps nothing between tokens; SGLang's placeholder pool is not modelled")
    if Latent in kinds and architecture.family not in MLA:
        raise UnknownFact(f"{architecture.family} is not among the families that SGLang 0.5.23 stores as latents")


def _one_pool(architecture: Architecture, asked: Asked) -> Iterator[StateTerm]:
    """Every token in every layer, and the states of recurrent layers (`DefaultPoolConfigurator`, `HybridLinearKVPool`)."""
    groups = drawn(architecture, asked)
    sparse = any(isinstance(group, Latent) for group in groups) and any(isinstance(group, Indexer) for group in groups)
    for number, group in enumerate(groups):
        name = ", draft layers" if number >= len(architecture.groups) else ""
        if isinstance(group, Latent):
            row = latent_row(group, asked, sparse)
            yield _pool(f"KV, latent (MLA){name}", asked.layers(group.layers), row, asked.slots, asked)
        elif isinstance(group, Heads):
            layers = asked.layers(group.layers + (_empty_layers(architecture) if group is _first_heads(architecture) else 0))
            yield _pool(f"KV, all tokens{name}", layers, head_row(group, asked), asked.slots, asked)
            if asked.dtype.name == "nvfp4" and group is _first_heads(architecture):
                yield from _workspace(group, asked)
        elif isinstance(group, Indexer):
            yield from _index(group, name, sparse, asked)
        elif isinstance(group, Recurrent):
            yield from state_terms(architecture.family, group, asked)


def _index(group: Indexer, name: str, sparse: bool, asked: Asked) -> Iterator[StateTerm]:
    """Index keys: of DSA in FP8 pages, of MiniMax M3 as 16-bit rows beside the keys (`MiniMaxSparseKVPool`).

    Qwen4-Exp keeps 16-bit keys too, one for `pool_tokens` tokens, and the raw keys and positions of a request's last ones
    (`mem_cache/qsa_kv_pool.py`, `QSATokenToKVPool`: `qsa_key_state_buffer_pool`, `qsa_rope_position_buffer`).
    """
    layers = asked.layers(group.layers)
    if sparse:
        size, words = index_bytes(group, layers, asked)
        yield StateTerm(f"index keys{name}", "cache", size, words)
        return
    pooled = f" / {group.pool_tokens} tokens" if group.pool_tokens > 1 else ""
    row = Row(Fraction(group.bytes_per_key, group.pool_tokens), f"{group.bytes_per_key} B{pooled}")
    yield _pool(f"index keys{name}", layers, row, asked.slots, asked)
    if group.pool_tokens > 1:
        rows, held = (asked.requests + 1) * group.pool_tokens, layers * group.bytes_per_key + 3 * 8
        words = f"{rows:,} rows x ({layers} layers x {group.bytes_per_key} B + 3 positions x 8 B)"
        yield StateTerm(f"index keys not yet pooled{name}", "state", rows * held, words)


def _pool(name: str, layers: int, row: Row, slots: int, asked: Asked) -> StateTerm:
    size = ceil(layers * row.bytes * (slots + asked.page))
    return StateTerm(name, "cache", size, f"{layers} layers x {row.words} x ({slots:,} slots + a page of {asked.page})")


def _first_heads(architecture: Architecture) -> Heads | None:
    return next((group for group in architecture.groups if isinstance(group, Heads)), None)


def _empty_layers(architecture: Architecture) -> int:
    """Layers without a cache of their own that the pool has room for all the same.

    The pool counts decoder layers (`ModelLayerInfo.num_effective_layers`), so that layers which share another's cache (Gemma 3n) or have no
    attention at all (Nemotron NAS) are in it; models with recurrent layers count their attention layers alone.
    """
    if any(isinstance(group, Recurrent) for group in architecture.groups):
        return 0
    return sum(group.layers for group in architecture.groups if isinstance(group, Stateless))


def _workspace(group: Heads, asked: Asked) -> Iterator[StateTerm]:
    """NVFP4 keys and values of one layer in FP8, into which FlashInfer's prefill expands them.

    `layers/quantization/fp4_kv_cache_quant_method.py`, `NVFP4KVCacheMethod.create_buffers`; SM100 prefills from NVFP4 itself, which is
    what `prefill_kv_cache_dequant_dtype` `nvfp4` stands for.
    """
    if asked.named.get("prefill_kv_cache_dequant_dtype") == "nvfp4":
        return
    heads = asked.heads(group.kv_heads)
    row = Row(Fraction(heads * (group.k_dim + group.v_dim)), f"{heads} KV heads x ({group.k_dim} + {group.v_dim}) x 1 B")
    yield _pool("KV, prefill workspace", 1, row, asked.slots, asked)


def _two_pools(architecture: Architecture, asked: Asked) -> Iterator[StateTerm]:
    """Full-attention layers in one pool, windowed ones in a smaller one (`HybridSWAPoolConfigurator`, `SWAKVPool`)."""
    if asked.dcp > 1:
        raise UnknownFact("SGLang 0.5.23 spreads no windowed pools over decode-context ranks")
    groups = drawn(architecture, asked)
    full = [group for group in groups if isinstance(group, Attention)]
    windowed = [group for group in groups if isinstance(group, Sliding | Chunked)]
    shared = _shared_layers(architecture, full, windowed)
    slots, window_slots = pool_sizes(asked, full, windowed)
    for group in full:
        layers = asked.layers(group.layers + (shared[0] if group is full[0] else 0))
        yield _pool("KV, full attention", layers, head_row(group, asked), slots, asked)
    for window in windowed:
        shape = window if architecture.family in OWN_SWA_SHAPE or not full else full[0]
        layers = asked.layers(window.layers + (shared[1] if window is windowed[0] else 0))
        yield _pool("KV, windowed pool", layers, head_row(shape, asked), window_slots, asked)


def _shared_layers(architecture: Architecture, full: list[Attention], windowed: list[Sliding | Chunked]) -> tuple[int, int]:
    """How many layers that share a cache have room in each pool all the same: all entries of `layer_types` count (`get_hybrid_layer_ids`).

    Kinds alternate in whole periods, so that the shared layers are divided as the others are; where that does not come out even, the
    config has to be asked again.
    """
    shared = sum(group.layers for group in architecture.groups if isinstance(group, Stateless))
    if not shared:
        return 0, 0
    own_full, own = sum(group.layers for group in full), sum(group.layers for group in (*full, *windowed))
    if shared * own_full % own:
        raise UnknownFact(f"how the {shared} layers of {architecture.family} that share a cache are divided into full and windowed ones")
    return shared * own_full // own, shared - shared * own_full // own
