"""Families that interleave windowed and full attention, some with other heads in the windowed layers, some sharing caches."""

from __future__ import annotations

from fitcheck.sources.families.dense import Build, draft_layers
from fitcheck.sources.families.fields import MOST_TOKENS, Fields, Layers, Unsettled
from fitcheck.sources.families.groups import CHUNKED, FULL, NOTHING, SLIDING, Heads, by_shape, kv_heads, plain_heads, query_heads
from fitcheck.sources.families.kinds import every, listed, ones, windowed


def _window(fields: Fields) -> int | None:
    return fields.maybe("sliding_window", "sliding_window_size", most=MOST_TOKENS)


def interleaved(period: int | None = None, offset: int = -1, draft: str = FULL) -> Build:
    """Sliding and full layers with the same heads; `period` is the class's rule where the file does not say which layers slide.

    The full layer is the one at `offset` of each period, the last where nothing else is said. Draft layers are of the kind `draft`
    unless `mtp_layer_types` says otherwise.
    """

    def build(fields: Fields) -> Layers:
        layers, heads, window = fields.layers(), plain_heads(fields), _window(fields)
        kinds, wanted = windowed(fields, layers, period, offset), draft_layers(fields)
        drafts = listed(fields, wanted, "mtp_layer_types") or [draft] * wanted
        return Layers(layers, *(by_shape([(kind, heads) for kind in found], window) for found in (kinds, drafts)))

    return build


def muse(fields: Fields) -> Layers:
    """Muse Glimmer and Spark: every fourth layer is full, counted from the last (transformers 5.24.0 `MuseGlimmerTextConfig`)."""
    return interleaved(4, fields.layers() - 1)(fields)


def cohere2_moe(fields: Fields) -> Layers:
    """Command A+: the leading dense layers have a pattern of their own (transformers 5.24.0 `Cohere2MoeConfig`)."""
    layers, heads = fields.layers(), plain_heads(fields)
    kinds = listed(fields, layers)
    if kinds is None:
        dense = fields.maybe("first_k_dense_replace", most=layers, least=0) or 0
        first = fields.maybe("prefix_dense_sliding_window_pattern", most=layers) or 1
        rest = fields.maybe("sliding_window_pattern", most=layers) or 4
        kinds = every(dense, first) + every(layers - dense, rest)
    return Layers(layers, by_shape([(kind, heads) for kind in kinds], _window(fields)))


def step3(fields: Fields) -> Layers:
    """Step 3.5 and 3.7: sliding layers take the heads of `attention_other_setting`, where the file has it.

    transformers 5.24.0 `Step3p5Config`; the KV heads are `num_attention_groups`. `layer_types` also lists the draft layers.
    """
    layers, heads = fields.layers(), plain_heads(fields)
    kinds, other = listed(fields, layers), heads
    if kinds is None:
        raise Unsettled("layer_types is missing")
    if fields.has("attention_other_setting"):
        setting = fields.nested("attention_other_setting")
        width = setting.maybe("head_dim") or heads.k_dim
        groups = setting.maybe("num_attention_groups", "num_key_value_heads") or heads.kv_heads
        other = Heads(groups, width, width)
    shapes = {FULL: heads, SLIDING: other}
    return Layers(
        layers,
        by_shape([(kind, shapes.get(kind, heads)) for kind in kinds], _window(fields)),
        by_shape([(kind, shapes.get(kind, heads)) for kind in _draft_kinds(fields, layers)], _window(fields)),
    )


def _draft_kinds(fields: Fields, layers: int) -> list[str]:
    """The kinds of the draft layers, from `mtp_layer_types` or where `layer_types` goes on to list them; else they are not known."""
    wanted = draft_layers(fields)
    if fields.has("mtp_layer_types"):
        return listed(fields, wanted, "mtp_layer_types") or []
    named = fields.sequence("layer_types") or []
    return (listed(fields, layers + wanted) or [])[layers:] if len(named) >= layers + wanted else []


def mimo_v2(fields: Fields) -> Layers:
    """MiMo-V2: `hybrid_layer_pattern` 1 is sliding; keys and values differ in width, and sliding layers have heads of their own.

    XiaomiMiMo/MiMo-V2-Flash `modeling_mimo_v2_flash.py`; confirmed by a vLLM log (architectures.md, section 1). The config names no draft
    layers; the files have three sliding ones, of which engines draft with the first (vLLM 0.33 `mimo_v2_mtp.py`).
    """
    layers = fields.layers()
    heads = Heads(kv_heads(fields, query_heads(fields)), fields.count("head_dim"), fields.count("v_head_dim", "head_dim"))
    other = Heads(
        fields.count("swa_num_key_value_heads", "num_key_value_heads"),
        fields.count("swa_head_dim", "head_dim"),
        fields.count("swa_v_head_dim", "v_head_dim", "head_dim"),
    )
    kinds = listed(fields, layers) or ones(fields, "hybrid_layer_pattern", layers, SLIDING, FULL)
    groups = by_shape([(kind, other if kind == SLIDING else heads) for kind in kinds], _window(fields))
    return Layers(layers, groups, by_shape([(SLIDING, other)], _window(fields)))


def smallthinker(fields: Fields) -> Layers:
    """SmallThinker: `sliding_window_layout` 1 is sliding (llama.cpp's `conversion/smallthinker.py`)."""
    layers, heads = fields.layers(), plain_heads(fields)
    kinds = ones(fields, "sliding_window_layout", layers, SLIDING, FULL) if fields.has("sliding_window_layout") else [FULL] * layers
    return Layers(layers, by_shape([(kind, heads) for kind in kinds], _window(fields)))


def gemma4(fields: Fields) -> Layers:
    """Gemma 4: global layers have `global_head_dim` and `num_global_key_value_heads`; the last `num_kv_shared_layers` own no cache.

    transformers 5.24.0 `Gemma4TextConfig`. `attention_k_eq_v` shares weights, not caches: engines still keep both (architectures.md,
    section 6). `num_global_key_value_heads` counts where `attention_k_eq_v` is on.
    """
    layers, heads = fields.layers(), plain_heads(fields)
    wide = fields.count("global_head_dim")
    shared = fields.maybe("num_kv_shared_layers", most=layers, least=0) or 0
    few = (fields.maybe("num_global_key_value_heads") if fields.flag("attention_k_eq_v") else None) or heads.kv_heads
    kinds = listed(fields, layers) or every(layers, 6)
    return _shared(fields, heads, Heads(few, wide, wide), [*kinds[:-1], FULL], shared)


def gemma3n(fields: Fields) -> Layers:
    """Gemma 3n: the last `num_kv_shared_layers` (15) read the caches of earlier layers (transformers 5.24.0 `Gemma3nTextConfig`)."""
    layers, heads = fields.layers(), plain_heads(fields)
    shared = fields.count("num_kv_shared_layers", most=layers, least=0)
    return _shared(fields, heads, heads, listed(fields, layers) or every(layers, 5), shared)


def _shared(fields: Fields, heads: Heads, wide: Heads, kinds: list[str], shared: int) -> Layers:
    own = len(kinds) - shared
    shapes = [(kind, wide if kind == FULL else heads) for kind in kinds[:own]] + [(NOTHING, heads)] * shared
    return Layers(len(kinds), by_shape(shapes, _window(fields)))


def llama4(fields: Fields) -> Layers:
    """Llama 4: layers with rope are chunked, those without (`no_rope_layers` 0) are global; by default every fourth is global.

    transformers 5.24.0 `Llama4TextConfig`: `no_rope_layers` 1 is a layer *with* rope; an empty list takes `no_rope_layer_interval` (4).
    """
    layers, heads = fields.layers(), plain_heads(fields)
    chunk = fields.maybe("attention_chunk_size", most=MOST_TOKENS)
    kinds = listed(fields, layers)
    if kinds is None and fields.sequence("no_rope_layers"):
        kinds = ones(fields, "no_rope_layers", layers, CHUNKED, FULL)
    if kinds is None:
        kinds = [FULL if kind == FULL else CHUNKED for kind in every(layers, fields.count("no_rope_layer_interval", most=64))]
    return Layers(layers, by_shape([(kind if chunk else FULL, heads) for kind in kinds], chunk))


TABLE: dict[str, Build] = {
    **dict.fromkeys(["laguna", "afmoe", "ministral"], interleaved()),
    "mellum": interleaved(draft=SLIDING),
    **dict.fromkeys(["gemma2", "vaultgemma", "gpt_oss"], interleaved(2)),
    **dict.fromkeys(["cohere2", "olmo3", "exaone4", "exaone4_5", "exaone_moe"], interleaved(4)),
    **dict.fromkeys(["cwm", "granite_swa", "granitemoe_swa"], interleaved(4, 0)),
    **dict.fromkeys(["muse_glimmer", "muse_spark"], muse),
    **dict.fromkeys(["step3p5", "step3p7"], step3),
    **dict.fromkeys(["mimo_v2", "mimo_v2_flash"], mimo_v2),
    **dict.fromkeys(["gemma4", "gemma4_unified"], gemma4),
    "gemma3": interleaved(6),
    "kolibri1": interleaved(5),
    "cohere2_moe": cohere2_moe,
    "gemma3n": gemma3n,
    "smallthinker": smallthinker,
    "llama4": llama4,
}
"""One entry for each family."""
