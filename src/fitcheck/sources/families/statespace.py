"""Families with state-space layers, beside or between attention, and RWKV."""

from __future__ import annotations

from fitcheck.catalogue.layers import LayerGroup, Recurrent
from fitcheck.sources.families.dense import Build, draft_layers
from fitcheck.sources.families.fields import MOST_LAYERS, MOST_TOKENS, Fields, Layers, Unsettled
from fitcheck.sources.families.groups import (
    FULL,
    LINEAR,
    NOTHING,
    Heads,
    attention,
    kv_heads,
    mamba1,
    mamba2,
    plain_heads,
    query_heads,
    state_dtype,
    stateless,
)
from fitcheck.sources.families.kinds import every, indices, linear_or_full, listed

SSM_DTYPE = ("mamba_ssm_cache_dtype", "mamba_ssm_dtype")


def nemotron_h(fields: Fields) -> Layers:
    """Nemotron-H: `hybrid_override_pattern` of `M` (Mamba-2), `*` (attention), `-` and `E` (feed-forward).

    nvidia `configuration_nemotron_h.py`; newer files list words (`layers_block_type`). Draft layers follow `mtp_hybrid_override_pattern`,
    repeated for each of them.
    """
    heads = plain_heads(fields)
    kinds = _letters(fields, "hybrid_override_pattern", "layers_block_type")
    if kinds is None:
        raise Unsettled("hybrid_override_pattern and layers_block_type are missing")
    layers = fields.maybe("num_hidden_layers", most=MOST_LAYERS) or len(kinds)
    if len(kinds) != layers:
        raise Unsettled(f"hybrid_override_pattern or layers_block_type has {len(kinds)} entries for {layers} layers")
    state = mamba2(
        kinds.count(LINEAR),
        fields.count("mamba_num_heads"),
        fields.count("mamba_head_dim"),
        fields.count("ssm_state_size"),
        fields.count("n_groups", "mamba_n_groups"),
        fields.count("conv_kernel", most=256),
        state_dtype(fields, *SSM_DTYPE),
        chunk=_chunk(fields),
    )
    draft = _letters(fields, "mtp_hybrid_override_pattern", "mtp_layers_block_type") or []
    groups = (*attention(kinds.count(FULL), heads), *state, *stateless(kinds.count(NOTHING)))
    return Layers(layers, groups, attention(draft.count(FULL) * draft_layers(fields), heads))


def _letters(fields: Fields, letters: str, words: str) -> list[str] | None:
    """Nemotron-H's kinds of layers, as letters or as a list of words, or None without either."""
    pattern = fields.raw(letters)
    if pattern is None:
        named = fields.sequence(words)
        return None if named is None else listed(fields, min(len(named), MOST_LAYERS), words)
    if not isinstance(pattern, str) or len(pattern) > MOST_LAYERS or set(pattern) - set("M*-E|"):
        raise Unsettled(f"{letters} has other letters than M, *, - and E")
    return [{"M": LINEAR, "*": FULL}.get(letter, NOTHING) for letter in pattern.replace("|", "")]


def _mamba_d(fields: Fields, layers: int) -> tuple[LayerGroup, ...]:
    """Mamba-2 in the spelling of Bamba, Granite 4 and Falcon-H1."""
    if not layers:
        return ()
    width = None if fields.raw("mamba_d_head") == "auto" else fields.maybe("mamba_d_head")
    heads = fields.count("mamba_n_heads")
    if width is None:
        inner = fields.maybe("mamba_d_ssm") or fields.count("mamba_expand", most=64) * fields.count("hidden_size")
        width = inner // heads or 1
    state, kernel = fields.count("mamba_d_state"), fields.count("mamba_d_conv", most=256)
    named = state_dtype(fields, *SSM_DTYPE)
    return mamba2(layers, heads, width, state, fields.count("mamba_n_groups"), kernel, named, chunk=_chunk(fields))


def _chunk(fields: Fields) -> int | None:
    """Tokens of a chunk of the prefill kernels, by the two names that vLLM knows (`ModelConfig.get_mamba_chunk_size`)."""
    return fields.maybe("mamba_chunk_size", "chunk_size", most=MOST_TOKENS)


def granite_hybrid(fields: Fields) -> Layers:
    """Granite 4: `layer_types` of `mamba` and `attention`; `mamba_*` fields alone mean nothing (granite-4.0-micro has no such layer)."""
    layers, heads = fields.layers(), plain_heads(fields)
    whole = linear_or_full(fields, layers)
    if whole is None:
        raise Unsettled("layer_types is missing")
    return Layers(layers, (*attention(whole, heads), *_mamba_d(fields, layers - whole)))


def bamba(fields: Fields) -> Layers:
    """Bamba: attention in the layers of `attn_layer_indices`, Mamba-2 in the others (transformers 5.24.0 `BambaConfig`)."""
    layers, heads = fields.layers(), plain_heads(fields)
    whole = len(indices(fields, "attn_layer_indices", layers))
    return Layers(layers, (*attention(whole, heads), *_mamba_d(fields, layers - whole)))


def falcon_h1(fields: Fields) -> Layers:
    """Falcon-H1: every layer has attention and Mamba-2 side by side, so the groups add up to twice the layers."""
    layers, heads = fields.layers(), plain_heads(fields)
    return Layers(layers, (*attention(layers, heads), *_mamba_d(fields, layers)))


def jamba(fields: Fields) -> Layers:
    """Jamba: attention at `attn_layer_offset` of every `attn_layer_period`, Mamba-1 in the others (transformers `JambaConfig`)."""
    layers, heads = fields.layers(), plain_heads(fields)
    period = fields.count("attn_layer_period", most=MOST_LAYERS)
    whole = linear_or_full(fields, layers)
    if whole is None:
        whole = every(layers, period, fields.count("attn_layer_offset", most=period - 1, least=0)).count(FULL)
    inner = fields.count("mamba_expand", most=64) * fields.count("hidden_size")
    state = mamba1(layers - whole, inner, fields.count("mamba_d_state"), fields.count("mamba_d_conv", most=256))
    return Layers(layers, (*attention(whole, heads), *state))


def mamba(fields: Fields) -> Layers:
    """Mamba-1 and Falcon-Mamba: the inner width is `intermediate_size`; Falcon-Mamba's `expand` is wrong (architectures.md, section 10)."""
    layers = fields.layers()
    inner = fields.maybe("intermediate_size", "d_inner") or fields.count("expand", most=64) * fields.count("hidden_size", "d_model")
    return Layers(layers, mamba1(layers, inner, fields.count("state_size"), fields.count("conv_kernel", most=256)))


def mamba_2(fields: Fields) -> Layers:
    """Pure Mamba-2 (transformers 5.24.0 `Mamba2Config`)."""
    layers, kernel = fields.layers(), fields.count("conv_kernel", most=256)
    heads, width = fields.count("num_heads"), fields.count("head_dim")
    chunk = _chunk(fields)
    return Layers(layers, mamba2(layers, heads, width, fields.count("state_size"), fields.count("n_groups"), kernel, chunk=chunk))


def zamba2(fields: Fields) -> Layers:
    """Zamba2: Mamba-2 in every layer, and attention beside it in the `hybrid` ones, with heads twice as wide.

    transformers 5.24.0 `Zamba2Config`; the shared attention blocks share weights, not caches.
    """
    layers, heads = fields.layers(), query_heads(fields)
    named, hidden = fields.sequence("layers_block_type", layers), fields.count("hidden_size")
    if named is None or any(name not in ("mamba", "linear_attention", "hybrid") for name in named):
        raise Unsettled("layers_block_type is no list of mamba and hybrid")
    width, mamba_heads = 2 * hidden // heads or 1, fields.count("n_mamba_heads")
    inner, state = fields.count("mamba_expand", most=64) * hidden, fields.count("mamba_d_state")
    kernel, groups = fields.count("mamba_d_conv", most=256), fields.count("mamba_ngroups")
    states = mamba2(layers, mamba_heads, inner // mamba_heads or 1, state, groups, kernel, chunk=_chunk(fields))
    return Layers(layers, (*attention(named[:layers].count("hybrid"), Heads(kv_heads(fields, heads), width, width)), *states))


def plamo2(fields: Fields) -> Layers:
    """PLaMo 2: attention in the middle of every `mamba_step` layers, Mamba-2 without groups in the others (vLLM `plamo2.py`)."""
    layers, heads = fields.layers(), query_heads(fields)
    width, step = fields.count("hidden_size_per_head"), fields.count("mamba_step", most=MOST_LAYERS, least=2)
    kinds = every(layers, step, step // 2) if layers > step // 2 else every(layers, layers)
    whole = kinds.count(FULL)
    kernel = fields.count("mamba_d_conv", most=256)
    states = mamba2(layers - whole, fields.count("mamba_num_heads"), width, fields.count("mamba_d_state"), 0, kernel)
    return Layers(layers, (*attention(whole, Heads(kv_heads(fields, heads), width, width)), *states))


def rwkv(fields: Fields) -> Layers:
    """RWKV 5, 6 and 7: two token shifts of the hidden size and a state of hidden size x head size, all FP32 (llama.cpp `rwkv`)."""
    layers, hidden = fields.layers(), fields.count("hidden_size")
    size = fields.count("head_size", "head_dim")
    state = Recurrent(
        kind="recurrent",
        layers=layers,
        state_elements=hidden * size,
        conv_elements=2 * hidden,
        conv_dtype_bytes=4,
        flavour="rwkv",
        heads=hidden // size or 1,
    )
    return Layers(layers, (state,))


TABLE: dict[str, Build] = {
    **dict.fromkeys(["rwkv5", "rwkv6", "rwkv7"], rwkv),
    **dict.fromkeys(["mamba", "falcon_mamba"], mamba),
    "nemotron_h": nemotron_h,
    "granitemoehybrid": granite_hybrid,
    "bamba": bamba,
    "falcon_h1": falcon_h1,
    "jamba": jamba,
    "mamba2": mamba_2,
    "zamba2": zamba2,
    "plamo2": plamo2,
}
"""One entry for each family."""
