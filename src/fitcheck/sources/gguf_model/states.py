"""Blocks with a state in place of a cache: which they are, and what they keep.

llama.cpp build 11549, `load_arch_hparams` in `src/models/<architecture>.cpp`; sizes are those of `llama_hparams::n_embd_r` and
`n_embd_s`. The keys were written by `conversion/*.py`, which tell what they meant in the config.
"""

from __future__ import annotations

from collections.abc import Callable

from fitcheck.catalogue.layers import LayerGroup
from fitcheck.sources.families.fields import MOST_LAYERS, Fields, Unsettled
from fitcheck.sources.families.groups import gated_delta_net, kda, lightning, mamba1, mamba2
from fitcheck.sources.families.linear import short_convolutions
from fitcheck.sources.families.statespace import rwkv
from fitcheck.sources.gguf_model.keys import Keys
from fitcheck.sources.gguf_model.shape import Shape

Which = Callable[[Keys, Shape], list[bool]]
"""Whether each of the decoder's layers is recurrent."""
State = Callable[[Keys, Shape, int], tuple[LayerGroup, ...]]
"""What so many recurrent layers keep."""


def all_of_them(_keys: Keys, shape: Shape) -> list[bool]:
    """Every layer (`llm_arch_is_recurrent`; Falcon-H1, which has attention beside it)."""
    return [True] * shape.layers


def without_heads(_keys: Keys, shape: Shape) -> list[bool]:
    """The layers whose `attention.head_count_kv` is 0."""
    return [kept == 0 for kept in shape.kv_heads[: shape.layers]]


def between(interval: int) -> Which:
    """As `attention.recurrent_layers` lists, else all but every `full_attention_interval`th layer."""

    def which(keys: Keys, shape: Shape) -> list[bool]:
        listed = keys.marks("attention.recurrent_layers", shape.blocks)
        if listed is not None:
            return listed[: shape.layers]
        given = keys.maybe("full_attention_interval", most=MOST_LAYERS)
        if given is None:
            keys.rule(f"full_attention_interval = {interval}, llama.cpp's default")
        return [(index + 1) % (given or interval) != 0 for index in range(shape.layers)]

    return which


def _kernel(keys: Keys) -> int:
    return keys.count("ssm.conv_kernel", most=256)


def _inner_heads(keys: Keys) -> tuple[int, int]:
    """Heads of the state and the width of each: `ssm.time_step_rank` is the number of heads in all but Mamba-1."""
    inner, heads = keys.count("ssm.inner_size"), keys.count("ssm.time_step_rank")
    if inner % heads:
        raise Unsettled(f"ssm.inner_size {inner} is no multiple of {heads} heads (ssm.time_step_rank)")
    return heads, inner // heads


def mamba_1(keys: Keys, _shape: Shape, layers: int) -> tuple[LayerGroup, ...]:
    """Mamba-1, without groups."""
    return mamba1(layers, keys.count("ssm.inner_size"), keys.count("ssm.state_size"), _kernel(keys))


def mamba_2(keys: Keys, _shape: Shape, layers: int) -> tuple[LayerGroup, ...]:
    """Mamba-2."""
    heads, width = _inner_heads(keys)
    return mamba2(layers, heads, width, keys.count("ssm.state_size"), keys.count("ssm.group_count", least=0), _kernel(keys))


def gdn(keys: Keys, _shape: Shape, layers: int) -> tuple[LayerGroup, ...]:
    """Gated delta net (`conversion/qwen.py`): groups are key heads, the state's size is a key's width."""
    heads, width = _inner_heads(keys)
    named = {
        "linear_num_key_heads": keys.count("ssm.group_count"),
        "linear_num_value_heads": heads,
        "linear_key_head_dim": keys.count("ssm.state_size"),
        "linear_value_head_dim": width,
        "linear_conv_kernel_dim": _kernel(keys),
    }
    return gated_delta_net(Fields(named), layers)


def delta(keys: Keys, shape: Shape, layers: int) -> tuple[LayerGroup, ...]:
    """Kimi delta attention: heads are those of the first block."""
    if not shape.heads[0]:
        raise Unsettled("attention.head_count is missing or 0 in the first block")
    return kda(layers, shape.heads[0], keys.count("kda.head_dim"), _kernel(keys))


def flash(_keys: Keys, shape: Shape, layers: int) -> tuple[LayerGroup, ...]:
    """Lightning attention, as wide as a key."""
    if shape.full is None or not shape.full[0]:
        raise Unsettled("attention.head_count is missing or 0 in the first block, so that a head's width is not known")
    return lightning(layers, shape.heads[0], shape.full[0])


def convolutions(keys: Keys, shape: Shape, layers: int) -> tuple[LayerGroup, ...]:
    """Short convolutions as wide as the model."""
    return short_convolutions(layers, shape.hidden, keys.count("shortconv.l_cache", most=256))


def wkv(keys: Keys, shape: Shape, layers: int) -> tuple[LayerGroup, ...]:
    """RWKV 6 and 7, which shift two tokens (rwkv6.cpp and rwkv7.cpp take no other `token_shift_count`)."""
    if (keys.maybe("token_shift_count", most=16) or 2) != 2:
        raise Unsettled("token_shift_count is not 2")
    return rwkv(Fields({"num_hidden_layers": layers, "hidden_size": shape.hidden, "head_size": keys.count("wkv.head_size")})).groups
