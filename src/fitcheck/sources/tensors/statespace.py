"""Families with state-space layers.

transformers 5.24.0 `models/*/modeling_*.py`; llama.cpp build 11549 `nemotron-h.cpp`, `falcon-h1.cpp`, `granite-hybrid.cpp`, `jamba.cpp`,
`mamba.cpp`, `mamba2.cpp`.
"""

from __future__ import annotations

from dataclasses import replace

from fitcheck.sources.families.fields import MOST_LAYERS, Fields, Unsettled
from fitcheck.sources.families.groups import FULL
from fitcheck.sources.families.kinds import listed
from fitcheck.sources.tensors.blocks import Experts, attention, drafter, ends, experts_of, feed_forward, mixture, shape_of, switch
from fitcheck.sources.tensors.dense import tied, width_of
from fitcheck.sources.tensors.record import Block, Build, Part, Sheet

_TWO = ("attn_norm", "ffn_norm")


def mamba2(block: Block, heads: int, width: int, state: int, groups: int, kernel: int, *, norm: bool = True) -> None:
    """Mamba-2: one projection in, a convolution with a bias, decay and skip per head, a grouped norm."""
    inner = heads * width
    mixed = inner + 2 * groups * state
    block.linear("ssm_in", Part.ATTENTION, inner + mixed + heads, block.hidden, module="mixer.in_proj")
    block.add("ssm_conv1d", Part.ATTENTION, mixed, kernel, module="mixer.conv1d")
    block.add("ssm_conv1d", Part.ATTENTION, mixed, module="mixer.conv1d", suffix=".bias")
    block.add("ssm_dt", Part.ATTENTION, heads, suffix=".bias")
    block.add("ssm_a", Part.ATTENTION, heads)
    block.add("ssm_d", Part.ATTENTION, heads)
    if norm:
        block.norms("ssm_norm", width=inner)
    block.linear("ssm_out", Part.ATTENTION, block.hidden, inner, module="mixer.out_proj")


def mamba1(block: Block, inner: int, state: int, rank: int, kernel: int, *, norms: bool = False) -> None:
    """Mamba-1: projections of the step size through `rank`, decay of inner width x state; Jamba adds three norms."""
    block.linear("ssm_in", Part.ATTENTION, 2 * inner, block.hidden, module="mixer.in_proj")
    block.add("ssm_conv1d", Part.ATTENTION, inner, kernel, module="mixer.conv1d")
    block.add("ssm_conv1d", Part.ATTENTION, inner, module="mixer.conv1d", suffix=".bias")
    block.linear("ssm_x", Part.ATTENTION, rank + 2 * state, inner, module="mixer.x_proj")
    block.linear("ssm_dt", Part.ATTENTION, inner, rank, bias=True, module="mixer.dt_proj")
    block.add("ssm_a", Part.ATTENTION, inner, state, suffix="", module="mixer.A_log")
    block.add("ssm_d", Part.ATTENTION, inner)
    block.linear("ssm_out", Part.ATTENTION, block.hidden, inner, module="mixer.out_proj")
    if norms:
        block.norms("ssm_dt_norm", width=rank)
        block.norms("ssm_b_norm", "ssm_c_norm", width=state)


def nemotron_h(sheet: Sheet) -> None:
    """Nemotron-H and Nemotron 3: one mixer a layer (M, *, - or E); networks without a gate, experts perhaps in a latent space.

    Draft layers (`mtp_hybrid_override_pattern`, such as `*E`) have attention and experts in one GGUF block (llama.cpp `nemotron-h.cpp`).
    """
    fields = sheet.fields
    letters = _letters(fields, "hybrid_override_pattern", "layers_block_type")
    layers = fields.maybe("num_hidden_layers", most=MOST_LAYERS) or len(letters)
    if not letters or len(letters) < layers or set(letters) - set("M*-E"):
        raise Unsettled("hybrid_override_pattern is no pattern of M, *, - and E")
    at = {letter: sheet.block(index for index in range(layers) if letters[index] == letter) for letter in "M*-E"}
    ends(sheet, tied(fields, default=False))
    sheet.block(range(layers)).norms("attn_norm")
    heads, width = fields.count("mamba_num_heads"), fields.count("mamba_head_dim")
    mamba2(at["M"], heads, width, fields.count("ssm_state_size"), fields.count("n_groups"), fields.count("conv_kernel"))
    attention(at["*"], shape_of(fields), qkv_bias=fields.flag("attention_bias"), out_bias=fields.flag("attention_bias"))
    if at["-"].layers:
        feed_forward(at["-"], fields.count("intermediate_size"), gated=False)
    if at["E"].layers:
        _latent_mixture(at["E"], fields)
    drafts = fields.maybe("num_nextn_predict_layers", most=64, least=0) or 0
    draft = sheet.block(range(layers, layers + drafts), draft=True)
    if drafts:
        if _letters(fields, "mtp_hybrid_override_pattern", "mtp_layers_block_type") != "*E":
            raise Unsettled("mtp_hybrid_override_pattern is not *E")
        attention(draft, shape_of(fields))
        _latent_mixture(draft, fields)
        draft.norms("attn_norm", "attn_post_norm")
        drafter(draft, own_ends=False)


def _letters(fields: Fields, pattern: str, words: str) -> str:
    """A pattern as letters, from letters or from a list of words."""
    given = fields.raw(pattern)
    if isinstance(given, str) and len(given) <= MOST_LAYERS:
        return given.replace("|", "")
    known = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E", "mamba2": "M", "full_attention": "*"}
    return "".join(known.get(str(word), "?") for word in (fields.sequence(words) or [])[:MOST_LAYERS])


def _latent_mixture(block: Block, fields: Fields) -> None:
    latent = fields.maybe("moe_latent_size", least=0) or 0
    mixture(block, replace(experts_of(fields, correction=True, gated=False), latent=latent))
    if latent:
        block.linear("ffn_latent_down", Part.FFN, latent, block.hidden, module="mixer.fc1_latent_proj")
        block.linear("ffn_latent_up", Part.FFN, block.hidden, latent, module="mixer.fc2_latent_proj")


def falcon_h1(sheet: Sheet) -> None:
    """Falcon-H1: Mamba-2 and attention side by side in every layer; a grouped norm only with `mamba_rms_norm`."""
    fields, layers = sheet.fields, sheet.fields.layers()
    inner = fields.maybe("mamba_d_ssm") or fields.count("mamba_expand", most=64) * sheet.hidden
    heads = fields.count("mamba_n_heads")
    ends(sheet, tied(fields, default=False))
    block = sheet.block(range(layers))
    state, groups, kernel = fields.count("mamba_d_state"), fields.count("mamba_n_groups"), fields.count("mamba_d_conv")
    mamba2(block, heads, inner // heads, state, groups, kernel, norm=switch(fields, "mamba_rms_norm", default=False))
    attention(block, shape_of(fields), qkv_bias=fields.flag("attention_bias"))
    block.norms(*_TWO)
    feed_forward(block, width_of(fields))


def granite_hybrid(sheet: Sheet) -> None:
    """Granite 4: Mamba-2 or attention, then experts and a shared network, or (without experts) the shared network alone."""
    fields, layers = sheet.fields, sheet.fields.layers()
    kinds = listed(fields, layers)
    if kinds is None:
        raise Unsettled("layer_types is missing")
    ends(sheet, tied(fields, default=False))
    block = sheet.block(range(layers))
    block.norms(*_TWO)
    attention(sheet.block(index for index in range(layers) if kinds[index] == FULL), shape_of(fields))
    recurrent = sheet.block(index for index in range(layers) if kinds[index] != FULL)
    if recurrent.layers:
        heads, expand = fields.count("mamba_n_heads"), fields.count("mamba_expand", most=64)
        width = expand * sheet.hidden // heads
        mamba2(recurrent, heads, width, fields.count("mamba_d_state"), fields.count("mamba_n_groups"), fields.count("mamba_d_conv"))
    shared = fields.count("shared_intermediate_size", "intermediate_size")
    experts = fields.maybe("num_local_experts", least=0)
    if experts:
        mixture(block, Experts(experts, fields.count("intermediate_size"), shared))
    else:
        feed_forward(block, shared)


def jamba(sheet: Sheet) -> None:
    """Jamba: attention every `attn_layer_period` layers, else Mamba-1; experts every `expert_layer_period` layers, else dense."""
    fields, layers = sheet.fields, sheet.fields.layers()
    period, offset = fields.count("attn_layer_period", most=MOST_LAYERS), fields.count("attn_layer_offset", most=MOST_LAYERS, least=0)
    step, start = fields.maybe("expert_layer_period") or 2, fields.maybe("expert_layer_offset", least=0)
    start = 1 if start is None else start
    ends(sheet, tied(fields, default=False))
    sheet.block(range(layers)).norms(*_TWO)
    attention(sheet.block(index for index in range(layers) if index % period == offset % period), shape_of(fields))
    inner, rank = fields.count("mamba_expand", most=64) * sheet.hidden, fields.maybe("mamba_dt_rank") or -(-sheet.hidden // 16)
    block = sheet.block(index for index in range(layers) if index % period != offset % period)
    mamba1(block, inner, fields.count("mamba_d_state"), rank, fields.count("mamba_d_conv"), norms=True)
    sparse = [index for index in range(layers) if index % step == start % step and fields.count("num_experts") > 1]
    mixture(sheet.block(sparse), Experts(fields.count("num_experts"), width_of(fields)))
    feed_forward(sheet.block(index for index in range(layers) if index not in sparse), width_of(fields))


def mamba(tie: bool) -> Build:
    """Mamba-1 and Falcon-Mamba: a mixer and a norm in every layer."""

    def build(sheet: Sheet) -> None:
        fields = sheet.fields
        inner = fields.maybe("intermediate_size", "d_inner") or fields.count("expand", most=64) * sheet.hidden
        rank = fields.maybe("time_step_rank") if isinstance(fields.raw("time_step_rank"), int) else -(-sheet.hidden // 16)
        ends(sheet, tied(fields, tie))
        block = sheet.block(range(fields.layers()))
        block.norms("attn_norm")
        mamba1(block, inner, fields.count("state_size"), rank or -(-sheet.hidden // 16), fields.count("conv_kernel"))

    return build


def mamba_2(sheet: Sheet) -> None:
    """Pure Mamba-2."""
    fields = sheet.fields
    ends(sheet, tied(fields, default=False))
    block = sheet.block(range(fields.layers()))
    block.norms("attn_norm")
    heads, width = fields.count("num_heads"), fields.count("head_dim")
    mamba2(block, heads, width, fields.count("state_size"), fields.count("n_groups"), fields.count("conv_kernel"))


TABLE: dict[str, Build] = {
    "nemotron_h": nemotron_h,
    "falcon_h1": falcon_h1,
    "granitemoehybrid": granite_hybrid,
    "jamba": jamba,
    "mamba": mamba(tie=True),
    "falcon_mamba": mamba(tie=False),
    "mamba2": mamba_2,
}
"""One entry for each family."""
