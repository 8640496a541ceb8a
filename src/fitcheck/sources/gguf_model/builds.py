"""Layer groups of each sort of architecture, from the metadata of its file.

llama.cpp build 11549: `load_arch_hparams` in `src/models/<architecture>.cpp` and `llama_model::create_memory` (`src/llama-model.cpp`).
Groups are made by the same functions as those of a config, in `sources/families`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fitcheck.catalogue.layers import Indexer, LayerGroup
from fitcheck.sources.families.compressed import v4
from fitcheck.sources.families.fields import MOST_TOKENS, Fields, Layers, Unsettled
from fitcheck.sources.families.groups import FULL, NOTHING, indexer, latent, stateless
from fitcheck.sources.families.latent import minicpm3 as expanded
from fitcheck.sources.families.linear import indexed_with_ngrams
from fitcheck.sources.gguf_model import states, windows
from fitcheck.sources.gguf_model.keys import Keys
from fitcheck.sources.gguf_model.shape import Shape, attention_of, draft_of, shape_of
from fitcheck.sources.gguf_model.windows import Kinds, Windows

Build = Callable[[Keys, frozenset[str]], Layers]
"""From an architecture's keys and the names of its file's tensors."""
Owners = Callable[[Keys, Shape], list[bool]]
"""Whether each of the decoder's layers owns an indexer."""


def attention(which: Windows = windows.none) -> Build:
    """Keys and values in every block that has KV heads."""

    def build(keys: Keys, _names: frozenset[str]) -> Layers:
        shape = shape_of(keys)
        return _attended(shape, which(keys, shape))

    return build


def _attended(shape: Shape, found: Kinds) -> Layers:
    kinds, window, sliding_kind = found
    own = attention_of(shape, kinds[: shape.layers], window, sliding_kind)
    return Layers(shape.layers, own, draft_of(shape, kinds, window, sliding_kind))


def sharing(which: Windows, owning: int | None = None) -> Build:
    """As `attention`, but the last `attention.shared_kv_layers` layers read an earlier one's cache (Gemma 3n, Gemma 4).

    `owning` is how many first layers llama.cpp gives a cache, where the file does not say it (gemma3n.cpp).
    """

    def build(keys: Keys, _names: frozenset[str]) -> Layers:
        shape = shape_of(keys)
        shared = keys.maybe("attention.shared_kv_layers", most=shape.layers, least=0)
        if shared is None and owning is not None:
            shared = max(0, shape.layers - owning)
            keys.rule(f"the first {owning} layers own a cache, llama.cpp's rule for the architecture")
        found = which(keys, shape)
        own = shape.layers - (shared or 0)
        return _attended(
            shape, found._replace(kinds=[NOTHING if own <= at < shape.layers else kind for at, kind in enumerate(found.kinds)])
        )

    return build


def encoder(keys: Keys, _names: frozenset[str]) -> Layers:
    """No memory at all (`create_memory` returns none)."""
    layers = shape_of(keys).layers
    return Layers(layers, stateless(layers))


def hybrid(which: states.Which, state: states.State, *, window: Windows = windows.none, beside: bool = False) -> Build:
    """Recurrent layers between those with attention, or `beside` it in the same layers."""

    def build(keys: Keys, _names: frozenset[str]) -> Layers:
        shape = shape_of(keys)
        recurrent, found = which(keys, shape), window(keys, shape)
        kinds, tokens, sliding_kind = found
        kept = [kind for kind, state_only in zip(kinds, recurrent, strict=False) if beside or not state_only]
        rows = [row for row, state_only in zip(shape.kv_heads, recurrent, strict=False) if beside or not state_only]
        own = attention_of(shape._replace(kv_heads=rows), kept, tokens, sliding_kind)
        draft = draft_of(shape, kinds, tokens, sliding_kind)
        return Layers(shape.layers, (*own, *state(keys, shape, sum(recurrent))), draft)

    return build


def qwen4exp(keys: Keys, names: frozenset[str]) -> Layers:
    """Qwen4-Exp: as Qwen3.5, with an index in the layers with attention and an n-gram embedding in one other (qwen4exp.cpp)."""
    found = hybrid(states.between(4), states.gdn)(keys, names)
    shape = shape_of(keys)
    ratios = {ratio for ratio in keys.counts("attention.compress_ratios", shape.blocks) if ratio}
    if len(ratios) != 1:
        raise Unsettled("attention.compress_ratios does not give the indexed layers one ratio")
    width = keys.count("attention.indexer.key_length")
    named: dict[str, Any] = {"indexer_n_heads": 1, "indexer_kv_heads": 1, "indexer_head_dim": width, "indexer_compress_ratio": ratios.pop()}
    owners = keys.sequence("ple.layers")
    if owners:
        kernel, size = keys.count("ple.conv_kernel", most=256), keys.count("ple.ngram_size", most=256)
        streams = keys.count("hyper_connection.count", most=256)
        named |= {"ple_layer_ids": owners, "ple_conv_kernel_size": kernel, "ngram_size": size, "hc_count": streams}
    return indexed_with_ngrams(Fields({**named, "hidden_size": shape.hidden}), found)


def stateful(state: states.State) -> Build:
    """A state in every layer and nothing else."""

    def build(keys: Keys, _names: frozenset[str]) -> Layers:
        shape = shape_of(keys)
        return Layers(shape.layers, state(keys, shape, shape.layers))

    return build


def nemotron_h(keys: Keys, _names: frozenset[str]) -> Layers:
    """Nemotron-H: a layer with a feed-forward size has neither; of the others those without KV heads are recurrent. Drafts attend."""
    shape = shape_of(keys)
    rows = list(zip(shape.kv_heads, shape.feed_forward, strict=True))
    recurrent = sum(not kept and not wide for kept, wide in rows[: shape.layers])
    kinds = [NOTHING if wide else FULL for _, wide in rows]
    left = [(kind, kept) for kind, (kept, wide) in zip(kinds, rows, strict=True) if kept or wide][: shape.layers - recurrent]
    own = attention_of(shape._replace(kv_heads=[kept for _, kept in left]), [kind for kind, _ in left], None, "")
    return Layers(shape.layers, (*own, *states.mamba_2(keys, shape, recurrent)), draft_of(shape, [FULL] * shape.blocks, None, ""))


def _latent_fields(keys: Keys, shape: Shape) -> Fields:
    """The fields of latent attention as a config names them.

    `attention.key_length` is the row that is kept: the latent and the part with rope (`conversion/deepseek.py`).
    """
    rank, row = keys.count("attention.kv_lora_rank"), keys.count("attention.key_length")
    whole, value = keys.count("attention.key_length_mla"), keys.count("attention.value_length_mla")
    if not rank <= row <= rank + whole:
        raise Unsettled(f"attention.key_length {row} is not attention.kv_lora_rank {rank} and a part of attention.key_length_mla {whole}")
    rope = row - rank
    named: dict[str, Any] = {"kv_lora_rank": rank, "qk_rope_head_dim": rope, "qk_nope_head_dim": whole - rope, "v_head_dim": value}
    return Fields({**named, "num_attention_heads": shape.heads[0]})


def latent_attention(
    indexed: Owners | None = None, which: states.Which | None = None, state: states.State | None = None, *, old: bool = False
) -> Build:
    """Latent attention in all layers, or in those that are not recurrent, with an indexer in the layers that own one.

    `old` files have no `attention.key_length_mla`; llama.cpp keeps the keys and values of every head for them (deepseek2.cpp).
    """

    def build(keys: Keys, names: frozenset[str]) -> Layers:
        shape = shape_of(keys)
        if old and keys.raw("attention.key_length_mla") is None:
            keys.rule("a file from before llama.cpp kept latents: keys and values of every head")
            return attention()(keys, names)
        recurrent = which(keys, shape) if which else [False] * shape.layers
        attending = [index for index in range(shape.blocks) if index >= shape.layers or not recurrent[index]]
        odd = next((shape.kv_heads[index] for index in attending if shape.kv_heads[index] != 1), None)
        if odd is not None:
            raise Unsettled(f"attention.head_count_kv is {odd} in a layer of latent attention, where 1 is kept")
        fields, whole = _latent_fields(keys, shape), shape.layers - sum(recurrent)
        owning = sum(own and not linear for own, linear in zip(indexed(keys, shape), recurrent, strict=True)) if indexed else 0
        groups = (*latent(fields, whole), *_indexers(keys, owning))
        draft = (*latent(fields, shape.draft), *_indexers(keys, shape.draft if owning else 0))
        return Layers(shape.layers, (*groups, *(state(keys, shape, sum(recurrent)) if state else ())), draft)

    return build


def _indexers(keys: Keys, layers: int) -> tuple[LayerGroup, ...]:
    if not layers:
        return ()
    width, pool = keys.count("attention.indexer.key_length"), keys.maybe("attention.indexer.kpool", most=4096) or 1
    return indexer(Fields({"index_head_dim": width}), layers, pool)


def each_layer(_keys: Keys, shape: Shape) -> list[bool]:
    """An indexer in every layer (deepseek32.cpp)."""
    return [True] * shape.layers


def as_typed(keys: Keys, shape: Shape) -> list[bool]:
    """As `attention.indexer.types` says, every layer without it (glm5-next.cpp)."""
    return keys.marks("attention.indexer.types", shape.layers) or [True] * shape.layers


def glm_dsa(keys: Keys, shape: Shape) -> list[bool]:
    """As `as_typed`; without the key GLM 5.2, known by its context, owns one in the first two layers and then in every fourth."""
    listed = keys.marks("attention.indexer.types", shape.layers)
    if listed is not None or keys.count("context_length", most=MOST_TOKENS) < 2**20:
        return listed or [True] * shape.layers
    keys.rule("attention.indexer.types of GLM 5.2, llama.cpp's default for its context")
    return [index < 2 or (index - 2) % 4 == 0 for index in range(shape.layers)]


def hy_v4(keys: Keys, shape: Shape) -> list[bool]:
    """As `attention.indexer.types` says; none where `attention.indexer.top_k` is absent or 0."""
    if not keys.maybe("attention.indexer.top_k", least=0):
        return [False] * shape.layers
    listed = keys.marks("attention.indexer.types", shape.layers)
    if listed is None or not listed[0]:
        raise Unsettled("attention.indexer.types is missing, or gives layer 0 no indexer")
    return listed


def minicpm3(keys: Keys, _names: frozenset[str]) -> Layers:
    """MiniCPM3: kept as keys and values of every head, a value of width / heads (minicpm3.cpp)."""
    shape = shape_of(keys)
    rope, key = keys.count("rope.dimension_count"), keys.count("attention.key_length")
    heads = shape.heads[0]
    if set(shape.kv_heads) != {heads} or not heads or shape.full is None or shape.full[1] != shape.hidden // heads:
        raise Unsettled("attention.head_count_kv or attention.value_length are not those of every head")
    named = {"num_hidden_layers": shape.layers, "num_attention_heads": heads, "v_head_dim": shape.full[1]}
    rank = keys.count("attention.kv_lora_rank")
    return expanded(Fields({**named, "kv_lora_rank": rank, "qk_rope_head_dim": rope, "qk_nope_head_dim": key - rope}))


def minimax_m3(keys: Keys, _names: frozenset[str]) -> Layers:
    """MiniMax M3: 16-bit index keys in all but the leading dense layers (`create_memory`)."""
    shape = shape_of(keys)
    found = _attended(shape, windows.none(keys, shape))
    dense = keys.maybe("leading_dense_block_count", most=shape.layers, least=0) or 0
    if dense == shape.layers:
        return found
    width = keys.count("attention.indexer.key_length")
    index = Indexer(kind="indexer", layers=shape.layers - dense, bytes_per_key=2 * width, key_dim=width)
    return found._replace(groups=(*found.groups, index))


def deepseek4(keys: Keys, names: frozenset[str]) -> Layers:
    """DeepSeek V4: one ratio for each block; draft blocks count only if the file holds their tensors (deepseek4.cpp)."""
    shape = shape_of(keys)
    layers = shape.layers if f"blk.{shape.layers}.nextn.eh_proj.weight" in names else shape.blocks
    ratios = keys.counts("attention.compress_ratios", shape.blocks)
    if shape.full is None or not shape.full[0]:
        raise Unsettled("attention.key_length is missing")
    named = {
        "num_hidden_layers": layers,
        "num_nextn_predict_layers": shape.blocks - layers,
        "compress_ratios": ratios,
        "head_dim": shape.full[0],
        "index_head_dim": keys.count("attention.indexer.key_length"),
        "sliding_window": keys.count("attention.sliding_window", most=MOST_TOKENS),
    }
    return v4(Fields(named))
