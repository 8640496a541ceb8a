"""Families with plain attention and routed experts.

transformers 5.24.0 `models/*/modeling_*.py`; for families with remote code llama.cpp build 11549 (`src/models/*.cpp`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from fitcheck.sources.families.fields import MOST_LAYERS, Fields, Unsettled
from fitcheck.sources.families.groups import FULL, SLIDING
from fitcheck.sources.families.kinds import listed, ones
from fitcheck.sources.tensors.blocks import (
    Experts,
    Shape,
    attention,
    dense_layers,
    drafter,
    ends,
    experts_of,
    feed_forward,
    mixture,
    shape_of,
    switch,
)
from fitcheck.sources.tensors.dense import Style, layer, tied, width_of
from fitcheck.sources.tensors.record import Build, Part, Sheet

_TWO = ("attn_norm", "ffn_norm")
_FOUR = ("attn_norm", "attn_post_norm", "ffn_norm", "ffn_post_norm")


def networks(sheet: Sheet, layers: int, dense: tuple[int, ...], experts: Experts) -> None:
    """Dense networks in some layers, experts in the others."""
    if dense:
        feed_forward(sheet.block(dense), width_of(sheet.fields))
    mixture(sheet.block(index for index in range(layers) if index not in dense), experts)


def routed(style: Style, *, correction: bool = False, shared_gate: bool = False, draft: str = "", wide_router: bool = False) -> Build:
    """Layers of a style, dense or with experts as the config says; `draft` layers (MTP) have experts, and perhaps `own` ends."""

    def build(sheet: Sheet) -> None:
        fields, layers = sheet.fields, sheet.fields.layers()
        experts = replace(experts_of(fields, correction=correction, shared_gate=shared_gate), wide_router=wide_router)
        ends(sheet, tied(fields, style.tied))
        layer(sheet.block(range(layers)), fields, style)
        networks(sheet, layers, dense_layers(fields, layers), experts)
        drafts = fields.maybe("num_nextn_predict_layers", most=64, least=0) or 0 if draft else 0
        block = sheet.block(range(layers, layers + drafts), draft=True)
        if drafts:
            layer(block, fields, style)
            mixture(block, experts)
            drafter(block, own_ends=draft == "own")

    return build


def gpt_oss(sheet: Sheet) -> None:
    """gpt-oss: biases everywhere, a sink per head, experts with biases (transformers `modeling_gpt_oss.py`)."""
    fields, layers = sheet.fields, sheet.fields.layers()
    shape = shape_of(fields)
    ends(sheet, tied(fields, default=False))
    block = sheet.block(range(layers))
    attention(block, shape, qkv_bias=True, out_bias=True)
    block.add("attn_sinks", Part.ATTENTION, shape.heads)
    block.norms("attn_norm", "post_attention_norm")
    mixture(block, replace(experts_of(fields), bias=True))


def minimax_m3(sheet: Sheet) -> None:
    """MiniMax M3: an index of `sparse_num_index_heads` in the layers that have sparse attention (llama.cpp `minimax-m3.cpp`)."""
    fields, layers = sheet.fields, sheet.fields.layers()
    shape, experts = shape_of(fields), experts_of(fields, correction=True)
    dense = dense_layers(fields, layers)
    ends(sheet, tied(fields, default=False))
    block = sheet.block(range(layers))
    attention(block, shape, norm="head")
    block.norms(*_TWO)
    if dense:
        feed_forward(sheet.block(dense), fields.count("dense_intermediate_size", "intermediate_size"))
    mixture(sheet.block(index for index in range(layers) if index not in dense), experts)
    sparse = fields.nested("sparse_attention_config")
    kinds = ones(sparse, "sparse_attention_freq", layers, "sparse", "dense")
    width = sparse.count("sparse_index_dim")
    owners = sheet.block(index for index in range(layers) if kinds[index] == "sparse")
    owners.linear("indexer.q_proj", Part.ATTENTION, sparse.count("sparse_num_index_heads") * width, sheet.hidden)
    owners.linear("indexer.k_proj", Part.ATTENTION, width, sheet.hidden)
    owners.norms("indexer.q_norm", "indexer.k_norm", width=width)


def hunyuan_moe(sheet: Sheet) -> None:
    """Hunyuan A13B: lists of one entry a layer, all alike in the published file; the embedding is tied."""
    fields, layers = sheet.fields, sheet.fields.layers()
    width, shared = _same(fields, "moe_intermediate_size", layers), _same(fields, "num_shared_expert", layers)
    width = width or fields.count("intermediate_size")
    ends(sheet, tied(fields, default=True))
    layer(sheet.block(range(layers)), fields, Style(bias="all", bias_field="attention_bias", qk_norm="head"))
    mixture(sheet.block(range(layers)), Experts(fields.count("num_experts"), width, (1 if shared is None else shared) * width))


def _same(fields: Fields, name: str, layers: int) -> int | None:
    if not isinstance(fields.raw(name), list):
        return fields.maybe(name, least=0)
    found = set(fields.counts(name, layers))
    if len(found) != 1:
        raise Unsettled(f"{name} differs between layers")
    return found.pop()


def llama4(sheet: Sheet) -> None:
    """Llama 4: experts and a shared one in every `interleave_moe_layer_step`th layer, dense networks in the others."""
    fields, layers = sheet.fields, sheet.fields.layers()
    step = fields.maybe("interleave_moe_layer_step", most=MOST_LAYERS) or 1
    width = fields.count("intermediate_size")
    sparse = [index for index in range(layers) if (index + 1) % step == 0]
    ends(sheet, tied(fields, default=False))
    layer(sheet.block(range(layers)), fields, Style(bias="all", bias_field="attention_bias"))
    mixture(sheet.block(sparse), Experts(fields.count("num_local_experts"), width, width))
    if len(sparse) < layers:
        feed_forward(sheet.block(index for index in range(layers) if index not in sparse), fields.count("intermediate_size_mlp"))


def afmoe(sheet: Sheet) -> None:
    """Trinity: four norms, norms of queries and keys, a gate over the attention's output (llama.cpp `afmoe.cpp`)."""
    fields, layers = sheet.fields, sheet.fields.layers()
    shape = shape_of(fields)
    ends(sheet, tied(fields, default=False))
    block = sheet.block(range(layers))
    attention(block, shape, norm="head")
    block.linear("attn_gate", Part.ATTENTION, shape.heads * shape.v_dim, sheet.hidden, module="self_attn.gate_proj")
    block.norms(*_FOUR)
    networks(sheet, layers, dense_layers(fields, layers), experts_of(fields, correction=True))


def laguna(sheet: Sheet) -> None:
    """Laguna: heads that differ between layers and a gate of one value a head or an element (llama.cpp `laguna.cpp`)."""
    fields, layers = sheet.fields, sheet.fields.layers()
    shape = shape_of(fields)
    heads = fields.counts("num_attention_heads_per_layer", layers, least=1) if fields.has("num_attention_heads_per_layer") else None
    gating = fields.raw("gating")
    if gating not in ("per-head", "per_head", "per-element", "per_element", True):
        raise Unsettled("gating is neither per-head nor per-element")
    ends(sheet, tied(fields, default=False))
    for count in sorted(Counter(heads or [shape.heads])):
        block = sheet.block(index for index in range(layers) if heads is None or heads[index] == count)
        attention(block, shape._replace(heads=count), norm="head")
        gates = count * shape.v_dim if gating in ("per-element", "per_element") else count
        block.linear("attn_gate", Part.ATTENTION, gates, sheet.hidden, module="self_attn.g_proj")
        block.norms(*_TWO)
    networks(sheet, layers, dense_layers(fields, layers), experts_of(fields, correction=True))


def mimo_v2(sheet: Sheet) -> None:
    """MiMo-V2: sliding layers with heads of their own and sinks (llama.cpp `mimo2.cpp`); draft layers are dense and sliding.

    The published files hold draft layers that their config does not count, so they are left out.
    """
    fields, layers = sheet.fields, sheet.fields.layers()
    heads = fields.count("num_attention_heads")
    full = Shape(heads, fields.count("num_key_value_heads"), fields.count("head_dim"), fields.count("v_head_dim", "head_dim"))
    other = Shape(
        fields.count("swa_num_attention_heads", "num_attention_heads"),
        fields.count("swa_num_key_value_heads", "num_key_value_heads"),
        fields.count("swa_head_dim", "head_dim"),
        fields.count("swa_v_head_dim", "v_head_dim", "head_dim"),
    )
    kinds = listed(fields, layers) or ones(fields, "hybrid_layer_pattern", layers, SLIDING, FULL)
    ends(sheet, tied(fields, default=False))
    for kind, shape, sinks in ((FULL, full, "add_full_attention_sink_bias"), (SLIDING, other, "add_swa_attention_sink_bias")):
        block = sheet.block(index for index in range(layers) if kinds[index] == kind)
        attention(block, shape, qkv_bias=fields.flag("attention_bias"))
        block.norms(*_TWO)
        if fields.flag(sinks):
            block.add("attn_sinks", Part.ATTENTION, shape.heads)
    networks(sheet, layers, dense_layers(fields, layers), experts_of(fields, correction=True))


def qwen_moe(sheet: Sheet) -> None:
    """Qwen2-MoE: biases of queries, keys and values (`qkv_bias`, on), a shared expert behind a gate."""
    bias = "qkv" if switch(sheet.fields, "qkv_bias", default=True) else ""
    routed(Style(bias=bias), shared_gate=True)(sheet)


def granite_moe(sheet: Sheet) -> None:
    """Granite MoE: experts in every layer, and a shared one (`shared_intermediate_size`) in the variant that has it."""
    fields = sheet.fields
    shared = fields.maybe("shared_intermediate_size", least=0) or 0
    ends(sheet, tied(fields, default=False))
    block = sheet.block(range(fields.layers()))
    layer(block, fields, Style(bias="all", bias_field="attention_bias"))
    mixture(block, Experts(fields.count("num_local_experts"), fields.count("intermediate_size"), shared))


_QWEN3 = Style(bias="all", bias_field="attention_bias", qk_norm="head")

TABLE: dict[str, Build] = {
    **dict.fromkeys(["qwen3_moe", "qwen3_vl_moe", "qwen3_omni_moe"], routed(_QWEN3)),
    **dict.fromkeys(["bailing_moe", "bailing_moe_v2"], routed(Style(qk_norm="head", fused_qkv=True), correction=True, draft="shared")),
    **dict.fromkeys(["granitemoe", "granitemoeshared"], granite_moe),
    **dict.fromkeys(["mimo_v2", "mimo_v2_flash"], mimo_v2),
    "mixtral": routed(Style()),
    "qwen2_moe": qwen_moe,
    "olmoe": routed(Style(qk_norm="all")),
    "deepseek": routed(Style(bias="all", bias_field="attention_bias")),
    "ernie4_5_moe": routed(Style(tied=True, bias="all", bias_field="use_bias"), correction=True),
    "minimax_m2": routed(Style(qk_norm="all"), correction=True, wide_router=True),
    "minimax_m3": minimax_m3,
    "gpt_oss": gpt_oss,
    "hunyuan_v1_moe": hunyuan_moe,
    "llama4": llama4,
    "afmoe": afmoe,
    "laguna": laguna,
}
"""One entry for each family."""
