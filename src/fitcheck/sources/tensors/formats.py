"""A model's tensors in a format, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import UsageError
from fitcheck.sources.families.fields import Fields
from fitcheck.sources.tensors import ggml
from fitcheck.sources.tensors.layouts import Layout, Resolve, always, matcher, matrices, pieces, stated
from fitcheck.sources.tensors.record import TABLES, Part, Piece, Sheet, Tensor
from fitcheck.sources.tensors.schemes import BF16, F32, FP8_ROW, FP8_TENSOR, MXFP4, MXFP8, NVFP4, Scheme, awq, exl3, fp8_block, gptq, packed

_HALF_FLOATS = ("bf16", "f16", "fp16")
_NO_DRAFT_IN_GGUF = ("deepseek_v3", "kimi_k2", "deepseek_v4", "mimo")
"""Families whose converter drops the draft layers (facts/llamacpp-rules.md, surprise 9)."""
_HEADS_BY_LAYER = ("lfm2", "lfm2_moe", "granitemoehybrid", "jamba", "nemotron_h", "kimi_linear", "kimi_k3", "falcon_h1")
"""Families whose GGUF files give KV heads by layer, so that a first layer without attention counts as no sharing of heads (`n_gqa`)."""
_METHODS = {"fp8": "fp8", "awq": "awq", "gptq": "gptq", "mxfp4": "mxfp4"}
Found = tuple[Iterable[Piece], Grade]


def pieces_in(config: dict[str, Any], family: str, sheet: Sheet, form: str, options: dict[str, Any]) -> Found:
    """The pieces of all tensors in a format, and how well they are known. Raises `Unsettled`, or `UsageError` for an unknown format."""
    tensors, quantised, lower = tuple(sheet.tensors), _quantised(config), form.lower()
    mix = gguf_mix(form)
    _refuse(options, form)
    if form in _HALF_FLOATS:
        return pieces(tensors, always(BF16)), Grade.DERIVED
    if mix is not None:
        return _gguf(family, sheet, mix, imatrix=bool(options.get("imatrix"))), _gguf_grade(mix)
    if lower in ("exl3", "mlx"):
        return (_exl3 if lower == "exl3" else _mlx)(tensors, options), Grade.ESTIMATED
    if lower == "native" and not quantised and sheet.fields.raw("torch_dtype", "dtype") == "float32":
        return (Piece(tensor.part, F32.name, tensor.elements, 4 * tensor.elements) for tensor in tensors), Grade.DERIVED
    layout = _layout(config, quantised, family, tensors, lower, options)
    return pieces(tensors, layout.resolve), Grade.DERIVED if layout.stated else Grade.ESTIMATED


def gguf_mix(form: str) -> str | None:
    """The llama.cpp mix that a format names (`Q4_K_M`, `gguf:f16`); None where it is none. Half floats are plain without `gguf:`."""
    mix = form.upper().removeprefix("GGUF:").replace("-", "_")
    return mix if mix in ggml.MIXES and form not in _HALF_FLOATS else None


def _layout(
    config: dict[str, Any], quantised: dict[str, Any] | None, family: str, tensors: tuple[Tensor, ...], form: str, options: dict[str, Any]
) -> Layout:
    """What the config says of its own format, or the convention of the format that is asked for."""
    if form == "native":
        return stated(quantised, _expert_dtype(config)) if quantised else Layout(always(BF16), stated=True)
    if quantised and _is(quantised, form) and not options:
        return stated(quantised, _expert_dtype(config))
    if form == "fp8+mxfp4":
        return stated({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp4")._replace(stated=family == "deepseek_v4")
    return _by_convention(tensors, form, family, options)


def _refuse(options: dict[str, Any], form: str) -> None:
    unknown = sorted(set(options) - {"block", "bits", "group_size", "bpw", "head_bits", "imatrix", "keep"})
    if unknown:
        raise UsageError(f"{unknown[0]} is no option of the format {form}", hint="block, bits, group_size, bpw, head_bits, imatrix, keep")


def _quantised(config: dict[str, Any]) -> dict[str, Any] | None:
    """The config's own quantisation, which may lie in a nested part."""
    inner = [value for value in config.values() if isinstance(value, dict)]
    for holder in (config, *inner):
        for name in ("quantization_config", "compression_config"):
            if isinstance(holder.get(name), dict) and holder[name]:
                found: dict[str, Any] = holder[name]
                return found
    return None


def _expert_dtype(config: dict[str, Any]) -> Any:
    """DeepSeek V4's `expert_dtype`; where it is given, scales are E8M0."""
    if config.get("expert_dtype") is not None:
        return config["expert_dtype"]
    return "fp8" if config.get("model_type") == "deepseek_v4" else None


def _is(quantised: dict[str, Any], form: str) -> bool:
    """Whether the config's own quantisation is of this format."""
    if form == "nvfp4":
        return "NVFP4" in str(quantised.get("quant_algo")) or "NVFP4" in str(quantised.get("moe_quant_algo"))
    return quantised.get("quant_method") == _METHODS.get(form)


def _by_convention(tensors: tuple[Tensor, ...], form: str, family: str, options: dict[str, Any]) -> Layout:
    """What stays in 16 bits by the habit of those who publish the format.

    FP8, AWQ and GPTQ: everything but embeddings, head, routers, norms and convolutions. NVFP4 of models with experts keeps attention and
    draft layers too (NVIDIA's checkpoints of GLM, Kimi, Qwen3.5, MiniMax M2, 2026). MXFP4 (gpt-oss) is of routed experts alone.
    """
    named = matcher(list(options["keep"])) if options.get("keep") is not None else None
    own = matcher(list(_KEPT_BY_FAMILY.get(family, ())))
    routed = any(tensor.part is Part.EXPERTS for tensor in tensors)
    schemes: dict[str, Scheme] = {
        "fp8": fp8_block(tuple(options.get("block") or (128, 128))),
        "fp8-dynamic": FP8_ROW,
        "fp8-tensor": FP8_TENSOR,
        "mxfp8": MXFP8,
        "int4": packed(4, options.get("group_size", 128)),
        "awq": awq(options.get("bits", 4), options.get("group_size", 128)),
        "gptq": gptq(options.get("bits", 4), options.get("group_size", 128)),
        "nvfp4": NVFP4,
        "mxfp4": MXFP4,
    }
    if form not in schemes:
        raise UsageError(
            f"the format {form[:40]!r} is not known", hint=f"bf16, native, exl3, {', '.join(schemes)}, {', '.join(ggml.MIXES)}"
        )
    habit = _HABITS.get(form) if routed else None

    def keep(place: str, tensor: Tensor) -> bool:
        return named(place) if named is not None else own(place) or bool(habit and habit(tensor))

    return Layout(always(schemes[form], keep), stated=False)


_KEPT_BY_FAMILY = {"glm5_next": ("linear_attn", "kv_b_proj", "indexer")}
"""GLM-5.3-Flash's FP8 files keep KDA, `kv_b_proj` and the indexer in BF16: 314,396,639,232 elements are FP8 (checkpoint-sizes.jsonl)."""

_HABITS: dict[str, Callable[[Tensor], bool]] = {
    "nvfp4": lambda tensor: tensor.part in (Part.ATTENTION, Part.DRAFTER),
    "mxfp4": lambda tensor: tensor.part is not Part.EXPERTS,
    "awq": lambda tensor: tensor.part is Part.DRAFTER,
    "gptq": lambda tensor: tensor.part in (Part.ATTENTION, Part.DRAFTER, Part.FFN),
}


def _exl3(tensors: tuple[Tensor, ...], options: dict[str, Any]) -> Iterator[Piece]:
    """EXL3 at an average of `bpw` bits: the matrices' bits are shared between the next whole numbers so that the average holds.

    exllamav3 `conversion/allocation.py` chooses which tensors get which; only the sum is known. The head takes `head_bits` (6), embeddings
    and routers stay in 16 bits.
    """
    bpw, head = float(options.get("bpw", 4.0)), int(options.get("head_bits", 6))
    if not 1 <= bpw <= 8 or not 1 <= head <= 8:
        raise UsageError("EXL3 has 1 to 8 bits", hint="bpw=4.0, head_bits=6")
    low, high = exl3(int(bpw)), exl3(min(int(bpw) + 1, 8))
    share = bpw - int(bpw)
    resolve: Resolve = always(low)
    for tensor in tensors:
        if tensor.part is Part.HEAD and tensor.matrix and tensor.name == "output":
            scheme = exl3(head)
            yield Piece(tensor.part, scheme.name, tensor.elements, tensor.count * scheme.size(tensor.rows, tensor.columns))
        elif matrices(tensor):
            both = [tensor.count * scheme.size(tensor.rows, tensor.columns) for scheme in (low, high)]
            yield Piece(tensor.part, f"exl3 {bpw:g} bit", tensor.elements, round(both[0] + share * (both[1] - both[0])))
        else:
            yield from pieces((tensor,), resolve)


def _mlx(tensors: tuple[Tensor, ...], options: dict[str, Any]) -> Iterator[Piece]:
    """MLX: `bits` (4) with a BF16 scale and bias for every `group_size` (64) elements, embeddings and head too (mlx-lm `utils.py`)."""
    scheme = Scheme("int", bits=int(options.get("bits", 4)), group=int(options.get("group_size", 64)), scale_bytes=4)
    for tensor in tensors:
        if tensor.matrix and (matrices(tensor) or tensor.part in (*TABLES, Part.HEAD)):
            size = tensor.count * scheme.size(tensor.rows, tensor.columns)
            yield Piece(tensor.part, scheme.name, tensor.elements, size)
        else:
            yield from pieces((tensor,), always(BF16))


def _gguf_grade(mix: str) -> Grade:
    """Only types without a mix are the same whoever quantised the file."""
    return Grade.DERIVED if mix in ("F32", "F16", "BF16", "Q8_0") else Grade.ESTIMATED


def _gguf(family: str, sheet: Sheet, mix: str, *, imatrix: bool) -> Iterator[Piece]:
    """llama.cpp's own mix; publishers' mixes of the same name may differ. Draft layers are in the file and not loaded by default."""
    kept = [tensor for tensor in sheet.tensors if tensor.part is not Part.DRAFTER or family not in _NO_DRAFT_IN_GGUF]
    shape = gguf_shape(family, sheet.fields, tuple(kept), imatrix=imatrix)
    yield from ggml.pieces(tuple(kept), mix, shape)
    factors = rope_factors(family, sheet.fields)
    if factors:
        yield Piece(Part.ATTENTION, "F32", factors, -(-4 * factors // 32) * 32)


def gguf_shape(family: str, fields: Fields, tensors: tuple[Tensor, ...], *, imatrix: bool = False) -> ggml.Shape:
    """What the mixes look at. `LLM_TYPE_70B` is 80 layers, in Llama only with fewer KV heads (`models/llama.cpp`, `qwen2.cpp`)."""
    blocks = 1 + max((max(tensor.layers) for tensor in tensors if tensor.layers), default=0)
    layers, heads = fields.maybe("num_hidden_layers", "n_layer", "num_layers"), fields.maybe("num_attention_heads", "n_head") or 1
    kept = fields.maybe("num_key_value_heads", "multi_query_group_num", "num_kv_heads") or heads
    attentive = any(tensor.name in ("attn_k", "attn_qkv") and tensor.layers and 0 in tensor.layers for tensor in tensors)
    shared = 0 if family in _HEADS_BY_LAYER and not attentive else heads // kept
    large = layers == 80 and (family in ("qwen2", "olmo", "nemotron-nas") or (family in ("llama", "mistral") and kept != heads))
    experts = next((tensor.each for tensor in tensors if tensor.name == "ffn_up_exps"), 0)
    untied = any(tensor.name == "output" for tensor in tensors)
    return ggml.Shape(blocks, experts, shared, is_70b=large, falcon=family == "falcon", tied=not untied, imatrix=imatrix)


def rope_factors(family: str, fields: Fields) -> int:
    """Rope factors that the converter writes as a tensor: Llama 3's and Gemma 4's one list, LongRoPE's two (`conversion/*.py`)."""
    if family in ("gemma4", "gemma4_unified"):
        return fields.count("global_head_dim") // 2
    named = [fields.values[name] for name in ("rope_scaling", "rope_parameters") if isinstance(fields.values.get(name), dict)]
    scaling: dict[str, Any] = named[0] if named else {}
    kind = scaling.get("rope_type") or scaling.get("type")
    lists = {"llama3": 1, "longrope": 2, "su": 2}.get(str(kind), 0)
    heads = fields.maybe("num_attention_heads", "n_head")
    if not lists or not heads:
        return 0
    width = fields.maybe("head_dim") or fields.count("hidden_size") // heads
    share = fields.raw("partial_rotary_factor")
    rotary = int(width * share) if isinstance(share, int | float) and 0 < share <= 1 else width
    return lists * (rotary // 2)
