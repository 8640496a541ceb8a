"""From a store to bytes by component: files of each format, in two rounds, and none where the config already says it."""

import json
from math import prod

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type

from fitcheck.catalogue.models import ComponentKind
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import DataError, UnknownId
from fitcheck.sources.stored.folder import local_store
from fitcheck.sources.stored.reading import read_builds
from fitcheck.sources.stored.safetensors import DTYPE_BITS
from fitcheck.sources.weights import derive_tensors
from tests.sources.stored.files import Counting, gguf_file, quantised, save, write

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "torch_dtype": "bfloat16",
}


def of(**tensors):
    """Tensors of dtype and shape with the bytes that they take; `__` in a name stands for a dot."""
    named = {name.replace("__", "."): spec for name, spec in tensors.items()}
    return {name: (dtype, shape, prod(shape) * DTYPE_BITS[dtype] // 8) for name, (dtype, *shape) in named.items()}


def llama(dtype="BF16", layers=2, tied=False):
    found = {"model.embed_tokens.weight": (dtype, 128, 64), "model.norm.weight": (dtype, 64)}
    if not tied:
        found["lm_head.weight"] = (dtype, 128, 64)
    for layer in range(layers):
        place = f"model.layers.{layer}."
        for name, *shape in (
            ("self_attn.q_proj", 64, 64), ("self_attn.k_proj", 32, 64), ("self_attn.v_proj", 32, 64), ("self_attn.o_proj", 64, 64),
            ("mlp.gate_proj", 96, 64), ("mlp.up_proj", 96, 64), ("mlp.down_proj", 64, 96), ("input_layernorm", 64),
            ("post_attention_layernorm", 64),
        ):  # fmt: skip
            found[f"{place}{name}.weight"] = (dtype, *shape)
    return of(**found)


def indexed(folder, shards, **metadata):
    """Shards and their index, as a repository has them."""
    weights = {}
    for number, tensors in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        write(folder / name, tensors, metadata={"format": "pt"})
        weights |= dict.fromkeys(tensors, name)
    total = sum(size for tensors in shards for _, _, size in tensors.values())
    text = {"metadata": {"total_size": total, **metadata}, "weight_map": weights}
    (folder / "model.safetensors.index.json").write_text(json.dumps(text))
    return total


def one(folder, tensors, config=None):
    write(folder / "model.safetensors", tensors)
    (found,) = read_builds(local_store(folder), config)
    return found


def sizes(read):
    return {part.kind: part.bytes for part in read.contents.components}


def test_a_dense_model_by_hand(tmp_path):
    found = one(tmp_path, llama(), LLAMA)
    layer = 64 * 64 * 2 + 32 * 64 * 2 + 3 * 96 * 64 + 2 * 64
    assert found.contents.parameters == 2 * 128 * 64 + 64 + 2 * layer
    assert sizes(found) == {ComponentKind.WEIGHTS: 2 * found.contents.parameters}
    assert found.contents.parts == {
        "embedding": 2 * 128 * 64,
        "head": 2 * 128 * 64,
        "norm": 2 * (64 + 2 * 2 * 64),
        "attention": 2 * 2 * (2 * 64 * 64 + 2 * 32 * 64),
        "ffn": 2 * 2 * 3 * 96 * 64,
    }
    assert (found.format.name, found.read, found.contents.components[0].grade) == ("bf16", True, Grade.PUBLISHED)
    assert found.contents.bytes + found.header_bytes == (tmp_path / "model.safetensors").stat().st_size


def test_a_real_file_of_the_library(tmp_path):
    arrays = {name: np.zeros(shape, np.float16) for name, (_, shape, _) in llama().items()}
    save(tmp_path / "model.safetensors", arrays)
    (found,) = read_builds(local_store(tmp_path), LLAMA)
    assert found.contents.bytes == sum(array.nbytes for array in arrays.values())
    assert found.contents.parameters == sum(array.size for array in arrays.values())


def test_many_shards_take_two_rounds_and_no_byte_more_than_lengths_and_headers(tmp_path):
    tensors = list(llama(layers=10).items())
    indexed(tmp_path, [dict(tensors[number::31]) for number in range(31)])
    store = Counting(local_store(tmp_path))
    (found,) = read_builds(store, {"num_hidden_layers": 8})
    assert [len(spans) for spans in store.rounds] == [31, 31]
    assert store.reads == []
    assert sum(span.length for spans in store.rounds for span in spans) == found.header_bytes
    layer = 2 * (64 * 64 * 2 + 32 * 64 * 2 + 3 * 96 * 64 + 2 * 64)
    assert sizes(found)[ComponentKind.DRAFTER] == 2 * layer  # layers 8 and 9 of a model of 8


def test_no_header_is_read_where_config_and_index_agree_to_the_byte(tmp_path):
    tensors = list(llama().items())
    total = indexed(tmp_path, [dict(tensors[:9]), dict(tensors[9:])])
    store = Counting(local_store(tmp_path))
    (found,) = read_builds(store, LLAMA)
    assert (store.rounds, store.reads, found.read) == ([], ["model.safetensors.index.json"], False)
    assert found.contents.components[0].grade is Grade.DERIVED
    assert found.contents.bytes == total == 2 * sum(tensor.elements for tensor in derive_tensors(LLAMA))
    assert found.contents.parameters == total // 2
    assert f"total_size of {total:,} bytes" in found.contents.notes[0]
    assert found.format.name == "bf16"


@pytest.mark.parametrize(
    ("config", "metadata", "extra"),
    [
        ({"hidden_size": 128}, {}, {}),
        ({"tie_word_embeddings": True}, {}, {}),
        ({"vision_config": {"depth": 2}}, {}, {}),
        ({"model_type": "nobody_knows"}, {}, {}),
        ({"torch_dtype": "float32"}, {}, {}),
        ({}, {"total_size": 1}, {}),
        ({}, {"total_size": None}, {}),
        ({}, {"total_size": "180352"}, {}),
        ({}, {}, {"model.visual.x.weight": ("BF16", (8,), 16)}),
    ],
)
def test_headers_are_read_where_they_do_not(tmp_path, config, metadata, extra):
    tensors = llama()
    if extra:
        del tensors["model.norm.weight"]  # the same bytes, but of a tower
        extra["model.visual.x.weight"] = ("BF16", (64,), 128)
    total = indexed(tmp_path, [tensors, {"model.layers.1.other.weight": ("BF16", (0,), 0), **extra}], **metadata)
    store = Counting(local_store(tmp_path))
    (found,) = read_builds(store, {**LLAMA, **config})
    assert len(store.rounds) == 2
    assert found.read
    assert found.contents.bytes == total
    assert {part.grade for part in found.contents.components} == {Grade.PUBLISHED}


def test_experts_routers_towers_drafters_and_tables_are_told_apart(tmp_path):
    found = one(
        tmp_path,
        of(
            model__layers__0__mlp__experts__0__up_proj__weight=("BF16", 4, 8),
            model__layers__0__mlp__experts__gate_up_proj=("BF16", 2, 4, 8),
            model__layers__0__mlp__gate__weight=("F32", 2, 8),
            model__layers__0__mlp__shared_experts__up_proj__weight=("BF16", 4, 8),
            model__visual__blocks__0__attn__qkv__weight=("BF16", 3),
            audio_tower__layers__0__fc1__weight=("BF16", 5),
            model__layers__4__mlp__experts__0__up_proj__weight=("BF16", 7),
            mtp__0__ffn__experts__0__w1__weight=("BF16", 9),
            layers__1__engram__embed__weight=("F8_E4M3", 10, 256),
            layers__1__engram__embed__scale=("F8_E8M0", 10, 8),
            layers__1__engram__wkv__weight=("BF16", 11),
            nobody__knows=("BF16", 13),
        ),
        {"num_hidden_layers": 4},
    )
    assert sizes(found) == {
        ComponentKind.EXPERTS: 2 * (32 + 64),
        ComponentKind.VISION: 2 * (3 + 5),
        ComponentKind.DRAFTER: 2 * (7 + 9),
        ComponentKind.NGRAM: 10 * 264,  # 264 bytes a row, as in DeepSeek V4.1 Flash
        ComponentKind.WEIGHTS: 4 * 16 + 2 * (32 + 11 + 13),
    }
    assert found.contents.parts["router"] == 64
    assert found.contents.parts["other"] == 26
    assert found.contents.parameters_by_part["ngram"] == 2560


def test_without_a_layer_count_a_draft_layer_is_known_by_what_only_it_has(tmp_path):
    draft = of(
        model__layers__2__eh_proj__weight=("BF16", 8, 16), model__layers__2__mlp__up_proj__weight=("BF16", 4, 4),
        model__layers__1__mlp__up_proj__weight=("BF16", 4, 4),
    )  # fmt: skip
    found = one(tmp_path, draft)
    assert sizes(found) == {ComponentKind.DRAFTER: 2 * (128 + 16), ComponentKind.WEIGHTS: 32}
    assert "number of layers is not known" in found.contents.notes[0]


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


def test_a_tensor_in_two_files_counts_once_and_a_folder_has_its_own_config(tmp_path):
    write(tmp_path / "layer0.safetensors", of(model__norm__weight=("BF16", 8)))
    write(tmp_path / "layer1.safetensors", of(model__norm__weight=("BF16", 8)))
    write(tmp_path / "fp8" / "model.safetensors", of(model__layers__5__mlp__up_proj__weight=("BF16", 8)))
    (tmp_path / "fp8" / "config.json").write_text('{"num_hidden_layers": 5}')
    first, second = read_builds(local_store(tmp_path), {"num_hidden_layers": 9})
    assert first.contents.bytes == 16
    assert "1 tensors are in two files" in first.contents.notes[0]
    assert sizes(second) == {ComponentKind.DRAFTER: 16}
    assert read_builds(local_store(tmp_path), only="fp8/model")[0].build.id == "fp8/model"
    with pytest.raises(UnknownId, match="no build 'bf16'"):
        read_builds(local_store(tmp_path), only="bf16")


def test_a_drafter_apart_is_optional(tmp_path):
    write(tmp_path / "model.safetensors", llama())
    write(tmp_path / "eagle3" / "model.safetensors", of(fc__weight=("BF16", 64, 64)))
    (found,) = read_builds(local_store(tmp_path), LLAMA)
    (drafter,) = [part for part in found.contents.components if part.kind is ComponentKind.DRAFTER]
    assert (drafter.bytes, drafter.optional) == (2 * 64 * 64, True)
    assert found.contents.parameters == sum(prod(shape) for _, shape, _ in llama().values())


def test_pickles_have_bytes_by_the_listing_alone(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x02" + bytes(98))
    (found,) = read_builds(local_store(tmp_path), LLAMA)
    assert (found.build.bytes, found.contents.components, found.contents.parameters, found.read) == (100, (), None, False)


MOE_KEYS = (("add_block_count", 3), ("add_uint32", "glm4moe.nextn_predict_layers", 1), ("add_file_type", 15))


def moe(**extra):
    return {
        "token_embd.weight": quantised(Type.Q6_K, 512, 256),
        "output.weight": quantised(Type.Q6_K, 512, 256),
        "blk.0.attn_q.weight": quantised(Type.Q4_K, 256, 256),
        "blk.1.ffn_up_exps.weight": quantised(Type.Q4_K, 8, 256, 256),
        "blk.1.ffn_up_shexp.weight": quantised(Type.Q8_0, 256, 256),
        "blk.1.ffn_gate_inp.weight": np.zeros((8, 256), np.float32),
        "blk.2.ffn_up_exps.weight": quantised(Type.Q4_K, 8, 256, 256),
        "blk.2.nextn.eh_proj.weight": quantised(Type.Q8_0, 256, 512),
        **extra,
    }


def test_gguf_by_block_sizes(tmp_path):
    path = gguf_file(tmp_path / "x-Q4_K_M.gguf", moe(), "glm4moe", MOE_KEYS)
    (found,) = read_builds(local_store(path))
    q4, q6, q8 = 256 * 144, 256 * 210, 256 * 8 * 34  # a matrix of 256 x 256
    assert sizes(found) == {
        ComponentKind.EXPERTS: 8 * q4,
        ComponentKind.DRAFTER: 8 * q4 + 2 * q8,
        ComponentKind.WEIGHTS: 4 * q6 + q4 + q8 + 4 * 8 * 256,
    }
    assert found.contents.bytes == sum(int(tensor.n_bytes) for tensor in gguf.GGUFReader(path).tensors)
    assert found.contents.parameters == 256 * 256 * (4 + 1 + 8 + 1 + 8 + 2) + 8 * 256
    assert (found.format.name, found.format.label, found.format.why) == ("gguf", "Q4_K_M", "general.file_type 15")
    assert found.header.metadata["general.architecture"] == "glm4moe"


def test_a_split_file_with_its_tower(tmp_path):
    gguf_file(tmp_path / "x-Q4_K_M.gguf", moe(), "glm4moe", MOE_KEYS, split_max_tensors=3)
    gguf_file(tmp_path / "mmproj-F16.gguf", {"v.blk.0.attn_q.weight": np.zeros((4, 4), np.float16)}, "clip")
    store = Counting(local_store(tmp_path))
    (found,) = read_builds(store)
    assert [file.path for file in found.build.files] == [f"x-Q4_K_M-{number:05d}-of-00003.gguf" for number in (1, 2, 3)]
    assert sizes(found)[ComponentKind.VISION] == 32
    assert sizes(found)[ComponentKind.EXPERTS] == 8 * 256 * 144
    assert [len(spans) for spans in store.rounds] == [4]


def test_a_split_whose_files_are_not_of_one_model_is_refused(tmp_path):
    gguf_file(tmp_path / "x.gguf", moe(), "glm4moe", MOE_KEYS, split_max_tensors=4)
    first, second = sorted(tmp_path.glob("*.gguf"))
    second.write_bytes(first.read_bytes())
    with pytest.raises(DataError, match="says that it is file 1 of 2"):
        read_builds(local_store(tmp_path))
    gguf_file(tmp_path / "y.gguf", moe(**{"more.weight": np.zeros(8, np.float32)}), "glm4moe", MOE_KEYS, split_max_tensors=6)
    second.write_bytes((tmp_path / "y-00002-of-00002.gguf").read_bytes())
    with pytest.raises(DataError, match="says that there are 8 tensors in all, and its files have"):
        read_builds(local_store(tmp_path), only="x")


def test_a_file_type_that_no_tensor_has_is_not_believed(tmp_path):
    path = gguf_file(tmp_path / "x.gguf", moe(), "glm4moe", [("add_block_count", 3), ("add_file_type", 1)])
    (found,) = read_builds(local_store(path))
    assert found.format.label == "Q4_K"
    assert found.format.why == "general.file_type says F16, and no tensor is of it; most bytes are Q4_K"
    path = gguf_file(tmp_path / "y.gguf", moe(), "glm4moe")
    assert read_builds(local_store(path))[0].format.why == "general.file_type is missing; most bytes are Q4_K"


def test_a_gguf_adapter_is_not_a_model(tmp_path):
    path = gguf_file(tmp_path / "x.gguf", moe(), "llama", [("add_type", "adapter")])
    with pytest.raises(DataError, match="is an adapter"):
        read_builds(local_store(path))


def test_an_n_gram_table_by_either_name(tmp_path):
    tables = {"per_layer_token_embd.weight": quantised(Type.Q8_0, 64, 32), "blk.1.engram_embd.weight": quantised(Type.Q8_0, 8, 32)}
    path = gguf_file(tmp_path / "x.gguf", tables, "qwen4exp")
    assert sizes(read_builds(local_store(path))[0]) == {ComponentKind.NGRAM: 72 * 34}
    path = gguf_file(tmp_path / "y.gguf", tables, "gemma4")
    assert sizes(read_builds(local_store(path))[0]) == {ComponentKind.NGRAM: 8 * 34, ComponentKind.WEIGHTS: 64 * 34}
