"""From a store to bytes by component: files of each format, in two rounds, and none where the config already says it."""

import json
from math import prod

import numpy as np
import pytest

from fitcheck.catalogue.models import ComponentKind
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import DataError, UnknownId
from fitcheck.sources.store import StoredFile
from fitcheck.sources.stored.folder import local_store
from fitcheck.sources.stored.reading import read_builds
from fitcheck.sources.weights import derive_tensors
from tests.sources.stored.files import Counting, gguf_file, of, one, save, sizes, write

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
    assert found.contents.notes == ("26 bytes are in tensors whose names say nothing: they count as weights",)
    assert found.contents.parameters_by_part["ngram"] == 2560


def test_without_a_layer_count_a_draft_layer_is_known_by_what_only_it_has(tmp_path):
    draft = of(
        model__layers__2__eh_proj__weight=("BF16", 8, 16), model__layers__2__mlp__up_proj__weight=("BF16", 4, 4),
        model__layers__1__mlp__up_proj__weight=("BF16", 4, 4),
    )  # fmt: skip
    found = one(tmp_path, draft)
    assert sizes(found) == {ComponentKind.DRAFTER: 2 * (128 + 16), ComponentKind.WEIGHTS: 32}
    assert "number of layers is not known" in found.contents.notes[0]


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


def test_files_that_are_too_many_or_too_large_together_are_given_up(tmp_path, monkeypatch):
    indexed(tmp_path, [llama(), of(model__other__weight=("BF16", 8))])
    store = local_store(tmp_path)
    for name, most, words in (
        ("MOST_FILES", 1, "has 2 weight files, and 1 is the most"),
        ("MOST_HEADER_BYTES", 500, "headers of [0-9,]+ bytes, and 500 is the most"),
        ("MOST_TENSORS", 21, "has more than 21 tensors"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"fitcheck.sources.stored.reading.{name}", most)
            with pytest.raises(DataError, match=words):
                read_builds(store)


def test_a_listing_without_sizes_is_enough(tmp_path):
    class Silent(Counting):
        def files(self):
            return tuple(StoredFile(file.path, None) for file in self.store.files())

    total = indexed(tmp_path, [llama(), of(model__other__weight=("BF16", 8))])
    (found,) = read_builds(Silent(local_store(tmp_path)), LLAMA)
    assert (found.contents.bytes, found.build.bytes) == (total, None)


def test_many_gguf_files_are_read_eight_at_once(tmp_path):
    words = [f"{number:020d}" for number in range(10_000)]  # past the first window
    for number in range(11):
        gguf_file(tmp_path / f"x-{number}-Q8_0.gguf", {"a.weight": np.zeros(8, np.float32)}, keys=[("add_token_list", words)])
    store = Counting(local_store(tmp_path))
    assert len(read_builds(store)) == 11
    assert [len(spans) for spans in store.rounds] == [11, 8, 3]
