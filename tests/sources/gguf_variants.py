"""Metadata that llama.cpp also reads, beside the tiny models of `tests/fit/engines`: what is left out, arrays in place of one number."""

from typing import Any

from tests.fit.engines.llamacpp_tiny import EXPERTS, GDN, HALF, HYBRID_HEADS, INDEXER, MAMBA, MLA, window
from tests.fit.engines.llamacpp_tiny_states import V4

NONE: Any = None
"""A key of `COMMON` that the file does not have."""
UNSAID = {"attention.key_length": NONE, "attention.value_length": NONE}
DSA = {**MLA, **INDEXER}
KEPT_WHOLE = {**MLA, "attention.key_length_mla": NONE, "attention.value_length_mla": NONE, "attention.head_count_kv": 4}
RECURRENT = [True, False, False, True]

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "widths from the hidden size": ("gpt2", UNSAID),
    "no KV heads given": ("llama", {**UNSAID, "attention.head_count_kv": NONE}),
    "heads by layer": ("openelm", {"attention.head_count": [4, 4, 8, 8], "attention.head_count_kv": [1, 1, 2, 2]}),
    "window as long as the context": ("phi3", window(4096)),
    "window of Gemma 2 left out": ("gemma2", {}),
    "window of Gemma 3 left out": ("gemma3", {}),
    "window of Gemma 3 zero": ("gemma3", window(0)),
    "window of EXAONE 4's 64 layers left out": ("exaone4", {"block_count": 64}),
    "window of Laguna left out": ("laguna", EXPERTS),
    "window of OLMo 2 zero": ("olmo2", window(0)),
    "window of Llama 4 zero": ("llama4", {**EXPERTS, "interleave_moe_layer_step": 1, **window(0)}),
    "another period": ("gemma3", {**window(), "attention.sliding_window_pattern": 3, "block_count": 7}),
    "period 0": ("cohere2", {**window(), "attention.sliding_window_pattern": 0}),
    "a pattern for Cohere 2": ("cohere2", window(pattern=HALF)),
    "a pattern for Llama 4": ("llama4", {**EXPERTS, "interleave_moe_layer_step": 1, **window(pattern=HALF)}),
    "a pattern and draft blocks": (
        "step35",
        {**window(pattern=[*HALF, True]), **EXPERTS, "block_count": 5, "nextn_predict_layers": 1},
    ),
    "LFM2 with a window": ("lfm2", {**HYBRID_HEADS, "shortconv.l_cache": 3, **window()}),
    "Gemma 4 without shared layers": (
        "gemma4",
        {**window(pattern=HALF), "attention.key_length_swa": 32, "attention.value_length_swa": 32, "embedding_length_per_layer_input": 64},
    ),
    "Gemma 3n that says its shared layers": (
        "gemma3n",
        {
            **window(),
            "block_count": 30,
            "attention.shared_kv_layers": 10,
            "embedding_length_per_layer_input": 64,
            "altup.num_inputs": 4,
            "altup.active_idx": 0,
        },
    ),
    "MLA from before latents were kept": ("deepseek2", KEPT_WHOLE),
    "an indexer in every layer, drafts": ("deepseek32", {**DSA, "block_count": 5, "nextn_predict_layers": 1}),
    "GLM 5": ("glm-dsa", DSA),
    "GLM 5.2 by its context": ("glm-dsa", {**DSA, "context_length": 2**20, "block_count": 12}),
    "GLM 5 with drafts": (
        "glm-dsa",
        {**DSA, "block_count": 5, "nextn_predict_layers": 1, "attention.indexer.types": [True, False, False, True]},
    ),
    "HY 4 without an indexer": (
        "hy_v4",
        {
            **MLA,
            "hyper_connection.count": 4,
            "hyper_connection.epsilon": 1e-6,
            "hyper_connection.magnitude": 2.0,
            "swiglu_clamp_exp": 10.0,
            "expert_weights_norm": True,
        },
    ),
    "MiniMax M3 with two dense layers": (
        "minimax-m3",
        {
            **EXPERTS,
            **INDEXER,
            "leading_dense_block_count": 2,
            "attention.indexer.head_count": 2,
            "attention.indexer.block_size": 4,
            "attention.indexer.local_blocks": 1,
            "rope.dimension_count": 32,
        },
    ),
    "DeepSeek V4 with draft blocks left out": (
        "deepseek4",
        {
            **window(),
            **V4,
            "block_count": 5,
            "nextn_predict_layers": 1,
            "attention.compress_ratios": [0, 0, 4, 128, 0],
            "swiglu_clamp_exp": [10.0] * 5,
        },
    ),
    "another interval": ("qwen3next", {**GDN, **EXPERTS, "full_attention_interval": 2}),
    "recurrent layers listed": ("qwen35", {**GDN, "attention.recurrent_layers": RECURRENT}),
    "recurrent layers of MiniMax by the interval": (
        "minimax-01",
        {**EXPERTS, "residual_scale": 1.0, "full_attention_interval": 4},
    ),
    "Nemotron-H with experts": (
        "nemotron_h_moe",
        {
            **MAMBA,
            **HYBRID_HEADS,
            **EXPERTS,
            "feed_forward_length": [0, 0, 512, 0],
            "context_length": 2**20,
        },
    ),
    "Granite without recurrent layers": ("granitehybrid", {**MAMBA, "attention.head_count_kv": [2, 2, 2, 2], "context_length": 2**20}),
    "Apertus": ("apertus", {f"xielu.{name}": [1.0] * 4 for name in ("alpha_n", "alpha_p", "beta", "eps")}),
    "Chameleon": ("chameleon", {"swin_norm": False, "vocab_size": 65536}),
    "EuroBERT": ("eurobert", {"attention.causal": False}),
    "BERT": ("bert", {"attention.causal": False, "tokenizer.ggml.token_type_count": 2}),
    "Nomic BERT": ("nomic-bert", {"attention.causal": False, "tokenizer.ggml.token_type_count": 2}),
}
