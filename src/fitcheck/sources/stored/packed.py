"""How each tensor of a safetensors checkpoint stores parameters: how many, and as what.

What lies beside a tensor tells it: `qweight` with `qzeros` and `scales` (AutoAWQ `modules/linear/gemm.py`, GPTQ), `weight_packed`
(compressed-tensors 0.15 `compressors/`), `weight` in U8 with `weight_scale` and `weight_scale_2` (ModelOpt NVFP4), `_blocks` with
`_scales` (gpt-oss), I8 or U8 with an F8_E8M0 `scale` for 16 of them (DeepSeek V4 FP4: two values to a byte, 32 to a scale), `absmax` and
`quant_map` (bitsandbytes), `trellis` with `suh` and `svh` (exllamav3 `modules/quant/exl3.py`), U32 with `scales` and `biases` (MLX
`mlx/nn/layers/quantized.py`). Scales, zero points and permutations are never parameters.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from fitcheck.sources.store import StoredTensor


class Stored(NamedTuple):
    """What a tensor holds: `kind` is what its values are stored as (`scales` where it belongs to another), `parameters` None if unknown."""

    kind: str
    parameters: int | None


class Hints(NamedTuple):
    """What the config's quantisation says of packed tensors: bits and group of all, and of modules that differ (MLX)."""

    bits: int | None = None
    group: int | None = None
    modules: dict[str, Any] | None = None


_AUXILIARY = frozenset(
    ["scales", "qzeros", "g_idx", "weight_scale", "weight_scale_inv", "weight_global_scale", "input_scale", "input_global_scale",
     "input_scale_inv", "weight_shape", "weight_zero_point", "input_zero_point", "weight_g_idx", "output_scale", "activation_scale",
     "absmax", "nested_absmax", "quant_map", "nested_quant_map", "SCB", "weight_format", "suh", "svh", "su", "sv", "mcg", "mul1", "q_scale",
     "q_scale_max", "q_groups", "q_group_map", "q_perm", "q_invperm", "k_scale", "v_scale", "kv_scale", "k_zero_point", "v_zero_point",
     "inv_freq", "num_batches_tracked", *(f"weight_scale_{number}" for number in range(1, 4))]
)  # fmt: skip
"""Last words of names that are never parameters."""
_AUXILIARY_ENDINGS = ("_scale_inv", "_weight_scale", "_weight_scale_2", "_input_scale")
PLAIN = {"F64": ("f64", 8), "F32": ("f32", 4), "F16": ("f16", 2), "BF16": ("bf16", 2)}
"""Kind and bytes of an element of the dtypes that are never packed."""
_FP8 = ("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ")
SCALES = "scales"
_SCALES = Stored(SCALES, 0)


def stored_as(tensor: StoredTensor, beside: dict[str, StoredTensor], hints: Hints) -> Stored:
    """What a tensor of a safetensors checkpoint holds, given all tensors beside it by name."""
    name, dtype = tensor.name, tensor.dtype
    stem, _, last = name.rpartition(".")
    if last in _AUXILIARY:
        return _SCALES
    if last != "weight":  # that word says nothing, and most have it
        if name.endswith(_AUXILIARY_ENDINGS) or ".quant_state." in name or _belongs(name, dtype, beside):
            return _SCALES
        rule = _RULES.get(last) or next((found for ending, found in _ENDINGS if name.endswith(ending)), None)
        if rule is not None:
            return rule(tensor, stem, beside, hints)
    return _by_dtype(tensor, stem, beside, hints)


def _by_dtype(tensor: StoredTensor, stem: str, beside: dict[str, StoredTensor], hints: Hints) -> Stored:
    """What a tensor holds that is not packed by its name: plain values, FP8 with its scales, or whole numbers."""
    name, dtype, elements = tensor.name, tensor.dtype, prod(tensor.shape)
    if dtype in _FP8:
        scale = _first(beside, name, stem, "weight_scale", "weight_scale_inv", "scale")
        shared = scale is not None and scale.dtype in ("U8", "F8_E8M0") and _group(tensor, scale) == 32
        return Stored("mxfp8" if shared else "fp8", elements)
    if dtype in ("U8", "I8", "U32", "I32"):
        return _integers(tensor, stem, beside, hints)
    if dtype == "F4":
        return Stored("nvfp4" if f"{stem}.weight_scale_2" in beside else "mxfp4", elements)
    return Stored(PLAIN[dtype][0] if dtype in PLAIN else dtype.lower(), elements)


def _belongs(name: str, dtype: str, beside: dict[str, StoredTensor]) -> bool:
    """Whether it is the scale or bias of a packed tensor, by names that plain tensors have too (`scale`, `biases`, `_scales`)."""
    stem, _, last = name.rpartition(".")
    if last == "scale" or name.endswith(".weight.scale"):
        other = beside.get(f"{stem}.weight") or beside.get(stem)
        return other is not None and (dtype == "F8_E8M0" or other.dtype in (*_FP8, "I8", "U8"))
    if last == "biases":
        return f"{stem}.scales" in beside
    if name.endswith("_scales"):
        return f"{name[: -len('scales')]}blocks" in beside
    return False


def _first(beside: dict[str, StoredTensor], name: str, stem: str, *endings: str) -> StoredTensor | None:
    for ending in endings:
        found = beside.get(f"{stem}.{ending}")
        if found is not None:
            return found
    return beside.get(f"{name}_scale_inv") or beside.get(f"{name}_scale")


def _group(tensor: StoredTensor, scale: StoredTensor | None) -> int | None:
    """How many stored elements of a row share a scale, where scales are by row and group."""
    if scale is None or len(scale.shape) != len(tensor.shape) or len(tensor.shape) < 2 or scale.shape[:-1] != tensor.shape[:-1]:
        return None
    return tensor.shape[-1] // scale.shape[-1] if scale.shape[-1] and tensor.shape[-1] % scale.shape[-1] == 0 else None


def _integers(tensor: StoredTensor, stem: str, beside: dict[str, StoredTensor], hints: Hints) -> Stored:
    """A tensor of whole numbers that is not named as packed: FP4 in bytes, MLX words, bitsandbytes, or plain INT8."""
    name, elements = tensor.name, prod(tensor.shape)
    if f"{name}.absmax" in beside:
        return Stored("nf4" if f"{name}.quant_state.bitsandbytes__nf4" in beside else "fp4", 2 * elements)
    if tensor.dtype == "U32" and f"{stem}.scales" in beside:
        return _mlx(tensor, stem, beside[f"{stem}.scales"], hints)
    scale = _first(beside, name, stem, "weight_scale", "scale", "SCB")
    if tensor.dtype in ("U8", "I8") and scale is not None:
        group = _group(tensor, scale)
        if f"{stem}.weight_scale_2" in beside or (tensor.dtype == "U8" and scale.dtype == "F8_E4M3" and group == 8):
            return Stored("nvfp4", 2 * elements)
        if group == 16 and scale.dtype in ("F8_E8M0", "U8"):
            return Stored("mxfp4", 2 * elements)
        return Stored("int8", elements) if tensor.dtype == "I8" else Stored("u8", None)
    return Stored(tensor.dtype.lower(), elements)


def _mlx(tensor: StoredTensor, stem: str, scales: StoredTensor, hints: Hints) -> Stored:
    own = (hints.modules or {}).get(stem)
    bits, group = (own.get("bits"), own.get("group_size")) if isinstance(own, dict) else (hints.bits, hints.group)
    groups = scales.shape[-1] if scales.shape else 0
    if type(group) is int and group > 0 and groups and 32 * tensor.shape[-1] % (groups * group) == 0:
        bits = 32 * tensor.shape[-1] // (groups * group)
    return Stored("mlx", 32 * prod(tensor.shape) // bits if type(bits) is int and 1 <= bits <= 8 else None)


def _qweight(tensor: StoredTensor, stem: str, beside: dict[str, StoredTensor], hints: Hints) -> Stored:
    """AWQ packs outputs, GPTQ inputs: which, and how many bits, the config or the shapes beside it tell."""
    kind = "gptq" if f"{stem}.g_idx" in beside else "int"
    bits = hints.bits
    zeros, scales, order = (beside.get(f"{stem}.{name}") for name in ("qzeros", "scales", "g_idx"))
    if scales is not None and len(scales.shape) == 2 and len(tensor.shape) == 2:
        kind = "gptq" if order is not None or scales.shape[1] == tensor.shape[1] else "awq"
        if order is not None and order.shape and order.shape[0]:
            bits = 32 * tensor.shape[0] // order.shape[0]
        elif kind == "awq" and scales.shape[1]:
            bits = 32 * tensor.shape[1] // scales.shape[1]
        elif zeros is not None and len(zeros.shape) == 2 and scales.shape[1]:
            bits = 32 * zeros.shape[1] // scales.shape[1]
    known = type(bits) is int and 1 <= bits <= 8
    return Stored(kind, 32 * prod(tensor.shape) // bits if known and bits else None)


def _weight_packed(tensor: StoredTensor, stem: str, beside: dict[str, StoredTensor], hints: Hints) -> Stored:
    """compressed-tensors: bytes of two FP4 values, or words of integers whose bits the config gives, or group and scales do."""
    elements = prod(tensor.shape)
    if tensor.dtype == "U8":
        scale = beside.get(f"{stem}.weight_scale")
        return Stored("mxfp4" if _group(tensor, scale) == 16 else "nvfp4", 2 * elements)
    bits, scale = hints.bits, beside.get(f"{stem}.weight_scale")
    if bits is None and hints.group and scale is not None and scale.shape and scale.shape[-1]:
        bits = 32 * tensor.shape[-1] // (scale.shape[-1] * hints.group)
    return Stored(f"int{bits}" if bits else "int", 32 * elements // bits if bits and 1 <= bits <= 8 else None)


def _trellis(tensor: StoredTensor, _stem: str, _beside: dict[str, StoredTensor], _hints: Hints) -> Stored:
    """Tiles of 16 x 16 weights, each `16 x bits` words of 16 bits."""
    return Stored("exl3", 256 * tensor.shape[0] * tensor.shape[1] if len(tensor.shape) == 3 else None)


def _exl2(tensor: StoredTensor, stem: str, beside: dict[str, StoredTensor], _hints: Hints) -> Stored:
    order = beside.get(f"{stem}.q_invperm") or beside.get(f"{stem}.q_perm")
    known = order is not None and len(order.shape) == 1 and len(tensor.shape) == 2
    return Stored("exl2", order.shape[0] * tensor.shape[1] if known and order is not None else None)


def _blocks(tensor: StoredTensor, _stem: str, beside: dict[str, StoredTensor], _hints: Hints) -> Stored:
    known = tensor.dtype == "U8" and f"{tensor.name[: -len('blocks')]}scales" in beside
    return Stored("mxfp4", 2 * prod(tensor.shape)) if known else Stored(tensor.dtype.lower(), prod(tensor.shape))


_RULES = {"qweight": _qweight, "weight_packed": _weight_packed, "trellis": _trellis, "q_weight": _exl2}
_ENDINGS = (("_blocks", _blocks),)
