"""mlx-lm's caches: against hand arithmetic from its model files, and laws that hold for every family."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.mlx import allocate
from fitcheck.fit.engines.mlx_families import (
    DEFAULT_CACHE,
    EXPANDED,
    LATENT,
    LISTED,
    NOT_BATCHED,
    OWN_CACHE,
    PIPELINED,
    REPEATS_HEADS,
    SHARDED,
    TWO_WAYS,
)
from fitcheck.fit.engines.mlx_growth import chunked, growing, moments, rotating
from tests.fit.engines.pool_golden import compare, ledger
from tests.fit.engines.pool_shapes import SHAPES
from tests.golden import rows

MODELS = st.sampled_from(sorted(name for name, shape in SHAPES.items() if shape.family in DEFAULT_CACHE | OWN_CACHE and name != "glm-5.2"))
TOKENS = st.integers(min_value=1, max_value=1 << 20)
USERS = st.integers(min_value=1, max_value=300)


@pytest.mark.parametrize("row", rows("mlx.yaml"), ids=lambda row: f"{row['model']}-{row.get('of', 'kv')}")
def test_caches_are_what_the_source_says(row):
    compare(allocate, row)


@settings(max_examples=60, deadline=None)
@given(MODELS, TOKENS, TOKENS, st.sampled_from([{}, {"prefill_step_size": 512}, {"max_kv_size": 1000}]))
def test_a_longer_context_never_takes_less(model, one, other, named):
    assume("max_kv_size" not in named or SHAPES[model].family not in TWO_WAYS)
    shorter, longer = sorted((one, other))
    assert ledger(allocate, model, context=shorter, **named).bytes <= ledger(allocate, model, context=longer, **named).bytes


@settings(max_examples=60, deadline=None)
@given(TOKENS, TOKENS, st.sampled_from([2, 3, 4, 5, 6, 8]), st.integers(min_value=0, max_value=9000))
def test_a_longer_context_never_takes_less_when_quantised(one, other, bits, start):
    shorter, longer = sorted((one, other))
    named = {"kv_bits": bits, "quantized_kv_start": start}
    sizes = [ledger(allocate, "llama-3.1-8b", context=tokens, **named).bytes for tokens in (shorter, longer)]
    assert sizes == sorted(sizes)
    assert sizes[1] <= ledger(allocate, "llama-3.1-8b", context=longer).bytes


@settings(max_examples=60, deadline=None)
@given(MODELS.filter(lambda name: SHAPES[name].family not in NOT_BATCHED), TOKENS, USERS)
def test_users_each_have_caches_of_their_own(model, context, users):
    assert ledger(allocate, model, context=context, users=users).bytes == users * ledger(allocate, model, context=context).bytes


@settings(max_examples=60, deadline=None)
@given(TOKENS, st.integers(min_value=1, max_value=2000))
def test_a_window_is_never_smaller_than_what_it_must_hold(context, window):
    found = ledger(allocate, "qwen2.5-7b", context=context, max_kv_size=window).bytes // (28 * 4 * 256 * 2)
    assert min(context, window) <= found <= max(window, min(context, window + 2047))


@settings(max_examples=200, deadline=None)
@given(TOKENS, st.integers(min_value=1, max_value=4096), st.integers(min_value=1, max_value=20000))
def test_there_is_always_room_for_what_is_held(context, chunk, most):
    for moment in moments(context, chunk):
        assert moment.tokens <= growing(moment, chunk)
        assert min(moment.tokens, most) <= rotating(moment, most, chunk) <= max(most, most - 1 + moment.call, moment.call)
        assert min(moment.tokens, most) <= chunked(moment, most, chunk)


def test_tables_do_not_contradict_each_other():
    assert not DEFAULT_CACHE & OWN_CACHE
    assert not LATENT & EXPANDED
    for table in (LATENT, EXPANDED, LISTED, SHARDED, PIPELINED, REPEATS_HEADS):
        assert table <= DEFAULT_CACHE | OWN_CACHE


def test_caches_in_a_list_are_not_quantised():
    assert ledger(allocate, "deepseek-v3.2", kv_bits=4).bytes == ledger(allocate, "deepseek-v3.2").bytes


def test_layers_are_divided_by_pipeline_ranks():
    assert ledger(allocate, "deepseek-v3", pp=2).bytes == 31 * 576 * 2 * 32768


@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("deepseek-v4-flash", {}),
        ("deepseek-v4.1-flash", {}),
        ("glm-5.3-flash", {}),
        ("glm-5.2", {}),
        ("gemma-3-27b", {"tp": 2}),
        ("gpt-oss-120b", {"pp": 2}),
        ("qwen2.5-1.5b", {"tp": 4}),
        ("llama-3.1-8b", {"dp": 2}),
        ("llama-4-scout", {"users": 2}),
        ("mistral-7b-v0.1", {"max_kv_size": 4096}),
        ("llama-3.1-8b", {"dcp": 2}),
    ],
)
def test_what_mlx_lm_cannot_run_is_unknown(model, named):
    with pytest.raises(UnknownFact):
        ledger(allocate, model, **named)


@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("llama-3.1-8b", {"n_ctx": 4096}),
        ("llama-3.1-8b", {"kv_bits": 7}),
        ("llama-3.1-8b", {"kv_bits": 0}),
        ("llama-3.1-8b", {"prefill_step_size": "512"}),
        ("llama-3.1-8b", {"kv_bits": 8, "kv_group_size": 96}),
        ("llama-3.1-8b", {"dtype": "fp8"}),
        ("gpt-oss-120b", {"kv_bits": 8}),
        ("qwen2.5-7b", {"kv_bits": 8, "max_kv_size": 4096}),
        ("deepseek-v3", {"kv_bits": 8}),
        ("llama-3.1-8b", {"kv_bits": 8, "users": 2}),
    ],
)
def test_settings_that_mlx_lm_does_not_have_are_refused(model, named):
    with pytest.raises(UsageError):
        ledger(allocate, model, **named)
