"""Families with linear attention or short convolutions between their attention layers."""

from __future__ import annotations

from fitcheck.catalogue.layers import Attention, Indexer, LayerGroup, Recurrent
from fitcheck.sources.families.dense import Build, draft_layers
from fitcheck.sources.families.fields import MOST, MOST_LAYERS, MOST_TOKENS, Fields, Layers, Unsettled
from fitcheck.sources.families.fields import whole as whole_number
from fitcheck.sources.families.groups import (
    FULL,
    LINEAR,
    attention,
    by_shape,
    gated_delta_net,
    head_dim,
    indexer,
    kda,
    latent,
    lightning,
    plain_heads,
    query_heads,
)
from fitcheck.sources.families.kinds import every, indices, linear_or_full, listed, ones
from fitcheck.sources.families.latent import owners, pool


def qwen3_next(fields: Fields) -> Layers:
    """Qwen3-Next, 3.5, 3.6, 3.8: gated delta net, and full attention in every `full_attention_interval`th layer; draft layers are full.

    transformers 5.24.0 `Qwen3NextConfig`; sizes confirmed by llama.cpp logs (architectures.md, section 9).
    """
    layers, heads = fields.layers(), plain_heads(fields)
    whole = linear_or_full(fields, layers)
    if whole is None:
        whole = every(layers, fields.count("full_attention_interval", most=MOST_LAYERS)).count(FULL)
    groups = (*attention(whole, heads), *gated_delta_net(fields, layers - whole))
    return Layers(layers, groups, attention(draft_layers(fields), heads))


def qwen4_exp(fields: Fields) -> Layers:
    """Qwen4-Exp (Qwen3.8-Flash-Next): as Qwen3-Next, with an index of 16-bit keys, one for `indexer_compress_ratio` tokens.

    transformers 5.24.0 `Qwen4ExpTextConfig`; without `indexer_n_heads` there is no index. A draft layer is one of attention with an index
    (llama.cpp's `conversion/qwen4exp.py`). Layers of `ple_layer_ids` have an n-gram embedding, whose convolution reaches
    (`ple_conv_kernel_size` - 1) x `ngram_size` steps back, `hc_count` streams wide (SGLang 0.5.23 `configs/qwen4_exp.py`,
    `short_conv_state_shape`); engines know one such layer.
    """
    return indexed_with_ngrams(fields, qwen3_next(fields))


def indexed_with_ngrams(fields: Fields, found: Layers) -> Layers:
    """Layers as those of Qwen3-Next, with Qwen4-Exp's index and n-gram embedding."""
    return found._replace(
        groups=tuple(_with_ngrams(fields, group) for group in _indexed(fields, found.groups)),
        draft=_indexed(fields, found.draft),
    )


def _indexed(fields: Fields, groups: tuple[LayerGroup, ...]) -> tuple[LayerGroup, ...]:
    if not fields.has("indexer_n_heads"):
        return groups
    width, ratio = fields.count("indexer_head_dim"), fields.count("indexer_compress_ratio", most=4096)
    if fields.count("indexer_kv_heads") != 1:
        raise Unsettled("indexer_kv_heads is not 1, and the index has one key head")
    layers = sum(group.layers for group in groups if isinstance(group, Attention))
    keys = Indexer(kind="indexer", layers=layers, bytes_per_key=2 * width, pool_tokens=ratio, key_dim=width) if layers else None
    return groups if keys is None else (*groups, keys)


def _with_ngrams(fields: Fields, group: LayerGroup) -> LayerGroup:
    owners = fields.sequence("ple_layer_ids")
    if not owners or not isinstance(group, Recurrent):
        return group
    if len(owners) > 1:
        raise Unsettled(f"ple_layer_ids names {len(owners)} layers, and one is what is known")
    steps = (fields.count("ple_conv_kernel_size", most=256) - 1) * fields.count("ngram_size", most=256)
    elements = steps * fields.count("hc_count", most=256) * fields.count("hidden_size")
    return group.model_copy(update={"ngram_conv_elements": elements, "ngram_conv_steps": steps or None})


def kimi_linear(fields: Fields) -> Layers:
    """Kimi Linear and K3: `linear_attn_config` lists KDA and MLA layers, counted from 1 (vLLM 0.33.0 `kimi_linear.py`).

    transformers 5.24.0 `KimiLinearConfig` writes `layer_types` in its place.
    """
    layers = fields.layers()
    linear = _listed_linear(fields, layers) if fields.has("linear_attn_config") else _typed_linear(fields, layers)
    groups = (*latent(fields, layers - linear), *_kda(fields, linear))
    return Layers(layers, groups, latent(fields, draft_layers(fields)))


def _typed_linear(fields: Fields, layers: int) -> int:
    whole = linear_or_full(fields, layers)
    if whole is None:
        raise Unsettled("linear_attn_config and layer_types are missing")
    return layers - whole


def _listed_linear(fields: Fields, layers: int) -> int:
    spec = fields.nested("linear_attn_config")
    if not spec.has("kda_layers"):
        return _typed_linear(fields, layers)
    linear, whole = (set(_numbers(spec, name, layers)) for name in ("kda_layers", "full_attn_layers"))
    if linear & whole or len(linear | whole) != layers:
        raise Unsettled(f"linear_attn_config names {len(linear)} and {len(whole)} of {layers} layers")
    return len(linear)


def _numbers(spec: Fields, name: str, layers: int) -> list[int]:
    """Layers counted from 1; those past the decoder's are draft layers."""
    values = spec.sequence(name) or []
    return [number for number in (whole_number(value, name, MOST, 1) for value in values) if number <= layers]


def _kda(fields: Fields, layers: int) -> tuple[LayerGroup, ...]:
    """KDA in the spelling of `linear_attn_config`, or of `linear_*` fields."""
    if fields.has("linear_attn_config"):
        spec = fields.nested("linear_attn_config")
        heads = spec.maybe("num_heads") or query_heads(fields)
        return kda(layers, heads, spec.count("head_dim"), spec.count("short_conv_kernel_size", most=256))
    heads, width = fields.count("linear_num_heads"), fields.count("linear_head_dim")
    return kda(layers, heads, width, fields.count("linear_conv_kernel_dim", most=256))


def bailing_hybrid(fields: Fields) -> Layers:
    """Ling 3: KDA, and MLA at the end of every `layer_group_size` layers (transformers 5.24.0 `BailingHybridConfig`).

    Ling and Ring 2.5 and 2.6 have the same `model_type` and lightning attention in place of KDA; only Ling 3 has KDA's own fields.
    """
    if not fields.has("short_conv_kernel_size", "no_kda_lora", "kda_safe_gate", "kda_lower_bound"):
        return bailing_linear(fields)
    layers = fields.layers()
    whole = linear_or_full(fields, layers)
    if whole is None:
        whole = every(layers, fields.count("layer_group_size", most=MOST_LAYERS)).count(FULL)
    width, kernel = fields.count("head_dim"), fields.count("short_conv_kernel_size", most=256)
    groups = (*latent(fields, whole), *kda(layers - whole, query_heads(fields), width, kernel))
    return Layers(layers, groups, latent(fields, draft_layers(fields)))


def bailing_linear(fields: Fields) -> Layers:
    """Ling and Ring 2.5: a layer is linear unless it ends a group of `layer_group_size`; the others are MLA where there is a latent.

    vLLM 0.33.0 `bailing_moe_linear.py` (`is_linear_layer`, `BailingMoeV25MLAAttention`); the older Ring-linear 2.0 has GQA there.
    """
    layers, heads = fields.layers(), query_heads(fields)
    size = fields.values.get("layer_group_size")
    whole = every(layers, whole_number(size, "layer_group_size", MOST_LAYERS, 1)).count(FULL)
    width = head_dim(fields, heads)
    kept = latent(fields, whole) if fields.has("kv_lora_rank") else attention(whole, plain_heads(fields))
    return Layers(layers, (*kept, *lightning(layers - whole, heads, width)))


def glm5_next(fields: Fields) -> Layers:
    """GLM-5.3-Flash: DSA over MLA without rope, and KDA; index keys are pooled by `index_kpool` (architectures.md, section 9)."""
    layers, draft = fields.layers(), draft_layers(fields)
    kinds = listed(fields, layers)
    if kinds is None:
        raise Unsettled("layer_types is missing")
    sparse = [kind == FULL for kind in kinds]
    owning = owners(fields, layers, sparse)
    linear = _kda(fields, layers - sum(sparse))
    groups = (*latent(fields, sum(sparse)), *indexer(fields, owning, pool(fields)), *linear)
    return Layers(layers, groups, (*latent(fields, draft), *indexer(fields, draft, pool(fields))))


def minimax(fields: Fields) -> Layers:
    """MiniMax-Text-01 and M1: `attn_type_list` 1 is softmax, 0 is lightning attention (vLLM 0.33.0 `minimax_text_01.py`)."""
    layers, heads = fields.layers(), plain_heads(fields)
    whole = linear_or_full(fields, layers)
    if whole is None:
        whole = ones(fields, "attn_type_list", layers, FULL, LINEAR).count(FULL)
    return Layers(layers, (*attention(whole, heads), *lightning(layers - whole, query_heads(fields), heads.k_dim)))


def lfm(fields: Fields) -> Layers:
    """LFM2 and LFM3: `layer_types` of `conv` and attention, or `full_attn_idxs`; a convolution keeps `conv_L_cache` - 1 steps.

    transformers 5.24.0 `Lfm2Config`, `Lfm3Config`; the convolution is as wide as the model unless `conv_dim` says otherwise.
    """
    layers, heads = fields.layers(), plain_heads(fields)
    kinds = listed(fields, layers)
    if kinds is None:
        named = indices(fields, "full_attn_idxs", layers)
        kinds = [FULL if index in named else LINEAR for index in range(layers)]
    convolutions, kernel = kinds.count(LINEAR), fields.count("conv_L_cache", most=256)
    shapes = [(kind, heads) for kind in kinds if kind != LINEAR]
    groups = by_shape(shapes, fields.maybe("sliding_window", most=MOST_TOKENS))
    return Layers(layers, (*groups, *short_convolutions(convolutions, fields.count("conv_dim", "hidden_size"), kernel)))


def short_convolutions(layers: int, width: int, kernel: int) -> tuple[LayerGroup, ...]:
    """The last `kernel` - 1 steps of a convolution of that width, or nothing for no layers."""
    if not layers:
        return ()
    tail = width * (kernel - 1)
    return (Recurrent(kind="recurrent", layers=layers, state_elements=0, conv_elements=tail, flavour="shortconv", conv_kernel=kernel),)


TABLE: dict[str, Build] = {
    **dict.fromkeys(["qwen3_next", "qwen3_5", "qwen3_5_moe", "olmo_hybrid"], qwen3_next),
    "qwen4_exp": qwen4_exp,
    **dict.fromkeys(["kimi_linear", "kimi_k3"], kimi_linear),
    **dict.fromkeys(["lfm2", "lfm2_moe", "lfm3"], lfm),
    **dict.fromkeys(["minimax", "minimax_m1", "minimax_text_01"], minimax),
    "bailing_hybrid": bailing_hybrid,
    "bailing_moe_linear": bailing_linear,
    "glm5_next": glm5_next,
}
"""One entry for each family."""
