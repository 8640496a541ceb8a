"""Parameters of packed tensors, and the format of a build: 8,192 values in every packing, by shapes as their libraries write them."""

import pytest

from tests.sources.stored.files import of, one
from tests.sources.stored.test_reading import llama


def config_of(method, **fields):
    return {"num_hidden_layers": 1, "quantization_config": {"quant_method": method, **fields}}


P = "model__layers__0__mlp__up_proj__"
AWQ = of(**{f"{P}qweight": ("I32", 128, 8), f"{P}qzeros": ("I32", 1, 8), f"{P}scales": ("F16", 1, 64)})
NVFP4 = of(
    **{f"{P}weight": ("U8", 64, 64), f"{P}weight_scale": ("F8_E4M3", 64, 8), f"{P}weight_scale_2": ("F32",), f"{P}input_scale": ("F32",)}
)
MXFP8 = of(**{f"{P}weight": ("F8_E4M3", 64, 128), f"{P}weight_scale": ("U8", 64, 4)})
PACKED = {
    # 128 inputs x 64 outputs, 8,192 parameters each
    "awq": (AWQ, config_of("awq", bits=4), "awq"),
    "awq without a config": (AWQ, None, "awq"),
    "gptq": (
        of(**{f"{P}qweight": ("I32", 16, 64), f"{P}qzeros": ("I32", 1, 8), f"{P}scales": ("F16", 1, 64), f"{P}g_idx": ("I32", 128)}),
        config_of("gptq", bits=4, group_size=128),
        "gptq",
    ),
    "gptq of 3 bits": (
        of(**{f"{P}qweight": ("I32", 12, 64), f"{P}qzeros": ("I32", 1, 6), f"{P}scales": ("F16", 1, 64), f"{P}g_idx": ("I32", 128)}),
        config_of("gptq"),
        "gptq",
    ),
    "gptq of 8 bits without g_idx": (
        of(**{f"{P}qweight": ("I32", 32, 64), f"{P}qzeros": ("I32", 2, 16), f"{P}scales": ("F16", 2, 64)}),
        None,
        "gptq",
    ),
    "compressed-tensors int4": (
        of(**{f"{P}weight_packed": ("I32", 64, 16), f"{P}weight_scale": ("BF16", 64, 1), f"{P}weight_shape": ("I64", 2)}),
        config_of("compressed-tensors", config_groups={"g": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}}),
        "int4",
    ),
    "compressed-tensors nvfp4": (
        of(**{f"{P}weight_packed": ("U8", 64, 64), f"{P}weight_scale": ("F8_E4M3", 64, 8), f"{P}weight_global_scale": ("F32", 1)}),
        config_of("compressed-tensors", config_groups={"g": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}}),
        "nvfp4",
    ),
    "modelopt nvfp4": (
        NVFP4,
        config_of("modelopt", quant_algo="NVFP4"),
        "nvfp4",
    ),
    "gpt-oss mxfp4": (
        of(
            model__layers__0__mlp__experts__down_proj_blocks=("U8", 2, 32, 4, 16),  # 4 groups of 32 inputs
            model__layers__0__mlp__experts__down_proj_scales=("U8", 2, 32, 4),
        ),
        config_of("mxfp4"),
        "mxfp4",
    ),
    "deepseek fp4": (
        of(layers__0__ffn__experts__0__w1__weight=("I8", 64, 64), layers__0__ffn__experts__0__w1__scale=("F8_E8M0", 64, 4)),
        None,
        "mxfp4",
    ),
    "fp8 blocks": (of(**{f"{P}weight": ("F8_E4M3", 64, 128), f"{P}weight_scale_inv": ("F32", 1, 1)}), config_of("fp8"), "fp8"),
    "fp8 by tensor": (
        of(**{f"{P}weight": ("F8_E4M3", 64, 128), f"{P}weight_scale": ("F32",), f"{P}input_scale": ("F32",)}),
        config_of("modelopt", quant_algo="FP8"),
        "fp8",
    ),
    "mxfp8": (MXFP8, config_of("modelopt", quant_algo="MXFP8"), "mxfp8"),
    "int8": (of(**{f"{P}weight": ("I8", 64, 128), f"{P}weight_scale": ("BF16", 64, 1)}), None, "int8"),
    "nf4": (
        of(**{
            f"{P}weight": ("U8", 4096, 1), f"{P}weight__absmax": ("U8", 128), f"{P}weight__nested_absmax": ("F32", 1),
            f"{P}weight__nested_quant_map": ("F32", 256), f"{P}weight__quant_map": ("F32", 16),
            "model.layers.0.mlp.up_proj.weight.quant_state.bitsandbytes__nf4".replace("__nf4", "\x00nf4"): ("U8", 90),
        }),
        None,
        "bnb-4bit",
    ),
    "exl3 of 3 bits": (
        of(**{f"{P}trellis": ("I16", 8, 4, 48), f"{P}suh": ("F16", 128), f"{P}svh": ("F16", 64)}),
        config_of("exl3", bits=3.0),
        "exl3",
    ),
    "mlx of 4 bits": (
        of(**{f"{P}weight": ("U32", 64, 16), f"{P}scales": ("BF16", 64, 2), f"{P}biases": ("BF16", 64, 2)}),
        {"num_hidden_layers": 1, "quantization": {"bits": 4, "group_size": 64}},
        "mlx",
    ),
    "mlx of 6 bits in one module": (
        of(**{f"{P}weight": ("U32", 64, 24), f"{P}scales": ("BF16", 64, 4), f"{P}biases": ("BF16", 64, 4)}),
        {"quantization": {"bits": 4, "group_size": 64, "model.layers.0.mlp.up_proj": {"bits": 6, "group_size": 32}}},
        "mlx",
    ),
    "float4 as the file has it": (of(**{f"{P}weight": ("F4", 64, 128), f"{P}weight_scale": ("F8_E8M0", 64, 4)}), None, "mxfp4"),
}  # fmt: skip


@pytest.mark.parametrize("name", PACKED)
def test_packed_parameters_are_unpacked_and_scales_are_none(tmp_path, name):
    tensors, config, form = PACKED[name]
    tensors = {tensor.replace("\x00", "__"): spec for tensor, spec in tensors.items()}
    plain = of(model__norm__weight=("BF16", 100))
    found = one(tmp_path, {**tensors, **plain}, config)
    assert found.contents.parameters == 8192 + 100
    assert found.format.name == form
    assert found.contents.bytes == 200 + sum(size for _, _, size in tensors.values())
    assert found.contents.unknown == ()


@pytest.mark.parametrize(
    "tensors",
    [
        of(**{f"{P}qweight": ("I32", 128, 8)}),
        of(**{f"{P}weight_packed": ("I32", 64, 16), f"{P}weight_scale": ("BF16", 64, 1)}),
        of(**{f"{P}weight": ("U32", 64, 16), f"{P}scales": ("BF16", 64, 2)}),
        of(**{f"{P}weight": ("U8", 64, 64), f"{P}weight_scale": ("F32", 1)}),
    ],
)
def test_a_packing_that_nothing_tells_is_unknown(tmp_path, tensors):
    found = one(tmp_path, tensors)
    assert found.contents.parameters is None
    assert "is not known, so parameters are not" in found.contents.unknown[0]
    assert found.contents.bytes == sum(size for _, _, size in tensors.values())


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (config_of("fp8"), "no tensor is stored as fp8"),
        (config_of("awq"), "no tensor is stored as awq"),
        (config_of("exl3"), "no tensor is stored as exl3"),
    ],
)
def test_a_config_that_the_tensors_contradict_settles_nothing(tmp_path, config, why):
    found = one(tmp_path, llama(), config)
    assert found.format.name is None
    assert why in found.format.why


def test_deepseeks_mixture_of_fp8_and_fp4(tmp_path):
    tensors = of(
        layers__0__ffn__experts__0__w1__weight=("I8", 64, 64), layers__0__ffn__experts__0__w1__scale=("F8_E8M0", 64, 4),
        layers__0__attn__wq_a__weight=("F8_E4M3", 64, 64), layers__0__attn__wq_a__scale=("F8_E8M0", 2, 2),
    )  # fmt: skip
    assert one(tmp_path, tensors).format.name == "fp8+mxfp4"
    read = one(tmp_path, tensors, config_of("fp8", expert_dtype="fp4"))
    assert (read.format.name, read.contents.parameters) == ("fp8+mxfp4", 8192 + 4096)
