"""TensorRT-LLM's block pool: against logs and hand arithmetic, and laws that hold for every family it is known for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.tensorrt import allocate
from tests.fit.engines.pool_golden import compare, ledger
from tests.golden import rows

NAMES = ["llama-3.1-8b", "qwen3-235b", "gpt-oss-120b", "deepseek-v3.2", "glm-5.2", "nemotron-super-49b"]
MODELS = st.sampled_from(NAMES)
HYBRIDS = ["qwen3.8-27b", "nemotron-3-nano", "kimi-linear"]
TOKENS = st.integers(min_value=1, max_value=1 << 20)
USERS = st.integers(min_value=1, max_value=300)


@pytest.mark.parametrize("row", rows("tensorrt.yaml"), ids=lambda row: f"{row['model']}-{row.get('of', 'kv')}")
def test_pools_are_what_the_source_says(row):
    compare(allocate, row)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([*NAMES, *HYBRIDS]), TOKENS, TOKENS, USERS, USERS)
def test_more_tokens_and_more_users_never_take_less(model, one, other, few, many):
    (shorter, longer), (fewer, more) = sorted((one, other)), sorted((few, many))
    least = ledger(allocate, model, context=shorter, users=fewer).bytes
    assert least <= ledger(allocate, model, context=longer, users=more).bytes


@settings(max_examples=60, deadline=None)
@given(MODELS, TOKENS, st.sampled_from([1, 2, 3, 4, 8, 16]))
def test_more_ranks_never_hold_more_each_nor_less_in_all(model, context, tp):
    alone, each = ledger(allocate, model, context=context), ledger(allocate, model, context=context, tp=tp)
    assert each.bytes <= alone.bytes <= each.bytes * tp


def test_heads_are_replicated_past_their_number_and_latents_always():
    assert ledger(allocate, "qwen3-235b", tp=4).bytes == ledger(allocate, "qwen3-235b", tp=8).bytes
    assert ledger(allocate, "deepseek-v3", tp=8).bytes == ledger(allocate, "deepseek-v3").bytes


@pytest.mark.parametrize(
    "model", ["qwen3.8-flash-next", "ling-3.0-tiny", "deepseek-v4-flash", "mimo-v2-flash", "gemma-4-e4b", "glm-5.3-flash"]
)
def test_caches_that_no_source_at_hand_shows_are_unknown(model):
    with pytest.raises(UnknownFact):
        ledger(allocate, model)


@pytest.mark.parametrize("named", [{"max_attention_window": [128]}, {"tp": 8, "dcp": 8}, {"max_beam_width": 4}])
def test_windows_and_context_parallel_ranks_are_unknown(named):
    with pytest.raises(UnknownFact):
        ledger(allocate, "gpt-oss-120b", **named)


@pytest.mark.parametrize(
    "named", [{"page_size": 64}, {"tokens_per_block": 0}, {"tokens_per_block": True}, {"dtype": "q4_0"}, {"mamba_ssm_cache_dtype": "fp8"}]
)
def test_settings_that_tensorrt_llm_does_not_have_are_refused(named):
    with pytest.raises(UsageError):
        ledger(allocate, "llama-3.1-8b", **named)


def test_recurrent_heads_that_the_ranks_do_not_divide_are_refused():
    with pytest.raises(UsageError, match="48 recurrent heads"):
        ledger(allocate, "qwen3.8-27b", tp=32)
