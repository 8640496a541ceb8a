"""mlx-lm 0.32.2: what its model files keep, by family.

Read in PyPI `mlx-lm` 0.32.2, `mlx_lm/models/*.py`: `make_cache`, the calls of `update_and_fetch`, `shard` and `PipelineMixin`. A family
without a file there (after `utils.py`, `MODEL_REMAPPING`) is not answered. Families are those of `fitcheck.sources.families`.
"""

from __future__ import annotations


def _names(*lines: str) -> set[str]:
    return {name for line in lines for name in line.split()}


DEFAULT_CACHE = _names(
    "apertus bailing_moe cohere dbrx deepseek deepseek_v2 deepseek_v3 dots1 ernie4_5 ernie4_5_moe exaone gemma gemma2 glm glm4 glm4_moe",
    "glm4_moe_lite gpt2 gpt_bigcode gpt_neox gptj granite granitemoe helium hunyuan_v1_dense internlm2 internlm3 kimi_k2 kimi_k25 mimo",
    "minicpm minicpm3 minimax_m2 mistral4 mixtral nanochat nemotron olmo olmo2 olmoe openelm phi phi-msft phi3 phimoe qwen qwen2 qwen2_moe",
    "bitnet qwen2_vl qwen2_5_vl qwen3 qwen3_moe qwen3_vl qwen3_vl_moe seed_oss smollm3 solar_open stablelm starcoder2",
    "youtu_llm",
)
"""No `make_cache`: a `KVCache` in every layer, or a `RotatingKVCache` with `max_kv_size` (`models/cache.py`, `make_prompt_cache`)."""

ROTATING = _names(
    "afmoe cohere2 exaone4 exaone_moe gemma3 gemma3n gemma4 gemma4_unified gpt_oss laguna mellum mimo_v2_flash muse_glimmer muse_spark",
    "olmo3 step3p5",
)
"""`RotatingKVCache` in windowed layers. All others keep every token there, too (Gemma 2, Mistral 7B, Phi-3, StarCoder2 …)."""

OWN_CACHE = ROTATING | _names(
    "bailing_hybrid bailing_moe_linear deepseek_v32 falcon_h1 falcon_mamba glm_moe_dsa granitemoehybrid iquestcoder jamba kimi_k3",
    "kimi_linear lfm2 lfm2_moe llama llama4 longcat_flash mamba mamba2 minimax_m3 ministral3 mistral nemotron-nas nemotron_h",
    "olmo_hybrid qwen3_5 qwen3_5_moe qwen3_next rwkv7 xverse",
)
"""A `make_cache` of their own, which `max_kv_size` does not reach."""

TWO_WAYS = {"mistral", "ministral3"}
"""Decoders that run by themselves, with a `make_cache` of their own, or inside `mistral3.py`, which has none."""

ROTATING_WHERE_LISTED = {"mistral", "ministral3"}
"""`RotatingKVCache` in the layers that `layer_types` names sliding (`llama.py`, `ministral3.py`), not for a `sliding_window` alone."""

NOT_BATCHED = {
    "gemma2": "its mask for a batch does not fit its grouped heads",
    "gpt_bigcode": "its positions are one number for the whole batch",
    "llama4": "its chunked caches cannot be merged",
}
"""Families of which the server holds one request at a time, or fails (`gemma2.py`, `gpt_bigcode.py`; `server.py`, `is_batchable`)."""

NOT_QUANTISED = {"gemma2", "phi", "stablelm"}
"""Attention of their own that cannot read a `QuantizedKVCache`."""

REFUSED = {"deepseek_v41": "its model file has no engram memory, and stops at the engram layers of the published config"}
"""Families with a model file that does not run what is published (`deepseek_v41.py`, `ModelArgs.__post_init__`)."""

NEEDS_EXPERTS = {"phi-msft"}
"""Families whose model file is for a mixture of experts alone (`phixtral.py`, where `MODEL_REMAPPING` sends Phi-2's older name)."""

EXPANDED = {"deepseek_v2", "minicpm3", "youtu_llm"}
"""MLA stored as the keys and values of every head (`deepseek_v2.py`, `minicpm3.py`, `youtu_llm.py`)."""

LATENT = _names(
    "bailing_hybrid deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa kimi_k2 kimi_k25 kimi_k3 kimi_linear longcat_flash mistral4"
)
"""MLA stored as one latent (keys) and its rope part (values): `cache.update_and_fetch(kv_latent, k_pe)`."""

LISTED = {"deepseek_v32", "glm_moe_dsa", "falcon_h1", "longcat_flash", "minimax_m3"}
"""Caches inside a `CacheList`, which `maybe_quantize_kv_cache` (`generate.py`) passes over."""

SHARDED = _names(
    "deepseek_v2 deepseek_v3 deepseek_v32 exaone_moe glm4_moe glm4_moe_lite glm_moe_dsa gpt_oss iquestcoder kimi_k2",
    "kimi_k25 kimi_k3 llama longcat_flash minimax_m2 minimax_m3 ministral3 mistral mistral4 qwen2 qwen3 qwen3_5 qwen3_5_moe qwen3_moe",
    "step3p5 xverse",
)
"""A `shard` method: heads are divided over the ranks of a group."""

PIPELINED = _names(
    "deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe glm4_moe_lite glm_moe_dsa kimi_k2 kimi_k25 minimax_m3 ministral3 mistral4",
    "qwen2 qwen3_5 qwen3_5_moe qwen3_moe qwen3_next",
)
"""A `PipelineMixin`: layers are divided over the ranks (`models/pipeline.py`)."""

REPEATS_HEADS = {"qwen3_5", "qwen3_5_moe"}
"""KV heads are repeated for more ranks than heads (`qwen3_5.py`, `repeat_kv_layer_inplace`); others must have a head for each rank."""

STATE_BYTES = {"gdn": 4, "kda": 4, "mamba2": 4, "mamba1": 2, "lightning": 2, "shortconv": 2, "rwkv": 2}
"""Bytes of a recurrent state's element: FP32 where it starts so or the update promotes it (`gated_delta.py`, `gated_delta_update`;
`ssm.py`, `ssm_attn`), else the model's dtype (`mamba.py`, `jamba.py`, `bailing_moe_linear.py`, `rwkv7.py`)."""

WIDE_STATE = {"bailing_hybrid"}
"""Families that keep an FP32 state whatever the flavour: Ling 2.5's lightning attention (`bailing_hybrid.py`, `recurrent_gla`)."""
