"""Configs to state: hand arithmetic and logs, class rules, and files that are no configs."""

import json
from math import ceil

import pytest

from fitcheck.catalogue.layers import Attention, Cross
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import DataError
from fitcheck.fit.state import Share, group_state, kv_dtype
from fitcheck.sources.config import MOST_BYTES, read_config
from tests.golden import rows

LONG = 1 << 40
WINDOWED = ("sliding", "chunked", "compressed_window")


def expanded(value):
    """A row's fields with `{repeat, times, then}` written out."""
    if isinstance(value, dict) and "repeat" in value:
        return [expanded(entry) for entry in value["repeat"]] * value["times"] + expanded(value.get("then", []))
    if isinstance(value, dict):
        return {name: expanded(entry) for name, entry in value.items()}
    return [expanded(entry) for entry in value] if isinstance(value, list) else value


@pytest.fixture
def read(tmp_path):
    def run(config):
        path = tmp_path / "config.json"
        path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
        return read_config(path)

    return run


def parts(groups, dtype, tokens):
    kept = [group for group in groups if not (isinstance(group, Cross) and group.positions is None)]
    found = [(group.kind, group_state(group, tokens, dtype, Share())) for group in kept]
    return [(kind, part) for kind, part in found if part is not None]


@pytest.mark.parametrize("row", rows("configs.yaml"), ids=lambda row: row["name"])
def test_a_config_gives_the_state_that_its_source_says(read, row):
    model = read(expanded(row["config"]))
    if "unknown" in row:
        assert model.architecture is None
        assert row["unknown"] in model.unknown[0]
        return
    assert model.unknown == ()
    architecture, dtype = model.architecture, kv_dtype(row.get("kv_dtype", "bf16"))
    long = parts(architecture.groups, dtype, LONG)
    assert ceil(sum(part.per_token for _, part in long)) == row["per_token"], row["source"]
    one = sum(part.per_token for kind, part in parts(architecture.groups, dtype, 1) if kind in WINDOWED)
    if "per_window_token" in row or not one:
        assert one == row.get("per_window_token", 0), row["source"]
    assert sum(part.bytes for _, part in long if part.fixed) == row.get("fixed", 0), row["source"]
    if "draft_per_token" in row:
        assert ceil(sum(part.per_token for _, part in parts(architecture.draft_groups, dtype, LONG))) == row["draft_per_token"]


LLAMA = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 128}


def test_what_the_file_says_is_published_and_what_the_class_fixes_is_named(read):
    published = read(LLAMA)
    assert published.architecture.grade is Grade.PUBLISHED
    assert published.assumed == ()
    derived = read({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 34, "hidden_size": 2560}})
    assert derived.architecture.grade is Grade.DERIVED
    assert "num_key_value_heads = 4, which the file does not state" in derived.assumed
    assert "num_key_value_heads = 4" in derived.architecture.note


def test_no_longest_context_is_said(read):
    model = read({name: value for name, value in LLAMA.items() if name != "max_position_embeddings"})
    assert model.architecture.max_context_tokens == 1_048_576
    assert "no longest context" in model.assumed[0]


@pytest.mark.parametrize(
    ("quantised", "forced"),
    [
        ({"quant_method": "modelopt", "kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"}}, "fp8"),
        ({"quant_method": "modelopt", "kv_cache_scheme": "FP8"}, "fp8"),
        ({"quant_method": "modelopt_fp4", "kv_cache_quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quantization": {"kv_cache_quant_algo": "FP8"}}, "fp8"),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": False}}, "fp8"),
        ({"quant_algo": "FP8", "kv_cache_scheme": "FP8", "producer": {"name": "modelopt"}}, None),
        ({"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, None),
        ({"quant_method": "fp8", "fmt": "e4m3"}, None),
        ({"kv_cache_scheme": {"num_bits": 8, "type": "int"}}, None),
        ({"kv_cache_scheme": None}, None),
        ([], None),
    ],
)
def test_a_checkpoint_may_force_its_kv_dtype(read, quantised, forced):
    assert read({**LLAMA, "quantization_config": quantised}).forced_kv_dtype == forced


def test_a_folder_holds_a_config_and_gives_the_name(tmp_path):
    folder = tmp_path / "tiny-llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    model = read_config(folder)
    assert (model.name, model.architecture.family) == ("tiny-llama", "llama")
    assert model.architecture.groups == (Attention(kind="attention", layers=2, kv_heads=4, k_dim=16, v_dim=16),)


def test_a_wrapper_and_its_decoder_name_one_family(read):
    kimi = {
        "model_type": "kimi_linear",
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "kv_lora_rank": 8,
        "qk_rope_head_dim": 4,
        "linear_attn_config": {"kda_layers": [1], "full_attn_layers": [2], "head_dim": 4, "num_heads": 2, "short_conv_kernel_size": 4},
    }
    assert read(kimi).architecture.family == "kimi_linear"
    assert read({"model_type": "kimi_k3", "text_config": kimi}).architecture.family == "kimi_k3"


def test_more_draft_layers_may_be_listed_than_are_counted(read):
    flash = next(expanded(row["config"]) for row in rows("configs.yaml") if row["name"] == "deepseek-v4-flash")
    assert read(flash).architecture.draft_groups == ()
    ratios = [*flash["compress_ratios"][:43], 0, 0, 0]
    drafting = read({**flash, "compress_ratios": ratios, "num_nextn_predict_layers": 1}).architecture.draft_groups
    assert [(group.kind, group.layers) for group in drafting] == [("compressed_window", 3)]


def test_sizes_of_experts_may_be_lists(read):
    moe = {
        **LLAMA,
        "model_type": "hunyuan_v1_moe",
        "intermediate_size": 32,
        "num_experts": 4,
        "moe_topk": [2, 2],
        "moe_intermediate_size": [8, 8],
    }
    architecture = read(moe).architecture
    assert (architecture.experts, architecture.experts_per_token) == (4, 2)
    assert (architecture.feed_forward_size, architecture.expert_feed_forward_size) == (32, 8)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[]", "a JSON object"),
        ("7", "a JSON object"),
        ('{"model_type": "llama",}', "not JSON"),
        ('{"model_type": "llama", "model_type": "qwen3"}', "given twice"),
        ('{"a": {"b": 1, "b": 2}}', "given twice"),
        ('{"num_hidden_layers": ' + "9" * 5000 + "}", "not JSON"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_config_is_one_error(read, text, said):
    with pytest.raises(DataError, match=said):
        read(text)


def test_no_file_and_too_large_a_file(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_config(tmp_path)
    large = tmp_path / "config.json"
    with large.open("wb") as stream:
        stream.truncate(MOST_BYTES + 1)
    with pytest.raises(DataError, match="16 MiB"):
        read_config(tmp_path)
    with pytest.raises(DataError):
        read_config(tmp_path / "a\0b")


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe{\x00}\x00")
    with pytest.raises(DataError, match="not JSON"):
        read_config(path)


@pytest.mark.parametrize("value", ["32", -1, 0, 1e308, float("nan"), float("inf"), True, [], {}, 10**30, 2.5, "\x1b[31m"])
@pytest.mark.parametrize(
    "field", ["num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "max_position_embeddings"]
)
def test_a_size_that_is_none_makes_the_model_unknown(read, field, value):
    model = read({**LLAMA, field: value})
    assert model.architecture is None
    assert field in model.unknown[0] or "head_dim" in model.unknown[0]
    assert "\x1b" not in model.unknown[0]


def test_a_config_without_layers_is_unknown(read):
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
    mamba = {"mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 16, "n_groups": 2, "conv_kernel": 4}
    model = read({"model_type": "nemotron_h", "hidden_size": 64, **heads, **mamba, "layers_block_type": []})
    assert model.unknown == ("the config has no layers",)
