"""SGLang's pools: against logs and hand arithmetic, and laws that hold for every family."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitcheck.catalogue.layers import Cross, Recurrent, Stateless
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import Ledger, Settings
from fitcheck.fit.engines.sglang import allocate
from fitcheck.fit.state import kv_dtype
from tests.fit.engines.pool_golden import compare, ledger
from tests.fit.engines.pool_shapes import SHAPES, built, full, slides
from tests.golden import rows

MODELS = st.sampled_from(sorted(SHAPES))
TOKENS = st.integers(min_value=1, max_value=1 << 20)
USERS = st.integers(min_value=1, max_value=300)


@pytest.mark.parametrize("row", rows("sglang.yaml"), ids=lambda row: f"{row['model']}-{row.get('of', 'kv')}")
def test_pools_are_what_the_source_says(row):
    compare(allocate, row)


@settings(max_examples=60, deadline=None)
@given(MODELS, TOKENS, TOKENS, USERS)
def test_a_longer_context_never_takes_less(model, one, other, users):
    shorter, longer = sorted((one, other))
    assert ledger(allocate, model, context=shorter, users=users).bytes <= ledger(allocate, model, context=longer, users=users).bytes


@settings(max_examples=60, deadline=None)
@given(MODELS, TOKENS, USERS, USERS)
def test_more_users_never_take_less(model, context, one, other):
    fewer, more = sorted((one, other))
    assert ledger(allocate, model, context=context, users=fewer).bytes <= ledger(allocate, model, context=context, users=more).bytes


@settings(max_examples=60, deadline=None)
@given(MODELS, TOKENS, st.sampled_from([1, 2, 4, 8, 16]))
def test_more_ranks_never_hold_more_each_nor_less_in_all(model, context, tp):
    alone, each = ledger(allocate, model, context=context), ledger(allocate, model, context=context, tp=tp)
    assert each.bytes <= alone.bytes <= each.bytes * tp


def test_heads_are_replicated_past_their_number():
    four, eight = (ledger(allocate, "qwen3-235b", tp=tp).bytes for tp in (4, 8))
    assert four == eight == ledger(allocate, "qwen3-235b").bytes // 4


def test_dp_attention_divides_users_and_not_heads():
    whole = ledger(allocate, "qwen3-235b", users=8)
    assert ledger(allocate, "qwen3-235b", users=8, tp=8, dp=8, enable_dp_attention=True).bytes * 8 == whole.bytes + 7 * 192512
    assert ledger(allocate, "qwen3-235b", users=8, tp=4, dp=2).bytes < whole.bytes // 7


def test_latents_are_whole_on_each_rank_and_divided_by_decode_context_ranks():
    whole = ledger(allocate, "deepseek-v3", context=65536, page_size=64)
    assert ledger(allocate, "deepseek-v3", context=65536, page_size=64, tp=8).bytes == whole.bytes
    divided = ledger(allocate, "deepseek-v3", context=65536, page_size=64, tp=8, dcp=8)
    assert divided.bytes == 61 * 576 * 2 * (65536 // 8 + 64)


def test_index_keys_are_not_divided_by_decode_context_ranks():
    terms = {term.name: term.bytes for term in ledger(allocate, "deepseek-v3.2", context=65536, tp=8, dcp=8).terms}
    assert terms["index keys"] == 61 * (65536 // 64 + 8) * 64 * 132


def test_other_engines_word_for_a_page_is_taken():
    assert ledger(allocate, "qwen3-235b", context=100, block_size=64).bytes == 192512 * (128 + 64)


def test_draft_layers_have_caches_of_their_own():
    plain, drafting = (ledger(allocate, "deepseek-v3.2", **more) for more in ({}, {"speculative_algorithm": "NEXTN"}))
    assert drafting.bytes * 61 == plain.bytes * 62
    assert ledger(allocate, "deepseek-v3.2", speculative_algorithm="NGRAM").bytes == plain.bytes


def test_a_windowed_pool_holds_a_window_and_a_page_at_least():
    terms = {term.name: term for term in ledger(allocate, "gpt-oss-120b", context=1).terms}
    assert "130 slots" in terms["KV, windowed pool"].formula
    assert "163 slots" in terms["KV, full attention"].formula


def test_the_windowed_pool_follows_the_requests_without_radix_cache():
    found = ledger(allocate, "gpt-oss-120b", context=131072, users=16, disable_radix_cache=True, max_running_requests=16)
    window = next(term for term in found.terms if term.name == "KV, windowed pool")
    assert window.bytes == 18 * 8 * 128 * 2 * (16 * (128 + 128 + 1 + 1) + 2 * 8192 + 1 + 1)


def test_prefills_in_flight_are_one_chunk_without_the_overlap_schedule_and_whole_prompts_without_chunks():
    # compute_swa_request_cap: chunks_in_flight is 1 with disable_overlap_schedule; SWARequestCapPoolConfigurator.is_applicable wants chunks
    capped = {"context": 131072, "users": 16, "disable_radix_cache": True, "max_running_requests": 16}
    both, one, whole = (
        next(term.bytes for term in ledger(allocate, "gpt-oss-120b", **capped, **named).terms if term.name == "KV, windowed pool")
        for named in ({}, {"disable_overlap_schedule": True}, {"chunked_prefill_size": -1})
    )
    assert both - one == 18 * 8 * 128 * 2 * 8192
    assert whole == 18 * 8 * 128 * 2 * (16 * 131072 * 8 // 10 + 1)


def test_a_step_of_a_draft_tree_takes_all_of_its_branches():
    # get_alloc_len_per_decode: max(topk x steps, draft tokens), twice; 8 drafts, 4 branches of 5 steps are 20
    capped = {"users": 16, "disable_radix_cache": True, "max_running_requests": 16, "speculative_num_draft_tokens": 8}
    line, tree = (
        next(term.bytes for term in ledger(allocate, "gpt-oss-120b", **capped, **named).terms if term.name == "KV, windowed pool")
        for named in (
            {"speculative_algorithm": "NGRAM"},
            {"speculative_algorithm": "NGRAM", "speculative_num_steps": 5, "speculative_eagle_topk": 4},
        )
    )
    assert tree - line == 18 * 8 * 128 * 2 * 16 * 2 * (20 - 8)


def test_windowed_layers_keep_all_tokens_without_hybrid_memory():
    found = ledger(allocate, "gpt-oss-120b", disable_hybrid_swa_memory=True)
    assert found.bytes == 36 * 8 * 128 * 2 * (32768 + 1)


def test_step_keeps_all_tokens_beside_a_host_cache_and_gpt_oss_does_not():
    step = built("step3p5", full(12, 8, 128), slides(33, 8, 128, 512))
    found = Ledger(allocate(step, Settings(32768, 1, kv_dtype("auto"), named={"enable_hierarchical_cache": True})))
    assert found.bytes == 45 * 8 * 256 * 2 * (32768 + 1)
    assert ledger(allocate, "gpt-oss-120b", enable_hierarchical_cache=True).terms == ledger(allocate, "gpt-oss-120b").terms


def test_nvfp4_prefill_expands_a_layer_into_a_workspace():
    plain = ledger(allocate, "qwen2.5-1.5b", dtype="nvfp4", prefill_kv_cache_dequant_dtype="nvfp4")
    assert ledger(allocate, "qwen2.5-1.5b", dtype="nvfp4").bytes - plain.bytes == 2 * 256 * 32769


@pytest.mark.parametrize(("backend", "row"), [(None, 656), ("flashmla_kv", 656), ("trtllm", 576)])
def test_fp8_rows_of_dsa_depend_on_the_backend(backend, row):
    named = {"dsa_decode_backend": backend} if backend else {}
    terms = {term.name: term.bytes for term in ledger(allocate, "deepseek-v3.2", dtype="fp8", **named).terms}
    assert terms["KV, latent (MLA)"] == 61 * row * (32768 + 64)


def test_states_of_groups_are_replicated_past_their_number():
    one = Recurrent(
        kind="recurrent",
        layers=1,
        state_elements=64 * 64 * 128,
        conv_elements=(4096 + 2 * 128) * 3,
        flavour="mamba2",
        conv_kernel=4,
        heads=64,
        groups=1,
        group_elements=256,
    )
    found = Ledger(allocate(built("nemotron_h", full(1, 1, 64), one), Settings(64, 1, kv_dtype("auto"), tp=4)))
    assert found.state_bytes == 6 * (64 * 64 * 128 // 4 * 4 + (4096 // 4 + 256) * 3 * 2)


@pytest.mark.parametrize(("strategy", "slots"), [("auto", 5), ("no_buffer", 3), ("extra_buffer", 5), ("extra_buffer_lazy", 4)])
def test_slots_of_state_for_each_request(strategy, slots):
    found = ledger(allocate, "qwen3.8-27b", users=10, mamba_radix_cache_strategy=strategy)
    assert found.state_bytes == (10 * slots + 1) * 153944064


@pytest.mark.parametrize(
    ("named", "page"),
    [
        # `_mla_backend_page_constraints`
        ({"attention_backend": "flashmla"}, 64),
        ({"decode_attention_backend": "trtllm_mla", "page_size": 32}, 32),
        ({"attention_backend": "trtllm_mha"}, 64),
        ({"prefill_attention_backend": "trtllm_mha", "page_size": 128}, 128),
        ({"attention_backend": "trtllm_mha", "page_size": 48}, 64),
        ({"attention_backend": "fa3"}, 1),
    ],
)
def test_attention_backends_have_pages_of_their_own(named, page):
    # 94 layers x 4 heads x 256 x 2 B; 100 tokens take whole pages, and one page takes the writes of padding
    assert ledger(allocate, "qwen3-235b", context=100, **named).bytes == 94 * 4 * 256 * 2 * (-(-100 // page) * page + page)


@pytest.mark.parametrize(("page", "slots"), [(1, 3), (64, 4)])
def test_without_the_overlap_schedule_states_are_tracked_once_or_not_at_all(page, slots):
    # _mamba_radix_cache_resolution: extra_buffer where pages or the overlap schedule want it; get_mamba_tracking_slots: 1 without overlap
    found = ledger(allocate, "qwen3.8-27b", users=10, page_size=page, disable_overlap_schedule=True)
    assert found.state_bytes == (10 * slots + 1) * 153944064


def test_v41_sizes_its_window_from_the_requests():
    few, many = (ledger(allocate, "deepseek-v4.1-flash", users=users, max_total_tokens=1 << 20) for users in (1, 9))
    assert many.kv_bytes - few.kv_bytes == 40 * 585 * 8 * (768 + 4 * 384)


@pytest.mark.parametrize(
    "architecture",
    [
        built("bert", Stateless(kind="none", layers=12)),
        built("mllama", full(32, 8, 128), Cross(kind="cross", layers=8, kv_heads=8, k_dim=128, v_dim=128)),
        built("jamba", full(4, 8, 128), Recurrent(kind="recurrent", layers=28, state_elements=64, flavour="mamba1")),
        built("axk1", SHAPES["deepseek-v3"].groups[0]),
    ],
    ids=lambda architecture: architecture.family,
)
def test_what_the_sources_do_not_settle_is_unknown(architecture):
    with pytest.raises(UnknownFact):
        allocate(architecture, Settings(4096, 1, kv_dtype("auto")))


@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("qwen2.5-1.5b", {"speculative_algorithm": "EAGLE3"}),
        ("qwen2.5-1.5b", {"speculative_algorithm": "EAGLE"}),
        ("deepseek-v3", {"speculative_algorithm": "EAGLE", "speculative_draft_model_path": "some/drafter"}),
        ("qwen3.8-27b", {"speculative_algorithm": "NEXTN"}),
        ("deepseek-v4.1-flash", {"speculative_algorithm": "DSPARK"}),
        ("deepseek-v4-flash", {"tp": 8, "dcp": 8}),
        ("gpt-oss-120b", {"tp": 8, "dcp": 8}),
    ],
)
def test_a_draft_or_a_split_that_is_not_settled_is_unknown(model, named):
    with pytest.raises(UnknownFact):
        ledger(allocate, model, **named)


@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("qwen2.5-1.5b", {"n_ctx": 16}),
        ("qwen2.5-1.5b", {"page_size": 0}),
        ("qwen2.5-1.5b", {"page_size": "64"}),
        ("qwen2.5-1.5b", {"dtype": "q8_0"}),
        ("qwen2.5-1.5b", {"dtype": "bf16/fp8"}),
        ("qwen2.5-1.5b", {"page_size": 64, "max_total_tokens": 63}),
        ("qwen2.5-1.5b", {"tp": 4, "dp": 3, "enable_dp_attention": True}),
        ("glm-5", {"dtype": "nvfp4"}),
        ("gpt-oss-120b", {"swa_full_tokens_ratio": 1.5}),
        ("deepseek-v4-flash", {"dtype": "nvfp4"}),
        ("deepseek-v4-flash", {"dsv4_attn_backend": "other"}),
        ("qwen3.8-27b", {"mamba_ssm_dtype": "int8"}),
        ("qwen3.8-27b", {"mamba_radix_cache_strategy": "other"}),
    ],
)
def test_settings_that_sglang_does_not_have_are_refused(model, named):
    with pytest.raises(UsageError):
        ledger(allocate, model, **named)
