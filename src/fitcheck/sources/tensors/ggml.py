"""ggml's types, and which of them each mix of llama.cpp gives a tensor.

llama.cpp build 11549: `ggml/src/ggml-common.h` (blocks), `src/llama-quant.cpp` (`llama_tensor_get_type_impl`, `tensor_type_fallback`,
`tensor_allows_quantization`), `conversion/base.py` (`prepare_tensors`: what stays in 32 bits).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import NamedTuple

from fitcheck.frozen import frozen
from fitcheck.sources.tensors.record import Part, Piece, Tensor

BLOCKS: dict[str, tuple[int, int]] = {
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q8_0": (32, 34),
    "Q2_K": (256, 84),
    "Q3_K": (256, 110),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
    "IQ4_NL": (32, 18),
    "IQ4_XS": (256, 136),
    "MXFP4": (32, 17),
}
"""Elements and bytes of a block (gguf-py `GGML_QUANT_SIZES`)."""

MIXES: dict[str, str] = {
    "F32": "F32",
    "F16": "F16",
    "BF16": "BF16",
    "Q8_0": "Q8_0",
    "Q6_K": "Q6_K",
    **dict.fromkeys(["Q5_K_M", "Q5_K_S"], "Q5_K"),
    **dict.fromkeys(["Q4_K_M", "Q4_K_S"], "Q4_K"),
    **dict.fromkeys(["Q3_K_L", "Q3_K_M", "Q3_K_S"], "Q3_K"),
    **dict.fromkeys(["Q2_K", "Q2_K_S"], "Q2_K"),
    **{name: name for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL", "IQ4_XS")},
    "MXFP4_MOE": "MXFP4",
}
"""Each mix and the type that it gives where no rule says otherwise (`llama_ftype_get_default_type`)."""

_FALLBACK = {"IQ4_XS": "IQ4_NL", "Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
"""What a row that does not divide by 256 takes (`tensor_type_fallback`)."""

_WIDE = ("ffn_gate_inp", "position_embd", "shortconv.conv", "altup_correct_coef", "altup_predict_coef", "indexer.")
"""Matrices that the converter keeps in 32 bits (`prepare_tensors`; MiniMax M3's `tensor_force_quant` for its indexer)."""
_LOCKED = ("ffn_gate_inp", "ffn_gate_tid2eid", "position_embd", "shortconv.conv", "ssm_conv1d", "altup", "laurel", "per_layer_model_proj")
_LOCKED_INDEXER = ("indexer.k_proj", "indexer.q_proj")
"""Matrices that the quantiser leaves as the converter wrote them (`tensor_allows_quantization`)."""
_ALIGNMENT = 32
"""Each tensor's data begin at a multiple of it, in files (`GGUF_DEFAULT_ALIGNMENT`) and in buffers."""
_SMALL_BITS = {"Q2_K", "Q3_K_S", "Q3_K_M", "Q4_K_S", "Q4_K_M", "IQ4_NL", "IQ4_XS"}


@frozen
class Shape:
    """What the mixes look at in a model: blocks, experts, queries to a KV head, 70B, Falcon, a tied head, an importance matrix."""

    blocks: int
    experts: int
    heads_to_kv: int
    is_70b: bool = False
    falcon: bool = False
    tied: bool = False
    imatrix: bool = False


class Row(NamedTuple):
    """A tensor in one of its layers, and its number among those of its category."""

    tensor: Tensor
    layer: int
    number: int


def pieces(tensors: tuple[Tensor, ...], mix: str, shape: Shape) -> Iterator[Piece]:
    """What each tensor takes in that mix, layer by layer where the layer decides."""
    values, downs = _rows(tensors, is_value), _rows(tensors, is_down)
    for row in values:
        yield _piece(row.tensor, settled(row.tensor, mix, value_type(row, mix, shape, len(values))))
    for row in downs:
        yield _piece(row.tensor, settled(row.tensor, mix, down_type(row, mix, shape)))._replace(layer=row.layer)
    for tensor in tensors:
        if not (is_value(tensor) or is_down(tensor)):
            kind = settled(tensor, mix, other_type(tensor, mix, shape))
            if tensor.part is Part.EXPERTS:
                yield from (_piece(tensor, kind)._replace(layer=layer) for layer in tensor.layers or ())
            else:
                yield _piece(tensor, kind, 1 if tensor.layers is None else len(tensor.layers))


def _piece(tensor: Tensor, kind: str, layers: int = 1) -> Piece:
    per_block, size = BLOCKS[kind]
    elements = tensor.each * prod(tensor.shape)
    aligned = -(-(elements // per_block * size) // _ALIGNMENT) * _ALIGNMENT
    return Piece(tensor.part, kind, layers * elements, layers * aligned)


def is_value(tensor: Tensor) -> bool:
    """Whether it is an attention's values, alone or with queries and keys (`category_is_attn_v`)."""
    return tensor.name in ("attn_v", "attn_qkv", "attn_kv_b") and tensor.suffix == ".weight"


def is_down(tensor: Tensor) -> bool:
    """Whether it is a network's last matrix, dense or of experts."""
    return tensor.name.startswith("ffn_down") and tensor.suffix == ".weight"


def _rows(tensors: tuple[Tensor, ...], wanted: Callable[[Tensor], bool]) -> list[Row]:
    places = sorted((layer, order) for order, tensor in enumerate(tensors) if wanted(tensor) for layer in tensor.layers or ())
    return [Row(tensors[order], layer, number) for number, (layer, order) in enumerate(places)]


def written(tensor: Tensor) -> str:
    """The type in which the converter writes a tensor: 32 bits for vectors, norms, routers, convolutions and what is no `.weight`."""
    name = tensor.name
    wide = not tensor.matrix or tensor.suffix != ".weight" or name.endswith("_norm") or name.startswith((*_WIDE, "ssm_conv1d"))
    return "F32" if wide or tensor.wide else "F16"


def locked(tensor: Tensor) -> bool:
    """Whether the quantiser leaves it alone: vectors, norms, routers, convolutions and a few small matrices."""
    name = tensor.name
    return not tensor.matrix or tensor.suffix != ".weight" or name.endswith("_norm") or name.startswith((*_LOCKED, *_LOCKED_INDEXER))


def settled(tensor: Tensor, mix: str, kind: str) -> str:
    """The type in the end: what stays as it is, and the fallback for rows that do not divide by the block (`tensor_type_fallback`)."""
    if mix == "F32":
        return "F32"
    if locked(tensor) or mix in ("F16", "BF16"):
        return written(tensor)
    if tensor.columns % BLOCKS[kind][0]:
        kind = _FALLBACK.get(kind, "F16")
    return "F16" if tensor.columns % BLOCKS[kind][0] else kind


def more_bits(layer: int, layers: int) -> bool:
    """The first and last eighth of the layers and every third between (`use_more_bits`)."""
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


def value_type(row: Row, mix: str, shape: Shape, total: int) -> str:
    """Values get more bits: most where many heads share them, in the 70B and in models of eight experts."""
    kind, shared = MIXES[mix], shape.heads_to_kv >= 4
    if mix == "MXFP4_MOE":
        return other_type(row.tensor, mix, shape)
    if mix == "Q2_K":
        kind = "Q4_K" if shared else "Q3_K"
    elif mix == "Q2_K_S" and shared:
        kind = "Q4_K"
    elif mix == "Q3_K_M":
        kind = "Q5_K" if row.number < 2 else "Q4_K"
    elif mix == "Q3_K_L" or (mix in ("IQ4_NL", "IQ4_XS") and shared):
        kind = "Q5_K"
    elif mix in ("Q4_K_M", "Q5_K_M") and more_bits(row.number, total):
        kind = "Q6_K"
    elif mix == "Q4_K_S" and row.number < 4:
        kind = "Q5_K"
    if shape.is_70b and kind in ("Q3_K", "Q4_K"):
        kind = "Q5_K"
    return "Q8_0" if shape.experts == 8 else kind


def down_type(row: Row, mix: str, shape: Shape) -> str:
    """The last matrices get more bits in some layers: counted by layer in models with experts, else by their own number."""
    if mix == "MXFP4_MOE":
        return other_type(row.tensor, mix, shape)
    kind, layer, layers = MIXES[mix], row.layer if shape.experts > 1 else row.number, shape.blocks
    eighth, sixteenth, more = layer < layers // 8, layer < layers // 16, more_bits(layer, layers)
    simple = {
        "Q2_K": "Q3_K",
        "Q2_K_S": "Q4_K" if eighth else kind,
        "Q3_K_M": "Q5_K" if sixteenth else "Q4_K" if more or not shape.falcon else "Q3_K",
        "Q3_K_L": "Q4_K" if shape.falcon else "Q5_K",
        "Q4_K_S": "Q5_K" if eighth and not shape.falcon else kind,
        "Q4_K_M": "Q6_K" if more else kind,
        "Q5_K_M": "Q6_K" if more else kind,
        **dict.fromkeys(["IQ4_NL", "IQ4_XS"], "Q5_K" if eighth and not shape.imatrix else kind),
        "Q4_0": "Q4_1" if eighth and shape.imatrix else kind,
        "Q5_0": "Q5_1" if eighth and shape.imatrix else kind,
    }
    if mix == "Q4_K_M" and shape.falcon:
        return "Q6_K" if sixteenth else "Q5_K" if more else kind
    return simple.get(mix, kind)


def other_type(tensor: Tensor, mix: str, shape: Shape) -> str:
    """All others: the head (or the table that stands for it) in 6 or 8 bits, the attention's output and keys by the mix."""
    kind, name = MIXES[mix], tensor.name
    table = name in ("token_embd", "per_layer_token_embd")
    if name == "output" or (shape.tied and table):
        if mix == "MXFP4_MOE" or shape.falcon or tensor.columns % BLOCKS[kind][0]:
            return "Q8_0"
        return kind if kind == "Q8_0" else "Q6_K"
    if mix == "MXFP4_MOE":
        return "MXFP4" if tensor.each > 1 else "Q8_0"
    if name in ("attn_k", "indexer.attn_k") and shape.experts == 8:
        return "Q8_0"
    if name == "attn_output":
        return _output_type(kind, mix, shape)
    return kind


def _output_type(kind: str, mix: str, shape: Shape) -> str:
    if shape.falcon:
        return "Q4_K" if mix == "Q3_K_L" else kind
    if shape.experts == 8:
        return "Q5_K" if mix in _SMALL_BITS else kind
    return {"Q2_K": "Q3_K", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K"}.get(mix, kind)
