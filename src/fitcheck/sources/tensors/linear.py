"""Families with linear attention: gated delta nets, Kimi delta attention, lightning attention, short convolutions.

transformers 5.24.0 `models/*/modeling_*.py`; llama.cpp build 11549 `qwen35.cpp`, `qwen3next.cpp`, `kimi-linear.cpp`, `kimi-k3.cpp`,
`glm5-next.cpp`, `bailingmoe3.cpp`, `minimax-01.cpp`, `lfm2.cpp`.
"""

from __future__ import annotations

from dataclasses import replace

from fitcheck.sources.families.dense import draft_layers
from fitcheck.sources.families.fields import MOST_LAYERS, Unsettled
from fitcheck.sources.families.groups import FULL
from fitcheck.sources.families.kinds import listed
from fitcheck.sources.families.latent import full_indexers
from fitcheck.sources.tensors.blocks import (
    Experts,
    attention,
    dense_layers,
    drafter,
    ends,
    experts_of,
    feed_forward,
    mixture,
    shape_of,
)
from fitcheck.sources.tensors.compressed import hyper
from fitcheck.sources.tensors.dense import tied, width_of
from fitcheck.sources.tensors.experts import networks
from fitcheck.sources.tensors.latent import index, latent_attention
from fitcheck.sources.tensors.record import Block, Build, Part, Sheet

_TWO = ("attn_norm", "ffn_norm")


def kda(block: Block, heads: int, width: int, kernel: int, *, gate: str, full_decay: bool = False, module: str = "self_attn") -> None:
    """Kimi delta attention: three convolutions, a decay and a gate, each of `low` rank (a head's width) or `full`."""
    inner, hidden = heads * width, block.hidden
    for name in ("q", "k", "v"):
        block.linear(f"attn_{name}", Part.ATTENTION, inner, hidden, module=f"{module}.{name}_proj")
        block.add(f"ssm_conv1d_{name}", Part.ATTENTION, inner, kernel, module=f"{module}.{name}_conv1d")
    block.linear("ssm_f_a", Part.ATTENTION, inner if full_decay else width, hidden, module=f"{module}.f_a_proj")
    block.linear("ssm_f_b", Part.ATTENTION, 0 if full_decay else inner, width, module=f"{module}.f_b_proj")
    block.linear("ssm_beta", Part.ATTENTION, heads, hidden, module=f"{module}.b_proj")
    block.add("ssm_a", Part.ATTENTION, heads, wide=True)
    block.add("ssm_dt", Part.ATTENTION, inner, suffix=".bias", wide=True)
    if gate == "full":
        block.linear("ssm_g", Part.ATTENTION, inner, hidden, module=f"{module}.g_proj")
    else:
        block.linear("ssm_g_a", Part.ATTENTION, width, hidden, module=f"{module}.g_a_proj")
        block.linear("ssm_g_b", Part.ATTENTION, inner, width, module=f"{module}.g_b_proj")
    block.norms("ssm_norm", width=width)
    block.linear("attn_output", Part.ATTENTION, hidden, inner, module=f"{module}.o_proj")


def kimi_linear(sheet: Sheet) -> None:
    """Kimi Linear and Kimi K3: KDA, and MLA in the layers of `full_attn_layers` (counted from 1).

    Kimi K3 adds a gate over MLA's output, experts in a latent space of `latent_moe_size`, and attention residuals every
    `attn_res_block_size` layers (llama.cpp `kimi-k3.cpp`).
    """
    fields, layers = sheet.fields, sheet.fields.layers()
    spec = fields.nested("linear_attn_config")
    whole = {value - 1 for value in spec.sequence("full_attn_layers") or [] if isinstance(value, int)}
    heads, width, kernel = spec.count("num_heads"), spec.count("head_dim"), spec.count("short_conv_kernel_size")
    ends(sheet, tied(fields, default=False))
    block = sheet.block(index for index in range(layers) if index not in whole)
    kda(block, heads, width, kernel, gate="full" if spec.flag("use_full_rank_gate") else "low")
    full = sheet.block(sorted(index for index in whole if 0 <= index < layers))
    latent_attention(full, fields)
    if fields.flag("mla_use_output_gate"):
        gate = fields.count("num_attention_heads") * fields.count("v_head_dim")
        full.linear("attn_gate", Part.ATTENTION, gate, sheet.hidden, module="self_attn.g_proj")
    latent = fields.maybe("routed_expert_hidden_size", "latent_moe_size", "moe_latent_size") or 0
    if fields.has("latent_moe_use_norm") and not latent:
        raise Unsettled("latent_moe_use_norm is given, and the experts' latent width is not")
    experts = replace(experts_of(fields, correction=True), latent=latent)
    dense = dense_layers(fields, layers)
    if dense:
        feed_forward(sheet.block(dense), width_of(fields))
    sparse = sheet.block(index for index in range(layers) if index not in dense)
    mixture(sparse, experts)
    if latent:
        sparse.linear("ffn_routed_down", Part.FFN, latent, sheet.hidden, module="mlp.routed_down")
        sparse.linear("ffn_routed_up", Part.FFN, sheet.hidden, latent, module="mlp.routed_up")
        sparse.norms("ffn_routed_norm", width=latent)
    sheet.block(range(layers)).norms(*_TWO)
    if fields.maybe("attn_res_block_size", least=0):
        sheet.block(range(layers)).norms("attn_res_score", "ffn_res_score")
        sheet.add("output_res_score", Part.NORM, sheet.hidden)


def glm5_next(sheet: Sheet) -> None:
    """GLM-5.3-Flash: KDA with a low-rank gate, MLA with a pooled indexer every fourth layer, hyper-connections (llama.cpp `glm5-next.cpp`).

    Draft layers have sparse attention and experts, no hyper-connections, and use the model's embedding and head.
    """
    fields, layers = sheet.fields, sheet.fields.layers()
    kinds, drafts = listed(fields, layers), draft_layers(fields)
    if kinds is None:
        raise Unsettled("layer_types is missing")
    spec = fields.nested("linear_attn_config")
    ends(sheet, tied(fields, default=False))
    recurrent = sheet.block(number for number in range(layers) if kinds[number] != FULL)
    kda(recurrent, spec.count("num_heads"), spec.count("head_dim"), spec.count("short_conv_kernel_size"), gate="low", module="linear_attn")
    full = [number for number in range(layers) if kinds[number] == FULL]
    draft = sheet.block(range(layers, layers + drafts), draft=True)
    owners = full_indexers(fields, layers)
    for block in (sheet.block(full), draft):
        latent_attention(block, fields)
    for block in (sheet.block(number for number in full if owners[number]), draft):
        index(block, fields)
        block.linear("indexer.kpool_gate", Part.ATTENTION, fields.count("index_head_dim"), sheet.hidden, module="self_attn.indexer.gate")
        block.add("indexer.kpool_ape", Part.ATTENTION, fields.count("index_kpool"), fields.count("index_head_dim"), wide=True)
    hyper(sheet.block(range(layers)), fields.count("hc_mult"))
    experts = experts_of(fields, correction=True)
    networks(sheet, layers, dense_layers(fields, layers), experts)
    for block in (sheet.block(range(layers)), draft):
        block.norms(*_TWO)
    if drafts:
        mixture(draft, experts)
        drafter(draft, own_ends=False)


def bailing_hybrid(sheet: Sheet) -> None:
    """Ling 3: KDA with gates of full rank, and MLA with a gate of one value a head in the last layer of each group.

    llama.cpp `bailingmoe3.cpp`, whose converter too takes only `no_kda_lora` and head-wise gates.
    """
    fields, layers = sheet.fields, sheet.fields.layers()
    if not fields.flag("no_kda_lora") or fields.raw("gated_attention_proj_granularity_type") != "head_wise":
        raise Unsettled("no_kda_lora and gated_attention_proj_granularity_type are other than true and head_wise, or missing")
    group, drafts = fields.count("layer_group_size", most=MOST_LAYERS), draft_layers(fields)
    heads, width = fields.count("num_attention_heads"), fields.count("head_dim")
    full = [number for number in range(layers) if (number + 1) % group == 0]
    ends(sheet, tied(fields, default=False))
    recurrent = sheet.block(number for number in range(layers) if number not in full)
    kda(recurrent, heads, width, fields.count("short_conv_kernel_size"), gate="full", full_decay=True)
    draft, experts = sheet.block(range(layers, layers + drafts), draft=True), experts_of(fields, correction=True)
    for block in (sheet.block(full), draft):
        latent_attention(block, fields)
        block.linear("attn_gate", Part.ATTENTION, heads, sheet.hidden, module="self_attn.g_proj")
    networks(sheet, layers, dense_layers(fields, layers), experts)
    for block in (sheet.block(range(layers)), draft):
        block.norms(*_TWO)
    if drafts:
        mixture(draft, experts)
        drafter(draft, own_ends=False)


def minimax_m1(sheet: Sheet) -> None:
    """MiniMax-01 and M1: lightning attention (0 in `attn_type_list`) with a gate and a norm, full attention (1); experts everywhere."""
    fields, layers = sheet.fields, sheet.fields.layers()
    shape, flags = shape_of(fields), fields.counts("attn_type_list", layers)
    if fields.maybe("shared_intermediate_size", least=0):
        raise Unsettled("shared_intermediate_size gives a shared expert")
    inner = shape.heads * shape.k_dim
    ends(sheet, tied(fields, default=False))
    attention(sheet.block(number for number in range(layers) if flags[number]), shape)
    block = sheet.block(number for number in range(layers) if not flags[number])
    block.linear("attn_qkv", Part.ATTENTION, 3 * inner, sheet.hidden)
    block.linear("attn_gate", Part.ATTENTION, inner, sheet.hidden, module="self_attn.output_gate")
    block.linear("attn_output", Part.ATTENTION, sheet.hidden, inner, module="self_attn.out_proj")
    block.norms("attn_norm_2", width=inner)
    mixture(sheet.block(range(layers)), Experts(fields.count("num_local_experts"), fields.count("intermediate_size")))
    sheet.block(range(layers)).norms(*_TWO)


TABLE: dict[str, Build] = {
    "kimi_linear": kimi_linear,
    "kimi_k3": kimi_linear,
    "glm5_next": glm5_next,
    "bailing_hybrid": bailing_hybrid,
    "minimax_m1": minimax_m1,
}
"""One entry for each family."""
