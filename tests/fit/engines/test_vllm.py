from decimal import Decimal

import pytest

from fitcheck.catalogue.models import Architecture
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import Ledger, Settings
from fitcheck.fit.engines.vllm import allocate, plan
from fitcheck.fit.engines.vllm_settings import read_settings
from fitcheck.fit.state import KvDtype
from tests.golden import rows

GIB = 1 << 30
TABLE = rows("vllm.yaml")
MODELS = {
    row["model"]: Architecture(
        source=("config",),
        grade=Grade.PUBLISHED,
        family=row["family"],
        max_context_tokens=1 << 20,
        layers=row["layers"],
        groups=tuple(row["groups"]),
        draft_groups=tuple(row.get("draft_groups", ())),
    )
    for row in TABLE
    if "groups" in row
}
LOGS = [row for row in TABLE if "groups" not in row]
PACKED = {
    "0.22": 31 * (37440 + 8640 + 1728),
    "0.23": 31 * (37440 + 1728) + 30 * 8640,
    "0.26": 31 * (37440 + 1728) + 30 * 8640,
    "0.28": 30 * (37440 + 8640) + 31 * 1728,
    "0.33": 30 * (37440 + 8640) + 31 * 1728,
}
"""Bytes of a block of DeepSeek V4 Pro: 30 layers of 1:4 with an index key each, 31 of 1:128, pages rounded up to 576 B."""


def settings(context=32768, users=1, dtype="auto", tp=1, pp=1, dcp=1, **named):
    return Settings(context, users, KvDtype(dtype, dtype, dtype), tp, pp, 1, dcp, named)


def ledger(model, **options):
    return Ledger(allocate(MODELS[model], settings(**options)))


def asked(row):
    return settings(context=row["context"], dtype=row.get("kv_dtype", "auto"), **row.get("settings", {}))


@pytest.mark.parametrize("row", LOGS, ids=lambda row: f"{row['model']}-{row['context']}")
def test_logs_are_reproduced_to_the_last_digit(row):
    groups, found = plan(MODELS[row["model"]], read_settings(asked(row)))
    block_bytes, blocks = max(group.bytes(1) for group in groups), sum(group.blocks(found) for group in groups)
    assert block_bytes == row.get("block_bytes", block_bytes), row["source"]
    assert blocks == row.get("blocks", blocks), row["source"]
    assert groups[0].members[0].block_tokens == row.get("block_tokens", groups[0].members[0].block_tokens), row["source"]
    if "needed_gib" in row:
        assert abs(Decimal(block_bytes * blocks) / GIB - Decimal(str(row["needed_gib"]))) <= Decimal("0.005"), row["source"]
    if "pool_gib" in row:
        pools = [int((Decimal(str(row["pool_gib"])) + Decimal(sign) * Decimal("0.0051")) * GIB) // block_bytes for sign in (-1, 1)]
        counts = range(pools[0], pools[1] + 1)
        if "tokens" in row:
            assert any(int(count / blocks * row["context"]) == row["tokens"] for count in counts), row["source"]
        else:
            assert any(abs(count / blocks - float(row["concurrency"])) <= 0.0051 for count in counts), row["source"]


@pytest.mark.parametrize("row", LOGS, ids=lambda row: f"{row['model']}-{row['context']}")
def test_terms_add_up_to_the_blocks(row):
    groups, found = plan(MODELS[row["model"]], read_settings(asked(row)))
    total = max(group.bytes(1) for group in groups) * sum(group.blocks(found) for group in groups)
    terms = allocate(MODELS[row["model"]], asked(row))
    assert sum(term.bytes for term in terms) == total
    assert all(term.formula for term in terms)


def test_the_block_of_a_log_tells_that_there_were_draft_tokens():
    told, said = ledger("qwen3.5-27b", dtype="fp8", block_size=1600), ledger("qwen3.5-27b", dtype="fp8", num_speculative_tokens=3)
    assert told.bytes == said.bytes
    assert ledger("qwen3.5-27b", dtype="fp8", block_size=1568).bytes == ledger("qwen3.5-27b", dtype="fp8").bytes


def test_kv_heads_are_replicated_past_their_number():
    whole, four, sixteen = (ledger("qwen3-30b-a3b", tp=tp).bytes for tp in (1, 4, 16))
    assert whole == 4 * four
    assert four == sixteen


def test_latents_are_whole_on_each_rank_and_divided_by_dcp_alone():
    one = ledger("glm-5.1-nvfp4", context=65536, dtype="fp8").bytes
    assert ledger("glm-5.1-nvfp4", context=65536, dtype="fp8", tp=8).bytes == one == 65536 * 78 * 788
    assert ledger("glm-5.1-nvfp4", context=65536, dtype="fp8", tp=8, dcp=8).bytes * 8 == one


def test_dcp_rounds_tokens_up_before_blocks():
    assert ledger("glm-5.1-nvfp4", context=129, dtype="fp8", dcp=2).bytes == 2 * 64 * 78 * 788


@pytest.mark.parametrize(
    ("dtype", "row"), [("nvfp4_ds_mla", 352), ("fp8_ds_mla", 656), ("fp8", 656), ("bf16", 1152), ("int8_per_token_head", 584)]
)
def test_latent_rows(dtype, row):
    assert ledger("glm-5.1-nvfp4", context=64, dtype=dtype).bytes == 64 * 78 * (row + 132)


@pytest.mark.parametrize(
    ("dtype", "capability", "row"),
    [
        ("fp8", "9.0", 656),
        ("fp8", "10.0", 576),
        ("fp8", "12.1", 656),
        ("auto", "9.0", 1152),
        ("auto", "10.0", 576),
        ("auto", "12.1", 656),
        ("nvfp4_ds_mla", "10.0", 352),
        ("nvfp4_ds_mla", "12.1", 432),
    ],
)
def test_sparse_rows_depend_on_the_gpu(dtype, capability, row):
    assert ledger("glm-5.1-nvfp4", context=64, dtype=dtype, compute_capability=capability).bytes == 64 * 78 * (row + 132)


@pytest.mark.parametrize(
    ("dtype", "capability", "record", "window"),
    [("auto", "9.0", 584, 584), ("fp8", "12.1", 584, 584), ("fp8", "10.0", 528, 528), ("auto", "10.0", 288, 528)],
)
def test_records_of_v41_depend_on_the_gpu(dtype, capability, record, window):
    found, _ = plan(MODELS["deepseek-v4.1-flash"], read_settings(settings(dtype=dtype, compute_capability=capability)))
    block, unit = (64, 576) if capability == "9.0" else (128, 576 if record == 584 else 512)
    pages = {member.name: member.page_bytes for group in found for member in group.members}
    assert pages["KV, compressed 1:1"] == -(-block * record // unit) * unit
    assert pages["KV, recent window"] == -(-32 * window // unit) * unit


@pytest.mark.parametrize(("dtype", "row"), [("fp8", 256), ("nvfp4", 144), ("int4_per_token_head", 136), ("fp8_per_token_head", 264)])
def test_head_rows(dtype, row):
    assert ledger("llama-3.1-8b-instruct", context=16, dtype=dtype).bytes == 16 * 32 * 8 * row


def test_the_tail_behind_an_n_gram_embedding_is_whole_on_each_rank_and_sets_the_block():
    """16 ranks: (9 + 2) x 10,240 x 2 B = 225,280 B of tail, above 3 x 128 x 128 x 4 B + 640 x 5 x 2 B; 1,024 B a token, blocks of 16."""
    groups, _ = plan(MODELS["qwen3.8-flash-next"], read_settings(settings(tp=16, num_speculative_tokens=2, vllm_version="0.29")))
    assert groups[0].members[0].block_tokens == 224 == -(-225280 // (16 * 1024)) * 16
    assert [member.name for member in groups[-2].members] == ["n-gram convolution"]


def test_draft_tokens_lengthen_an_n_gram_tail_by_steps_that_must_be_known():
    model = MODELS["qwen3.8-flash-next"]
    states = tuple(group.model_copy(update={"ngram_conv_steps": None}) if group.kind == "recurrent" else group for group in model.groups)
    short = model.model_copy(update={"groups": states})
    assert allocate(short, settings()) == allocate(model, settings())
    with pytest.raises(UnknownFact, match="n-gram"):
        allocate(short, settings(num_speculative_tokens=2))


def test_an_n_gram_embedding_is_refused_on_pipeline_stages():
    with pytest.raises(UsageError, match="n-gram"):
        ledger("qwen3.8-flash-next", pp=2)


def test_pipeline_stages_hold_their_part_of_the_layers_rounded_up():
    assert ledger("qwen3-14b", context=16, pp=3).bytes == ledger("qwen3-14b", context=16).bytes * 14 // 40


def test_windows_keep_what_is_in_flight():
    kept = {batched: ledger("gpt-oss-20b", context=131072, max_num_batched_tokens=batched).bytes for batched in (2048, 8192)}
    page = 12 * 16 * 8 * 128 * 2
    assert kept[2048] == page * (8192 + 264 + 1)
    assert kept[8192] == page * (8192 + 1032 + 1)
    sync = ledger("gpt-oss-20b", context=131072, max_num_batched_tokens=2048, async_scheduling=False).bytes
    assert sync == page * (8192 + 136 + 1) == ledger("gpt-oss-20b", context=131072, max_num_batched_tokens=2048, vllm_version="0.20").bytes


def test_without_chunked_prefill_a_batch_holds_the_longest_sequence():
    asked = {"vllm_version": "0.33", "compute_capability": 9.0, "enable_chunked_prefill": False}
    assert ledger("gpt-oss-20b", **asked).bytes == 1_611_005_952  # vLLM 0.33.0 asked: 1,611,005,954 of a pool of 80 TiB
    assert ledger("gpt-oss-20b", max_num_batched_tokens=32768, **asked).bytes == 1_611_005_952


def test_without_the_hybrid_manager_windows_keep_every_token():
    whole = ledger("gpt-oss-20b", context=131072, disable_hybrid_kv_cache_manager=True)
    assert whole.bytes == 131072 * 24 * 8 * 128 * 2


def test_states_need_the_hybrid_manager():
    # "Hybrid KV cache manager is disabled but failed to convert the KV cache specs to one unified type"
    with pytest.raises(UsageError, match="disable_hybrid_kv_cache_manager"):
        ledger("qwen3.5-27b", disable_hybrid_kv_cache_manager=True)
    with pytest.raises(UnknownFact, match="disable_hybrid_kv_cache_manager"):
        ledger("deepseek-v4-pro", dtype="fp8", disable_hybrid_kv_cache_manager=True)


def test_versions_differ_in_what_prefix_caching_costs_a_state():
    nemotron, qwen = "nvidia-nemotron-3-nano-30b-a3b-bf16", "qwen3.6-35b-a3b"
    off = {model: ledger(model, enable_prefix_caching=False).state_bytes for model in (nemotron, qwen)}
    blocks = {version: ledger(nemotron, vllm_version=version).state_bytes // off[nemotron] for version in ("0.25", "0.28", "0.33")}
    assert blocks == {"0.25": 1, "0.28": 2, "0.33": 3}
    # 36,864 + 2,097,152 B of state over 1,024 B a token are 2,084 tokens, 17 chunks of 128, which 32,768 tokens fill 16 times
    every = 24 * 17 * 128 * 1024 * 16
    assert ledger(nemotron, vllm_version="0.25", enable_prefix_caching=True).state_bytes == every
    for version in (
        "0.26",
        "0.27",
    ):  # supported, and off unless asked for: arg_utils.py, "keep it opt-in for now while the feature matures"
        assert {model: ledger(model, vllm_version=version).state_bytes for model in off} == off
        assert ledger(nemotron, vllm_version=version, enable_prefix_caching=True).state_bytes == every
        assert ledger(qwen, vllm_version=version, enable_prefix_caching=True).state_bytes == 2 * off[qwen]
        # a mode without prefix caching is set back to none (vLLM, MambaModelConfig.verify_and_update_config)
        assert ledger(qwen, vllm_version=version, mamba_cache_mode="align").state_bytes == off[qwen]
    assert ledger(qwen, vllm_version="0.28").state_bytes == 2 * off[qwen]
    assert ledger(nemotron).state_bytes == off[nemotron]
    assert ledger(qwen).state_bytes == ledger(qwen, mamba_cache_mode="align").state_bytes == 2 * off[qwen]
    assert ledger(qwen, vllm_version="0.32").state_bytes == 2 * off[qwen]
    assert ledger(qwen, vllm_version="0.33").state_bytes > 3 * off[qwen]


def test_versions_differ_in_what_a_block_of_unlike_pages_reserves():
    blocks = {
        version: ledger("deepseek-v4-pro", dtype="fp8", vllm_version=version, max_num_batched_tokens=8192).bytes for version in PACKED
    }
    pages = {version: size // PACKED[version] for version, size in blocks.items()}
    assert {version: size % PACKED[version] for version, size in blocks.items()} == dict.fromkeys(PACKED, 0)
    assert pages["0.22"] == pages["0.23"] < pages["0.26"] == pages["0.28"] == pages["0.33"]


@pytest.mark.parametrize(("version", "block"), [("0.25", 1308672), ("0.33", 30 * (32768 + 8704) + 31 * 1024)])
def test_flashinfers_rows_of_v4_are_plain(version, block):
    # 1,308,672 B: vllm issue 48993, printed under FlashInfer; rows of 512 B, pages to 512 B: 64 of 1:4, 64 keys of 132 B, 2 of 1:128
    groups, _ = plan(
        MODELS["deepseek-v4-pro"],
        read_settings(settings(dtype="fp8", vllm_version=version, attention_backend="FLASHINFER_MLA_SPARSE_DSV4")),
    )
    assert max(group.bytes(1) for group in groups) == block


def test_only_flashinfer_keeps_v4_in_16_bits_and_on_sm12x_it_packs():
    sixteen, _ = plan(MODELS["deepseek-v4-pro"], read_settings(settings(dtype="bf16")))
    assert max(group.bytes(1) for group in sixteen) == 30 * (65536 + 8704) + 31 * 2048
    named = {"attention_backend": "AttentionBackendEnum.FLASHINFER_MLA_SPARSE_DSV4", "compute_capability": 12.0}
    assert ledger("deepseek-v4-pro", dtype="fp8", **named).bytes == ledger("deepseek-v4-pro", dtype="fp8").bytes


def test_index_keys_of_v4_in_mxfp4():
    # DeepseekV4Indexer: 128 / 2 + 128 / 32 = 68 B; 64 x 68 = 4,352 B, to 576 B 4,608
    groups, _ = plan(MODELS["deepseek-v4-pro"], read_settings(settings(dtype="fp8", indexer_kv_dtype="mxfp4")))
    keys = {member.page_bytes for group in groups for member in group.members if member.name == "index keys"}
    assert keys == {4608}


def test_methods_without_a_cache_keep_states_for_their_drafts_alone():
    plain, looked_up = ledger("qwen3.5-27b"), ledger("qwen3.5-27b", speculative_config={"method": "ngram", "num_speculative_tokens": 3})
    own = ledger("qwen3.5-27b", speculative_config={"method": "mtp", "num_speculative_tokens": 3})
    # MambaBase.get_kv_cache_spec: num_speculative_blocks is the number of draft tokens, whatever the method
    assert plain.state_bytes < looked_up.state_bytes
    assert looked_up.kv_bytes <= own.kv_bytes
    text = '{"method": "mtp",\n "num_speculative_tokens": 3}'
    assert ledger("qwen3.5-27b", speculative_config=text).bytes == own.bytes
    named = {"num_speculative_tokens": 3}
    assert ledger("qwen3.5-27b", speculative_config={"model": "[ngram]", **named}).bytes == looked_up.bytes


def test_ngram_turns_asynchronous_scheduling_off():
    # one batch in flight, not two: ceil((127 + 8192) / 16) + 1 = 521 blocks, not ceil((127 + 16384) / 16) + 1 = 1033
    drafting = {"method": "ngram", "num_speculative_tokens": 3}
    off = ledger("gpt-oss-20b", async_scheduling=False).bytes
    assert ledger("gpt-oss-20b", **drafting).bytes == off < ledger("gpt-oss-20b").bytes
    assert ledger("gpt-oss-20b", **drafting, async_scheduling=True).bytes == ledger("gpt-oss-20b").bytes


@pytest.mark.parametrize("config", ["mtp", "[]", "{", "[" * 30_000, ["mtp"], {"method": "mtp", "num_speculative_tokens": -1}], ids=range(6))
def test_a_speculative_config_that_is_none_is_refused(config):
    with pytest.raises(UsageError):
        ledger("qwen3.5-27b", speculative_config=config)


def test_old_versions_have_no_slot_for_windows_larger_than_the_pages():
    with pytest.raises(UnknownFact, match="no slot"):
        ledger("deepseek-v4-pro", dtype="fp8", vllm_version="0.22", block_size=128)
    assert ledger("deepseek-v4-pro", dtype="fp8", vllm_version="0.28", block_size=128).bytes


def test_state_is_fp32_where_the_family_or_the_config_says_so():
    assert ledger("qwen3.6-35b-a3b", block_size=1056, mamba_ssm_cache_dtype="bfloat16").bytes == ledger("qwen3.6-35b-a3b").bytes
    small = ledger("qwen3.6-35b-a3b", mamba_ssm_cache_dtype="bfloat16")
    assert small.state_bytes < ledger("qwen3.6-35b-a3b").state_bytes * Decimal("0.52")


def test_what_vllm_does_not_settle_is_unknown():
    with pytest.raises(UnknownFact, match="depends on the GPU"):
        ledger("deepseek-v4.1-flash")
    with pytest.raises(UnknownFact, match="FP8 records only"):
        ledger("deepseek-v4-flash-0731", dtype="nvfp4_ds_mla")
    for drafter in ({"method": "dflash"}, {"model": "z-lab/Qwen3.5-27B-DFlash"}):
        with pytest.raises(UnknownFact, match="drafter"):
            ledger("qwen3.5-27b", speculative_config={**drafter, "num_speculative_tokens": 7})
    with pytest.raises(UnknownFact, match="no draft layers of its own"):
        ledger("gpt-oss-20b", num_speculative_tokens=3)
    with pytest.raises(UnknownFact, match="disable_sliding_window"):
        ledger("gpt-oss-20b", disable_sliding_window=True)
    with pytest.raises(UnknownFact, match="32 bits"):
        read_settings(settings()._replace(named={"dtype": "torch.float32"}))
    with pytest.raises(UnknownFact, match="turboquant"):
        ledger("qwen3-14b", kv_cache_dtype="turboquant_k8v4")


@pytest.mark.parametrize(
    "named",
    [
        {"n_ctx": 8192},
        {"block_size": 0},
        {"block_size": True},
        {"max_num_batched_tokens": "many"},
        {"enable_prefix_caching": "no"},
        {"kv_cache_dtype": "q8_0"},
        {"vllm_version": "latest"},
        {"compute_capability": "hopper"},
        {"mamba_cache_mode": "some"},
        {"mamba_ssm_cache_dtype": "fp8"},
    ],
)
def test_settings_that_vllm_does_not_have_are_refused(named):
    with pytest.raises(UsageError):
        ledger("qwen3-14b", **named)
