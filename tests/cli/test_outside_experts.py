"""GGUF files with routed experts, whose bytes by layer go from the file to the entry and from there to the answer."""

import json

import pytest
from gguf import GGMLQuantizationType as Type

from tests.cli.run import inside
from tests.sources.stored.files import gguf_file, quantised

KEYS = (
    ("add_block_count", 4),
    ("add_uint32", "glm4moe.nextn_predict_layers", 1),
    ("add_context_length", 4096),
    ("add_embedding_length", 256),
    ("add_head_count", 4),
    ("add_head_count_kv", 2),
    ("add_expert_count", 8),
    ("add_expert_used_count", 2),
    ("add_expert_feed_forward_length", 256),
    ("add_vocab_size", 512),
    ("add_file_type", 15),
)
Q4, Q6 = (8 * 256 * 256 // 256 * size for size in (144, 210))
"""Bytes of eight experts of 256 x 256 in Q4_K and Q6_K, whose blocks of 256 take 144 and 210 bytes."""


def write(path, architecture="glm4moe", **options):
    """A dense layer, two with experts of which the first is heavier, and a draft layer with experts of its own."""
    tensors = {"token_embd.weight": quantised(Type.Q6_K, 512, 256), "blk.0.ffn_up.weight": quantised(Type.Q4_K, 256, 256)}
    tensors |= {f"blk.{layer}.ffn_up_exps.weight": quantised(Type.Q4_K, 8, 256, 256) for layer in (1, 2, 3)}
    tensors |= {"blk.1.ffn_down_exps.weight": quantised(Type.Q6_K, 8, 256, 256)}
    tensors |= {"blk.3.nextn.eh_proj.weight": quantised(Type.Q4_K, 256, 512)}
    gguf_file(path, tensors, architecture, KEYS, **options)


@pytest.mark.parametrize("architecture", ["glm4moe", "nobody-knows"])
@pytest.mark.parametrize("options", [{}, {"split_max_tensors": 3}], ids=["whole", "split"])
def test_the_entry_of_a_file_with_experts_is_accepted(tmp_path, architecture, options):
    write(tmp_path / "x" / "tiny-Q4_K_M.gguf", architecture, **options)
    ran = inside("inspect", str(tmp_path / "x"), "--yaml")
    assert ran.code == 0, ran.err
    entry = tmp_path / "mine.yaml"
    entry.write_text(ran.out, encoding="utf-8")
    checked = inside("validate", str(entry))
    assert checked.code == 0, checked.out
    assert ("layer_bytes" in ran.out) == (architecture == "glm4moe")


@pytest.mark.parametrize("options", [{}, {"split_max_tensors": 3}], ids=["whole", "split"])
def test_experts_leave_layer_by_layer_also_where_a_file_is_split(tmp_path, options):
    write(tmp_path / "x" / "tiny-Q4_K_M.gguf", **options)
    ran = inside("fit", str(tmp_path / "x"), "--cluster", "24GiB", "--place", "experts=ram:1", "--format", "json")
    assert ran.code == 0, ran.err
    (device, *_) = json.loads(ran.out)["result"]["devices"]
    assert [part["bytes"] for part in device["off_device"]] == [Q4 + Q6]
    assert {term["name"]: term["bytes"] for term in device["terms"]}["routed experts, 1 of 2 layers"] == Q4
