"""Mistral's `params.json` beside the Hugging Face config of the same model, or beside what the model's own name and hand arithmetic say."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from fitcheck import kv_memory, read_model
from fitcheck.sources.config import config_model, parse_config
from fitcheck.sources.mistral_params import as_config
from fitcheck.sources.weights import derive_components, parameters

SEVEN = {
    "dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8, "norm_eps": 1e-05,
    "sliding_window": 4096, "vocab_size": 32000, "max_position_embeddings": 32768,
}  # fmt: skip
"""`params.json` of Mistral 7B v0.1, as a public test of the format has it (address not known)."""
SEVEN_CONFIG = {
    "model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_key_value_heads": 8, "sliding_window": 4096, "vocab_size": 32000, "max_position_embeddings": 32768, "tie_word_embeddings": False,
}  # fmt: skip
"""Its config.json, by python/mlc_llm/model/model_preset.py (key mistral_7b) of github.com/mlc-ai/mlc-llm at 79d603f085f5."""
LARGE = {
    "dim": 7168, "head_dim": 192, "hidden_dim": 16384, "kv_lora_rank": 512, "max_position_embeddings": 294912,
    "moe": {"expert_hidden_dim": 4096, "first_k_dense_replace": 3, "num_experts": 128, "num_experts_per_tok": 4, "num_shared_experts": 1,
            "route_every_n": 1, "routed_scale": 1.0, "num_expert_groups": 1, "num_expert_groups_per_tok": 1},
    "n_heads": 128, "n_kv_heads": 128, "n_layers": 61, "norm_eps": 1e-06, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 131072, "rope_theta": 10000.0,
}  # fmt: skip
"""`params.json` of Mistral Large 3 (675B, 2512) without its vision encoder, as two public tests have it (addresses not known)."""


def model(params):
    return config_model(parse_config(json.dumps(params).encode(), "params.json"), "x", "params.json")


def test_the_same_model_in_either_words():
    theirs = config_model(SEVEN_CONFIG, "x", "config.json").architecture
    assert model(SEVEN).architecture.model_copy(update={"note": None, "grade": theirs.grade}) == theirs.model_copy(update={"note": None})


def test_latent_attention_with_shared_experts_is_as_deepseek_v3():
    # 61 layers x (512 + 64) x 2 B a token, as DeepSeek R1's logs print; 675B parameters by its name, 2.5B of them in the vision encoder
    assert kv_memory(model(LARGE), engine="llama.cpp", context=4096).kv_bytes == 61 * 576 * 2 * 4096
    assert 671e9 < parameters(as_config(LARGE)) < 675e9
    assert model(LARGE).architecture.max_context_tokens == 294_912


def test_experts_of_mixtral():
    # Mixtral 8x7B has 46.7B parameters (its card); 8 x 32 x 3 x 4,096 x 14,336 of them are experts
    params = {**SEVEN, "sliding_window": None, "moe": {"num_experts": 8, "num_experts_per_tok": 2}}
    found = model(params).architecture
    assert (found.family, found.experts, found.experts_per_token) == ("mixtral", 8, 2)
    assert parameters(as_config(params)) == pytest.approx(46.7e9, rel=0.001)
    sizes = {part.kind.value: part.bytes for part in derive_components(as_config(params), "bf16")}
    assert sizes["experts"] == 2 * 8 * 32 * 3 * 4096 * 14336


def test_windows_in_turn():
    # the list of four is gone through 36 / 4 = 9 times: one layer in four sees all
    found = model({**SEVEN, "n_layers": 36, "sliding_window": [None, 32768, 32768, 32768]}).architecture
    assert {group.kind: group.layers for group in found.groups} == {"attention": 9, "sliding": 27}


def test_latent_attention_without_experts_is_dense_throughout():
    # a layer: queries 7,168 x 1,536 + 1,536 x 128 x 192, latents 7,168 x 576 + 512 x 128 x 256, output 128 x 128 x 7,168 and a network of
    # 3 x 7,168 x 16,384; 61 of them and twice 131,072 x 7,168 come to 34.79B, norms aside
    layer = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168 + 3 * 7168 * 16384
    params = {name: value for name, value in LARGE.items() if name != "moe"}
    assert parameters(as_config(params)) == pytest.approx(61 * layer + 2 * 131_072 * 7168, rel=1e-4)
    assert {part.kind.value for part in derive_components(as_config(params), "bf16")} == {"weights"}


def test_no_context_is_vllms_default():
    assert (
        model({name: value for name, value in SEVEN.items() if name != "max_position_embeddings"}).architecture.max_context_tokens
        == 128_000
    )


def test_quantised_as_it_says():
    for stated, scheme in (({}, "static"), ({"qscheme_act": "NO_SCALES"}, "dynamic")):
        found = as_config({**SEVEN, "quantization": {"qformat_weight": "fp8_e4m3", **stated}})["quantization_config"]
        assert found == {"quant_method": "fp8", "activation_scheme": scheme}


@pytest.mark.parametrize(
    "changed",
    [{"model_type": "mamba"}, {"n_layers": "many"}, {"n_layers": None}, {"sliding_window": ["a", []]}, {"sliding_window": []},
     {"moe": 7}, {"moe": {"num_experts": {}}}, {"kv_lora_rank": [1]}, {"dim": -1}, {"quantization": "x"}],
)  # fmt: skip
def test_what_cannot_be_told_is_unknown_and_never_a_crash(changed):
    found = model({**SEVEN, **changed})
    assert found.architecture is not None or found.unknown


def test_another_makers_file_of_that_name_is_no_config(tmp_path):
    # Meta's: a multiple and a factor in place of the width of the feed-forward layers
    theirs = {
        "dim": 4096,
        "n_layers": 32,
        "n_heads": 32,
        "n_kv_heads": 8,
        "multiple_of": 1024,
        "ffn_dim_multiplier": 1.3,
        "vocab_size": 128256,
    }
    (tmp_path / "params.json").write_text(json.dumps(theirs))
    save_file({"tok_embeddings.weight": np.zeros((8, 4), np.float16)}, tmp_path / "consolidated.safetensors")
    assert read_model(tmp_path).architecture is None


def test_a_repository_in_mistrals_format(tmp_path):
    (tmp_path / "params.json").write_text(json.dumps(SEVEN))
    save_file({"tok_embeddings.weight": np.zeros((8, 4), np.float16)}, tmp_path / "consolidated.safetensors")
    found = read_model(tmp_path)
    assert (found.architecture.family, found.architecture.max_context_tokens) == ("mistral", 32768)
    assert found.checkpoints[0].total_bytes == 8 * 4 * 2
