"""Tiny models that keep keys and values, latent rows and index keys."""

from typing import Any

from fitcheck.catalogue.layers import Chunked, Latent, Stateless
from tests.fit.engines.llamacpp_tiny import EVERY_FOURTH, EXPERTS, HALF, INDEXER, MLA, Tiny, full, keys, latent, slides, window

COMMON_ARCHES = """mistral3:ministral3 gpt2:gpt2 mpt:mpt bloom:bloom baichuan:baichuan starcoder:gpt_bigcode refact:gpt_refact
    stablelm:stablelm qwen:qwen qwen2vl:qwen2_5_vl qwen3vl:qwen3_vl phi2:phi orion:orion internlm2:internlm2 minicpm:minicpm xverse:xverse
    command-r:cohere olmo:olmo openelm:openelm chatglm:chatglm glm4:glm4 bitnet:bitnet jais2:jais2 nemotron:nemotron exaone:exaone
    granite:granite granitemoe:granitemoe arcee:arcee ernie4_5:ernie4_5 hunyuan-dense:hunyuan_v1_dense hunyuan_vl:hunyuan_vl
    smollm3:smollm3 seed_oss:seed_oss paddleocr:paddleocr_vl
    pangu-embedded:PanguEmbedded"""
EXPERT_ARCHES = """qwen2moe:qwen2_moe qwen3vlmoe:qwen3_vl_moe phimoe:phimoe arctic:arctic deepseek:deepseek bailingmoe:bailing_moe
    bailingmoe2:bailing_moe_v2 hunyuan-moe:hunyuan_v1_moe hy_v3:hy_v3 minimax-m2:minimax_m2 dbrx:dbrx ernie4_5-moe:ernie4_5_moe
    grok:grok-1"""
ODD = {"attention.clamp_kqv": 1.0, "interleave_moe_layer_step": 1}
"""What only one architecture or two ask for."""


def alike(listed: str, own: dict[str, Any]) -> tuple["Tiny", ...]:
    """Models of architectures that differ in nothing that is kept."""
    return tuple(Tiny(*pair.split(":"), own, (full(4),)) for pair in listed.split())


ATTENTION = (
    *alike(COMMON_ARCHES, {}),
    *alike(EXPERT_ARCHES, {**EXPERTS, **ODD}),
    Tiny("gptneox", "gpt_neox", {"use_parallel_residual": True}, (full(4),)),
    Tiny("olmoe", "olmoe", {**EXPERTS, "attention.head_count_kv": 4}, (full(4, 4),)),
    Tiny("dots1", "dots1", {**EXPERTS, "attention.head_count_kv": 4}, (full(4, 4),)),
    Tiny("falcon", "falcon", {"attention.head_count_kv": 1, "context_length": 2048}, (full(4, 1),)),
    Tiny("llama", "llama", {}, (full(4),)),
    Tiny("llama", "mistral", window(), (slides(4),)),
    Tiny("llama", "mixtral", {"expert_count": 4, "expert_used_count": 2}, (full(4),)),
    Tiny("qwen2", "qwen2", {}, (full(4),)),
    Tiny("qwen3", "qwen3", {"attention.head_count_kv": 1}, (full(4, 1),)),
    Tiny("qwen3moe", "qwen3_moe", EXPERTS, (full(4),)),
    Tiny("phi3", "phi3", window(), (slides(4),)),
    Tiny("starcoder2", "starcoder2", {}, (slides(4),)),
    Tiny("gemma", "gemma", {}, (full(4),)),
    Tiny("glm4moe", "glm4_moe", {**EXPERTS, "block_count": 5, "nextn_predict_layers": 1}, (full(4),), (full(1),)),
    Tiny(
        "deci",
        "nemotron-nas",
        {"attention.head_count": [4, 0, 4, 4], "attention.head_count_kv": [2, 0, 1, 2]},
        (full(2), full(1, 1), Stateless(kind="none", layers=1)),
    ),
    Tiny(
        "minicpm3",
        "minicpm3",
        {
            "attention.kv_lora_rank": 64,
            "attention.q_lora_rank": 64,
            "attention.head_count_kv": 4,
            "attention.key_length": 96,
            "rope.dimension_count": 32,
        },
        (Latent(kind="latent", layers=4, latent_dim=64, rope_dim=32, expanded_heads=4, expanded_k_dim=96, expanded_v_dim=64),),
    ),
    # sliding windows
    Tiny("gemma2", "gemma2", window(), (full(2), slides(2))),
    Tiny("gemma3", "gemma3", {**window(), "block_count": 7}, (full(1), slides(6))),
    Tiny(
        "gemma3n",
        "gemma3n",
        {**window(), "block_count": 25, "embedding_length_per_layer_input": 64, "altup.num_inputs": 4, "altup.active_idx": 0},
        (full(4), slides(16), Stateless(kind="none", layers=5)),
    ),
    Tiny(
        "gemma4",
        "gemma4",
        {
            **window(pattern=HALF),
            "attention.shared_kv_layers": 2,
            "attention.key_length": 128,
            "attention.value_length": 128,
            "attention.key_length_swa": 64,
            "attention.value_length_swa": 64,
            "embedding_length_per_layer_input": 64,
            "attention.head_count_kv": [2, 1, 2, 1],
        },
        (full(1, 1, 128), slides(1), Stateless(kind="none", layers=2)),
    ),
    Tiny("gpt-oss", "gpt_oss", {**window(), **EXPERTS}, (full(2), slides(2))),
    Tiny("cohere2", "cohere2", window(), EVERY_FOURTH),
    Tiny("exaone4", "exaone4", window(), EVERY_FOURTH),
    Tiny("exaone4", "exaone4", {**window(), "block_count": 64}, (full(16), slides(48))),
    Tiny("olmo2", "olmo3", window(), EVERY_FOURTH),
    Tiny("olmo2", "olmo2", {}, (full(4),)),
    Tiny("laguna", "laguna", {**window(), **EXPERTS}, EVERY_FOURTH),
    Tiny("afmoe", "afmoe", {**window(), **EXPERTS}, EVERY_FOURTH),
    Tiny("muse-glimmer", "muse_glimmer", window(), EVERY_FOURTH),
    Tiny(
        "mimo2",
        "mimo_v2_flash",
        {**window(pattern=HALF), **EXPERTS, "attention.key_length": 96, "attention.head_count_kv": [2, 1, 2, 1]},
        (full(2, 1, 96, 64), slides(2, 300, 2, 96, 64)),
    ),
    Tiny("step35", "step3p5", {**window(pattern=HALF), **EXPERTS, "attention.head_count": [4, 4, 4, 4]}, (full(2), slides(2))),
    Tiny("cohere2moe", "cohere2_moe", {**window(pattern=HALF), **EXPERTS}, (full(2), slides(2))),
    Tiny("exaone-moe", "exaone_moe", {**window(), **EXPERTS}, EVERY_FOURTH),
    Tiny("mellum", "mellum", {**window(), **EXPERTS}, EVERY_FOURTH),
    Tiny("granite_swa", "granite_swa", window(pattern=HALF), (full(2), slides(2))),
    Tiny("smallthinker", "smallthinker", {**window(), **EXPERTS}, EVERY_FOURTH),
    Tiny(
        "llama4",
        "llama4",
        {**EXPERTS, "interleave_moe_layer_step": 1},
        (full(1), Chunked(kind="chunked", layers=3, kv_heads=2, k_dim=64, v_dim=64, chunk_tokens=8192)),
    ),
    # latent attention and indexers
    Tiny("deepseek2", "deepseek_v3", MLA, (latent(4),)),
    Tiny("mistral4", "mistral4", MLA, (latent(4),)),
    Tiny(
        "hy_v4",
        "hy_v4",
        {
            **MLA,
            **INDEXER,
            "attention.indexer.types": [True, False, True, False],
            "hyper_connection.count": 4,
            "hyper_connection.epsilon": 1e-6,
            "hyper_connection.magnitude": 2.0,
            "swiglu_clamp_exp": 10.0,
            "expert_weights_norm": True,
        },
        (latent(4), keys(2)),
    ),
    Tiny("deepseek32", "deepseek_v32", {**MLA, **INDEXER}, (latent(4), keys(4))),
    Tiny("glm-dsa", "glm_moe_dsa", {**MLA, **INDEXER, "attention.indexer.types": [True, False, True, False]}, (latent(4), keys(2))),
    Tiny(
        "minimax-m3",
        "minimax_m3",
        {
            **EXPERTS,
            **INDEXER,
            "attention.indexer.head_count": 2,
            "attention.indexer.block_size": 4,
            "attention.indexer.local_blocks": 1,
            "rope.dimension_count": 32,
        },
        (full(4), keys(3)),
    ),
)
