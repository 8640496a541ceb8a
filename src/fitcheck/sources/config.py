"""A published Hugging Face `config.json`, read into an architecture.

The file comes from outside: it may be of any size and hold anything. At most 16 MiB of it are read, nothing in it is executed, and no
number in it decides how much is allocated. What it does not settle is `unknown`, with the fields that are missing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fitcheck.catalogue.models import Architecture
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import DataError
from fitcheck.frozen import frozen
from fitcheck.sources.families import BY_CLASS, FAMILIES, SAME_AS, defaults_of
from fitcheck.sources.families.dense import CONTEXT
from fitcheck.sources.families.fields import MOST_TOKENS, Fields, Unsettled, shown
from fitcheck.sources.families.sizes import sizes
from fitcheck.sources.mistral_params import as_config, is_mistral
from fitcheck.sources.stored.text import unique_keys

MOST_BYTES = 16 * 1024**2
NO_LIMIT_TOKENS = 1_048_576
"""Taken as the longest context of a model whose config names none (state-space models, trimmed files); the note says so."""

_WANTED = "give a model's own config.json, as its maker published it"
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_SUFFIXES = ("_text_model", "_text", "_thinker")


@frozen
class ConfigModel:
    """A model known by its config alone: its architecture, or why it cannot be told.

    `forced_kv_dtype` is the cache dtype that the checkpoint's quantisation asks for, if it does. `assumed` lists what the file leaves
    out and the configuration class fixes.
    """

    name: str
    path: str
    architecture: Architecture | None
    unknown: tuple[str, ...]
    forced_kv_dtype: str | None
    assumed: tuple[str, ...] = ()


def read_config(path: Path) -> ConfigModel:
    """The model of a `config.json`, or of the folder that holds one. Raises `DataError` for a file that is not a config."""
    file = path / "config.json" if path.is_dir() else path
    return config_model(load_config(file), file.parent.name if file.name == "config.json" else file.stem, str(file))


def config_model(config: dict[str, Any], name: str, path: str) -> ConfigModel:
    """The model of a config's fields, under a name and a path that tells where they come from."""
    values, model_type = decoder_of(config)
    family = family_of(config, model_type)
    fields = Fields(values, defaults_of(config, values, family or ""))
    forced = _forced_kv_dtype(config, values)
    try:
        architecture = _architecture(family, model_type, fields)
    except Unsettled as unsettled:
        return ConfigModel(name, path, None, (str(unsettled),), forced)
    return ConfigModel(name, path, architecture, (), forced, tuple(fields.assumed))


def load_config(file: Path) -> dict[str, Any]:
    """The fields of a config file. Raises `DataError` for one that is missing, too large, or not a JSON object."""
    try:
        if not file.is_file():
            raise DataError(f"{file}: there is no such file", hint="a Hugging Face config.json, or the folder that holds it")
        with file.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: {getattr(error, 'strerror', None) or 'not a path'}") from error
    return parse_config(raw, str(file))


def parse_config(raw: bytes, where: str) -> dict[str, Any]:
    """The fields of a config's bytes, those of Mistral's own `params.json` in the words of the others.

    Raises `DataError`, naming where they come from, for what is too large or not a JSON object.
    """
    if len(raw) > MOST_BYTES:
        raise DataError(f"{where}: larger than 16 MiB, so not a config", hint=_WANTED)
    try:
        config = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=unique_keys)
    except RecursionError:
        raise DataError(f"{where}: nested too deeply", hint=_WANTED) from None
    except ValueError as error:
        raise DataError(f"{where}: not JSON: {ascii(str(error))[1:-1][:120]}", hint=_WANTED) from None
    if not isinstance(config, dict):
        raise DataError(f"{where}: a config is a JSON object, and this is a {type(config).__name__}", hint=_WANTED)
    return as_config(config) if is_mistral(config) else config


def decoder_of(config: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The decoder's fields and model type, which may be nested (`thinker_config.text_config`); an outer type stands for a missing one."""
    values, model_type = config, config.get("model_type")
    for _ in range(3):
        inner = next((values[name] for name in _NESTED if isinstance(values.get(name), dict) and values[name]), None)
        if inner is None:
            break
        values, model_type = inner, inner.get("model_type") or model_type
    return values, model_type


def family_of(config: dict[str, Any], model_type: Any) -> str | None:
    """The table's name for the decoder, or None. What a wrapper is called decides where it alone tells two families apart (Kimi K3)."""
    if model_type is None:
        classes = config.get("architectures")
        named = classes[0] if isinstance(classes, list) and classes else None
        return BY_CLASS.get(named) if isinstance(named, str) else None
    if config.get("model_type") == "kimi_k3" and model_type == "kimi_linear":
        return "kimi_k3"
    if not isinstance(model_type, str):
        return None
    for suffix in _SUFFIXES:
        if model_type not in FAMILIES:
            model_type = model_type.removesuffix(suffix)
    family = SAME_AS.get(model_type, model_type)
    return family if family in FAMILIES else None


def _architecture(family: str | None, model_type: Any, fields: Fields) -> Architecture:
    if family is None:
        named = "model_type is missing" if model_type is None else f"the model_type {shown(model_type)} is not known"
        raise Unsettled(named + _what_matters(fields))
    if fields.has("per_layer_config"):
        raise Unsettled("per_layer_config gives layers fields of their own, which are not read")
    found = FAMILIES[family](fields)
    if not found.layers or not found.groups:
        raise Unsettled("the config has no layers")
    context = fields.maybe(*CONTEXT, most=MOST_TOKENS)
    if context is None:
        fields.assumed.append(f"the config names no longest context; {NO_LIMIT_TOKENS:,} tokens are taken")
    return Architecture(
        source=("config",),
        grade=Grade.DERIVED if fields.assumed else Grade.PUBLISHED,
        note="; ".join(fields.assumed) or None,
        family=family,
        max_context_tokens=context or NO_LIMIT_TOKENS,
        layers=found.layers,
        groups=found.groups,
        draft_groups=found.draft,
        **sizes(fields),
    )


_MATTERS = (
    "num_hidden_layers", "num_key_value_heads", "head_dim", "kv_lora_rank", "qk_rope_head_dim", "index_head_dim",
    "sliding_window", "layer_types", "full_attention_interval", "linear_num_value_heads", "ssm_state_size", "mamba_d_state",
    "compress_ratios", "num_nextn_predict_layers",
)  # fmt: skip
"""Fields that decide what a family keeps, for whoever writes its entry."""


def _what_matters(fields: Fields) -> str:
    """The fields of an unknown family that its entry would rest on, and whether it brings code of its own (`auto_map`)."""
    found = [name for name in _MATTERS if fields.raw(name) is not None]
    words = f"; what it keeps would rest on {', '.join(found)}" if found else ""
    return words + ("; it brings code of its own, which is not run" if fields.raw("auto_map") is not None else "")


def _forced_kv_dtype(config: dict[str, Any], values: dict[str, Any]) -> str | None:
    """The cache dtype of the checkpoint's quantisation, which vLLM takes where the KV dtype is `auto`.

    ModelOpt's `kv_cache_scheme` or `kv_cache_quant_algo` (vLLM 0.33 `get_kv_cache_quant_algo_string`, which looks at the `quant_method`),
    and the `kv_cache_scheme` of compressed-tensors, whose only published form is an 8-bit float (`_init_kv_cache_quant`, attention.py).
    """
    for holder in (values, config):
        for name in ("quantization_config", "compression_config"):
            quantised = holder.get(name)
            if isinstance(quantised, dict) and (found := _cache_scheme(quantised)) is not None:
                return found
    return None


_CACHE_BITS = {8: "fp8", 4: "nvfp4"}


def _cache_scheme(quantised: dict[str, Any]) -> str | None:
    method = str(quantised.get("quant_method")).lower()
    holders = (quantised, inner) if isinstance(inner := quantised.get("quantization"), dict) else (quantised,)
    scheme = next((found for holder in holders if (found := holder.get("kv_cache_scheme"))), None)
    if not method.startswith("modelopt"):
        if not method.startswith("compressed") or not isinstance(scheme, dict):
            return None
        return "fp8" if scheme.get("num_bits") == 8 and scheme.get("type", "float") == "float" else None
    algorithm = scheme or next((found for holder in holders if (found := holder.get("kv_cache_quant_algo"))), None)
    if isinstance(algorithm, dict):
        static = algorithm.get("num_bits") == 4 or algorithm.get("dynamic") is False
        return _CACHE_BITS.get(algorithm.get("num_bits", 0)) if static and algorithm.get("type") == "float" else None
    named = str(algorithm).lower()
    return named if named in _CACHE_BITS.values() else None
