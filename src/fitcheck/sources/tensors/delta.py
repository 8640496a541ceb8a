"""Families with linear attention: gated delta nets, Kimi delta attention, lightning attention, short convolutions.

transformers 5.24.0 `models/*/modeling_*.py`; llama.cpp build 11549 `qwen35.cpp`, `qwen3next.cpp`, `kimi-linear.cpp`, `kimi-k3.cpp`,
`glm5-next.cpp`, `bailingmoe3.cpp`, `minimax-01.cpp`, `lfm2.cpp`.
"""

from __future__ import annotations

from fitcheck.sources.families.fields import MOST_LAYERS, Fields, Unsettled
from fitcheck.sources.families.groups import FULL, LINEAR
from fitcheck.sources.families.kinds import every, indices, listed
from fitcheck.sources.tensors.blocks import (
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
from fitcheck.sources.tensors.dense import tied, width_of
from fitcheck.sources.tensors.record import Block, Build, Part, Sheet

_TWO = ("attn_norm", "ffn_norm")


def delta_net(block: Block, fields: Fields, *, fused: bool) -> None:
    """Gated delta net of Qwen3-Next (`fused`: one projection for both gates) and Qwen3.5."""
    keys, values = fields.count("linear_num_key_heads"), fields.count("linear_num_value_heads")
    key_dim, value_dim = keys * fields.count("linear_key_head_dim"), values * fields.count("linear_value_head_dim")
    mixed, hidden = 2 * key_dim + value_dim, block.hidden
    whole = "linear_attn.in_proj_qkvz" if fused else ""
    block.linear("attn_qkv", Part.ATTENTION, mixed, hidden, module=whole or "linear_attn.in_proj_qkv")
    block.linear("attn_gate", Part.ATTENTION, value_dim, hidden, module=whole or "linear_attn.in_proj_z")
    if fused:
        block.linear("ssm_ba", Part.ATTENTION, 2 * values, hidden, module="linear_attn.in_proj_ba")
    else:
        block.linear("ssm_beta", Part.ATTENTION, values, hidden, module="linear_attn.in_proj_b")
        block.linear("ssm_alpha", Part.ATTENTION, values, hidden, module="linear_attn.in_proj_a")
    block.add("ssm_conv1d", Part.ATTENTION, mixed, fields.count("linear_conv_kernel_dim"), module="linear_attn.conv1d")
    block.add("ssm_dt", Part.ATTENTION, values, suffix=".bias")
    block.add("ssm_a", Part.ATTENTION, values)
    block.norms("ssm_norm", width=fields.count("linear_value_head_dim"))
    block.linear("ssm_out", Part.ATTENTION, hidden, value_dim, module="linear_attn.out_proj")


def qwen_next(*, fused: bool, sparse: bool, tie: bool = False) -> Build:
    """Qwen3-Next (`fused`) and Qwen3.5: gated attention in every fourth layer, gated delta nets in the others, draft layers with attention.

    Draft layers use the model's embedding and head. Qwen3-Next's config does not count its one (vLLM 0.33.0 `qwen3_next_mtp.py` takes
    one); Qwen3.5's does (`mtp_num_hidden_layers`).
    """

    def build(sheet: Sheet) -> None:
        fields, layers = sheet.fields, sheet.fields.layers()
        kinds = listed(fields, layers) or every(layers, fields.count("full_attention_interval", most=MOST_LAYERS))
        drafts = fields.maybe("mtp_num_hidden_layers", "num_nextn_predict_layers", most=64, least=0)
        drafts = (1 if fused else 0) if drafts is None else drafts
        ends(sheet, tied(fields, tie))
        full = sheet.block(index for index in range(layers) if kinds[index] == FULL)
        draft = sheet.block(range(layers, layers + drafts), draft=True)
        delta_net(sheet.block(index for index in range(layers) if kinds[index] != FULL), fields, fused=fused)
        for block in (full, draft):
            attention(block, shape_of(fields), norm="head", gated=switch(fields, "attn_output_gate", default=True))
        for block in (sheet.block(range(layers)), draft):
            block.norms("attn_norm", "post_attention_norm")
            if sparse:
                mixture(block, experts_of(fields, shared_gate=True))
            else:
                feed_forward(block, width_of(fields))
        if drafts:
            drafter(draft, own_ends=False)

    return build


def lfm2(*, sparse: bool) -> Build:
    """LFM2: short convolutions and attention (norms of queries and keys), with experts after `num_dense_layers` in the MoE."""

    def build(sheet: Sheet) -> None:
        fields, layers = sheet.fields, sheet.fields.layers()
        kinds = listed(fields, layers)
        if kinds is None:
            whole = indices(fields, "full_attn_idxs", layers)
            kinds = [FULL if number in whole else LINEAR for number in range(layers)]
        hidden, kernel = sheet.hidden, fields.maybe("conv_L_cache") or 3
        ends(sheet, tied(fields, default=True))
        attention(sheet.block(index for index in range(layers) if kinds[index] == FULL), shape_of(fields), norm="head")
        block = sheet.block(index for index in range(layers) if kinds[index] != FULL)
        block.add("shortconv.conv", Part.ATTENTION, hidden, kernel, module="conv.conv")
        block.linear("shortconv.in_proj", Part.ATTENTION, 3 * hidden, hidden, module="conv.in_proj")
        block.linear("shortconv.out_proj", Part.ATTENTION, hidden, hidden, module="conv.out_proj")
        sheet.block(range(layers)).norms(*_TWO)
        dense = dense_layers(fields, layers) if sparse else tuple(range(layers))
        feed_forward(sheet.block(dense), _lfm2_width(fields))
        if sparse:
            mixture(sheet.block(index for index in range(layers) if index not in dense), experts_of(fields, correction=True))

    return build


def _lfm2_width(fields: Fields) -> int:
    """With `block_auto_adjust_ff_dim` the width is two thirds of the given one, rounded up (transformers 5.24.0 `Lfm2MLP`).

    The class has it on; files that say nothing and use the old name of the width leave it open.
    """
    if fields.has("block_ff_dim") and not fields.has("block_auto_adjust_ff_dim"):
        raise Unsettled("block_auto_adjust_ff_dim is missing")
    width = fields.count("block_ff_dim", "intermediate_size")
    if not fields.flag("block_auto_adjust_ff_dim"):
        return width
    multiple, factor = fields.maybe("block_multiple_of") or 256, fields.raw("block_ffn_dim_multiplier")
    width = int((factor if isinstance(factor, int | float) else 1.0) * int(2 * width / 3))
    return multiple * -(-width // multiple)


TABLE: dict[str, Build] = {
    "qwen3_next": qwen_next(fused=True, sparse=True),
    "qwen3_5": qwen_next(fused=False, sparse=False),
    "qwen3_5_moe": qwen_next(fused=False, sparse=True),
    "lfm2": lfm2(sparse=False),
    "lfm2_moe": lfm2(sparse=True),
}
"""One entry for each family."""
