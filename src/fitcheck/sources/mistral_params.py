"""Mistral's own `params.json`, told in the words of a Hugging Face config.

Repositories in Mistral's format hold `params.json` beside `consolidated*.safetensors`, and some no `config.json`. The words are taken over
as vLLM does (0.33.0, transformers_utils/configs/mistral.py: `adapt_config_dict`): what has latent attention or shared experts is read as
DeepSeek V3 is, other experts as Mixtral, a list of windows as a window for each layer in turn.
"""

from __future__ import annotations

from typing import Any

PARAMS = "params.json"
_OWN = frozenset(["dim", "n_layers", "n_heads", "hidden_dim"])
_DEFAULT_TOKENS = 128_000
"""What vLLM takes for the longest context where the file names none."""

_NAMES = {
    "dim": "hidden_size",
    "n_kv_heads": "num_key_value_heads",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
    "tied_embeddings": "tie_word_embeddings",
    "vision_encoder": "vision_config",
    "multimodal": "audio_config",
}
_EXPERTS = {
    "num_experts": ("n_routed_experts", "num_local_experts"),
    "num_experts_per_tok": ("num_experts_per_tok", "num_experts_per_tok"),
    "expert_hidden_dim": ("moe_intermediate_size", "intermediate_size"),
    "num_shared_experts": ("n_shared_experts", None),
    "first_k_dense_replace": ("first_k_dense_replace", None),
    "route_every_n": ("moe_layer_freq", None),
}
"""Names of `moe`: of experts beside shared ones, and of Mixtral's."""


def is_mistral(config: dict[str, Any]) -> bool:
    """Whether these are Mistral's own words: Meta's `params.json` has no `hidden_dim`, a Hugging Face config none of them."""
    return config.keys() >= _OWN and "hidden_size" not in config


def as_config(params: dict[str, Any]) -> dict[str, Any]:
    """The fields of a Hugging Face config that say the same. What cannot be told so keeps a `model_type` that no family has."""
    config = {_NAMES.get(name, name): value for name, value in params.items() if name not in ("moe", "quantization")}
    config.setdefault("max_position_embeddings", params.get("max_seq_len") or _DEFAULT_TOKENS)
    config.setdefault("tie_word_embeddings", False)
    experts = params.get("moe")
    latent, shared = bool(params.get("kv_lora_rank")), isinstance(experts, dict) and bool(experts.get("num_shared_experts"))
    config |= _expert_fields(experts, latent=latent or shared) if experts else {}
    config["model_type"] = _model_type(params, latent=latent or shared)
    if latent and not experts:
        config |= {"first_k_dense_replace": params["n_layers"], "n_routed_experts": 1, "num_experts_per_tok": 1}
    return config | _windows(params) | _quantised(params.get("quantization"))


def _model_type(params: dict[str, Any], *, latent: bool) -> str:
    own = params.get("model_type", "transformer")
    if own != "transformer":
        return f"mistral {own}"
    windows = isinstance(params.get("sliding_window"), list)
    return "deepseek_v3" if latent else "mixtral" if params.get("moe") else "ministral" if windows else "mistral"


def _expert_fields(experts: Any, *, latent: bool) -> dict[str, Any]:
    if not isinstance(experts, dict):
        return {}
    named = ((names[0] if latent else names[1], experts[name]) for name, names in _EXPERTS.items() if name in experts)
    return {name: value for name, value in named if name is not None}


def _windows(params: dict[str, Any]) -> dict[str, Any]:
    """A window of all layers, none, or a list of windows that is gone through again and again (None: full attention)."""
    window, layers = params.get("sliding_window"), params["n_layers"]
    if not isinstance(window, list) or not isinstance(layers, int) or not 0 < len(window) <= layers <= 4096 or layers % len(window):
        return {"sliding_window": window}
    kinds = ["full_attention" if one is None else "sliding_attention" for one in window]
    sizes = {one for one in window if isinstance(one, int)}
    return {"sliding_window": sizes.pop() if len(sizes) == 1 else None, "layer_types": kinds * (layers // len(window))}


def _quantised(stated: Any) -> dict[str, Any]:
    if not isinstance(stated, dict):
        return {}
    if stated.get("qformat_weight") == "fp8_e4m3":
        scheme = "dynamic" if stated.get("qscheme_act") == "NO_SCALES" else "static"
        return {"quantization_config": {"quant_method": "fp8", "activation_scheme": scheme}}
    return {"quantization_config": stated}
