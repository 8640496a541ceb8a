"""SGLang 0.5.23: which of its pools a family's layers are kept in.

Sources, all below `sglang/srt`: `configs/model_config.py` (`is_hybrid_swa_model`, `_derive_model_shapes`, `is_hybrid_swa_compress`),
`arg_groups/overrides.py` (`_MAMBA_EXTRA_BUFFER_ARCHS`), `arg_groups/model_overrides/*`, and the list of `models/`. Families are those of
`fitcheck.sources.families`.
"""

from __future__ import annotations

SWA_POOL = {
    "llama4",
    "gpt_oss",
    "mimo_v2",
    "mimo_v2_flash",
    "step3p5",
    "step3p7",
    "gemma4",
    "laguna",
    "mellum",
    "muse_glimmer",
}
"""Families whose windowed layers have a token pool of their own (`is_hybrid_swa_model`). The windowed layers of all others (Gemma 2 and 3,
EXAONE 4, OLMo 3, Cohere 2, Trinity, Mistral 7B, …) keep every token: they are missing from that list, or `disable_hybrid_swa_memory` is
set for them (`model_overrides/gemma2_gemma3.py`, `exaone.py`, `olmo2.py`)."""

WHOLE_WITH_HOST_CACHE = {"step3p5", "step3p7"}
"""Families whose windowed layers keep every token, too, with `--enable-hierarchical-cache` (`arg_groups/overrides.py`,
`_step3p_overrides`)."""

OWN_SWA_SHAPE = {"mimo_v2", "mimo_v2_flash", "gemma4"}
"""Families whose windowed layers are stored with heads and widths of their own (`is_hybrid_swa_compress`); in the others both pools take
the shape of the full-attention layers (`KVCacheConfigurator._build_hybrid_swa_kv_pool`)."""

MLA = {
    "deepseek_v2",
    "deepseek_v3",
    "kimi_k2",
    "kimi_k25",
    "deepseek_v32",
    "glm_moe_dsa",
    "glm4_moe_lite",
    "glm5_next",
    "longcat_flash",
    "mistral4",
    "mistral_large4",
    "minicpm3",
    "kimi_linear",
    "kimi_k3",
    "bailing_hybrid",
}
"""Families stored as latents (`ModelConfig._derive_model_shapes`, `AttentionArch.MLA`)."""

STATE_SLOTS = {
    **dict.fromkeys(
        ["qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "kimi_linear", "kimi_k3", "bailing_hybrid", "bailing_moe_linear"], 5
    ),
    **dict.fromkeys(["glm5_next", "nemotron_h", "falcon_h1", "granitemoehybrid"], 5),
    **dict.fromkeys(["lfm2", "lfm2_moe", "mamba", "mamba2", "falcon_mamba"], 3),
}
"""Slots of recurrent state for each running request, with the radix cache on (`KVCacheConfigurator._calculate_mamba_ratio`): 3, and 2 more
for tracking where the `extra_buffer` strategy is the default (`_mamba_radix_cache_resolution` with the overlap schedule on)."""

SLOTS_BY_STRATEGY = {"no_buffer": 3, "extra_buffer": 5, "extra_buffer_lazy": 4}
"""The same for a strategy that is named (`mem_cache/allocation_sizing.py`, `get_mamba_tracking_slots`)."""

PAGE_TOKENS = {"deepseek_v4": 256, "deepseek_v41": 256, "minimax_m3": 128, "qwen4_exp": 64}
"""Pages that a family is given whatever `--page-size` says (`model_overrides/deepseek_v4.py`, `minimax_m3.py`, `qwen4_exp.py`)."""

SWA_RATIO = 0.8
"""Tokens of the windowed pool to one of the full pool (`arg_groups/fields/schedule.py`, `swa_full_tokens_ratio`)."""

DSV4_SWA_RATIO = 0.1
"""The same for DeepSeek V4 (`model_overrides/deepseek_v4.py`)."""
