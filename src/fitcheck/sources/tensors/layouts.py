"""Which tensors a checkpoint keeps in high precision and which scheme the others take.

A config with a `quantization_config` says it; without one the convention of those who publish that format stands for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import translate
from typing import Any, NamedTuple

from fitcheck.sources.families.fields import Unsettled, shown
from fitcheck.sources.tensors.record import TABLES, Part, Piece, Tensor
from fitcheck.sources.tensors.schemes import (
    BF16,
    F32,
    FP8_ROW,
    FP8_TENSOR,
    MXFP4,
    MXFP8,
    NVFP4,
    Scheme,
    awq,
    fp8_block,
    gptq,
    packed,
)

Resolve = Callable[[str, Tensor], Scheme]
"""The scheme of a matrix, by the name of its module (`layers.3.mlp.gate_proj`) and by itself."""

_ALWAYS_HIGH = (
    "ssm_conv1d", "shortconv.conv", "ssm_beta", "ssm_alpha", "ssm_ba", "ssm_a", "nextn.embed_tokens", "nextn.shared_head_head",
    "nextn.eh_proj", "hc_", "output_hc", "altup", "laurel", "indexer.proj", "attn_compressor", "indexer.compressor", "ffn_gate_inp",
    "ffn_routed_", "indexer.kpool", "ssm_f_", "ssm_g_a", "ssm_g_b",
)  # fmt: skip
_PREFIXES = ("model.language_model.", "language_model.model.", "language_model.", "model.", "backbone.")
MOST_PATTERNS = 1 << 17


class Layout(NamedTuple):
    """A resolver, and whether the config itself says what stays in high precision."""

    resolve: Resolve
    stated: bool


def matrices(tensor: Tensor) -> bool:
    """Whether quantisers ever take it: a linear layer, neither an embedding, a head, a norm, a router nor a convolution."""
    if not tensor.matrix or tensor.wide or tensor.part in (*TABLES, Part.HEAD, Part.NORM, Part.ROUTER):
        return False
    return not tensor.name.startswith(_ALWAYS_HIGH)


def pieces(tensors: tuple[Tensor, ...], resolve: Resolve) -> Iterator[Piece]:
    """What each tensor takes; layers whose modules take the same scheme are counted together."""
    for tensor in tensors:
        if not matrices(tensor):
            scheme = F32 if tensor.wide else BF16
            yield Piece(tensor.kept, scheme.name, tensor.elements, tensor.elements * scheme.bits // 8)
            continue
        places = [f"layers.{layer}.{tensor.module}" for layer in tensor.layers] if tensor.layers is not None else [tensor.module]
        found = [resolve(place, tensor) for place in places]
        for scheme in dict.fromkeys(found):
            count = tensor.each * found.count(scheme)
            size = count * scheme.size(tensor.rows, tensor.columns)
            yield Piece(tensor.kept, scheme.name, count * tensor.rows * tensor.columns, size)


def always(scheme: Scheme, keep: Callable[[str, Tensor], bool] | None = None) -> Resolve:
    """One scheme for all matrices but those to keep."""
    return lambda place, tensor: BF16 if keep is not None and keep(place, tensor) else scheme


def matcher(patterns: Any) -> Callable[[str], bool]:
    """Whether a module is named by a list of modules to leave alone: whole names, parts of names, `*` patterns and `re:` expressions.

    A plain name also stands for what lies below it, and for any module that ends with it (MiniMax's `gate`).
    """
    if patterns is None:
        return lambda _place: False
    if not isinstance(patterns, list) or len(patterns) > MOST_PATTERNS or not all(isinstance(entry, str) for entry in patterns):
        raise Unsettled(f"the list of modules that are not quantised is {shown(patterns)}")
    plain = {_short(entry) for entry in patterns if not entry.startswith("re:") and "*" not in entry}
    starred = [translate(_short(entry) + end) for entry in patterns if not entry.startswith("re:") and "*" in entry for end in ("", ".*")]
    expressions = [f"(?:{_simple(entry[3:])})" for entry in patterns if entry.startswith("re:")]
    try:
        globs, regex = re.compile("|".join(starred) or r"(?!)"), re.compile("|".join(expressions) or r"(?!)")
    except re.error:
        raise Unsettled("the list of modules that are not quantised has an expression that cannot be read") from None

    def named(place: str) -> bool:
        words = place.split(".")
        spans = (".".join(words[first:last]) for first in range(len(words)) for last in range(first + 1, len(words) + 1))
        return any(span in plain for span in spans) or bool(globs.match(place)) or bool(regex.match(f"model.{place}"))

    return named


def _simple(expression: str) -> str:
    """An expression that cannot take long to match: few repetitions, and none of a group. Published ones have two at most."""
    if len(expression) > 200 or len(re.findall(r"[*+{]", expression)) > 4 or re.search(r"\)[*+{?]", expression):
        raise Unsettled(f"the expression {shown(expression)} of modules that are not quantised is not read")
    return expression


def _short(name: str) -> str:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :]
    return name


def stated(quantised: dict[str, Any], expert_dtype: Any) -> Layout:
    """The layout that a `quantization_config` states. Raises `Unsettled` for a method that is not known."""
    method = quantised.get("quant_method") or ("modelopt" if "quant_algo" in quantised else None)
    for name in ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers"):
        if quantised.get(name) is not None:
            kept = matcher(quantised[name])
            break
    else:
        kept = matcher(None)
    if isinstance(quantised.get("quantized_layers"), dict):
        chosen = _by_layer(quantised["quantized_layers"], _fp8(quantised, expert_dtype) if method == "fp8" else BF16)
        kept = matcher(None) if method == "fp8" else kept  # what is not in FP4 stays as the FP8 original has it
    elif isinstance(quantised.get("config_groups"), dict):
        chosen = _by_group(quantised)
    else:
        chosen = always(_single(quantised, method, expert_dtype), None)
        if method == "fp8" and expert_dtype == "fp4":
            chosen = _fp4_experts(chosen)
    return Layout(lambda place, tensor: BF16 if kept(place) else chosen(place, tensor), stated=True)


def _fp4_experts(rest: Resolve) -> Resolve:
    """DeepSeek V4: routed experts in FP4 (two to a byte, an E8M0 scale for every 32), draft layers' too."""
    return lambda place, tensor: MXFP4 if tensor.name.endswith("_exps") else rest(place, tensor)


def _fp8(quantised: dict[str, Any], expert_dtype: Any) -> Scheme:
    block = quantised.get("weight_block_size")
    if block is None:
        return FP8_TENSOR
    if not isinstance(block, list) or len(block) != 2 or not all(type(side) is int and 0 < side <= 1 << 16 for side in block):
        raise Unsettled(f"weight_block_size is {shown(block)}")
    return fp8_block((block[0], block[1]), 1 if expert_dtype is not None else 4)


def _single(quantised: dict[str, Any], method: Any, expert_dtype: Any) -> Scheme:
    if method == "fp8":
        return _fp8(quantised, expert_dtype)
    if method == "mxfp4":
        return MXFP4
    if method in ("awq", "gptq"):
        bits, group = quantised.get("bits"), quantised.get("group_size")
        if bits not in (2, 3, 4, 8) or type(group) is not int or not 0 < group <= 1 << 16:
            raise Unsettled("bits and group_size of the quantisation are missing")
        return awq(bits, group) if method == "awq" else gptq(bits, group)
    if method == "modelopt":
        return _algorithm(quantised.get("quant_algo"))
    raise Unsettled(f"the quantisation method {shown(method)} is not known")


def _algorithm(name: Any) -> Scheme:
    """ModelOpt's names (`quant_algo`)."""
    known = {"FP8": FP8_TENSOR, "NVFP4": NVFP4, "W4A16_NVFP4": NVFP4, "MXFP8": MXFP8, "MXFP4": MXFP4, "FP8_PB_WO": fp8_block()}
    if not isinstance(name, str) or name not in known:
        raise Unsettled(f"the quantisation {shown(name)} is not known")
    return known[name]


def _by_layer(layers: dict[Any, Any], otherwise: Scheme) -> Resolve:
    """`quantized_layers`: an algorithm for each module; `experts` stands for all that are below it."""
    if len(layers) > MOST_PATTERNS:
        raise Unsettled("quantized_layers is too long")
    named = {_short(str(name)): _algorithm(spec.get("quant_algo") if isinstance(spec, dict) else None) for name, spec in layers.items()}

    def resolve(place: str, _tensor: Tensor) -> Scheme:
        words = place.split(".")
        for last in range(len(words), 0, -1):
            found = named.get(".".join(words[:last]))
            if found is not None:
                return found
        return otherwise

    return resolve


def _by_group(quantised: dict[str, Any]) -> Resolve:
    """`config_groups` of compressed-tensors and ModelOpt: the first group whose targets name the module, or linear layers in general."""
    groups = []
    for spec in quantised["config_groups"].values():
        weights = spec.get("weights") if isinstance(spec, dict) else None
        if not isinstance(weights, dict):
            raise Unsettled("config_groups has a group without weights")
        targets = spec.get("targets") or ["Linear"]
        if not isinstance(targets, list):
            raise Unsettled(f"targets of config_groups is {shown(targets)}")
        groups.append(("Linear" in targets, matcher(targets), _weights(weights, spec.get("format") or quantised.get("format"))))

    def resolve(place: str, _tensor: Tensor) -> Scheme:
        for linear, named, scheme in groups:
            if not linear and named(place):
                return scheme
        return next((scheme for linear, _named, scheme in groups if linear), BF16)

    return resolve


def _weights(spec: dict[str, Any], form: Any) -> Scheme:
    bits, kind, group, strategy = (spec.get(name) for name in ("num_bits", "type", "group_size", "strategy"))
    if kind == "float" and bits == 8:
        block = spec.get("block_structure")
        if strategy == "block" and isinstance(block, list) and len(block) == 2:
            return _fp8({"weight_block_size": block}, None)
        return FP8_ROW if strategy == "channel" else MXFP8 if group == 32 else FP8_TENSOR
    if kind == "float" and bits == 4:
        return MXFP4 if group == 32 or "mxfp4" in str(form) else NVFP4
    if kind == "int" and bits in (4, 8) and type(group) is int and 0 < group <= 1 << 16:
        return packed(bits, group, symmetric=spec.get("symmetric") is not False)
    raise Unsettled(f"config_groups has weights of {shown(bits)} bits of the type {shown(kind)}")
