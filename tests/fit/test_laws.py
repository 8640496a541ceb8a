"""Laws that hold for any architecture: more context and more users never take less, terms add up, solving agrees with the ledger."""

from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.layers import Attention, Compressed, CompressedWindow, Indexer, Latent, Recurrent, Sliding, Stateless
from fitcheck.catalogue.models import Architecture, Model
from fitcheck.errors import UsageError
from fitcheck.fit.case import Case
from fitcheck.fit.layout import Degrees, choose_layout
from fitcheck.fit.search import TIGHT_SHARE, judge, largest
from fitcheck.fit.solve import fit
from fitcheck.fit.state import Share, kv_dtype, sequence_state, state_bytes

small = st.integers(min_value=1, max_value=200)
GROUPS = st.one_of(
    st.builds(Attention, kind=st.just("attention"), layers=small, kv_heads=small, k_dim=small, v_dim=small),
    st.builds(Sliding, kind=st.just("sliding"), layers=small, kv_heads=small, k_dim=small, v_dim=small, window_tokens=small),
    st.builds(Latent, kind=st.just("latent"), layers=small, latent_dim=small, rope_dim=small),
    st.builds(Indexer, kind=st.just("indexer"), layers=small, bytes_per_key=small, pool_tokens=small),
    st.builds(
        Compressed,
        kind=st.just("compressed"),
        layers=small,
        ratio=small,
        record_bytes=st.just({"fp8": 584, "fp4": 288}),
        row_dim=st.just(584),
    ),
    st.builds(
        CompressedWindow,
        kind=st.just("compressed_window"),
        layers=small,
        window_tokens=small,
        record_bytes=st.just({"fp8": 584, "fp4": 288}),
        row_dim=st.just(584),
    ),
    st.builds(Recurrent, kind=st.just("recurrent"), layers=small, state_elements=small, conv_elements=small),
    st.builds(Stateless, kind=st.just("none"), layers=small),
)
ARCHITECTURES = st.lists(GROUPS, min_size=1, max_size=5).map(
    lambda groups: Architecture(source="a", family="any", max_context_tokens=4096, layers=1, groups=tuple(groups))
)
DTYPES = st.sampled_from(["bf16", "fp8", "q8_0", "q4_0", "nvfp4", "q8_0/f16", "fp8_ds_mla"]).map(kv_dtype)
SHARES = st.builds(Share, tp=st.integers(1, 8), pp=st.integers(1, 4))
TOKENS = st.integers(min_value=0, max_value=4096)


@given(ARCHITECTURES, DTYPES, SHARES, TOKENS, TOKENS)
def test_a_longer_context_never_takes_less(architecture, dtype, share, one, other):
    shorter, longer = sorted((one, other))
    assert state_bytes(architecture, shorter, dtype, share) <= state_bytes(architecture, longer, dtype, share)


@given(ARCHITECTURES, DTYPES, TOKENS, st.integers(1, 8))
def test_more_ranks_never_hold_more_each_and_never_less_in_all(architecture, dtype, tokens, tp):
    alone = state_bytes(architecture, tokens, dtype, Share())
    each = state_bytes(architecture, tokens, dtype, Share(tp=tp))
    assert each <= alone
    assert each * tp >= alone


@given(ARCHITECTURES, TOKENS)
def test_wider_elements_never_take_less(architecture, tokens):
    sizes = [state_bytes(architecture, tokens, kv_dtype(name), Share()) for name in ("q4_0", "fp8", "q8_0", "bf16", "f32")]
    assert sizes == sorted(sizes)


@given(ARCHITECTURES, DTYPES, SHARES, st.integers(0, 4095))
def test_growth_is_what_the_next_tokens_take(architecture, dtype, share, tokens):
    for part in sequence_state(architecture, tokens, dtype, share):
        assert part.per_token >= 0
        assert not part.fixed or part.per_token == 0


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_the_verdict_follows_the_headroom(total, usable):
    verdict = judge(total, usable)
    left = Fraction(usable - total, usable)
    assert verdict == ("no" if left < 0 else "tight" if left < TIGHT_SHARE else "fits")


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_bisection_finds_the_last_that_fits(limit, bound):
    assert largest(limit, lambda number: number <= bound) == min(limit, bound)


@pytest.mark.parametrize("model", ["glm-5.3-flash", "gpt-oss-120b", "deepseek-v4-flash", "llama-3.3-70b", "qwen3.6-27b"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_longest_context_fits_and_one_token_more_does_not(catalogue, model, count):
    record, device = catalogue.get(Model, model), catalogue.get(Device, "dgx-spark")
    for checkpoint in record.checkpoints:
        case = Case(record, device, count, date(2026, 11, 30), catalogue.all(Engine), (), checkpoint_id=checkpoint.id, users=3)
        report = fit(case)
        if not report.devices:
            continue
        [ledger] = report.devices
        assert ledger.total_bytes == sum(term.bytes for term in ledger.terms)
        assert report.headroom_bytes == ledger.usable_bytes - ledger.total_bytes
        longest = report.max_context_tokens
        for tokens, expected in ((longest, True), (longest + 1, False)):
            if 1 <= tokens <= record.architecture.max_context_tokens:
                again = fit(
                    Case(record, device, count, case.as_of, case.engines, (), checkpoint_id=checkpoint.id, users=3, context_tokens=tokens)
                )
                assert again.verdict.runs is expected
        if report.max_users:
            for users, expected in ((report.max_users, True), (report.max_users + 1, False)):
                if users <= 1_000_000:
                    again = fit(Case(record, device, count, case.as_of, case.engines, (), checkpoint_id=checkpoint.id, users=users))
                    assert again.verdict.runs is expected


def test_tensor_parallel_takes_the_largest_size_that_divides_heads_and_devices(catalogue):
    vllm, llamacpp = catalogue.get(Engine, "vllm"), catalogue.get(Engine, "llama.cpp")
    sixty_four = catalogue.get(Model, "glm-5.3-flash").architecture
    layouts = {count: choose_layout(count, vllm, sixty_four, Degrees(), Degrees()) for count in (1, 2, 3, 4, 6)}
    assert {count: (layout.tp, layout.pp) for count, layout in layouts.items()} == {1: (1, 1), 2: (2, 1), 3: (1, 3), 4: (4, 1), 6: (2, 3)}
    assert choose_layout(2, llamacpp, sixty_four, Degrees(), Degrees()).pp == 2
    by_recipe = choose_layout(3, vllm, sixty_four, Degrees(), Degrees(tp=3))
    assert (by_recipe.tp, by_recipe.stock) == (3, False)
    with pytest.raises(UsageError, match="does not divide"):
        choose_layout(4, vllm, sixty_four, Degrees(tp=3), Degrees())
