"""What the configuration class itself fixes, for fields that published files leave out where they equal it.

From the classes of transformers 5.24.0 (`models/*/configuration_*.py`). Only fields that a published file of that family is known to omit,
or that are constants of the class, are here: widths, head counts and layer patterns. Numbers of layers and hidden sizes are only in
`WITHIN`. One draft layer for Qwen's, where a file names none, is what engines load (vLLM 0.33 `qwen3_next_mtp.py`, `qwen3_5_mtp.py`:
`getattr(…, 1)`).
"""

from __future__ import annotations

from typing import Any

_HEADS_OF_128 = """
qwen3 qwen3_moe qwen3_vl qwen3_vl_moe qwen3_asr qwen3_omni_moe internlm3 iquestcoder helium glm glm4 ernie4_5 seed_oss hy_v3 solar_open
minimax_m2 ministral3 laguna mellum kolibri1 cwm cohere2_moe step3p5 step3p7 muse_glimmer
"""

DEFAULTS: dict[str, dict[str, Any]] = {
    **{family: {"head_dim": 128} for family in _HEADS_OF_128.split()},
    "gemma": {"head_dim": 256},
    "gemma2": {"head_dim": 256, "sliding_window": 4096, "max_position_embeddings": 8192},
    "gemma3": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "sliding_window": 4096,
        "max_position_embeddings": 131072,
        "vocab_size": 262208,
    },
    "gemma3n": {
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "num_kv_shared_layers": 15,
        "sliding_window": 512,
        "max_position_embeddings": 32768,
    },
    "qwen3_next": {"head_dim": 256, "full_attention_interval": 4, "num_nextn_predict_layers": 1},
    "qwen3_5": {"head_dim": 256, "full_attention_interval": 4, "mtp_num_hidden_layers": 1},
    "qwen3_5_moe": {"head_dim": 256, "full_attention_interval": 4, "mtp_num_hidden_layers": 1},
    "qwen4_exp": {
        "mtp_num_hidden_layers": 1,
        "head_dim": 256,
        "full_attention_interval": 4,
        "ple_conv_kernel_size": 4,
        "ngram_size": 3,
        "hc_count": 4,
    },
    "gpt_oss": {"head_dim": 64, "sliding_window": 128},
    "mistral": {"sliding_window": 4096},
    "cohere2": {"sliding_window": 4096},
    "olmo3": {"sliding_window": 4096},
    "afmoe": {"head_dim": 128, "global_attn_every_n_layers": 4},
    "falcon": {"multi_query": True, "max_position_embeddings": 2048},
    "gpt_bigcode": {"multi_query": True},
    "gpt_refact": {"multi_query": True},
    "sarvam_moe": {"head_dim": 64},
    "muse_spark": {"head_dim": 64},
    "vaultgemma": {"head_dim": 256, "sliding_window": 4096},
    "gemma4": {"head_dim": 256, "global_head_dim": 512},
    "gemma4_unified": {"head_dim": 256, "global_head_dim": 512},
    "hy_v4": {"index_topk_freq": 4, "index_skip_topk_offset": 2},
    "llama4": {"head_dim": 128, "attention_chunk_size": 8192, "no_rope_layer_interval": 4},
    "olmo_hybrid": {"full_attention_interval": 4, "linear_conv_kernel_dim": 4},
    "zamba2": {"chunk_size": 256, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_ngroups": 1},
    "bailing_hybrid": {"layer_group_size": 6, "short_conv_kernel_size": 4, "max_position_embeddings": 262144},
    "granitemoehybrid": {"mamba_chunk_size": 256, "mamba_d_conv": 4, "mamba_n_groups": 1, "mamba_expand": 2},
    "falcon_h1": {"mamba_chunk_size": 256, "mamba_d_conv": 4, "mamba_n_groups": 1, "mamba_expand": 2},
    "bamba": {"mamba_chunk_size": 256},
    "mamba2": {"chunk_size": 256},
    "jamba": {"attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2},
    "nemotron_h": {"chunk_size": 128, "head_dim": 128, "n_groups": 8, "conv_kernel": 4, "ssm_state_size": 128},
}

_7B = {"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096}
_LLAMA = {**_7B, "intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 2048}
_MISTRAL = {
    **_7B,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 32000,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
}
_QWEN2 = {**_7B, "num_key_value_heads": 32, "intermediate_size": 22016, "vocab_size": 151936, "max_position_embeddings": 32768}

WITHIN: dict[str, dict[str, dict[str, Any]]] = {
    **{name: {"llama": _LLAMA, "mistral": _MISTRAL} for name in ("llava", "llava_next", "llava_next_video", "video_llava", "vipllava")},
    "qwen2_audio": {"qwen2": _QWEN2},
}
"""Decoders within another model's file, which holds what differs from the decoder's class alone (`to_diff_dict`): by the whole's
`model_type`, then by family. Whatever reads such a file takes the rest from the class (`LlamaConfig`, `MistralConfig`, `Qwen2Config`),
sizes too: llava-hf's files of LLaVA 1.5 7B name neither layers nor heads, Pixtral's no KV heads, Qwen2-Audio's nothing but its
feed-forward."""


def defaults_of(config: dict[str, Any], values: dict[str, Any], family: str) -> dict[str, Any]:
    """What the class fixes of what a decoder's fields (`values` of `config`) leave out: within another model's file, everything."""
    whole = config.get("model_type")
    within = WITHIN.get(whole, {}) if values is not config and isinstance(whole, str) else {}
    return {**DEFAULTS.get(family, {}), **within.get(family, {})}
