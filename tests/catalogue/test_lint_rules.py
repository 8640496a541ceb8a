"""Lint: rules that lean on judgement, and what they let pass."""

from __future__ import annotations

import pytest

from fitcheck.catalogue.lint import lint
from fitcheck.catalogue.lint.recipes import KV_DTYPES
from fitcheck.catalogue.lint.sizes import unit_slip
from fitcheck.fit import state
from fitcheck.units import GB, GIB
from tests.catalogue.test_lint import GOOD, found


def test_a_note_that_names_the_unit_settles_a_suspicion():
    sold_as_gb = GOOD.replace('{value: "121.7 GiB", source: sheet}', '{value: "128 GiB", source: sheet, note: "128 GB is 128 GiB of DRAM"}')
    assert found(sold_as_gb) == []


def test_a_pruned_build_may_be_smaller_than_its_model():
    smaller = GOOD.replace("value: 16000000000, source: card", "value: 9000000000, source: card")
    assert [one for one, _ in found(smaller)] == ["FC202"]
    assert found(smaller.replace("    - id: bf16\n", "    - id: bf16\n      pruned: true\n")) == []


def test_a_build_in_32_bits_says_so():
    """8B parameters in 4 bytes each are 32 GB; what says 160 GB is wrong whatever it says of its bits."""
    for size, bits, wrong in ((32, None, ["FC201"]), (32, 32, []), (32, 16, ["FC201", "FC203"]), (160, 160, ["FC201"])):
        label = f"      bits_per_weight: {{value: {bits}, source: card}}\n" if bits else ""
        text = GOOD.replace("value: 16000000000, source: card", f"value: {size}000000000, source: card")
        assert sorted(one for one, _ in found(text.replace("    - id: bf16\n", f"    - id: bf16\n{label}"))) == wrong


def test_what_follows_from_another_mistake_is_not_told():
    alone = GOOD.replace(
        'events:\n        - {status: effective, from: "2026-03-10"', 'events:\n        - {status: working, from: "2026-03-10"'
    )
    (finding,) = lint([("x.yaml", alone)])
    assert finding.message.startswith("tern-8b: checkpoints.0.events.0.status: ")


def test_kv_dtypes_are_those_that_fit_knows():
    assert {*state.ELEMENT_BYTES, *state.LATENT_ROW_BYTES, *state._SAME} == KV_DTYPES
    for name in KV_DTYPES:
        assert found(GOOD.replace("kv_dtype: fp8", f"kv_dtype: {name}")) == []
    assert found(GOOD.replace("kv_dtype: fp8", "kv_dtype: q8_0/f16")) == []


def test_the_version_is_the_clock_of_the_catalogue(tmp_path, monkeypatch):
    monkeypatch.setattr("fitcheck.catalogue.load.data_folder", lambda: tmp_path)
    late = GOOD.replace("2026-11-02", "2026-11-03")
    inside, outside = str(tmp_path / "models.yaml"), str(tmp_path.parent / "mine.yaml")
    assert lint([(inside, late)]) == []
    (tmp_path / "VERSION").write_text("2026.11.02\n", encoding="utf-8")
    assert lint([(inside, GOOD)]) == []
    (finding,) = lint([(inside, late)])
    assert (finding.id, finding.message) == ("FC115", "tern-8b: 2026-11-03 is after 2026-11-02")
    assert lint([(outside, late)]) == []


def test_what_is_announced_may_lie_ahead():
    ahead = GOOD.replace('status: effective, from: "2026-05-02"', 'status: announced, from: "2062-05-02"')
    assert found(ahead) == []


def test_months_and_time_zones_are_given_their_due():
    assert found(GOOD.replace('date: "2026-05-20"', 'date: "2026-03"')) == []
    assert found(GOOD.replace('date: "2026-05-20"', 'date: "2026-03-09"')) == []
    assert found(GOOD.replace('released: {value: "2026-03-10"', 'released: {value: "2026-03"')) == []


def test_a_speed_of_many_streams_may_be_high():
    assert (
        found(GOOD.replace("users: 8, low_tok_per_s: 200, high_tok_per_s: 200", "users: 8, low_tok_per_s: 200, high_tok_per_s: 20000"))
        == []
    )


def test_what_is_replicated_is_held_by_each_device():
    held = GOOD.replace('{value: "2.2 GiB", devices: 2', '{value: "3.5 GiB", devices: 2')
    assert [one for one, _ in found(held)] == ["FC213"]
    replicated = held.replace("{kind: drafter, value: 100000000,", "{kind: drafter, value: 1100000000, split: replicated,")
    assert [one for one, _ in found(replicated)] == []


def test_an_announced_price_may_stand_beside_the_one_in_force():
    announced = GOOD.replace("status: withdrawn\n      offpeak", "status: announced\n      offpeak")
    assert found(announced) == []


def test_compressed_attention_shares_its_layers():
    groups = GOOD.replace(
        "- {kind: attention, layers: 8, kv_heads: 8, k_dim: 128, v_dim: 128}",
        "- {kind: compressed, layers: 4, ratio: 2, record_bytes: {fp8: 584}}",
    )
    assert found(groups) == []


@pytest.mark.parametrize(
    ("one", "other", "slip"),
    [
        (128 * GIB, 128 * GB, True),
        (128 * GB, 128 * GIB, True),
        (128 * GB, 128 * GB, False),
        (107, 100, False),
        (0, 1, False),
        (1.0737, 1, True),
    ],
)
def test_a_unit_slip_is_a_ratio_of_1_0737(one, other, slip):
    assert unit_slip(one, other) is slip
