import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitcheck.catalogue.layers import Attention, Sliding
from fitcheck.catalogue.models import Architecture
from fitcheck.catalogue.provenance import Grade
from fitcheck.fit.engines.base import Ledger, Settings
from fitcheck.fit.engines.vllm import allocate
from fitcheck.fit.state import KvDtype
from tests.fit.engines.test_vllm import MODELS

DTYPES = ("bf16", "fp8")
NAMES = sorted(MODELS)
CONTEXTS = st.integers(1, 1 << 20)
ONE_STAGE = ("gemma-4-e2b", "qwen3.8-flash-next")
"""Refused on pipeline stages by vLLM: layers that read the caches of earlier ones, and an n-gram embedding."""


def size(model, context, users=1, dtype="fp8", tp=1, pp=1, **named):
    architecture = MODELS[model] if isinstance(model, str) else model
    return Ledger(allocate(architecture, Settings(context, users, KvDtype(dtype, dtype, dtype), tp, pp, named=named))).bytes


@pytest.mark.parametrize("model", NAMES)
@settings(max_examples=25, deadline=None)
@given(context=CONTEXTS, more=st.integers(0, 100_000), users=st.integers(1, 64), drafts=st.integers(0, 7))
def test_more_context_and_more_users_take_no_less(model, context, more, users, drafts):
    drafting = {"num_speculative_tokens": drafts, "method": "mtp" if MODELS[model].draft_groups else "ngram"}
    one = size(model, context, **drafting)
    assert size(model, context + more, **drafting) >= one
    assert size(model, context, users, **drafting) == users * one


@pytest.mark.parametrize("model", NAMES)
@settings(max_examples=15, deadline=None)
@given(context=CONTEXTS, tp=st.sampled_from([2, 4, 8]), pp=st.sampled_from([1, 2, 3]))
def test_ranks_together_hold_at_least_the_whole(model, context, tp, pp):
    whole = size(model, context)
    assert size(model, context, tp=tp) * tp >= whole
    if model not in ONE_STAGE:
        assert size(model, context, pp=pp) * pp >= whole


@pytest.mark.parametrize("model", [name for name in NAMES if "deepseek-v4" not in name])
@settings(max_examples=15, deadline=None)
@given(context=st.integers(32768, 1 << 20), tp=st.sampled_from([1, 2, 8]))
def test_fp8_takes_no_more_than_16_bit_at_long_context(model, context, tp):
    assert size(model, context, tp=tp) <= size(model, context, dtype="bf16", tp=tp)


@settings(max_examples=60, deadline=None)
@given(
    full=st.integers(1, 40),
    sliding=st.integers(1, 60),
    heads=st.tuples(st.integers(1, 16), st.integers(1, 16)),
    widths=st.tuples(st.sampled_from([64, 96, 128, 256, 512]), st.sampled_from([64, 96, 128, 256])),
    window=st.integers(1, 8192),
    context=CONTEXTS,
)
def test_mixed_layers_take_no_less_than_their_tokens(full, sliding, heads, widths, window, context):
    groups = (
        Attention(kind="attention", layers=full, kv_heads=heads[0], k_dim=widths[0], v_dim=widths[0]),
        Sliding(kind="sliding", layers=sliding, kv_heads=heads[1], k_dim=widths[1], v_dim=widths[1], window_tokens=window),
    )
    model = Architecture(
        source=("by hand",), grade=Grade.ASSUMED, family="mixed", max_context_tokens=1 << 20, layers=full + sliding, groups=groups
    )
    least = full * heads[0] * 2 * widths[0] * context + sliding * heads[1] * 2 * widths[1] * min(window, context)
    assert size(model, context) >= least
    assert size(model, context, disable_hybrid_kv_cache_manager=True) >= full * heads[0] * 2 * widths[0] * context
