"""DeepSeek V4: one KV head, grouped low-rank output, compressors, hyper-connections (llama.cpp build 11549 `deepseek4.cpp`)."""

from __future__ import annotations

from fitcheck.sources.families.dense import draft_layers
from fitcheck.sources.families.fields import Fields, Unsettled
from fitcheck.sources.tensors.blocks import ends, experts_of, mixture
from fitcheck.sources.tensors.dense import tied
from fitcheck.sources.tensors.record import Block, Build, Part, Sheet

_TWO = ("attn_norm", "ffn_norm")


def deepseek_v4(sheet: Sheet) -> None:
    """DeepSeek V4: one KV head, grouped low-rank output, compressors, hyper-connections, hash-routed first layers.

    llama.cpp `deepseek4.cpp`; sizes agree with the published listings (facts/checkpoint-sizes.jsonl). The list of ratios goes on with the
    draft layers, of which there may be more than `num_nextn_predict_layers` says. Draft layers use the model's own embedding and head.
    """
    fields, layers = sheet.fields, sheet.fields.layers()
    wanted = draft_layers(fields)
    ratios = fields.sequence("compress_ratios", layers) or []
    drafts = max(wanted, len(ratios) - layers) if wanted else 0
    copies = fields.count("hc_mult")
    hashed = fields.maybe("num_hash_layers", most=layers, least=0) or 0
    ends(sheet, tied(fields, default=False))
    _hyper_head(sheet, copies)
    experts = experts_of(fields)
    main, draft = sheet.block(range(layers)), sheet.block(range(layers, layers + drafts), draft=True)
    for block in (main, draft):
        _v4_attention(block, fields)
        hyper(block, copies)
        mixture(block, experts)
        block.norms(*_TWO)
    for ratio in sorted(set(fields.counts("compress_ratios", layers)) - {0}):
        _compressor(sheet.block(number for number in range(layers) if ratios[number] == ratio), fields, ratio)
    first = sheet.block(range(hashed))
    first.add("ffn_gate_tid2eid", Part.ROUTER, fields.count("vocab_size", most=1 << 28), fields.count("num_experts_per_tok"), wide=True)
    for block in (sheet.block(range(hashed, layers)), draft):
        block.add("exp_probs_b", Part.ROUTER, experts.count, suffix=".bias", wide=True)
    if drafts:
        _v4_drafter(draft, copies)


def _v4_attention(block: Block, fields: Fields) -> None:
    heads, width, hidden = fields.count("num_attention_heads"), fields.count("head_dim"), block.hidden
    rank, groups, low = fields.count("q_lora_rank"), fields.count("o_groups"), fields.count("o_lora_rank")
    block.linear("attn_q_a", Part.ATTENTION, rank, hidden, module="attn.wq_a")
    block.linear("attn_q_b", Part.ATTENTION, heads * width, rank, module="attn.wq_b")
    block.linear("attn_kv", Part.ATTENTION, width, hidden, module="attn.wkv")
    block.linear("attn_output_a", Part.ATTENTION, low, heads * width // groups, each=groups, module="attn.wo_a")
    block.linear("attn_output_b", Part.ATTENTION, hidden, groups * low, module="attn.wo_b")
    block.norms("attn_q_a_norm", width=rank)
    block.norms("attn_kv_a_norm", width=width)
    block.add("attn_sinks", Part.ATTENTION, heads, wide=True)


def hyper(block: Block, copies: int) -> None:
    """Hyper-connections: mixes of the residual copies, in 32 bits."""
    mixes = (2 + copies) * copies
    for name in ("hc_attn", "hc_ffn"):
        block.add(f"{name}_fn", Part.FFN, mixes, copies * block.hidden, wide=True)
        block.add(f"{name}_base", Part.FFN, mixes, wide=True)
        block.add(f"{name}_scale", Part.FFN, 3, wide=True)


def _hyper_head(sheet: Sheet, copies: int) -> None:
    sheet.add("output_hc_fn", Part.HEAD, copies, copies * sheet.hidden, module="hc_head_fn")
    sheet.add("output_hc_base", Part.HEAD, copies, module="hc_head_base")
    sheet.add("output_hc_scale", Part.HEAD, 1, module="hc_head_scale")


def _compressor(block: Block, fields: Fields, ratio: int) -> None:
    """A compressor of 4 (overlapping, with an indexer that has one too) or 128 tokens."""
    if ratio not in (4, 128):
        raise Unsettled("compress_ratios has others than 0, 4 and 128")
    twice = 2 if ratio == 4 else 1
    _compress(block, "attn_compressor", twice, fields.count("head_dim"), ratio)
    if ratio == 4:
        heads, width = fields.count("index_n_heads"), fields.count("index_head_dim")
        block.linear("indexer.proj", Part.ATTENTION, heads, block.hidden, module="attn.indexer.weights_proj")
        block.linear("indexer.attn_q_b", Part.ATTENTION, heads * width, fields.count("q_lora_rank"), module="attn.indexer.wq_b")
        _compress(block, "indexer.compressor", twice, width, ratio)


def _compress(block: Block, name: str, twice: int, width: int, ratio: int) -> None:
    block.linear(f"{name}_kv", Part.ATTENTION, twice * width, block.hidden, module="attn.compressor.wkv")
    block.linear(f"{name}_gate", Part.ATTENTION, twice * width, block.hidden, module="attn.compressor.wgate")
    block.add(f"{name}_ape", Part.ATTENTION, ratio, twice * width, wide=True)
    block.norms(f"{name}_norm", width=width)


def _v4_drafter(block: Block, copies: int) -> None:
    """Two projections (of the embedding and of the hidden state), norms, and a head's mixes of its own."""
    block.linear("nextn.e_proj", Part.DRAFTER, block.hidden, block.hidden)
    block.linear("nextn.h_proj", Part.DRAFTER, block.hidden, block.hidden)
    block.norms("nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm")
    block.add("hc_head_fn", Part.DRAFTER, copies, copies * block.hidden, wide=True)
    block.add("hc_head_base", Part.DRAFTER, copies, wide=True)
    block.add("hc_head_scale", Part.DRAFTER, 1, wide=True)


TABLE: dict[str, Build] = {"deepseek_v4": deepseek_v4}
"""One entry for each family."""
