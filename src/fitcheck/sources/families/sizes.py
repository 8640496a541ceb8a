"""Sizes that matter for weights and buffers, none of which an architecture needs to be known."""

from __future__ import annotations

from typing import TypedDict

from fitcheck.sources.families.fields import Fields, Unsettled


class Sizes(TypedDict):
    """Fields of `Architecture` that a config may leave out."""

    hidden_size: int | None
    attention_heads: int | None
    vocabulary: int | None
    feed_forward_size: int | None
    expert_feed_forward_size: int | None
    experts: int | None
    experts_per_token: int | None


def sizes(fields: Fields) -> Sizes:
    """The sizes that the file gives; a list (one entry a layer) counts as its largest entry."""
    experts = _largest(fields, "n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
    expert_size = _largest(fields, "moe_intermediate_size", "expert_intermediate_size", "expert_ffn_hidden_size")
    dense = _largest(fields, "intermediate_size_mlp", "dense_intermediate_size")
    given = _largest(fields, "intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "decoder_ffn_dim")
    if experts and expert_size is None:
        expert_size = given
        given = dense
    return Sizes(
        hidden_size=_largest(fields, "hidden_size", "n_embd", "d_model", "dim"),
        attention_heads=_largest(fields, "num_attention_heads", "n_head", "n_heads", "decoder_attention_heads"),
        vocabulary=_largest(fields, "vocab_size", "padded_vocab_size", "embedding_size"),
        feed_forward_size=dense or given,
        expert_feed_forward_size=expert_size if experts else None,
        experts=experts,
        experts_per_token=_largest(
            fields, "num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "top_k_experts", "experts_per_token"
        )
        if experts
        else None,
    )


def _largest(fields: Fields, *names: str) -> int | None:
    for name in names:
        value = fields.raw(name)
        try:
            if isinstance(value, list):
                entries = fields.sequence(name) or []
                return max(entries) if entries and all(type(entry) is int and 0 < entry < 1 << 28 for entry in entries) else None
            if value is not None and value != 0:
                return fields.count(name, most=1 << 28)
        except Unsettled:
            return None
    return None
