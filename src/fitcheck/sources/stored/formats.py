"""What the format of a build is called, as the catalogue and the engines' tables name it (`data/engines.yaml`).

In this order, and the first that answers decides; where it contradicts what the tensors are stored as, the format is unknown and said why:

1. GGUF: `gguf`, and as its label the mix of `general.file_type`, unless no tensor has a type of it; else the type that most bytes have.
2. Packings that only one format has: `trellis` (`exl3`), `q_weight` (`exl2`), U32 words with scales (`mlx`), bitsandbytes' `absmax`.
3. `quantization_config` (`quant_method`, `quant_algo`, `config_groups`) of the config.
4. What most bytes of the matrices are stored as: `fp8+mxfp4` where experts are FP4 and the rest FP8.
5. `bf16` where nothing is packed (F16 and F32 too: engines load them as 16 bits).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fitcheck.frozen import frozen
from fitcheck.sources.families.fields import shown
from fitcheck.sources.stored.ggml_types import FILE_TYPES
from fitcheck.sources.stored.packed import SCALES, Hints

_ONE_FORMAT = {"exl3": "exl3", "exl2": "exl2", "mlx": "mlx", "nf4": "bnb-4bit", "fp4": "bnb-4bit"}
_PLAIN = ("bf16", "f16", "f32", "f64")
_NOT_MATRICES = (*_PLAIN, SCALES, "i64", "i32", "bool")
_STORED = {
    "fp8": ("fp8", "mxfp8"), "mxfp8": ("mxfp8",), "awq": ("awq",), "gptq": ("gptq", "awq", "int"), "mxfp4": ("mxfp4",), "nvfp4": ("nvfp4",),
    "int4": ("int4", "int", "awq", "gptq"), "int8": ("int8", "int"), "fp8+mxfp4": ("mxfp4",),
}  # fmt: skip
"""What tensors of a format are stored as."""


@frozen
class BuildFormat:
    """A format's name (None: not settled), a label within it (`Q4_K_M`), and what the name rests on, or why there is none."""

    name: str | None
    label: str | None
    why: str


_UNREAD = BuildFormat(None, None, "there is no config, and the files cannot be read")


def gguf_format(metadata: dict[str, Any], kinds: dict[str, int]) -> BuildFormat:
    """The format of a GGUF build from its metadata and the bytes of each type."""
    number = metadata.get("general.file_type")
    mix = FILE_TYPES.get(number) if type(number) is int else None
    most = max(kinds, key=lambda kind: kinds[kind], default=None)
    if mix is not None and any(kind.startswith(_root(mix)) for kind in kinds):
        return BuildFormat("gguf", mix, f"general.file_type {number}")
    if most is None:
        return BuildFormat("gguf", None, "the file has no tensors")
    said = (
        f"general.file_type says {mix}, and no tensor is of it"
        if mix
        else "general.file_type is missing"
        if number is None
        else "not a known file_type"
    )
    return BuildFormat("gguf", most, f"{said}; most bytes are {most}")


def _root(mix: str) -> str:
    """What types of a mix begin with: `Q4_K` of `Q4_K_M`, `IQ3` of `IQ3_M`."""
    found = re.match(r"IQ\d|Q\d_K|Q\d_\d|TQ\d|MXFP4|[A-Z0-9]+", mix)
    return found[0] if found else mix


def stored_format(config: dict[str, Any] | None, kinds: dict[str, int] | None) -> BuildFormat:
    """The format of a safetensors build from its config and the bytes of each kind; either may be missing."""
    for kind, name in _ONE_FORMAT.items():
        if kinds and kinds.get(kind):
            return BuildFormat(name, None, f"tensors packed as {kind}")
    quantised = quantisation(config)
    if quantised:
        found = _configured(quantised, config or {})
        if found.name is None and kinds:
            stored = _by_kinds(kinds)
            return BuildFormat(stored.name, stored.label, f"{found.why}; {stored.why}")
        if found.name and kinds and not any(kinds.get(kind) for kind in _STORED.get(found.name, (found.name,))):
            return BuildFormat(None, None, f"{found.why}, and no tensor is stored as {found.name}")
        return found
    return _by_kinds(kinds) if kinds else _UNREAD if config is None else BuildFormat("bf16", None, "a config without a quantisation")


def _by_kinds(kinds: dict[str, int]) -> BuildFormat:
    packed = {kind: size for kind, size in kinds.items() if kind not in _NOT_MATRICES}
    if not packed:
        plain = [kind for kind in _PLAIN if kinds.get(kind)]
        return BuildFormat("bf16" if plain else None, None, f"tensors in {', '.join(plain) or 'no known kind'}")
    most = max(packed, key=lambda kind: packed[kind])
    if most == "mxfp4" and packed.get("fp8"):
        return BuildFormat("fp8+mxfp4", None, "tensors in mxfp4 and fp8")
    known = most in ("fp8", "mxfp8", "nvfp4", "mxfp4", "awq", "gptq", "int4", "int8")
    return BuildFormat(most if known else None, None, f"most packed bytes are {most}")


def quantisation(config: dict[str, Any] | None) -> dict[str, Any] | None:
    """The config's own quantisation, at the top or in the decoder's part, else MLX's `quantization`."""
    holders = [config or {}, *(value for value in (config or {}).values() if isinstance(value, dict))]
    for holder in holders:
        for name in ("quantization_config", "compression_config"):
            found = holder.get(name)
            if isinstance(found, dict) and found:
                plain = "quant_method" not in found and "quant_algo" not in found and "bits" in found
                return {**found, "quant_method": "mlx"} if plain and "quantization" in holder else found
    found = (config or {}).get("quantization")
    return {**found, "quant_method": "mlx"} if isinstance(found, dict) and "bits" in found else None


def hints_of(config: dict[str, Any] | None) -> Hints:
    """Bits and group that the config's quantisation has for all packed tensors."""
    quantised = quantisation(config)
    if quantised is None:
        return Hints()
    bits, group = quantised.get("bits", quantised.get("w_bit")), quantised.get("group_size", quantised.get("q_group_size"))
    weights = _group_weights(quantised)
    if bits is None and weights:
        widths = {_small(spec.get("num_bits")) for spec in weights}
        groups = {_small(spec.get("group_size"), 1 << 16) for spec in weights}
        bits = widths.pop() if len(widths) == 1 else None
        group = groups.pop() if len(groups) == 1 else None
    modules = quantised if quantised.get("quant_method") == "mlx" else None
    return Hints(_small(bits), _small(group, 1 << 16), modules)


def _small(value: Any, most: int = 64) -> int | None:
    return value if type(value) is int and 0 < value <= most else None


def _group_weights(quantised: dict[str, Any]) -> list[dict[str, Any]]:
    groups = quantised.get("config_groups")
    specs = groups.values() if isinstance(groups, dict) else ()
    return [spec["weights"] for spec in specs if isinstance(spec, dict) and isinstance(spec.get("weights"), dict)]


def _configured(quantised: dict[str, Any], config: dict[str, Any]) -> BuildFormat:
    method = quantised.get("quant_method") or ("modelopt" if "quant_algo" in quantised else None)
    rule = _METHODS.get(method) if isinstance(method, str) else None
    name = rule(quantised, config) if rule else None
    why = f"quantization_config: {shown(method)}"
    return BuildFormat(name, None, why if name else f"{why} does not name a known format")


def _fp8(quantised: dict[str, Any], config: dict[str, Any]) -> str:
    values = (quantised.get("expert_dtype"), config.get("expert_dtype"))
    return "fp8+mxfp4" if "fp4" in values else "fp8"


def _compressed(quantised: dict[str, Any], _config: dict[str, Any]) -> str | None:
    names = {_scheme(spec) for spec in _group_weights(quantised)}
    return names.pop() if len(names) == 1 else None


def _scheme(spec: dict[str, Any]) -> str | None:
    bits, kind, group = spec.get("num_bits"), spec.get("type"), spec.get("group_size")
    table = {
        ("float", 8): "mxfp8" if group == 32 else "fp8",
        ("float", 4): "mxfp4" if group == 32 else "nvfp4",
        ("int", 8): "int8",
        ("int", 4): "int4",
    }
    return table.get((kind, bits)) if isinstance(kind, str) and type(bits) is int else None


def _modelopt(quantised: dict[str, Any], _config: dict[str, Any]) -> str | None:
    algorithm = quantised.get("quant_algo")
    table = {"FP8": "fp8", "FP8_PB_WO": "fp8", "NVFP4": "nvfp4", "W4A16_NVFP4": "nvfp4", "MXFP4": "mxfp4", "MXFP8": "mxfp8"}
    return table.get(algorithm) if isinstance(algorithm, str) else None


def _auto_round(quantised: dict[str, Any], _config: dict[str, Any]) -> str:
    return "awq" if "awq" in str(quantised.get("packing_format")) else "gptq"


def _always(name: str) -> Callable[[dict[str, Any], dict[str, Any]], str | None]:
    return lambda _quantised, _config: name


_METHODS: dict[str, Callable[[dict[str, Any], dict[str, Any]], str | None]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _always("fp8"),
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
    "modelopt_fp4": _always("nvfp4"),
    "auto-round": _auto_round,
    **{name: _always(name) for name in ("awq", "gptq", "mxfp4", "mxfp8", "exl3", "exl2", "mlx")},
}
"""`quant_method`, and how its format is told."""
