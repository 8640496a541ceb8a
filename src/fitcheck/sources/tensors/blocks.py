"""What layers are made of: attention, feed-forward networks, routed experts, drafters.

Shapes are those of transformers 5.24.0 (`models/*/modeling_*.py`); the names and the splits of llama.cpp (build 11549, `src/models/*.cpp`,
`load_arch_tensors`).
"""

from __future__ import annotations

from typing import NamedTuple

from fitcheck.frozen import frozen
from fitcheck.sources.families.fields import Fields, Unsettled
from fitcheck.sources.families.groups import head_dim, kv_heads, query_heads
from fitcheck.sources.tensors.record import Block, Part, Sheet


class Shape(NamedTuple):
    """Widths of an attention layer."""

    heads: int
    kv_heads: int
    k_dim: int
    v_dim: int


def shape_of(fields: Fields) -> Shape:
    """The attention of a model whose layers are all alike."""
    heads = query_heads(fields)
    width = head_dim(fields, heads)
    return Shape(heads, kv_heads(fields, heads), width, width)


def vocabulary(fields: Fields) -> int:
    """Rows of the embedding table."""
    return fields.count("vocab_size", "padded_vocab_size", "embedding_size", most=1 << 28)


def ends(sheet: Sheet, tied: bool, *, norm: bool = True, bias: bool = False, head_bias: bool = False) -> None:
    """The embedding table, the last norm, and a head of its own where it is not tied to the embedding."""
    words = vocabulary(sheet.fields)
    sheet.add("token_embd", Part.EMBEDDING, words, sheet.hidden, module="embed_tokens")
    if norm:
        sheet.add("output_norm", Part.NORM, sheet.hidden, module="norm")
        if bias:
            sheet.add("output_norm", Part.NORM, sheet.hidden, module="norm", suffix=".bias")
    if not tied:
        sheet.add("output", Part.HEAD, words, sheet.hidden, module="lm_head")
        if head_bias:
            sheet.add("output", Part.HEAD, words, module="lm_head", suffix=".bias")


def attention(
    block: Block, shape: Shape, *, qkv_bias: bool = False, out_bias: bool = False, norm: str = "", gated: bool = False, fused: bool = False
) -> None:
    """Query, key, value and output projections; `norm` is per `head` or over `all` heads; `gated` doubles the queries (Qwen3-Next)."""
    hidden, (heads, kept, k_dim, v_dim) = block.hidden, shape
    queries, keys, values = heads * k_dim * (2 if gated else 1), kept * k_dim, kept * v_dim
    if fused:
        block.linear("attn_qkv", Part.ATTENTION, queries + keys + values, hidden, bias=qkv_bias)
    else:
        block.linear("attn_q", Part.ATTENTION, queries, hidden, bias=qkv_bias)
        block.linear("attn_k", Part.ATTENTION, keys, hidden, bias=qkv_bias)
        block.linear("attn_v", Part.ATTENTION, values, hidden, bias=qkv_bias)
    block.linear("attn_output", Part.ATTENTION, hidden, heads * v_dim, bias=out_bias)
    if norm:
        block.norms("attn_q_norm", width=heads * k_dim if norm == "all" else k_dim)
        block.norms("attn_k_norm", width=keys if norm == "all" else k_dim)


def feed_forward(block: Block, width: int, *, gated: bool = True, bias: bool = False, fused: bool = False, name: str = "ffn_{}") -> None:
    """A dense network: gate, up and down, or only up and down; `fused` is gate and up in one."""
    hidden = block.hidden
    if gated and not fused:
        block.linear(name.format("gate"), Part.FFN, width, hidden, bias=bias)
    block.linear(name.format("up"), Part.FFN, width * (2 if gated and fused else 1), hidden, bias=bias)
    block.linear(name.format("down"), Part.FFN, hidden, width, bias=bias)


@frozen
class Experts:
    """A mixture of experts; `shared` is the width of all shared experts together."""

    count: int
    width: int
    shared: int = 0
    correction: bool = False
    shared_gate: bool = False
    gated: bool = True
    bias: bool = False
    latent: int = 0
    wide_router: bool = False


def mixture(block: Block, experts: Experts) -> None:
    """Router, routed experts and the shared ones. With `latent`, the routed experts work in a narrower space (Nemotron 3, Kimi K3)."""
    inner = experts.latent or block.hidden
    block.add("ffn_gate_inp", Part.ROUTER, experts.count, block.hidden, wide=experts.wide_router)
    if experts.bias:
        block.add("ffn_gate_inp", Part.ROUTER, experts.count, suffix=".bias")
    if experts.correction:
        block.add("exp_probs_b", Part.ROUTER, experts.count, suffix=".bias", wide=True)
    if experts.gated:
        block.linear("ffn_gate_exps", Part.EXPERTS, experts.width, inner, each=experts.count, bias=experts.bias)
    block.linear("ffn_up_exps", Part.EXPERTS, experts.width, inner, each=experts.count, bias=experts.bias)
    block.linear("ffn_down_exps", Part.EXPERTS, inner, experts.width, each=experts.count, bias=experts.bias)
    if experts.shared:
        feed_forward(block, experts.shared, gated=experts.gated, name="ffn_{}_shexp")
        if experts.shared_gate:
            block.add("ffn_gate_inp_shexp", Part.ROUTER, block.hidden)


def experts_of(fields: Fields, *, correction: bool = False, shared_gate: bool = False, gated: bool = True) -> Experts:
    """The experts that the config names, in the spellings of all families; `Unsettled` where a list gives layers different ones."""
    count = fields.count("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
    width = fields.count("moe_intermediate_size", "expert_intermediate_size", "intermediate_size")
    shared = fields.maybe("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size", least=0)
    number = fields.maybe("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts", least=0)
    if number is not None and (shared is None or number == 0):
        shared = number * width
    return Experts(count, width, shared or 0, correction, shared_gate, gated)


def dense_layers(fields: Fields, layers: int) -> tuple[int, ...]:
    """The layers without experts, as the config says it: a list of kinds, of layers or of flags, or how many come first."""
    named = fields.sequence("mlp_layer_types", layers)
    if named is not None:
        return tuple(index for index in range(layers) if named[index] == "dense")
    if isinstance(fields.raw("moe_layer_freq"), list):
        return tuple(index for index, flag in enumerate(fields.counts("moe_layer_freq", layers)) if not flag)
    first = fields.maybe("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index", "first_dense_layers", most=layers, least=0)
    if first is not None:
        return tuple(range(first))
    alone = fields.sequence("mlp_only_layers") or []
    step = fields.maybe("decoder_sparse_step") or 1
    return tuple(index for index in range(layers) if index in alone or (index + 1) % step)


def drafter(block: Block, *, own_ends: bool, names: tuple[str, ...] = ("nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm")) -> None:
    """What a draft (MTP, NextN) layer has beside its layer: a projection of both inputs, norms, and perhaps an embedding and a head."""
    hidden = block.hidden
    block.linear("nextn.eh_proj", Part.DRAFTER, hidden, 2 * hidden)
    block.norms(*names)
    if own_ends:
        words = vocabulary(block.sheet.fields)
        block.linear("nextn.embed_tokens", Part.DRAFTER, words, hidden)
        block.linear("nextn.shared_head_head", Part.DRAFTER, words, hidden)


def switch(fields: Fields, name: str, default: bool) -> bool:
    """A switch of the config, or what the class fixes where it is absent."""
    value = fields.raw(name)
    if value is not None and not isinstance(value, bool):
        raise Unsettled(f"{name} is neither true nor false")
    return default if value is None else value
