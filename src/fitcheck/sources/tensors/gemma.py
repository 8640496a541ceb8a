"""Gemma 3n and Gemma 4: per-layer embeddings, shared caches, layers of two shapes; and Muse Glimmer."""

from __future__ import annotations

from fitcheck.sources.families.fields import Fields, Unsettled
from fitcheck.sources.families.groups import FULL, head_dim, plain_heads, query_heads
from fitcheck.sources.families.kinds import every, listed
from fitcheck.sources.tensors.blocks import Experts, ends, feed_forward, mixture, switch
from fitcheck.sources.tensors.dense import tied, width_of
from fitcheck.sources.tensors.record import Block, Build, Part, Sheet

_FOUR = ("attn_norm", "attn_post_norm", "ffn_norm", "ffn_post_norm")


def _projections(block: Block, heads: int, width: int, keys: int, values: int) -> None:
    """Queries and output, keys and values where the layer owns them, and their norms."""
    block.linear("attn_q", Part.ATTENTION, heads * width, block.hidden)
    block.linear("attn_k", Part.ATTENTION, keys, block.hidden)
    block.linear("attn_v", Part.ATTENTION, values, block.hidden)
    block.linear("attn_output", Part.ATTENTION, block.hidden, heads * width)
    block.norms("attn_q_norm", width=width)
    block.norms("attn_k_norm", width=width)


def _per_layer(sheet: Sheet, width: int, layers: int) -> None:
    """The table of per-layer embeddings (on the host in llama.cpp) and its projection."""
    words = sheet.fields.maybe("vocab_size_per_layer_input", most=1 << 28) or sheet.fields.count("vocab_size", most=1 << 28)
    sheet.add("per_layer_token_embd", Part.LAYER_EMBEDDING, words, width * layers, module="embed_tokens_per_layer")
    sheet.add("per_layer_model_proj", Part.EMBEDDING, width * layers, sheet.hidden, module="per_layer_model_projection")
    sheet.add("per_layer_proj_norm", Part.NORM, width, module="per_layer_projection_norm")
    block = sheet.block(range(layers))
    block.linear("inp_gate", Part.FFN, width, sheet.hidden, module="per_layer_input_gate")
    block.linear("proj", Part.FFN, sheet.hidden, width, module="per_layer_projection")
    block.norms("post_norm")


def gemma4(sheet: Sheet) -> None:
    """Gemma 4: global layers have wider heads and, with `attention_k_eq_v`, no value projection; the last layers share earlier caches.

    transformers 5.24.0 `modeling_gemma4.py`; llama.cpp `gemma4.cpp` and `conversion/gemma.py`. The published files and GGUF hold key
    and value projections of all layers, those that share a cache too. With `use_double_wide_mlp` the latter's networks are twice as wide.
    """
    fields, layers = sheet.fields, sheet.fields.layers()
    heads, local, wide = query_heads(fields), plain_heads(fields), fields.count("global_head_dim")
    alternative = fields.flag("attention_k_eq_v")
    few = (fields.maybe("num_global_key_value_heads") if alternative else None) or local.kv_heads
    kinds = listed(fields, layers) or every(layers, 6)
    kinds[-1] = FULL
    shared = layers - (fields.maybe("num_kv_shared_layers", most=layers, least=0) or 0)
    ends(sheet, tied(fields, default=True))
    for full in (True, False):
        width, kept = (wide, few) if full else (local.k_dim, local.kv_heads)
        values = 0 if full and alternative else kept * width
        found = [index for index in range(layers) if (kinds[index] == FULL) == full]
        _projections(sheet.block(found), heads, width, kept * width, values)
    factor = 2 if fields.flag("use_double_wide_mlp") else 1
    for block, network in ((sheet.block(range(shared)), width_of(fields)), (sheet.block(range(shared, layers)), factor * width_of(fields))):
        feed_forward(block, network)
        block.norms(*_FOUR)
        block.add("layer_output_scale", Part.NORM, 1)
    if fields.flag("enable_moe_block"):
        _mixture(sheet.block(range(layers)), fields)
    if per_layer := fields.maybe("hidden_size_per_layer_input", least=0):
        _per_layer(sheet, per_layer, layers)


def _mixture(block: Block, fields: Fields) -> None:
    """Routed experts beside the dense network, each with a scale, and the norms and scale around them."""
    experts = Experts(fields.count("num_experts"), fields.count("moe_intermediate_size", "expert_intermediate_size"))
    mixture(block, experts)
    block.add("ffn_gate_inp", Part.ROUTER, block.hidden, suffix=".scale")
    block.add("ffn_down_exps", Part.ROUTER, experts.count, suffix=".scale")
    block.norms("pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2")


def gemma3n(sheet: Sheet) -> None:
    """Gemma 3n: AltUp, LAuReL and per-layer embeddings (transformers 5.24.0 `modeling_gemma3n.py`; llama.cpp `gemma3n.cpp`)."""
    fields, layers = sheet.fields, sheet.fields.layers()
    heads, shape = query_heads(fields), plain_heads(fields)
    copies, rank = fields.maybe("altup_num_inputs") or 4, fields.maybe("laurel_rank") or 64
    widths = fields.raw("intermediate_size")
    if isinstance(widths, list):
        if len(set(map(str, widths))) != 1:
            raise Unsettled("intermediate_size differs between layers")
        widths = widths[0]
    if not isinstance(widths, int) or not 0 < widths < 1 << 24:
        raise Unsettled("intermediate_size is missing")
    ends(sheet, tied(fields, default=True))
    sheet.add("altup_proj", Part.FFN, copies - 1, sheet.hidden, sheet.hidden, module="altup_projections")
    sheet.add("altup_unembd_proj", Part.FFN, copies - 1, sheet.hidden, sheet.hidden, module="altup_unembed_projections")
    _per_layer(sheet, fields.maybe("hidden_size_per_layer_input") or 256, layers)
    block = sheet.block(range(layers))
    _projections(block, heads, head_dim(fields, heads), shape.kv_heads * shape.k_dim, shape.kv_heads * shape.v_dim)
    feed_forward(block, widths)
    block.norms(*_FOUR, "altup_correct_scale", "altup_router_norm", "laurel_post_norm")
    block.add("altup_correct_coef", Part.FFN, copies, copies)
    block.add("altup_predict_coef", Part.FFN, copies * copies, copies)
    block.linear("altup_router", Part.FFN, copies, sheet.hidden)
    block.linear("laurel_l", Part.FFN, rank, sheet.hidden)
    block.linear("laurel_r", Part.FFN, sheet.hidden, rank)


def muse(sheet: Sheet) -> None:
    """Muse Glimmer: four norms, norms of queries and keys, and a gate over the attention's output (llama.cpp `muse-glimmer.cpp`)."""
    fields = sheet.fields
    heads, shape = query_heads(fields), plain_heads(fields)
    ends(sheet, switch(fields, "tie_word_embeddings", default=False))
    block = sheet.block(range(fields.layers()))
    _projections(block, heads, shape.k_dim, shape.kv_heads * shape.k_dim, shape.kv_heads * shape.v_dim)
    block.linear("attn_gate", Part.ATTENTION, heads * shape.k_dim, sheet.hidden, module="self_attn.gate_proj")
    block.norms(*_FOUR)
    feed_forward(block, width_of(fields))


TABLE: dict[str, Build] = {
    **dict.fromkeys(["gemma4", "gemma4_unified"], gemma4),
    "gemma3n": gemma3n,
    "muse_glimmer": muse,
}
"""One entry for each family."""
