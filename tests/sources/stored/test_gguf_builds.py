"""GGUF builds: bytes by block sizes, splits, towers, what a file says of itself."""

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type

from fitcheck.catalogue.models import ComponentKind
from fitcheck.errors import DataError
from fitcheck.sources.stored.folder import local_store
from fitcheck.sources.stored.reading import read_builds
from tests.sources.stored.files import Counting, gguf_file, quantised, sizes

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
        ComponentKind.EMBEDDING: 2 * q6,  # the head has a table of its own
        ComponentKind.WEIGHTS: 2 * q6 + q4 + q8 + 4 * 8 * 256,
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


@pytest.mark.parametrize("options", [{}, {"split_max_tensors": 3}])
def test_the_experts_of_each_layer_are_told_apart(tmp_path, options):
    heavier = {
        "blk.0.ffn_down_exps.weight": quantised(Type.Q6_K, 8, 256, 256),
        "blk.0.ffn_up_exps.weight": quantised(Type.Q4_K, 8, 256, 256),
    }
    gguf_file(tmp_path / "x-Q4_K_M.gguf", moe(**heavier), "glm4moe", MOE_KEYS, **options)
    (found,) = read_builds(local_store(tmp_path))
    experts = next(part for part in found.contents.components if part.kind is ComponentKind.EXPERTS)
    assert experts.layer_bytes == (8 * 256 * (210 + 144), 8 * 256 * 144)  # the draft layer's belong to the drafter


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
    assert sizes(read_builds(local_store(path))[0]) == {ComponentKind.NGRAM: 8 * 34, ComponentKind.EMBEDDING: 64 * 34}


def test_a_tied_embedding_is_the_head_and_stays_with_the_weights(tmp_path):
    """llama.cpp makes the head of `token_embd` where the file has no `output` (`TENSOR_DUPLICATED`), so the GPU holds it."""
    path = gguf_file(tmp_path / "x.gguf", {name: rows for name, rows in moe().items() if name != "output.weight"}, "glm4moe", MOE_KEYS)
    assert ComponentKind.EMBEDDING not in sizes(read_builds(local_store(path))[0])
