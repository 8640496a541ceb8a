"""Families whose layers are all alike: attention and a dense feed-forward network.

Biases, norms and ties are those of the classes of transformers 5.24.0 (`models/*/modeling_*.py`, `configuration_*.py`); for families that
only have remote code, of llama.cpp build 11549 (`src/models/*.cpp`, `conversion/*.py`).
"""

from __future__ import annotations

from fitcheck.frozen import frozen
from fitcheck.sources.families.fields import Fields, Unsettled
from fitcheck.sources.families.groups import kv_heads
from fitcheck.sources.tensors.blocks import Shape, attention, drafter, ends, feed_forward, shape_of, switch
from fitcheck.sources.tensors.record import Block, Build, Part, Sheet

_TWO = ("attn_norm", "ffn_norm")
_FOUR = ("attn_norm", "attn_post_norm", "ffn_norm", "ffn_post_norm")
_POST = ("attn_post_norm", "ffn_post_norm")


@frozen
class Style:
    """How a family's layers differ from Llama's.

    `bias` names the projections with one: `qkv`, `all`, or nothing; `bias_field` is the switch of the config that decides it instead.
    `qk_norm` is per `head` or over `all` heads. `tied` and `mlp_bias` are the class's defaults.
    """

    tied: bool = False
    bias: str = ""
    bias_field: str = ""
    mlp_bias: bool = False
    qk_norm: str = ""
    norms: tuple[str, ...] = _TWO
    norm_bias: bool = False
    last_norm: bool = True
    gated: bool = True
    fused_qkv: bool = False
    fused_ffn: bool = False
    head_bias: bool = False
    ffn_divisor: int = 1
    own_ends: bool = False


def tied(fields: Fields, default: bool) -> bool:
    """Whether the head is the embedding table, by the config or else by the class."""
    for name in ("tie_word_embeddings", "tie_embedding", "weight_tying"):
        if fields.raw(name) is not None:
            return switch(fields, name, default)
    return default


def width_of(fields: Fields) -> int:
    """Width of the dense network; GPT-2's and GPT-J's is four times the hidden size where `n_inner` is null."""
    found = fields.maybe("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim")
    return found or 4 * fields.count("n_embd", "hidden_size")


def layer(block: Block, fields: Fields, style: Style, shape: Shape | None = None) -> None:
    """One layer of that style, without its feed-forward network."""
    asked = not style.bias_field or switch(fields, style.bias_field, default=False)
    norm = style.qk_norm if switch(fields, "use_qk_norm", default=True) else ""
    qkv = asked and bool(style.bias)
    attention(block, shape or shape_of(fields), qkv_bias=qkv, out_bias=qkv and style.bias == "all", norm=norm, fused=style.fused_qkv)
    block.norms(*style.norms, bias=style.norm_bias)


def plain(style: Style) -> Build:
    """All layers alike, and draft layers of the same kind where the config has some (MiMo)."""

    def build(sheet: Sheet) -> None:
        fields = sheet.fields
        layers, draft = fields.layers(), fields.maybe("num_nextn_predict_layers", most=64, least=0) or 0
        ends(sheet, tied(fields, style.tied), norm=style.last_norm, bias=style.norm_bias, head_bias=style.head_bias)
        bias = switch(fields, "mlp_bias", style.mlp_bias)
        for block in (sheet.block(range(layers)), sheet.block(range(layers, layers + draft), draft=True)):
            layer(block, fields, style)
            width = width_of(fields) // style.ffn_divisor
            feed_forward(block, width, gated=style.gated, bias=bias, fused=style.fused_ffn)
            if block.draft and block.layers:
                drafter(block, own_ends=style.own_ends)

    return build


def starcoder2(sheet: Sheet) -> None:
    """StarCoder 2: `use_bias` (on) gives every projection a bias."""
    biased = switch(sheet.fields, "use_bias", default=True)
    style = Style(tied=True, bias="all" if biased else "", mlp_bias=biased, norm_bias=True, gated=False)
    plain(style)(sheet)


def seed_oss(sheet: Sheet) -> None:
    """Seed-OSS: queries, keys and values have a bias, the output has one by a switch of its own."""
    bias = "all" if switch(sheet.fields, "attention_out_bias", default=False) else "qkv"
    plain(Style(bias=bias, bias_field="attention_bias"))(sheet)


def cohere(sheet: Sheet) -> None:
    """Command R: one norm without a bias; with `use_qk_norm` queries and keys have norms of heads x width."""
    fields = sheet.fields
    norm = "all" if switch(fields, "use_qk_norm", default=False) else ""
    plain(Style(tied=True, bias="all", bias_field="attention_bias", norms=("attn_norm",), qk_norm=norm))(sheet)


def gpt2(sheet: Sheet) -> None:
    """GPT-2 and StarCoder: learned positions, one matrix for queries, keys and values, biases everywhere."""
    fields, width = sheet.fields, width_of(sheet.fields)
    ends(sheet, tied(fields, default=True), bias=True)
    sheet.add("position_embd", Part.EMBEDDING, fields.count("n_positions", "n_ctx", most=1 << 24), sheet.hidden, module="wpe")
    block = sheet.block(range(fields.layers()))
    attention(block, shape_of(fields), qkv_bias=True, out_bias=True, fused=True)
    block.norms(*_TWO, bias=True)
    feed_forward(block, width, gated=False, bias=True)


def gptj(sheet: Sheet) -> None:
    """GPT-J: attention without biases beside a network with them, one norm, a head with a bias."""
    fields, width = sheet.fields, width_of(sheet.fields)
    ends(sheet, tied(fields, default=False), bias=True, head_bias=True)
    block = sheet.block(range(fields.layers()))
    attention(block, shape_of(fields))
    block.norms("attn_norm", bias=True)
    feed_forward(block, width, gated=False, bias=True)


def falcon(sheet: Sheet) -> None:
    """Falcon: one matrix for queries, keys and values, no gate; one norm a layer, two in the new decoder architecture (40B, 180B)."""
    fields = sheet.fields
    new = fields.flag("new_decoder_architecture")
    shape = shape_of(fields)
    kept = kv_heads(fields, shape.heads) if new or not switch(fields, "multi_query", default=True) else 1
    bias = switch(fields, "bias", default=False)
    ends(sheet, tied(fields, default=True), bias=True)
    block = sheet.block(range(fields.layers()))
    attention(block, shape._replace(kv_heads=fields.count("num_kv_heads") if new else kept), qkv_bias=bias, out_bias=bias, fused=True)
    sequential = not new and not switch(fields, "parallel_attn", default=True)
    block.norms(*(("attn_norm", "attn_norm_2") if new or sequential else ("attn_norm",)), bias=True)
    feed_forward(block, fields.maybe("ffn_hidden_size") or 4 * sheet.hidden, gated=False, bias=bias)


def minicpm3(sheet: Sheet) -> None:
    """MiniCPM3: MLA whose `kv_b_proj` llama.cpp leaves whole; the value width is hidden size over heads where it is absent."""
    fields = sheet.fields
    heads, rope, nope = fields.count("num_attention_heads"), fields.count("qk_rope_head_dim"), fields.count("qk_nope_head_dim")
    value = fields.maybe("v_head_dim") or sheet.hidden // heads
    q_rank, kv_rank = fields.count("q_lora_rank"), fields.count("kv_lora_rank")
    ends(sheet, tied(fields, default=True))
    block = sheet.block(range(fields.layers()))
    block.linear("attn_q_a", Part.ATTENTION, q_rank, sheet.hidden)
    block.linear("attn_q_b", Part.ATTENTION, heads * (nope + rope), q_rank)
    block.linear("attn_kv_a_mqa", Part.ATTENTION, kv_rank + rope, sheet.hidden)
    block.linear("attn_kv_b", Part.ATTENTION, heads * (nope + value), kv_rank)
    block.linear("attn_output", Part.ATTENTION, sheet.hidden, heads * value)
    block.norms(*_TWO)
    block.norms("attn_q_a_norm", width=q_rank)
    block.norms("attn_kv_a_norm", width=kv_rank)
    feed_forward(block, width_of(fields))


def molmo(sheet: Sheet) -> None:
    """Molmo's decoder: Qwen2's with a fused network of half the given width, and a second embedding table of 128 rows."""
    fields = sheet.fields
    if not switch(fields, "weight_tying", default=False):
        sheet.add("token_embd.new", Part.EMBEDDING, 128, sheet.hidden, module="wte")
    bias = "qkv" if switch(fields, "qkv_bias", default=False) else ""
    plain(Style(bias=bias, fused_qkv=True, fused_ffn=True, ffn_divisor=2))(sheet)


def nemotron_nas(sheet: Sheet) -> None:
    """Nemotron NAS (DeciLM): each layer's `block_configs` may drop attention or network, or give them other widths.

    llama.cpp `conversion/deci.py`: the network is 2/3 of `ffn_mult` times the hidden size, rounded up to 256.
    """
    fields, layers = sheet.fields, sheet.fields.layers()
    specs = fields.sequence("block_configs", layers) or []
    shape = shape_of(fields)
    ends(sheet, tied(fields, default=False))
    for number, spec in enumerate(specs[:layers]):
        block, parts = sheet.block([number]), spec if isinstance(spec, dict) else {}
        heads, network = Fields(parts).nested("attention"), Fields(parts).nested("ffn")
        if heads.flag("replace_with_linear") or network.flag("replace_with_linear"):
            raise Unsettled(f"block_configs[{number}] replaces a part with a linear layer")
        if not heads.flag("no_op"):
            attention(block, shape._replace(kv_heads=shape.heads // heads.count("n_heads_in_group", most=shape.heads)))
            block.norms("attn_norm")
        if not network.flag("no_op"):
            factor = network.raw("ffn_mult")
            if not isinstance(factor, int | float) or not 0 < factor < 64:
                raise Unsettled(f"block_configs[{number}].ffn.ffn_mult is missing")
            feed_forward(block, 256 * -(-int(2 * factor * sheet.hidden / 3) // 256))
            block.norms("ffn_norm")


_LLAMA = Style(bias="all", bias_field="attention_bias")
_QWEN2 = Style(bias="qkv")
_QWEN3 = Style(bias="all", bias_field="attention_bias", qk_norm="head")
_OLMO2 = Style(norms=_POST, qk_norm="all")
_GLM4 = Style(bias="qkv", bias_field="attention_bias", norms=_FOUR, fused_ffn=True)

TABLE: dict[str, Build] = {
    **dict.fromkeys(["llama", "granite", "ministral3", "cwm"], plain(_LLAMA)),
    **dict.fromkeys(["mistral", "baichuan"], plain(Style())),
    **dict.fromkeys(["qwen2", "qwen2_vl", "qwen2_5_vl", "qwen2_5_omni", "qwen2_audio"], plain(_QWEN2)),
    **dict.fromkeys(["qwen3", "qwen3_vl", "qwen3_asr"], plain(_QWEN3)),
    **dict.fromkeys(["phi3", "phi3_v", "phi4"], plain(Style(fused_qkv=True, fused_ffn=True))),
    **dict.fromkeys(
        ["phi-msft", "phi"],
        plain(Style(bias="all", mlp_bias=True, norms=("attn_norm",), norm_bias=True, gated=False, fused_qkv=True, head_bias=True)),
    ),
    **dict.fromkeys(["olmo2", "olmo3"], plain(_OLMO2)),
    **dict.fromkeys(["glm4", "glm4v"], plain(_GLM4)),
    **dict.fromkeys(["exaone4", "exaone4_5"], plain(Style(norms=_POST, qk_norm="head"))),
    **dict.fromkeys(["gpt2", "gpt_bigcode"], gpt2),
    "glm": plain(Style(bias="qkv", bias_field="attention_bias", fused_ffn=True)),
    "qwen": plain(Style(bias="qkv", fused_qkv=True, ffn_divisor=2)),
    "minicpm": plain(Style(tied=True)),
    "smollm3": plain(Style(tied=True, bias="all", bias_field="attention_bias")),
    "internlm2": plain(Style(bias="all", bias_field="bias")),
    "arcee": plain(Style(bias="all", bias_field="attention_bias", gated=False)),
    "nemotron": plain(Style(bias="all", bias_field="attention_bias", gated=False, norm_bias=True)),
    "mimo": plain(Style(bias="qkv", bias_field="attention_bias")),
    "orion": plain(Style(norm_bias=True)),
    "stablelm": plain(Style(bias="qkv", bias_field="use_qkv_bias", norm_bias=True)),
    "chatglm": plain(Style(bias="qkv", bias_field="add_qkv_bias", fused_qkv=True, fused_ffn=True)),
    "hunyuan_v1_dense": plain(Style(bias="all", bias_field="attention_bias", qk_norm="head")),
    "olmo": plain(Style(norms=(), last_norm=False, bias="all", bias_field="attention_bias")),
    "cohere2": plain(Style(tied=True, bias="all", bias_field="attention_bias", norms=("attn_norm",))),
    "gemma": plain(Style(tied=True)),
    "gemma2": plain(Style(tied=True, norms=_FOUR)),
    "gemma3": plain(Style(tied=True, norms=_FOUR, qk_norm="head")),
    "starcoder2": starcoder2,
    "seed_oss": seed_oss,
    "cohere": cohere,
    "gptj": gptj,
    "falcon": falcon,
    "minicpm3": minicpm3,
    "molmo": molmo,
    "nemotron-nas": nemotron_nas,
}
"""One entry for each family."""
