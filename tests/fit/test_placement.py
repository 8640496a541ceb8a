import json
from decimal import Decimal

import pytest

from fitcheck import fit, load_catalogue, read_model
from fitcheck.catalogue.hardware import Engine
from fitcheck.catalogue.models import Checkpoint, Component, ComponentKind, Model
from fitcheck.catalogue.provenance import Grade
from fitcheck.fit.layout import Layout
from fitcheck.fit.placement import component_bytes, place_components
from tests.conftest import ROOT
from tests.golden import rows

CATALOGUE = load_catalogue()
AIR = CATALOGUE.get(Model, "glm-4.5-air").checkpoint("gguf-q4-k-s")
DRAFTER = next(part for part in AIR.components if part.kind is ComponentKind.DRAFTER)


def placed(engine: str, build: Checkpoint = AIR, **options):
    found = place_components(build, CATALOGUE.get(Engine, engine), options.pop("places", {}), **options)
    return {part.component.kind: part.place for part in found}


@pytest.mark.parametrize("engine", ["llama.cpp", "vllm", "sglang", "mlx"])
def test_draft_layers_are_passed_over_unless_they_draft(engine):
    assert ComponentKind.DRAFTER not in placed(engine)
    assert placed(engine, drafting=True)[ComponentKind.DRAFTER] == "gpu"
    assert placed(engine, places={ComponentKind.DRAFTER: "gpu"})[ComponentKind.DRAFTER] == "gpu"


def test_an_engine_of_which_it_is_not_known_loads_all_of_a_build():
    assert placed("exllamav3")[ComponentKind.DRAFTER] == "gpu"


def test_rows_of_the_input_embedding_are_read_on_the_host():
    # llama.cpp's `LLM_TENSOR_LAYER_INPUT` has no other place than the CPU; other engines gather rows on the GPU
    assert placed("llama.cpp")[ComponentKind.EMBEDDING] == "ram"
    assert placed("vllm")[ComponentKind.EMBEDDING] == "gpu"


def test_what_is_left_out_is_said_and_counted_where_it_is_asked():
    without, asked = (
        fit("glm-4.5-air", cluster="spark", checkpoint="gguf-q4-k-s", places=places, catalogue=CATALOGUE)
        for places in ({}, {ComponentKind.DRAFTER: "gpu"})
    )
    assert "drafter (1.98 GiB) not loaded" in {row.text for row in without.assumptions}
    totals = [report.devices[0].total_bytes for report in (without, asked)]
    assert totals[1] - totals[0] == DRAFTER.value


def test_a_recipe_that_drafts_with_the_builds_own_layers_loads_them():
    # SparkRing's and LibertAI's recipes run `mtp` on builds whose draft layer lies in the files; the official FP8 build is 7,493,399,168 B
    # of draft layer in 328,326,771,576
    model = CATALOGUE.get(Model, "glm-5.3-flash")
    build = model.checkpoint("official-fp8")
    assert ComponentKind.DRAFTER in placed("vllm", build, drafting=True)
    assert ComponentKind.DRAFTER not in placed("vllm", build)


def test_a_table_lies_whole_on_the_first_stage():
    table = Component(kind=ComponentKind.EMBEDDING, value=1001, source=("x",), grade=Grade.DERIVED)
    assert component_bytes(table, Layout(1, 3, "as asked"), 48) == (1001, "1,001 B")


def test_what_is_whole_on_each_rank_is_said_and_counted():
    part = Component(kind=ComponentKind.WEIGHTS, value=1_000, whole_bytes=100, source=("x",), grade=Grade.DERIVED)
    assert component_bytes(part, Layout(4, 1, "as asked"), 48) == (325, "(1,000 B - 100 B) / 4 ranks + 100 B whole on each")
    assert component_bytes(part, Layout(1, 1, "as asked"), 48) == (1_000, "1,000 B")
    assert component_bytes(part, Layout(4, 2, "as asked"), 48)[0] == 163  # 24 of 48 layers of 900 / 4 + 100
    with pytest.raises(ValueError, match="whole_bytes"):
        Component(kind=ComponentKind.WEIGHTS, value=99, whole_bytes=100, source=("x",), grade=Grade.DERIVED)


def test_a_table_apart_counts_among_the_bits_of_a_weight():
    # 4,920,739,232 B x 8 / 8,030,261,248 parameters = 4.902 bits
    report = fit("llama-3.1-8b", cluster="rtx-4090", checkpoint="gguf-q4-k-m", catalogue=CATALOGUE)
    assert report.checkpoints[0].bits_per_weight == Decimal("4.90")


def test_another_drafter_than_the_builds_own_is_not_taken_for_it():
    # the recipe's speeds are with DFlash2, which is downloaded apart; the build's MTP layer is passed over and has no part in them
    report = fit("glm-5.3-flash", cluster="4xspark", checkpoint="official-fp8", catalogue=CATALOGUE)
    assert not any("whose drafter" in note for note in report.warnings)
    assert "drafter (6.98 GiB) not loaded" in {row.text for row in report.assumptions}


@pytest.mark.parametrize("row", rows("ranks.yaml"), ids=lambda row: row["config"])
def test_a_rank_holds_its_part_and_all_that_is_not_divided(row, tmp_path):
    config = json.loads((ROOT / "tests" / "data" / "configs" / f"{row['config']}.json").read_text(encoding="utf-8"))
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**config, **row["fields"]}))
    asked = {"engine": "vllm", "context": 4096, "checkpoint": row["checkpoint"], "catalogue": CATALOGUE}
    for ranks, size in row["bytes"].items():
        tp = int(ranks.removeprefix("tp "))
        report = fit(read_model(path), cluster=f"{tp}xb300" if tp > 1 else "b300", tp=tp, **asked)
        assert report.devices[0].part_bytes("weights") == pytest.approx(size, rel=float(row["within"])), tp


@pytest.mark.parametrize("row", rows("whole.yaml"), ids=lambda row: row["model"])
def test_what_the_catalogue_says_is_whole_is_whole_in_vllm(row):
    components = CATALOGUE.get(Model, row["model"]).checkpoint(row["checkpoint"]).components
    whole = (4 * row["of_four"] - row["of_one"]) / 3
    assert sum(part.whole_bytes for part in components) == pytest.approx(whole, rel=float(row["within"]))
