"""Layer groups from fields: the shapes that several families share.

Formulas are those of `facts/architectures.md`, read in vLLM 0.33.0 (`v1/kv_cache_interface.py`,
`layers/mamba/mamba_utils.py`) and transformers 5.24.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from fitcheck.catalogue.layers import Attention, Chunked, Indexer, Latent, LayerGroup, Recurrent, Sliding, Stateless
from fitcheck.sources.families.fields import Fields, Unsettled, shown

FULL, SLIDING, CHUNKED, LINEAR, NOTHING = "full", "sliding", "chunked", "linear", "nothing"


class Heads(NamedTuple):
    """What one attention layer keeps per token: KV heads, and the widths of a key and a value."""

    kv_heads: int
    k_dim: int
    v_dim: int


def query_heads(fields: Fields) -> int:
    """Attention heads, in the spellings of GPT-2, Falcon and the others."""
    return fields.count("num_attention_heads", "n_head", "n_heads")


def head_dim(fields: Fields, heads: int) -> int:
    """A head's width: given, the class's constant, or the hidden size over the heads."""
    given = fields.maybe("head_dim", "kv_channels", "attention_head_dim")
    if given is not None:
        return given
    hidden = fields.count("hidden_size", "n_embd", "n_embed", "d_model")
    if hidden % heads:
        raise Unsettled(f"head_dim is missing, and hidden_size {hidden} is no multiple of {heads} heads")
    return hidden // heads


def kv_heads(fields: Fields, heads: int) -> int:
    """KV heads in all spellings; none given is one for each attention head (architectures.md, section 0.4)."""
    if fields.flag("multi_query"):
        return 1
    given = fields.maybe("num_key_value_heads", "multi_query_group_num", "num_attention_groups", "num_kv_heads")
    return heads if given is None else given


def plain_heads(fields: Fields) -> Heads:
    """The heads of a model whose layers are all alike."""
    heads = query_heads(fields)
    width = head_dim(fields, heads)
    return Heads(kv_heads(fields, heads), width, width)


def attention(layers: int, heads: Heads) -> tuple[LayerGroup, ...]:
    """Full attention, or nothing for no layers."""
    if not layers:
        return ()
    return (Attention(kind="attention", layers=layers, kv_heads=heads.kv_heads, k_dim=heads.k_dim, v_dim=heads.v_dim),)


def sliding(layers: int, heads: Heads, window: int) -> tuple[LayerGroup, ...]:
    """Sliding-window attention, or nothing for no layers."""
    if not layers:
        return ()
    return (Sliding(kind="sliding", layers=layers, kv_heads=heads.kv_heads, k_dim=heads.k_dim, v_dim=heads.v_dim, window_tokens=window),)


def chunked(layers: int, heads: Heads, chunk: int) -> tuple[LayerGroup, ...]:
    """Chunked attention, or nothing for no layers."""
    if not layers:
        return ()
    return (Chunked(kind="chunked", layers=layers, kv_heads=heads.kv_heads, k_dim=heads.k_dim, v_dim=heads.v_dim, chunk_tokens=chunk),)


def stateless(layers: int) -> tuple[LayerGroup, ...]:
    """Layers that keep nothing, or nothing for no layers."""
    return (Stateless(kind="none", layers=layers),) if layers > 0 else ()


def by_shape(shapes: Iterable[tuple[str, Heads]], window: int | None) -> tuple[LayerGroup, ...]:
    """Groups of the layers that are alike, full attention first; `window` is that of sliding or chunked layers."""
    found = Counter(shapes)
    if any(kind not in (FULL, SLIDING, CHUNKED, NOTHING) for kind, _ in found):
        raise Unsettled("layer_types has layers that this family does not have")
    groups: list[LayerGroup] = []
    for kind in (FULL, SLIDING, CHUNKED):
        for (named, heads), layers in found.items():
            if named != kind:
                continue
            if kind == FULL:
                groups += attention(layers, heads)
            elif window is None:
                raise Unsettled(f"the window of the {kind} layers is missing")
            else:
                groups += sliding(layers, heads, window) if kind == SLIDING else chunked(layers, heads, window)
    return (*groups, *stateless(sum(layers for (named, _), layers in found.items() if named == NOTHING)))


def latent(fields: Fields, layers: int) -> tuple[LayerGroup, ...]:
    """Latent attention (MLA): `kv_lora_rank` + `qk_rope_head_dim` per token; `num_key_value_heads` and `head_dim` are ignored.

    The expanded widths are those of DeepSeek-V2 (nope + rope for keys, `v_head_dim` for values), which engines without MLA store.
    """
    if not layers:
        return ()
    rope = fields.count("qk_rope_head_dim", least=0)
    nope, value = fields.maybe("qk_nope_head_dim", least=0), fields.maybe("v_head_dim")
    expanded = nope is not None and value is not None and nope + rope > 0
    return (
        Latent(
            kind="latent",
            layers=layers,
            latent_dim=fields.count("kv_lora_rank"),
            rope_dim=rope,
            expanded_heads=query_heads(fields) if expanded else None,
            expanded_k_dim=(nope or 0) + rope if expanded else None,
            expanded_v_dim=value if expanded else None,
        ),
    )


def indexer(fields: Fields, layers: int, pool: int = 1, fp4: bool = False) -> tuple[LayerGroup, ...]:
    """DSA index keys: `index_head_dim` FP8 elements and an FP32 scale for every 128 of them (vLLM, `deepseek_v32_indexer`).

    In MXFP4 (`fp4`) a key is half as many bytes and an E8M0 scale for every 32 elements.
    """
    if not layers:
        return ()
    width = fields.count("index_head_dim")
    scales = 4 * -(-width // 128)
    four_bit = -(-width // 2) + -(-width // 32) if fp4 else None
    return (
        Indexer(kind="indexer", layers=layers, bytes_per_key=width + scales, fp4_bytes_per_key=four_bit, pool_tokens=pool, key_dim=width),
    )


def state_dtype(fields: Fields, *names: str) -> int | None:
    """Bytes of a recurrent state's element where the file names its dtype, None where it leaves that to the engine."""
    sizes = {"float32": 4, "bfloat16": 2, "float16": 2}
    value = fields.raw(*names)
    if value is None or value == "auto":
        return None
    if isinstance(value, str) and value in sizes:
        return sizes[value]
    raise Unsettled(f"{names[0]} is {shown(value)}, not a dtype of a state")


def mamba2(
    layers: int, heads: int, width: int, state: int, groups: int, kernel: int, named: int | None = None, *, chunk: int | None = None
) -> tuple[LayerGroup, ...]:
    """Mamba-2: a convolution tail over heads x width and the groups' B and C, and a state of heads x width x state size.

    vLLM `MambaStateShapeCalculator.mamba2_state_shape`. `group_elements` is what one group adds to a convolution step.
    """
    if not layers:
        return ()
    return (
        Recurrent(
            kind="recurrent",
            layers=layers,
            state_elements=heads * width * state,
            state_dtype_bytes=named or 4,
            conv_elements=(heads * width + 2 * groups * state) * (kernel - 1),
            flavour="mamba2",
            conv_kernel=kernel,
            heads=heads,
            groups=groups or None,
            group_elements=2 * state if groups else None,
            named_dtype_bytes=named,
            chunk_tokens=chunk,
        ),
    )


def mamba1(layers: int, inner: int, state: int, kernel: int) -> tuple[LayerGroup, ...]:
    """Mamba-1: a convolution tail of the inner width and a state of inner width x state size (vLLM `mamba1_state_shape`)."""
    if not layers:
        return ()
    return (
        Recurrent(
            kind="recurrent",
            layers=layers,
            state_elements=inner * state,
            conv_elements=inner * (kernel - 1),
            flavour="mamba1",
            conv_kernel=kernel,
        ),
    )


def gated_delta_net(fields: Fields, layers: int) -> tuple[LayerGroup, ...]:
    """Gated delta net: tail (2 kh kd + vh vd)(k - 1), state vh vd kd (vLLM `gated_delta_net_state_shape`).

    `groups` are the key heads and `group_elements` what one of them adds to a convolution step (query and key).
    """
    if not layers:
        return ()
    keys, values = fields.count("linear_num_key_heads"), fields.count("linear_num_value_heads")
    k_dim, v_dim = fields.count("linear_key_head_dim"), fields.count("linear_value_head_dim")
    kernel, named = fields.count("linear_conv_kernel_dim"), state_dtype(fields, "mamba_ssm_dtype", "mamba_ssm_cache_dtype")
    return (
        Recurrent(
            kind="recurrent",
            layers=layers,
            state_elements=values * v_dim * k_dim,
            state_dtype_bytes=named or 4,
            conv_elements=(2 * keys * k_dim + values * v_dim) * (kernel - 1),
            flavour="gdn",
            conv_kernel=kernel,
            heads=values,
            groups=keys,
            group_elements=2 * k_dim,
            named_dtype_bytes=named,
        ),
    )


def kda(layers: int, heads: int, width: int, kernel: int) -> tuple[LayerGroup, ...]:
    """Kimi delta attention: tails of query, key and value, and an FP32 state of heads x width x width (vLLM `kda_state_shape`)."""
    if not layers:
        return ()
    return (
        Recurrent(
            kind="recurrent",
            layers=layers,
            state_elements=heads * width * width,
            conv_elements=3 * heads * width * (kernel - 1),
            flavour="kda",
            conv_kernel=kernel,
            heads=heads,
        ),
    )


def lightning(layers: int, heads: int, width: int) -> tuple[LayerGroup, ...]:
    """Lightning attention: a state of heads x width x width and no convolution (vLLM `linear_attention_state_shape`)."""
    if not layers:
        return ()
    return (Recurrent(kind="recurrent", layers=layers, state_elements=heads * width * width, flavour="lightning", heads=heads),)
