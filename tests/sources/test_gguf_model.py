"""GGUF metadata to a model: published files and what llama.cpp allocated for them, what is unknown, and what the file leaves out."""

import json
from typing import Any

import pytest

from fitcheck.api import kv_memory
from fitcheck.catalogue.layers import Attention, Latent, Sliding
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import UnknownFact
from fitcheck.sources.config import read_config
from fitcheck.sources.gguf_model import read_metadata
from fitcheck.sources.store import StoredTensor
from fitcheck.units import MIB
from tests.conftest import ROOT
from tests.golden import rows

TABLE = rows("gguf.yaml")
LLAMA = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.context_length": 4096,
    "llama.embedding_length": 256,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
}


def listed(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(value["value"] if letter == value["letter"] else 0 for letter in value["pattern"])
    return value


def published(row):
    metadata = {key: listed(value) for key, value in row["metadata"].items()}
    return read_metadata(metadata, {"tokenizer.ggml.tokens": row["tokens"]})


def llama(**changed: Any) -> dict[str, Any]:
    keys = {f"llama.{name.replace('__', '.')}": value for name, value in changed.items()}
    return {key: value for key, value in {**LLAMA, **keys}.items() if value is not None}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_a_published_file_takes_what_the_engine_printed(row):
    model = published(row)
    assert model.unknown == ()
    assert (model.file_type, model.quantised_by) == (row["file_type"], row.get("quantised_by"))
    assert row["name"].startswith(model.name)
    assert model.architecture.vocabulary == row["tokens"]
    settings = {name: value for name, value in row["settings"].items() if name != "fa"}
    found = kv_memory(model, engine="llama.cpp", context=512, fa=row["settings"].get("fa", "auto"), **settings)
    sizes = [term.bytes / MIB for term in found.terms if term.sort != "compute"]
    assert sizes == pytest.approx([float(size) for size in row["mib"]], abs=0.0051), row["source"]


def sizes_of(architecture):
    named = (
        "family",
        "layers",
        "hidden_size",
        "attention_heads",
        "vocabulary",
        "experts",
        "experts_per_token",
        "expert_feed_forward_size",
        "feed_forward_size",
    )
    return {name: getattr(architecture, name) for name in named}


@pytest.mark.parametrize("row", [row for row in TABLE if "config" in row], ids=lambda row: row["name"])
def test_the_metadata_gives_the_groups_of_the_config_that_it_was_made_from(row):
    model, config = published(row), read_config(ROOT / "tests" / "data" / "configs" / f"{row['config']}.json").architecture
    assert sizes_of(model.architecture) == sizes_of(config)
    assert kept(model.architecture.groups) == kept(config.groups), row.get("differs")
    assert (set(model.architecture.groups) == set(config.groups)) == ("differs" not in row)


CONVERTED = [
    json.loads(line) for line in (ROOT / "tests" / "data" / "gguf" / "converted.jsonl").read_text(encoding="utf-8").splitlines()[1:]
]
DROPPED = {"deepseek-v3": "draft layers (DeepseekV2Model.skip_mtp)", "deepseek-v4-flash": "draft layers (DeepseekV4Model)"}
"""What the converter leaves out of a file, which is then smaller than the checkpoint."""


@pytest.mark.parametrize("row", CONVERTED, ids=lambda row: row["config"])
def test_what_the_converter_writes_for_a_config_is_read_as_the_config_is(row):
    metadata = {key: tuple(value) if isinstance(value, list) else value for key, value in row["metadata"].items()}
    config = read_config(ROOT / "tests" / "data" / "configs" / f"{row['config']}.json")
    model = read_metadata(metadata, {"tokenizer.ggml.tokens": config.architecture.vocabulary})
    assert model.architecture.family == config.architecture.family
    assert kept(model.architecture.groups) == kept(config.architecture.groups)
    assert kept(model.architecture.draft_groups) == ([] if row["config"] in DROPPED else kept(config.architecture.draft_groups))
    for settings in ({}, {"n_seq_max": 4, "kv_unified": True}, {"fa": "off"}):
        by_file, by_config = (kv_memory(known, engine="llama.cpp", context=40_000, **settings).terms for known in (model, config))
        assert sorted(term.bytes for term in by_file) == sorted(term.bytes for term in by_config)


LOST = {"named_dtype_bytes": None, "chunk_tokens": None}
"""What a GGUF has no key for, and llama.cpp no use."""


def kept(groups):
    """Groups without what only a config names, in one order."""
    return sorted(repr(group.model_copy(update=LOST) if group.kind == "recurrent" else group) for group in groups)


def test_what_the_file_says_is_published_and_llama_cpps_rules_are_named():
    assert read_metadata(LLAMA, {}).architecture.grade is Grade.PUBLISHED
    model = published(TABLE[0])
    assert model.architecture.grade is Grade.DERIVED
    assert "attention.sliding_window_pattern = 2" in model.architecture.note
    nemotron = published(TABLE[-1])
    assert nemotron.architecture.max_context_tokens == 1_048_576
    assert "the model's own may differ" in nemotron.assumed[0]


UNKNOWN = [
    ({}, "general.architecture is missing"),
    ({"general.architecture": 5}, "general.architecture is 5"),
    ({"general.architecture": "\x1b[2J" * 50}, "not known"),
    ({"general.architecture": "clip"}, "projector"),
    ({"general.architecture": "eagle3"}, "drafter"),
    ({**LLAMA, "general.type": "adapter"}, "general.type is 'adapter'"),
    (llama(block_count=None), "block_count is missing"),
    (llama(block_count=0), "block_count is 0"),
    (llama(block_count=1 << 40), "block_count is"),
    (llama(block_count=True), "block_count is True"),
    (llama(context_length=None), "context_length is missing"),
    (llama(embedding_length=None), "embedding_length is missing"),
    (llama(nextn_predict_layers=2), "all 2 blocks are draft blocks"),
    (llama(attention__head_count=None), "attention.head_count is missing or 0"),
    (llama(attention__head_count="four"), "attention.head_count is 'four'"),
    (llama(attention__head_count=512), "embedding_length 256 is less than"),
    (llama(attention__head_count_kv=(2,)), "attention.head_count_kv has 1 entries for 2 blocks"),
    (llama(attention__head_count_kv=(2, -1)), "attention.head_count_kv is -1"),
    (llama(attention__key_length=0), "attention.key_length is 0"),
    (llama(attention__sliding_window=1 << 60), "attention.sliding_window is"),
]


@pytest.mark.parametrize(("metadata", "reason"), UNKNOWN, ids=[reason for _, reason in UNKNOWN])
def test_what_is_not_settled_names_its_key(metadata, reason):
    model = read_metadata(metadata, {})
    assert model.architecture is None
    assert reason in model.unknown[0]
    assert model.unknown[0].isprintable()
    with pytest.raises(UnknownFact):
        kv_memory(model, engine="llama.cpp", context=4096)


def test_an_array_that_was_too_long_to_keep_is_not_an_absent_one():
    gemma = {
        key.replace("llama", "gemma3"): value.replace("llama", "gemma3") if isinstance(value, str) else value
        for key, value in LLAMA.items()
    }
    gemma["gemma3.attention.sliding_window"] = 512
    assert read_metadata(gemma, {}).unknown == ()
    model = read_metadata(gemma, {"gemma3.attention.sliding_window_pattern": 1 << 40})
    assert model.unknown == ("attention.sliding_window_pattern is an array of 1099511627776 entries",)


def test_what_the_converter_loses_is_unknown_for_other_engines():
    mistral = read_metadata(llama(), {})
    assert mistral.architecture.groups == (Attention(kind="attention", layers=2, kv_heads=2, k_dim=64, v_dim=64),)
    assert "sliding_window" in mistral.lost[0]
    assert kv_memory(mistral, engine="llama.cpp", context=4096).bytes == 2 * 2 * (64 + 64) * 2 * 4096
    with pytest.raises(UnknownFact, match="sliding_window"):
        kv_memory(mistral, engine="vllm", context=4096)
    windowed = read_metadata(llama(attention__sliding_window=512), {})
    assert windowed.lost == ()
    assert isinstance(windowed.architecture.groups[0], Sliding)
    assert windowed.architecture.family == "mistral"
    assert kv_memory(windowed, engine="vllm", context=4096).bytes > 0


def test_latent_attention_keeps_the_widths_that_engines_without_it_store():
    keys = {
        "block_count": 3,
        "nextn_predict_layers": 1,
        "context_length": 4096,
        "embedding_length": 7168,
        "attention.head_count": 128,
        "attention.head_count_kv": 1,
        "attention.q_lora_rank": 1536,
        "attention.kv_lora_rank": 512,
        "attention.key_length": 576,
        "attention.value_length": 512,
        "attention.key_length_mla": 192,
        "attention.value_length_mla": 128,
    }
    model = read_metadata({"general.architecture": "deepseek2", **{f"deepseek2.{key}": value for key, value in keys.items()}}, {})
    kept = Latent(kind="latent", layers=2, latent_dim=512, rope_dim=64, expanded_heads=128, expanded_k_dim=192, expanded_v_dim=128)
    assert model.architecture.groups == (kept,)
    assert model.architecture.draft_groups == (kept.model_copy(update={"layers": 1}),)
    assert model.architecture.family == "deepseek_v3"


def test_files_of_ollamas_own_converter_are_read_as_it_translates_them():
    metadata = {key.replace("gpt-oss.", "gptoss."): value for key, value in TABLE[0]["metadata"].items()}
    del metadata["gptoss.expert_feed_forward_length"]
    model = read_metadata({**metadata, "general.architecture": "gptoss"}, {"tokenizer.ggml.tokens": TABLE[0]["tokens"]})
    assert model.arch == "gptoss"
    assert model.architecture == published(TABLE[0]).architecture
    keys = {
        "block_count": 47,
        "context_length": 202752,
        "embedding_length": 2048,
        "attention.head_count": 20,
        "attention.head_count_kv": 20,
        "attention.q_lora_rank": 768,
        "attention.kv_lora_rank": 512,
        "rope.dimension_count": 64,
        "attention.key_length": 256,
        "attention.value_length": 256,
        "attention.key_length_mla": 576,
        "attention.value_length_mla": 512,
    }
    flash = read_metadata({"general.architecture": "glm4moelite", **{f"glm4moelite.{key}": value for key, value in keys.items()}}, {})
    kept = Latent(kind="latent", layers=47, latent_dim=512, rope_dim=64, expanded_heads=20, expanded_k_dim=256, expanded_v_dim=256)
    assert flash.architecture.groups == (kept,)
    assert read_metadata({"general.architecture": "glm4moelite"}, {}).unknown == ("block_count is missing",)


def tensor(name: str, *shape: int) -> StoredTensor:
    return StoredTensor(name, "F16", shape, 0, "model.gguf")


def test_parameters_are_those_of_the_decoder():
    held = (
        tensor("token_embd.weight", 1000, 256),
        tensor("blk.0.attn_q.weight", 256, 256),
        tensor("blk.0.ffn_up.scale", 1),
        tensor("blk.2.nextn.eh_proj.weight", 256, 512),
        tensor("rope_freqs.weight", 32),
        tensor("v.blk.0.attn_q.weight", 64, 64),
    )
    model = read_metadata(llama(block_count=3, nextn_predict_layers=1), {}, held)
    assert model.parameters == 1000 * 256 + 256 * 256
    assert model.architecture.vocabulary == 1000
    assert read_metadata({**llama(), "split.tensors.count": 7}, {}, held).parameters is None
    assert read_metadata(llama(), {}).parameters is None


def test_a_name_from_the_file_can_be_shown():
    model = read_metadata(
        {**LLAMA, "general.name": "\x1b[2J  Llama\n3 \u202e" + "x" * 10_000, "general.quantized_by": "  ", "general.file_type": 1039}, {}
    )
    assert model.name.startswith("[2J Llama 3 x")
    assert model.name.isprintable()
    assert len(model.name) <= 120
    assert model.quantised_by is None
    assert model.file_type == "Q4_K_M"
    assert read_metadata({**LLAMA, "general.basename": "Llama"}, {}, name="file").name == "Llama"
    assert read_metadata(LLAMA, {}, name="file").name == "file"
