"""llama.cpp's allocator against the engine's own figures, and the laws that it keeps."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitcheck.catalogue.layers import Attention, Compressed, Latent, Recurrent, Sliding
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import Ledger, Settings
from fitcheck.fit.engines.llamacpp import allocate, fullest_layers
from fitcheck.fit.engines.llamacpp_families import RULES
from fitcheck.fit.state import kv_dtype
from tests.golden import rows

TABLE = rows("llamacpp.yaml")
MODELS = {row["model"]: row for row in TABLE if "groups" in row}
ASKED = [row for row in TABLE if "settings" in row]
FULL = Attention(kind="attention", layers=4, kv_heads=2, k_dim=64, v_dim=64)
LATENT = Latent(kind="latent", layers=4, latent_dim=512, rope_dim=64)


def architecture(name: str) -> Architecture:
    row = MODELS[name]
    known = {"family": row["family"], "layers": row["layers"], "groups": row["groups"], **row["sizes"]}
    return Architecture.model_validate({"source": "config", "max_context_tokens": 2**20, **known})


def shape(family: str, *groups: Any, **sizes: Any) -> Architecture:
    layers = sum(group.layers for group in groups)
    return Architecture(source="hand", family=family, max_context_tokens=8192, layers=layers, groups=groups, **sizes)


def ledger(model: Architecture, context: int = 4096, users: int = 1, dtype: str = "auto", pp: int = 1, dp: int = 1, **named: Any) -> Ledger:
    return Ledger(allocate(model, Settings(context, users, kv_dtype(dtype), pp=pp, dp=dp, named=named)))


@pytest.mark.parametrize("row", ASKED, ids=lambda row: f"{row['model']}-{row['settings']}")
def test_engine_says_the_same(row):
    got = ledger(architecture(row["model"]), **row["settings"])
    if "bytes" in row:
        assert got.bytes == row["bytes"], row["source"]
    elif "mib" in row:
        counted = got.kv_bytes if row["of"] == "kv" else got.state_bytes
        assert counted / 2**20 == pytest.approx(float(row["mib"]), abs=float(row.get("tolerance", 0.0101))), row["source"]
    else:
        assert got.compute_bytes == pytest.approx(row["compute"], rel=0.1), row["source"]


def test_every_model_of_the_table_is_asked():
    assert {row["model"] for row in ASKED} == set(MODELS)
    assert len([row for row in ASKED if "bytes" in row]) >= 60


def test_context_and_users_are_the_engine_settings_left_out():
    model = architecture("llama-2-7b-hf")
    assert ledger(model, 5000, 3).terms == ledger(model, n_ctx=15000, n_seq_max=3).terms
    assert ledger(model, 5000, 3, kv_unified=True).terms == ledger(model, n_ctx=15000, n_seq_max=3, kv_unified=True).terms
    assert ledger(model, 4096, 2, "q8_0/f16").terms == ledger(model, n_ctx=8192, n_seq_max=2, type_k="q8_0").terms
    assert ledger(model, 4096, 4, dp=2).terms == ledger(model, 4096, 2).terms
    assert ledger(model, 999, 7, "f32", n_ctx=8192, n_seq_max=1, type_k="f16", type_v="f16").terms == ledger(model, 8192).terms


def test_each_of_several_users_gets_the_context_padded():
    assert ledger(shape("llama", FULL), 5000, 3).bytes == 3 * 5120 * 4 * 2 * (64 + 64) * 2


def test_terms_tell_caches_that_grow_from_states():
    found = ledger(architecture("qwen3.5-27b"), 32768)
    assert found.kv_bytes == 16 * 32768 * 4 * (256 + 256) * 2
    assert found.state_bytes == 48 * 4 * (3 * 10240 + 48 * 128 * 128)
    assert all(term.formula for term in found.terms)


def test_caches_in_host_memory_take_nothing_of_the_device():
    found = ledger(architecture("qwen3.5-27b"), offload_kqv=False)
    assert found.bytes == 0
    assert all("host memory" in term.formula for term in found.terms)


REFUSED = [
    ("V quantised without flash attention", "llama", FULL, {"type_v": "q8_0", "fa": "off"}),
    ("blocks that do not divide a head", "phi", FULL.model_copy(update={"k_dim": 80}), {"type_k": "q8_0"}),
    ("K and V of two types where there is no V", "deepseek_v3", LATENT, {"type_k": "q8_0"}),
    ("a type that llama.cpp does not have", "llama", FULL, {"type_k": "fp8"}),
    ("a setting that llama.cpp does not have", "llama", FULL, {"block_size": 16}),
    ("no flash attention of that name", "llama", FULL, {"fa": "maybe"}),
    ("no sequences", "llama", FULL, {"n_seq_max": 0}),
    ("more sequences than cells", "llama", FULL, {"n_ctx": 256, "n_seq_max": 300}),
    ("half a cell", "llama", FULL, {"n_ctx": 0.5}),
    ("a flag that is none", "llama", FULL, {"kv_unified": 2}),
]


@pytest.mark.parametrize(("family", "group", "settings"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_llama_cpp_refuses(family, group, settings):
    with pytest.raises(UsageError):
        ledger(shape(family, group), **settings)


def test_kimi_linear_takes_no_quantised_cache():
    """Its file has no value length, so llama.cpp takes 2304 / 32 = 72 for it, which blocks of 32 do not divide."""
    model = architecture("kimi-linear-48b-a3b-instruct")
    with pytest.raises(UsageError, match="72"):
        ledger(model, type_k="q8_0", type_v="q8_0")


UNKNOWN = [
    shape("gptj", FULL),
    shape("deepseek_v41", Compressed(kind="compressed", layers=1, ratio=2, record_bytes={"fp8": 584}, row_dim=512)),
    shape("llama", Compressed(kind="compressed", layers=1, ratio=4, record_bytes={"fp8": 584}, row_dim=512)),
    shape("deepseek_v4", Compressed(kind="compressed", layers=1, ratio=2, record_bytes={"fp8": 584}, row_dim=512)),
    shape("minicpm3", LATENT),
]


@pytest.mark.parametrize("model", UNKNOWN, ids=lambda model: f"{model.family}-{model.groups[0].kind}")
def test_what_llama_cpp_has_no_rule_for_is_unknown(model):
    with pytest.raises(UnknownFact):
        ledger(model)


def test_tensor_split_is_unknown():
    with pytest.raises(UnknownFact):
        allocate(shape("llama", FULL), Settings(4096, 1, kv_dtype("auto"), tp=2))


def test_layers_are_split_with_the_output_as_one_of_them():
    assert [fullest_layers(32, 32, devices) for devices in (1, 2, 3, 4, 32)] == [32, 17, 11, 9, 2]
    assert ledger(shape("llama", FULL), pp=2).bytes * 4 == ledger(shape("llama", FULL)).bytes * 3
    with pytest.raises(UsageError):
        fullest_layers(4, 4, 5)


def test_the_last_layers_are_offloaded_the_output_first():
    # i_gpu_start = max(32 + 1 - n_gpu_layers, 0): 33 and more are all 32 layers, 1 is the output alone, 20 are layers 13 to 31
    assert [fullest_layers(32, 32, 1, offloaded) for offloaded in (99, 33, 32, 20, 1, 0)] == [32, 32, 31, 19, 0, 0]
    assert [fullest_layers(32, 32, 2, offloaded) for offloaded in (33, 20, 2)] == [17, 10, 1]
    whole = ledger(shape("llama", FULL))
    assert ledger(shape("llama", FULL), n_gpu_layers=3).bytes * 2 == whole.bytes
    assert all(ledger(shape("llama", FULL), n_gpu_layers=given).bytes == whole.bytes for given in (5, 99, -1, "all", "auto", None))
    with pytest.raises(UsageError):
        ledger(shape("llama", FULL), n_gpu_layers=1.5)


@pytest.mark.parametrize("named", [{"split_mode": "row"}, {"split_mode": "tensor"}, {"tensor_split": "3,1"}, {"tensor_split": [2, 1]}])
def test_other_splits_are_unknown(named):
    with pytest.raises(UnknownFact):
        ledger(shape("llama", FULL), **named)


def test_a_sequences_context_is_the_whole_of_a_unified_pool():
    # llama_context::llama_context: n_ctx_seq = kv_unified ? n_ctx : n_ctx / n_seq_max; before that a log had n_ctx_per_seq
    model = shape("llama", FULL)
    assert ledger(model, n_ctx_seq=4096, n_seq_max=4).bytes == ledger(model, n_ctx=16384, n_seq_max=4).bytes
    assert ledger(model, n_ctx_seq=4096, n_seq_max=4, kv_unified=True).bytes == ledger(model, n_ctx=4096).bytes
    assert ledger(model, n_ctx_per_seq=4096, n_seq_max=4, kv_unified=True).bytes == ledger(model, n_ctx=16384).bytes


@pytest.mark.parametrize(("said", "meant"), [("enabled", "on"), (1, "on"), (-1, "auto"), ("disabled", "off"), (0, "off")])
def test_flash_attention_as_logs_say_it(said, meant):
    mixed = shape("gemma3", FULL, Sliding(kind="sliding", layers=4, kv_heads=4, k_dim=64, v_dim=64, window_tokens=512))
    assert ledger(mixed, fa=said).bytes == ledger(mixed, fa=meant).bytes


def test_compute_buffer_only_where_the_formula_was_tried():
    assert ledger(shape("llama", FULL)).compute_bytes == 0
    assert ledger(architecture("llama-2-7b-hf"), fa=False).compute_bytes == 0
    assert ledger(architecture("llama-2-7b-hf"), pp=2).compute_bytes == 0
    assert ledger(architecture("deepseek-v3.2")).compute_bytes == 0


ANY = [
    shape("llama", FULL),
    shape("mistral", Sliding(kind="sliding", layers=4, kv_heads=2, k_dim=64, v_dim=64, window_tokens=300)),
    shape("gemma3", FULL, Sliding(kind="sliding", layers=20, kv_heads=2, k_dim=64, v_dim=64, window_tokens=300)),
    shape("deepseek_v3", LATENT),
    shape("qwen3_5", FULL, Recurrent(kind="recurrent", layers=12, state_elements=1000, conv_elements=10)),
    architecture("deepseek-v4-flash"),
    architecture("minimax-m3-nvfp4"),
]
MODELS_ANY = st.sampled_from(ANY)
SOME = st.fixed_dictionaries(
    {"kv_unified": st.booleans(), "swa_full": st.booleans(), "fa": st.sampled_from(["auto", "off"]), "n_ubatch": st.sampled_from([64, 512])}
)


@given(MODELS_ANY, SOME, st.integers(1, 40_000), st.integers(1, 40_000), st.integers(1, 9))
def test_more_context_never_takes_less(model, settings, one, other, sequences):
    less, more = (ledger(model, n_ctx=n_ctx, n_seq_max=sequences, **settings).bytes for n_ctx in sorted((one * 9, other * 9)))
    assert less <= more


@given(MODELS_ANY, SOME, st.integers(1, 40_000), st.integers(1, 60), st.integers(1, 60))
def test_more_users_of_the_same_context_never_take_less(model, settings, context, one, other):
    less, more = (ledger(model, context, users, **settings).bytes for users in sorted((one, other)))
    assert less <= more


@given(MODELS_ANY, SOME, st.integers(1, 40_000), st.integers(1, 4), st.integers(1, 4))
def test_more_devices_never_take_more(model, settings, context, one, other):
    more, less = (ledger(model, context, pp=devices, **settings).bytes for devices in sorted((one, other)))
    assert less <= more


def test_families_are_those_of_the_config_reader_or_known_elsewhere():
    assert all(rules.arch for rules in RULES.values())
    assert len({rules.arch for rules in RULES.values()}) > 90
