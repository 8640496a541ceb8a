"""Parts by name: against the tensors that each family is derived to have, and names of published checkpoints."""

import time

import pytest

from fitcheck.sources.stored.names import draft_layers, parts_of
from fitcheck.sources.tensors.record import Part
from fitcheck.sources.weights import derive_tensors
from tests.golden import rows
from tests.sources.test_config import expanded

CONFIGS = [row for row in rows("weights.yaml") if "unknown" not in row]
SCALES_OF_EXPERTS = ("ffn_down_exps.scale", "experts.0.down_proj.scale")
"""Gemma 4's scale of each expert, which the derivation counts to the router: in files of other models the name is of packed experts."""


def part_of(name, *known):
    """The part of one tensor."""
    return parts_of([name], *known)[0]


@pytest.mark.parametrize("row", CONFIGS, ids=lambda row: row["name"])
def test_names_tell_what_the_derivation_says(row):
    for tensor in derive_tensors(expanded(row["config"])):
        if tensor.kept is Part.DRAFTER:
            continue
        layer = tensor.layers is not None
        names = [f"blk.7.{tensor.name}{tensor.suffix}" if layer else f"{tensor.name}{tensor.suffix}"]
        if tensor.module:
            names.append(f"model.layers.7.{tensor.module}{tensor.suffix}" if layer else f"model.{tensor.module}{tensor.suffix}")
        for name in names:
            if not name.endswith(SCALES_OF_EXPERTS):
                assert part_of(name) is tensor.kept, name
                assert not layer or part_of(name, 7) is Part.DRAFTER


@pytest.mark.parametrize(("part", "name"), [(row["part"], name) for row in rows("tensor_names.yaml") for name in row["names"]])
def test_published_names(part, name):
    assert part_of(name) is Part(part)


def test_a_name_that_says_nothing_is_of_no_part():
    assert part_of("fc.weight") is None
    assert part_of("") is None
    assert part_of("\x1b" * 4096) is None


def test_layers_that_only_draft_layers_are_made_as():
    names = [
        "model.layers.61.eh_proj.weight",
        "model.layers.61.enorm.weight",
        "model.layers.3.mlp.gate.weight",
        "blk.92.nextn.hnorm.weight",
    ]
    assert draft_layers(names) == {61, 92}
    assert part_of("model.layers.61.mlp.experts.0.up_proj.weight", None, draft_layers(names)) is Part.DRAFTER
    assert part_of("model.layers.61.mlp.experts.0.up_proj.weight", 62) is Part.EXPERTS


def test_names_made_to_be_slow_are_soon_given_up():
    names = [f"ln_{'a' * 150}{'b' * (number % 7)}{chr(0x4E00 + number % 20_000)}!" for number in range(100_000)]
    began = time.perf_counter()
    parts_of(names)
    assert time.perf_counter() - began < 20


def test_names_past_any_number_of_patterns_are_of_no_part():
    names = [f"lm_head.{chr(0x4E00 + number)}.weight" for number in range(10_001)]
    assert parts_of(names) == [Part.HEAD] * 10_000 + [None]


def test_names_that_differ_in_digits_only_are_told_apart_by_their_layer():
    names = ["model.layers.9.mlp.up_proj.weight", "model.layers.61.mlp.up_proj.weight", "layers.100.mlp.up_proj.weight"]
    assert parts_of(names, 61) == [Part.FFN, Part.DRAFTER, Part.DRAFTER]
    assert parts_of(names, None, frozenset([61])) == [Part.FFN, Part.DRAFTER, Part.FFN]
    assert parts_of(["visual.layers.61.mlp.up_proj.weight"], 61) == [Part.VISION]
    assert parts_of(["model.layers.\u0661.mlp.up_proj.weight", "\ud800.mlp.x"], 1) == [Part.FFN, Part.FFN]
