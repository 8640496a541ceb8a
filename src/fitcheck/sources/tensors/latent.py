"""Families with latent attention: DeepSeek V2 to V3.2, Kimi K2, GLM-4.7-Flash, GLM-5; and GLM-4.5, whose draft layers are alike.

transformers 5.24.0 `modeling_deepseek_v3.py`, `modeling_glm_moe_dsa.py`; llama.cpp build 11549 `deepseek2.cpp`, `deepseek32.cpp`,
`glm-dsa.cpp`.
"""

from __future__ import annotations

from fitcheck.sources.families.dense import draft_layers
from fitcheck.sources.families.fields import Fields, Unsettled
from fitcheck.sources.families.latent import full_indexers
from fitcheck.sources.tensors.blocks import dense_layers, drafter, ends, experts_of, mixture, switch
from fitcheck.sources.tensors.dense import Style, layer, tied
from fitcheck.sources.tensors.experts import networks
from fitcheck.sources.tensors.record import Block, Build, Part, Sheet

_TWO = ("attn_norm", "ffn_norm")


def latent_attention(block: Block, fields: Fields) -> None:
    """MLA: `kv_b_proj` in the two parts that llama.cpp keeps (keys transposed, so that their rows are as long as a head's nope width)."""
    heads, hidden = fields.count("num_attention_heads"), block.hidden
    q_rank, kv_rank = fields.maybe("q_lora_rank", least=0), fields.count("kv_lora_rank")
    rope, nope = fields.count("qk_rope_head_dim", least=0), fields.count("qk_nope_head_dim")
    value = fields.count("v_head_dim")
    if q_rank:
        block.linear("attn_q_a", Part.ATTENTION, q_rank, hidden)
        block.linear("attn_q_b", Part.ATTENTION, heads * (nope + rope), q_rank)
        block.norms("attn_q_a_norm", width=q_rank)
    else:
        block.linear("attn_q", Part.ATTENTION, heads * (nope + rope), hidden)
    block.linear("attn_kv_a_mqa", Part.ATTENTION, kv_rank + rope, hidden)
    block.norms("attn_kv_a_norm", width=kv_rank)
    block.linear("attn_k_b", Part.ATTENTION, kv_rank, nope, each=heads)
    block.linear("attn_v_b", Part.ATTENTION, value, kv_rank, each=heads)
    block.linear("attn_output", Part.ATTENTION, hidden, heads * value)


def index(block: Block, fields: Fields) -> None:
    """A DSA indexer: queries from the latent, one key, a weight for each head, a layer norm."""
    width, heads = fields.count("index_head_dim"), fields.count("index_n_heads")
    block.linear("indexer.attn_q_b", Part.ATTENTION, heads * width, fields.count("q_lora_rank"))
    block.linear("indexer.attn_k", Part.ATTENTION, width, block.hidden)
    block.linear("indexer.proj", Part.ATTENTION, heads, block.hidden)
    block.norms("indexer.k_norm", width=width, bias=True)


def mla(*, correction: bool = True, sparse: bool = False, own_ends: bool = True) -> Build:
    """MLA with experts; `sparse` adds an indexer to the layers that own one. Draft layers have `own_ends`, but not in GLM-5."""

    def build(sheet: Sheet) -> None:
        fields, layers = sheet.fields, sheet.fields.layers()
        if fields.raw("use_mla") is False:
            raise Unsettled("use_mla is false")
        drafts = draft_layers(fields)
        experts = experts_of(fields, correction=correction and fields.raw("topk_method") in (None, "noaux_tc"))
        ends(sheet, tied(fields, default=False))
        for block in (sheet.block(range(layers)), sheet.block(range(layers, layers + drafts), draft=True)):
            latent_attention(block, fields)
            block.norms(*_TWO)
        networks(sheet, layers, dense_layers(fields, layers), experts)
        block = sheet.block(range(layers, layers + drafts), draft=True)
        if drafts:
            mixture(block, experts)
            drafter(block, own_ends=own_ends)
        if sparse:
            owners = full_indexers(fields, layers)
            index(sheet.block(number for number in range(layers) if owners[number]), fields)
            index(block, fields)

    return build


def glm4_moe(sheet: Sheet) -> None:
    """GLM-4.5: plain attention with biases, norms of queries and keys by `use_qk_norm` (off); draft layers with their own ends."""
    fields, layers = sheet.fields, sheet.fields.layers()
    norm = "head" if switch(fields, "use_qk_norm", default=False) else ""
    style, experts = Style(bias="qkv", bias_field="attention_bias", qk_norm=norm), experts_of(fields, correction=True)
    drafts = draft_layers(fields)
    ends(sheet, tied(fields, default=False))
    layer(sheet.block(range(layers)), fields, style)
    networks(sheet, layers, dense_layers(fields, layers), experts)
    block = sheet.block(range(layers, layers + drafts), draft=True)
    if drafts:
        layer(block, fields, style)
        mixture(block, experts)
        drafter(block, own_ends=True)


TABLE: dict[str, Build] = {
    **dict.fromkeys(["deepseek_v3", "kimi_k2", "glm4_moe_lite"], mla()),
    **dict.fromkeys(["glm4_moe", "glm4v_moe"], glm4_moe),
    "deepseek_v32": mla(sparse=True),
    "glm_moe_dsa": mla(sparse=True, own_ends=False),
    "deepseek_v2": mla(correction=False),
}
"""One entry for each family."""
