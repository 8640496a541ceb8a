"""What a tensor is of, by its name alone.

One table of expressions in order: the first that matches decides. Names of Hugging Face checkpoints as transformers 5.24.0 and vLLM 0.33.0
(`model_executor/models/*.py`, `load_weights`) read them, of DeepSeek's own layout (`inference/model.py`), of Mistral's consolidated files,
of MLX (`switch_mlp`), and of GGUF (`gguf` 0.19.0 `constants.py`, `TENSOR_NAMES`). N-gram tables: `engram.embed` (DeepSeek V4.1; GGUF
`engram_embd`), `ple_embedding.ngram_embedding` (Qwen3.8; GGUF `per_layer_token_embd`), `ngram_embeddings` (LongCat); the projections around
them are weights. Gemma's per-layer embeddings (`embed_tokens_per_layer`; GGUF `per_layer_token_embd` too) are tables of their own, which
are read by token as the input embedding is. Shared experts are weights: all tokens read them.
Towers for images and sound, and what speaks (`talker`, `code2wav`), count as the vision tower: text alone loads without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from fitcheck.sources.tensors.record import Part

_TOWERS = (
    "visual|vision|vision_tower|vision_model|vision_encoder|vision_backbone|vision_adapter|vision_language_adapter|vision_projection|vit|vpm|"
    "visual_projection|visual_tokenizer|vision_embedder|embed_vision|patch_merger|pre_mm_projector_norm|multi_modal_projector|"
    "multimodal_projector|mm_projector|img_projector|image_newline|image_start|image_end|view_seperator|resampler|aligner|sam_model|"
    "audio|audio_tower|audio_model|audio_encoder|audio_projection|audio_projection_layer|embed_audio|apm|speech|speech_encoder|sound_encoder|"
    r"whisper_encoder|talker|code\dwav|token\dwav|tts|connector|modality_projection|perceiver"
)
_DRAFTERS = (
    r"mtp|mtp_layers?|mtp_block|mtp_head|mtp_module|nextn|nextn_layers|eagle\d?|medusa|medusa_head|draft|draft_model|drafter|dflash|dspark"
)

TABLE: tuple[tuple[str, Part], ...] = (
    (r"^(?:v|a|mm|resampler)\.", Part.VISION),
    (rf"^(?:model\.|thinker\.)*(?:{_TOWERS})(?:\.|$|_\d)", Part.VISION),
    (r"^(?:mlp\d|projector)\.", Part.VISION),
    (r"\.vis_(?:attn_qkv|attn_output|gate|down|up)\.|\.vision_expert_", Part.VISION),
    (rf"(?:^|\.)(?:{_DRAFTERS})\.", Part.DRAFTER),
    (r"(?:^|\.)engram\.embed\.|\.engram_embd\.|(?:^|[._])ngram_embeddings?(?:\.|$)", Part.NGRAM),
    (r"shared_experts?_gate|ffn_gate_inp|(?:^|[._])router(?:[._]|$)|e_score_correction_bias|exp_probs_b|expert_bias|tid\deid", Part.ROUTER),
    (r"(?:mlp|ffn|feed_forward|block_sparse_moe|moe|mixer|moe_block)\.gate\.(?:weight|bias|scale|wg|q\w+|e_score)", Part.ROUTER),
    (r"shared_experts?\.|shared_mlp\.|shared_moe|_shexp\.|shared_head_mlp", Part.FFN),
    (r"(?:^|\.)experts(?:\.|$)|\.switch_mlp\.|block_sparse_moe\.(?:input|output)_linear|_ch?exps\.|_exps\.", Part.EXPERTS),
    (r"\.ffn_(?:gate|up|down)\.\d+\.", Part.EXPERTS),
    (r"(?:^|\.)(?:[a-z_]*norm[a-z_0-9]*|ln_\w+|ln\d?|norm\d*)(?:\.(?:weight|bias|scale|0+))*$", Part.NORM),
    (r"norm\.weight$|_norm\.|res_score|layer_output_scale", Part.NORM),
    (r"embed_tokens_per_layer|^per_layer_token_embd\.", Part.LAYER_EMBEDDING),
    (r"embed_tokens|(?:^|\.)(?:wte|wpe|tok_embeddings|word_embeddings|embed|embeddings?|embed_in|embed_positions)(?:\.|$)", Part.EMBEDDING),
    (r"^(?:token_embd|position_embd|token_types|per_layer_model_proj)\.|per_layer_model_projection", Part.EMBEDDING),
    (r"(?:^|\.)(?:lm_head|embed_out|hc_head\w*|output_hc_\w+)(?:\.|$)|^(?:model\.)?(?:output|head)\.", Part.HEAD),
    (r"^rope_f", Part.ATTENTION),
    (r"hc_(?:attn|ffn)|latent_proj|ffn_latent_|"
     r"\.(?:q_a_proj|kv_a_proj\w*|attn_q_a|attn_kv_a_mqa|attn_kv|attn_compressor\w*|indexer(?!\.q_proj))\.|"
     r"attn\.(?:wq_a|wkv(?:_a\w*)?|compressor)\.|(?:^|\.)attention\.(?:wq_a|wkv_a\w*)\.", Part.LATENT),
    (r"(?:self_attn|cross_attn|attn|attention|self_attention|linear_attn|delta_net|mamba|ssm|mixer|temporal_block|time_mix|rwkv|conv|shortconv|"
     r"indexer|compressor)(?:\.|_|\d|$)|\.(?:wq|wk|wv|wo|q_proj|k_proj|v_proj|o_proj)\.", Part.ATTENTION),
    (r"mlp|ffn|feed_forward|block_sparse_moe|(?:^|\.)moe|residual_mlp|\.(?:gate|up|down)_proj\.|altup|laurel|per_layer|hc_|\.w\d\.|"
     r"inp_gate|\.proj\.|channel_mix|layer_scalar|engram|ple", Part.FFN),
)  # fmt: skip
"""Expression, and the part of the tensors it matches. Names are matched with every digit as 0."""

_COMPILED = tuple((re.compile(expression), part) for expression, part in TABLE)
_BEFORE_LAYERS = 5
"""The first entries of the table, of towers and drafters, decide before the layer's number does."""
_MOST_NAME = 200
"""Longer names are of no part: no published one comes near it, and expressions are slow on what is made to slow them."""
_DRAFT_WORDS = (".nextn.", ".eh_proj", ".enorm", ".hnorm", ".shared_head", ".e_proj", ".h_proj")
_DRAFT_MARK = re.compile(r"(?:^|\.)(?:layers|blk)\.(\d{1,5})\.(?:nextn\.|eh_proj|enorm|hnorm|shared_head|e_proj|h_proj)")


def draft_layers(names: Iterable[str]) -> frozenset[int]:
    """Layers that only draft layers are made as: with projections of the token and the hidden state (`eh_proj`, `enorm`, `shared_head`)."""
    listed = list(names)
    text = "\n".join(listed)
    if not any(word in text for word in _DRAFT_WORDS):  # few models have any, and half a million names are many to search
        return frozenset()
    return frozenset(int(found[1]) for name in listed if (found := _DRAFT_MARK.search(name)))


class _Pattern(NamedTuple):
    """The part of names that differ in digits only, and where the layer's number stands where that decides too."""

    part: Part | None
    number: slice | None = None


_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_LAYERS = re.compile(r"(?:^|\.)(?:layers|h|blk)\.(0+)(?=\.|$)")
_MOST_PATTERNS = 10_000


def parts_of(
    names: Iterable[str], layers: int | None = None, drafts: frozenset[int] = frozenset(), architecture: str = ""
) -> list[Part | None]:
    """The part that each tensor is of, or None where its name says nothing.

    `layers` is how many the decoder has: layers from that number on are draft layers, as are `drafts`. `architecture` is GGUF's, for the
    one name that two of them share. Of a model's names, up to half a million, some hundred differ in more than digits, and only these are
    matched; past any number of them that a model has, all else is of no part.
    """
    listed = list(names)
    known: dict[bytes, _Pattern] = {}
    later: dict[str, bool] = {}
    numbered = layers is not None or bool(drafts)
    found: list[Part | None] = []
    for name, plain in zip(listed, _without_digits(listed), strict=True):
        pattern = known.get(plain)
        if pattern is None:
            if len(known) >= _MOST_PATTERNS or len(name) > _MOST_NAME:
                found.append(None)
                continue
            known[plain] = pattern = _pattern(plain.decode("utf-8", "surrogatepass"), architecture)
        part, place = pattern
        if place is not None and numbered:
            digits = name[place]
            if digits not in later:
                number = int(digits)
                later[digits] = number in drafts or (layers is not None and number >= layers)
            part = Part.DRAFTER if later[digits] else part
        found.append(part)
    return found


def _without_digits(names: list[str]) -> list[bytes]:
    """Names with every digit as 0; of the same length, a character of them being one of the name's."""
    text = "\n".join(names).encode("utf-8", "surrogatepass").translate(_ZEROS).split(b"\n")
    if len(text) == len(names):
        return text
    return [name.encode("utf-8", "surrogatepass").translate(_ZEROS) for name in names]


def _pattern(plain: str, architecture: str) -> _Pattern:
    if plain.startswith("per_layer_token_embd.") and architecture.startswith("qwen"):
        return _Pattern(Part.NGRAM)
    early = next((part for expression, part in _COMPILED[:_BEFORE_LAYERS] if expression.search(plain)), None)
    if early is not None:
        return _Pattern(early)
    late = next((part for expression, part in _COMPILED[_BEFORE_LAYERS:] if expression.search(plain)), None)
    layer = _LAYERS.search(plain)
    return _Pattern(late, slice(*layer.span(1)) if layer else None)
