"""Families whose layers are all alike: full attention (MHA, GQA, MQA), or one sliding window on every layer."""

from __future__ import annotations

from collections.abc import Callable

from fitcheck.sources.families.fields import MOST_TOKENS, Fields, Layers, Unsettled, whole
from fitcheck.sources.families.groups import FULL, NOTHING, SLIDING, Heads, attention, by_shape, head_dim, plain_heads, query_heads
from fitcheck.sources.families.kinds import listed

Build = Callable[[Fields], Layers]

CONTEXT = (
    "max_position_embeddings",
    "max_sequence_length",
    "seq_length",
    "n_positions",
    "n_ctx",
    "max_seq_len",
    "context_length",
    "model_max_length",
    "max_target_positions",
)
"""The names under which configs give the longest context."""


def full(fields: Fields) -> Layers:
    """Full attention in every layer; draft (MTP) layers are of the same kind."""
    layers, heads = fields.layers(), plain_heads(fields)
    return Layers(layers, attention(layers, heads), attention(draft_layers(fields), heads))


def draft_layers(fields: Fields) -> int:
    """Draft (MTP, NextN) layers that come with the model, each with a cache of its own when speculation is on."""
    names = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers")
    return fields.maybe(*names, most=64, least=0) or 0


def all_sliding(fields: Fields) -> Layers:
    """One window on every layer, where the config has a `sliding_window` shorter than the context.

    vLLM 0.33 (`engine/arg_utils.py`) and transformers (`MistralConfig`, `Phi3Config`, `Starcoder2Config`) apply it to every layer when
    there is no `layer_types`. llama.cpp ignores it for these families.
    """
    layers, heads = fields.layers(), plain_heads(fields)
    window, context = fields.maybe("sliding_window", most=MOST_TOKENS), fields.maybe(*CONTEXT, most=MOST_TOKENS)
    if window is None or (context is not None and window >= context):
        return Layers(layers, attention(layers, heads))
    kinds = listed(fields, layers) or [SLIDING] * layers
    return Layers(layers, by_shape([(kind, heads) for kind in kinds], window))


def switched(fields: Fields) -> Layers:
    """Qwen2, Qwen3, SmolLM3: layers from `max_window_layers` on slide, if `use_sliding_window` is true; it is false in published files.

    transformers 5.24.0 `Qwen2Config.__post_init__`, `Qwen3Config.__post_init__`.
    """
    return _slide(fields) if fields.flag("use_sliding_window") else full(fields)


def late_sliding(fields: Fields) -> Layers:
    """dots.llm1: as Qwen2 without the switch (transformers 5.24.0 `Dots1Config.__post_init__`)."""
    return _slide(fields)


def _slide(fields: Fields) -> Layers:
    if fields.raw("sliding_window") is None:
        return full(fields)
    layers, heads = fields.layers(), plain_heads(fields)
    kinds = listed(fields, layers)
    if kinds is None:
        first = fields.count("max_window_layers", least=0)
        kinds = [SLIDING if index >= first else FULL for index in range(layers)]
    groups = by_shape([(kind, heads) for kind in kinds], fields.count("sliding_window", most=MOST_TOKENS))
    return Layers(layers, groups, attention(draft_layers(fields), heads))


def falcon(fields: Fields) -> Layers:
    """Falcon: `num_kv_heads` counts in the new decoder architecture alone; else one KV head unless `multi_query` is off.

    transformers 5.24.0 `modeling_falcon.py`: `num_kv_heads = config.num_kv_heads if (config.new_decoder_architecture or not
    config.multi_query) else 1`.
    """
    layers, heads = fields.layers(), query_heads(fields)
    width = head_dim(fields, heads)
    given = fields.maybe("num_kv_heads") or heads
    kept = given if fields.flag("new_decoder_architecture") or not fields.flag("multi_query") else 1
    return Layers(layers, attention(layers, Heads(kept, width, width)))


def nemotron_nas(fields: Fields) -> Layers:
    """Nemotron NAS (DeciLM): `block_configs[].attention`: no attention at all, or as many heads to a KV head as `n_heads_in_group` says.

    vLLM 0.33.0 `model_executor/models/nemotron_nas.py`: `num_key_value_heads = num_attention_heads // n_heads_in_group`.
    """
    layers, heads = fields.layers(), query_heads(fields)
    width = head_dim(fields, heads)
    blocks = fields.sequence("block_configs", layers)
    if blocks is None:
        raise Unsettled("block_configs is missing")
    shapes = []
    for index, block in enumerate(blocks[:layers]):
        spec = block.get("attention") if isinstance(block, dict) else None
        if not isinstance(spec, dict):
            raise Unsettled(f"block_configs[{index}].attention is missing")
        if spec.get("no_op") or spec.get("replace_with_linear"):
            shapes.append((NOTHING, Heads(1, 1, 1)))
            continue
        if spec.get("window_length") is not None:
            raise Unsettled(f"block_configs[{index}].attention has a window_length")
        in_group = whole(spec.get("n_heads_in_group"), f"block_configs[{index}].attention.n_heads_in_group", heads, 1)
        shapes.append((FULL, Heads(heads // in_group, width, width)))
    return Layers(layers, by_shape(shapes, None))


def openelm(fields: Fields) -> Layers:
    """OpenELM: `num_kv_heads` is a list, one entry for each layer (apple/OpenELM `configuration_openelm.py`)."""
    layers = fields.layers("num_transformer_layers")
    width = fields.count("head_dim")
    return Layers(layers, by_shape([(FULL, Heads(kept, width, width)) for kept in fields.counts("num_kv_heads", layers, least=1)], None))


def mosaic(fields: Fields) -> Layers:
    """MPT and DBRX: the KV heads are in `attn_config` (transformers 5.24.0 `DbrxAttentionConfig.kv_n_heads`; MPT's `attn_type`)."""
    layers, heads = fields.layers(), query_heads(fields)
    width = head_dim(fields, heads)
    spec = fields.nested("attn_config") if fields.has("attn_config") else Fields({})
    kept = 1 if spec.raw("attn_type") == "multiquery_attention" else spec.maybe("kv_n_heads") or heads
    return Layers(layers, attention(layers, Heads(kept, width, width)))


_FULL = """
llama qwen chatglm internlm internlm2 internlm3 baichuan orion olmo olmo2 olmoe flex_olmo seed_oss cohere stablelm gemma granite granitemoe
granitemoeshared arcee apertus nemotron exaone glm glm4 glm4_moe glm4v glm4v_moe glm46v glm_ocr deepseek ernie4_5 ernie4_5_moe
ernie4_5_vl_moe hunyuan_v1_dense hunyuan_v1_moe hunyuan_vl hy_v3 minicpm minicpmv minicpmo minimax_m2 bailing_moe bailing_moe_v2 mimo
molmo phi-msft phi gpt2 gptj gpt_neox gpt_bigcode opt bloom codegen persimmon solar_open ministral3 helium xverse aquila nanochat jais2
iquestcoder sarvam_moe hyperclovax bitnet arctic chameleon paddleocr_vl gpt_refact grok-1 PanguEmbedded
"""
TABLE: dict[str, Build] = {
    **dict.fromkeys(_FULL.split(), full),
    **dict.fromkeys(["qwen2", "qwen2_vl", "qwen2_5_vl", "qwen2_5_omni", "qwen2_audio", "qwen2_moe", "smollm3"], switched),
    **dict.fromkeys(["qwen3", "qwen3_moe", "qwen3_vl", "qwen3_vl_moe", "qwen3_omni_moe", "qwen3_asr"], switched),
    **dict.fromkeys(["mistral", "mixtral", "phi3", "phi3_v", "phi4", "phi4mm", "phi4_multimodal", "phimoe", "starcoder2"], all_sliding),
    **dict.fromkeys(["mpt", "dbrx"], mosaic),
    "dots1": late_sliding,
    "falcon": falcon,
    "nemotron-nas": nemotron_nas,
    "openelm": openelm,
}
"""One entry for each family; `kv_heads` reads all spellings of the KV heads."""
