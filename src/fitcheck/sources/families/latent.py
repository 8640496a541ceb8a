"""Families with latent attention (MLA), with or without an indexer (DSA)."""

from __future__ import annotations

from fitcheck.catalogue.layers import Indexer, Latent, LayerGroup
from fitcheck.sources.families.dense import Build, draft_layers, full
from fitcheck.sources.families.fields import MOST_LAYERS, Fields, Layers, Unsettled
from fitcheck.sources.families.groups import attention, head_dim, indexer, latent, plain_heads, query_heads
from fitcheck.sources.families.kinds import ones


def mla(fields: Fields) -> Layers:
    """MLA in every layer (DeepSeek V2 and V3, Kimi K2, GLM-4.7-Flash, Mistral 4); draft layers too.

    Small DeepSeek-V2 decoders (DeepSeek-VL2, DeepSeek-OCR) say `use_mla: false` and are plain.
    """
    if fields.raw("use_mla") is False:
        return full(fields)
    layers = fields.layers()
    return Layers(layers, latent(fields, layers), latent(fields, draft_layers(fields)))


def minicpm3(fields: Fields) -> Layers:
    """MiniCPM3: MLA weights that vLLM and llama.cpp run as plain attention, so that the expanded widths are what they store.

    The value width is not in the file; `MiniCPM3Config` computes it as hidden size over heads. vLLM pads values to the key's width.
    """
    layers, heads = fields.layers(), query_heads(fields)
    rope, nope = fields.count("qk_rope_head_dim"), fields.count("qk_nope_head_dim")
    value = fields.maybe("v_head_dim") or head_dim(fields, heads)
    group = Latent(
        kind="latent",
        layers=layers,
        latent_dim=fields.count("kv_lora_rank"),
        rope_dim=rope,
        expanded_heads=heads,
        expanded_k_dim=rope + nope,
        expanded_v_dim=value,
    )
    return Layers(layers, (group,))


def longcat(fields: Fields) -> Layers:
    """LongCat Flash: each layer has two MLA blocks (transformers 5.24.0 `modeling_longcat_flash.py`: `self_attn` is a list of two)."""
    layers = fields.layers()
    return Layers(layers, latent(fields, 2 * layers))


def dsa(fields: Fields) -> Layers:
    """DeepSeek V3.2 and GLM-5: MLA and an indexer; layers of type `shared` use another layer's selection and keep no index keys.

    transformers 5.24.0 `GlmMoeDsaConfig.__post_init__`; without any of the fields every layer owns an indexer. `index_topk` limits
    compute, not memory.
    """
    layers, draft = fields.layers(), draft_layers(fields)
    groups = (*latent(fields, layers), *indexer(fields, owners(fields, layers), pool(fields)))
    return Layers(layers, groups, (*latent(fields, draft), *indexer(fields, draft, pool(fields))))


def sourced(fields: Fields) -> Layers:
    """Mistral Large 4: DSA; layers may read another layer's cache (`kv_source_layers`), and how is not documented.

    transformers 5.24.0 `MistralLarge4TextConfig`: without the list each layer is its own source.
    """
    if fields.has("kv_source_layers") and fields.sequence("kv_source_layers") != list(range(fields.layers())):
        raise Unsettled("kv_source_layers makes layers share caches")
    return dsa(fields)


def pool(fields: Fields) -> int:
    """Tokens to one index key."""
    return fields.maybe("index_kpool", most=4096) or 1


def owners(fields: Fields, layers: int, among: list[bool] | None = None) -> int:
    """Layers that own an indexer, of those `among` the decoder's layers that have sparse attention."""
    asked = among or [True] * layers
    return sum(full and wanted for full, wanted in zip(full_indexers(fields, layers), asked, strict=True))


def full_indexers(fields: Fields, layers: int) -> list[bool]:
    """Which layers own an indexer."""
    pattern = fields.raw("indexer_types", "index_topk_pattern")
    if pattern is not None:
        names = list(pattern) if isinstance(pattern, str) and len(pattern) <= MOST_LAYERS else pattern
        if not isinstance(names, list) or len(names) < layers or any(name not in ("full", "shared", "F", "S") for name in names[:layers]):
            raise Unsettled("indexer_types is no list of full and shared for each layer")
        return [name in ("full", "F") for name in names[:layers]]
    freq = fields.maybe("index_topk_freq", most=MOST_LAYERS) or 1
    offset = fields.maybe("index_skip_topk_offset", most=MOST_LAYERS, least=0)
    offset = 2 if offset is None else offset
    return [max(index - offset + 1, 0) % freq == 0 for index in range(layers)]


def minimax_m3(fields: Fields) -> Layers:
    """MiniMax M3: GQA, and an index key of `sparse_index_dim` 16-bit elements in the layers whose `sparse_attention_freq` is 1.

    vLLM 0.33.0 `minimax_m3.py`. Whether the draft layers own index keys is not settled by the config; they are counted without.
    """
    layers, heads = fields.layers(), plain_heads(fields)
    groups: list[LayerGroup] = [*attention(layers, heads)]
    if fields.has("sparse_attention_config"):
        sparse = fields.nested("sparse_attention_config")
        owning = sum(kind == "sparse" for kind in ones(sparse, "sparse_attention_freq", layers, "sparse", "dense"))
        owning = 0 if sparse.raw("use_sparse_attention") is False else owning
        width = sparse.count("sparse_index_dim")
    else:
        kinds = fields.sequence("layer_types", layers)
        if kinds is None:
            raise Unsettled("sparse_attention_config and layer_types are missing")
        owning, width = kinds[:layers].count("minimax_m3_sparse"), fields.count("index_head_dim", "head_dim")
    if owning:
        groups.append(Indexer(kind="indexer", layers=owning, bytes_per_key=2 * width, key_dim=width))
    return Layers(layers, tuple(groups), attention(draft_layers(fields), heads))


TABLE: dict[str, Build] = {
    **dict.fromkeys(["deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_k25", "glm4_moe_lite", "mistral4", "axk1", "sarvam_mla"], mla),
    **dict.fromkeys(["youtu", "youtu_llm"], mla),
    **dict.fromkeys(["deepseek_v32", "glm_moe_dsa", "hy_v4"], dsa),
    "minicpm3": minicpm3,
    "longcat_flash": longcat,
    "mistral_large4": sourced,
    "minimax_m3": minimax_m3,
}
"""One entry for each family."""
