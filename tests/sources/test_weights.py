"""Weights from configs: published sizes, llama.cpp's own bytes, and what must hold for any model and format."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitcheck.catalogue.models import ComponentKind
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.sources.tensors import ggml
from fitcheck.sources.tensors.record import Part
from fitcheck.sources.weights import derive_components, derive_tensors, missing_parts, parameters
from tests.golden import rows
from tests.sources.test_config import expanded

ROWS = rows("weights.yaml")
LLAMA = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1024,
}
MOE = {**LLAMA, "model_type": "qwen3_moe", "num_experts": 4, "moe_intermediate_size": 256, "head_dim": 64}


def total(config, form, **options):
    return sum(part.bytes for part in derive_components(config, form, **options))


def loaded(config, form):
    """In llama.cpp's mixes what the engine loads, which leaves the drafter out; else the whole checkpoint."""
    parts = derive_components(config, form)
    mix = form in ggml.MIXES
    return sum(part.bytes for part in parts if not mix or part.kind is not ComponentKind.DRAFTER)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_weights_are_what_the_source_says(row):
    config = expanded(row["config"])
    if "unknown" in row:
        with pytest.raises(UnknownFact, match=row["unknown"]):
            derive_tensors(config)
        return
    if "parameters" in row:
        assert parameters(config) == row["parameters"], row["source"]
    if "with_drafter" in row:
        assert parameters(config, drafter=True) == row["with_drafter"], row["source"]
    for form, size in row.get("bytes", {}).items():
        allowed = float(row.get("within", {}).get(form, 0))
        assert abs(loaded(config, form) / size - 1) * 100 <= allowed, (form, loaded(config, form), size)


def test_a_tied_head_is_counted_once_and_has_no_tensor_of_its_own():
    tied = derive_tensors({**LLAMA, "tie_word_embeddings": True})
    assert not [tensor for tensor in tied if tensor.part is Part.HEAD]
    assert parameters(LLAMA) - parameters({**LLAMA, "tie_word_embeddings": True}) == 1024 * 512


def test_experts_are_a_component_of_their_own():
    parts = {part.kind: part for part in derive_components(MOE, "bf16")}
    assert parts[ComponentKind.EXPERTS].bytes == 8 * 4 * 3 * 256 * 512 * 2
    assert "12,582,912 in bf16" in parts[ComponentKind.EXPERTS].formula


@pytest.mark.parametrize(("form", "bits"), [("awq", 4 + 16 / 128 + 4 / 128), ("nvfp4", 4.5), ("mxfp4", 4.25), ("mlx", 4.5)])
def test_a_matrix_takes_its_bits_and_scales(form, bits):
    config = {**LLAMA, "hidden_size": 4096, "intermediate_size": 16384, "head_dim": 512, "tie_word_embeddings": True}
    small = total({**config, "num_hidden_layers": 1}, form)
    layer = total({**config, "num_hidden_layers": 2}, form) - small
    elements = parameters({**config, "num_hidden_layers": 2}) - parameters({**config, "num_hidden_layers": 1}) - 2 * 4096
    assert layer == pytest.approx(elements * bits / 8 + 2 * 4096 * 2, rel=1e-5)


def test_fp8_has_a_scale_for_each_block():
    sizes = {block: total(LLAMA, "fp8", block=(block, block)) for block in (64, 128)}
    elements = sum(tensor.elements for tensor in derive_tensors(LLAMA) if tensor.matrix and tensor.layers)
    assert sizes[64] - sizes[128] == 4 * (elements // 64**2 - elements // 128**2)


def test_what_stays_in_16_bits_is_taken_from_the_config_and_then_derived():
    quantised = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": ["model.layers.0", "lm_head"]}
    whole, kept = derive_components(LLAMA, "fp8"), derive_components({**LLAMA, "quantization_config": quantised}, "native")
    layer = sum(tensor.elements // 8 for tensor in derive_tensors(LLAMA) if tensor.matrix and tensor.layers)
    assert kept[0].bytes - whole[0].bytes == layer - 4 * layer // 128**2
    assert (whole[0].grade, kept[0].grade) == (Grade.ESTIMATED, Grade.DERIVED)


def test_modules_are_named_by_expressions_stars_and_parts_of_names():
    def stays(name):
        return total({**LLAMA, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128], "ignore": [name]}}, "native")

    plain = total(LLAMA, "fp8")
    down = stays("re:.*mlp\\.down_proj$")
    assert down > plain
    assert stays("*.mlp.down_proj") == stays("model.layers.*.mlp.down_proj") == stays("down_proj") == down
    assert stays("down") == plain


def test_compressed_tensors_groups_and_modelopt_layers_are_read():
    weights = {"num_bits": 4, "type": "int", "group_size": 32, "strategy": "group", "symmetric": True}
    grouped = {
        "quant_method": "compressed-tensors",
        "config_groups": {"g": {"targets": ["Linear"], "weights": weights}},
        "ignore": ["lm_head"],
    }
    mixed = {
        "quant_method": "modelopt",
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {f"model.layers.{layer}.mlp": {"quant_algo": "NVFP4"} for layer in range(8)},
    }
    half = total(LLAMA, "bf16")
    assert total({**LLAMA, "quantization_config": grouped}, "native") < total({**LLAMA, "quantization_config": mixed}, "native") < half
    parts = derive_components({**LLAMA, "quantization_config": mixed}, "native")
    assert "18,874,368 in nvfp4" in parts[0].formula


def test_a_quantisation_that_is_not_known_is_unknown():
    with pytest.raises(UnknownFact, match="bitsandbytes"):
        derive_components({**LLAMA, "quantization_config": {"quant_method": "bitsandbytes"}}, "native")


def test_an_expression_that_could_run_for_ever_is_not_run():
    quantised = {"quant_method": "fp8", "weight_block_size": [128, 128], "ignore": ["re:(.*a)*(.*b)*x"]}
    with pytest.raises(UnknownFact, match="expression"):
        derive_components({**LLAMA, "quantization_config": quantised}, "native")


def test_a_format_or_option_that_is_not_known_is_refused():
    with pytest.raises(UsageError, match="is not known"):
        derive_components(LLAMA, "Q9_K")
    with pytest.raises(UsageError, match="no option"):
        derive_components(LLAMA, "awq", groups=3)
    with pytest.raises(UsageError, match="1 to 8 bits"):
        derive_components(LLAMA, "exl3", bpw=0.5)


def test_exl3_holds_its_average():
    config = {**LLAMA, "hidden_size": 4096, "intermediate_size": 16384, "head_dim": 512, "tie_word_embeddings": True}
    low, middle, high = (total(config, "exl3", bpw=bpw) for bpw in (3, 3.5, 4))
    assert middle == pytest.approx((low + high) / 2, abs=2 * len(derive_tensors(config)))
    assert total(LLAMA, "exl3", head_bits=8) > total(LLAMA, "exl3")


def test_rows_that_do_not_divide_fall_back():
    config = {**LLAMA, "hidden_size": 480, "head_dim": 60, "tie_word_embeddings": True}
    kinds = " ".join(part.formula for part in derive_components(config, "Q4_K_M"))
    assert "Q5_0" in kinds
    assert "Q8_0" in kinds
    assert " Q4_K" in kinds  # the networks' last matrices, whose rows are 1536 long


def test_falcon_has_rules_of_its_own():
    falcon = {"model_type": "falcon", "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 32, "vocab_size": 1024}
    formula = derive_components(falcon, "Q4_K_M")[0].formula
    assert "Q8_0" in formula  # the tied table
    assert "Q5_K" in formula


def test_towers_are_named_as_missing():
    assert missing_parts({"model_type": "qwen3_5", "vision_config": {"depth": 27}, "text_config": {}}) == ("vision_config",)
    assert missing_parts(LLAMA) == ()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([LLAMA, MOE]), st.integers(1, 40), st.sampled_from(["bf16", "fp8", "awq", "nvfp4", "exl3", *ggml.MIXES]))
def test_more_layers_are_more_bytes(config, layers, form):
    assert total({**config, "num_hidden_layers": layers + 1}, form) > total({**config, "num_hidden_layers": layers}, form)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([LLAMA, MOE]), st.integers(1, 48), st.sampled_from([512, 768, 1024]), st.sampled_from([256, 1536, 2048]))
def test_formats_keep_their_order(config, layers, hidden, width):
    config = {**config, "num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": width, "moe_intermediate_size": width}
    order = ["F32", "F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "IQ4_XS", "Q3_K_M", "Q2_K"]
    sizes = [total(config, form) for form in order]
    assert sizes == sorted(sizes, reverse=True)
    assert total(config, "bf16") > total(config, "fp8") > total(config, "awq")
    assert all(total(config, "exl3", bpw=bpw) < total(config, "exl3", bpw=bpw + 0.5) for bpw in (2, 3, 4.5))


JUNK = st.one_of(st.none(), st.booleans(), st.integers(-3, 1 << 70), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=3))


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_junk_in_a_config_is_unknown_and_nothing_worse(data):
    config = copy.deepcopy(expanded(data.draw(st.sampled_from(ROWS))["config"]))
    holder = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
    for name in data.draw(st.lists(st.sampled_from(sorted(holder)), max_size=3)):
        holder[name] = data.draw(JUNK)
    form = data.draw(st.sampled_from(["bf16", "native", "fp8", "nvfp4", "exl3", "Q4_K_M", "Q2_K"]))
    try:
        parts = derive_components(config, form)
    except UnknownFact:
        return
    assert all(part.bytes > 0 for part in parts)


def experts_of(name, mix):
    config = next(row["config"] for row in ROWS if row["name"].startswith(name))
    return next(part for part in derive_components(expanded(config), mix) if part.kind is ComponentKind.EXPERTS)


def test_layers_that_a_mix_makes_heavier_are_told_apart():
    # Qwen3-30B-A3B in Q4_K_M with -ngl 30: `CUDA0 model buffer size = 10750.86 MiB` (https://github.com/ggml-org/llama.cpp/issues/13729),
    # the last 30 of 48 layers. Besides its experts a layer has queries and an output of 2,048 x 4,096, keys and values of 2,048 x 512,
    # norms (2 x 2,048 + 2 x 128) and a router (128 x 2,048) in 32 bits; Q4_K takes 144 B for 256, Q6_K 210 B. The 14 that
    # `use_more_bits` names (20, 23, ... 41, and 42 to 47) have their values in Q6_K.
    found = experts_of("qwen3-30b-a3b", "Q4_K_M")
    beside = 2 * 2048 * 4096 // 256 * 144 + 2048 * 512 // 256 * 144 + 4 * (2 * 2048 + 2 * 128) + 4 * 128 * 2048
    values = 14 * 2048 * 512 // 256 * 210 + 16 * 2048 * 512 // 256 * 144
    assert len(found.layer_bytes) == 48
    assert round((sum(found.layer_bytes[18:]) + 30 * beside + values) / 1024**2, 2) == 10750.86


def test_rows_that_no_k_quant_divides_differ_by_layer_too():
    # Gemma 4 26B A4B in Q4_K_M: ik_llama.cpp prints 563.23 MiB for layer 0 and 468.93 for layer 3
    # (https://github.com/ikawrakow/ik_llama.cpp/issues/1618). Beside the experts, layer 0 has the dense network's last matrix
    # (2,816 x 2,112) in Q8_0 for Q5_0 (34 against 22 B for 32) and its values (2,816 x 2,048) in Q6_K for Q4_K.
    found = experts_of("gemma-4-26b-a4b", "Q4_K_M").layer_bytes
    beside = 2816 * 2112 // 32 * (34 - 22) + 2816 * 2048 // 256 * (210 - 144)
    assert (found[0] - found[3] + beside) / 1024**2 == pytest.approx(563.23 - 468.93, abs=0.01)


def test_the_table_that_llama_cpp_reads_on_the_host_is_told_apart():
    # Llama 3.1 8B in Q5_K_S: `model size = 5.162 GiB`, `CUDA0 buffer size = 4941.00 MiB` (https://github.com/ikawrakow/ik_llama.cpp/issues/103),
    # so 344.4 to 345.4 MiB are elsewhere; 128,256 x 4,096 in Q5_K takes 176 B for 256.
    config = expanded(next(row["config"] for row in ROWS if row["name"].startswith("llama-3.1-8b")))
    table = {part.kind: part.bytes for part in derive_components(config, "Q5_K_S")}[ComponentKind.EMBEDDING]
    assert table == 128_256 * 4096 * 176 // 256
    assert abs(5.162 * 1024 - 4941.00 - table / 1024**2) < 0.0005 * 1024
    assert ComponentKind.EMBEDDING not in {part.kind for part in derive_components(config, "bf16")}


def test_a_tied_table_is_the_head_and_gemmas_per_layer_tables_are_read_on_the_host():
    # 262,144 rows of 42 x 256 in Q6_K, 210 B for 256, beside 2,560 of the embedding that the head shares
    config = expanded(next(row["config"] for row in ROWS if row["name"].startswith("gemma-4-e4b")))
    parts = {part.kind: part.bytes for part in derive_components(config, "Q4_K_M")}
    assert parts[ComponentKind.EMBEDDING] == 262_144 * 42 * 256 * 210 // 256
    assert parts[ComponentKind.WEIGHTS] > 262_144 * 2560 * 210 // 256


def test_layers_that_are_alike_are_not_listed():
    assert experts_of("qwen3-30b-a3b", "Q8_0").layer_bytes == ()
