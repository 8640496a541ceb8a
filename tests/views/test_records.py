"""How single records are shown: units, grades and sources at any width, statuses that never go."""

from datetime import date

import pytest

from fitcheck.catalogue.hardware import Cluster, Device
from fitcheck.catalogue.models import Model
from fitcheck.catalogue.ratecards import Rate
from fitcheck.catalogue.recipes import Recipe
from fitcheck.cost.tariff import period_at
from fitcheck.views.document import Table
from fitcheck.views.hardware import cluster_document, device_document
from fitcheck.views.layers import kept
from fitcheck.views.models import kv_by_dtype, model_document
from fitcheck.views.rates import rate_document
from fitcheck.views.recipes import recipe_document, recipes_list
from fitcheck.views.terminal import render
from tests.cli.run import inside
from tests.conftest import AS_OF


def shown(document, width=80):
    return render(document, width=width, colour=False)


def flat(text):
    return " ".join(text.split())


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_device_has_units_grades_and_sources_at_any_width(catalogue, width):
    text = shown(device_document(catalogue.get(Device, "dgx-spark"), AS_OF), width)
    for row in (
        r"visible 121.69 GiB",
        "vllm 0.87 105.87 GiB published",
        "vllm 5.20 0.40 to 18.30 derived",
        "idle 50.5 ConnectX-7 cabled derived ajclark",
        "limit 240 the power supply published netbox",
        "3,503 CHF street 2026-02-18",
        "273 GB/s (published; sunkcost, playbook91)",
        "23.92 GB/s measured",
    ):
        assert row in flat(text), row
    for title in ("Memory", "Usable", "Overhead", "Power", "Prices"):
        head = text.partition(f"\n{title}")[2]
        assert "grade" in head.splitlines()[1] + head.splitlines()[2]
    assert [line for line in text.splitlines() if len(line) > width and "http" not in line] == []
    assert "True" not in text


def test_a_cluster_says_what_joins_it(catalogue):
    text = shown(cluster_document(catalogue.get(Cluster, "spark-pair"), catalogue.get(Device, "dgx-spark"), AS_OF))
    for words in (
        "joined by one QSFP cable, 200 Gbit/s",
        "32 GBP list 2026-05",
        "idle 101 link up, whole cluster",
        "2x dgx-spark (DGX Spark)",
    ):
        assert words in flat(text), words
    assert inside("hardware", "2xspark").out.startswith("2x DGX Spark, one cable")
    assert "names no cluster of 5x dgx-spark" in flat(inside("hardware", "5xspark").out)


def test_a_recipe_is_told_whole(catalogue):
    text = shown(recipe_document(catalogue.get(Recipe, "glm-5.3-flash-2x-tonyd2wild-mtp4"), AS_OF))
    for words in (
        "withdrawn since 2026-08-30: the checkpoint was withdrawn for token corruption",
        "2x dgx-spark",
        "TP2, PP1, DCP1, context of 262,144 tokens, KV cache in fp8, 0.85 of visible memory, KV pool of 4.14 GiB on each device",
        "mtp, 4 draft tokens",
        "decode 1 21.8",
        "medians of three runs",
        "measured, high trust",
        "https://forums.developer.nvidia.com/t/glm-5-3-flash-on-2x-nvidia-dgx-spark-43-4-tok-s-peak-checkpoint/381429",
    ):
        assert words in flat(text), words


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_a_status_is_shown_at_any_width(catalogue, width):
    rate = catalogue.get(Rate, "deepseek/deepseek-v4-pro")
    text = shown(rate_document(rate, (), rate.periods[0], AS_OF), width)
    assert text.count("withdrawn") >= 2
    assert "promotion" in text
    model = shown(model_document(catalogue.get(Model, "glm-5.3-flash")), width)
    assert "withdrawn" in model.partition("Checkpoints")[2].partition("scores")[0]
    assert "withdrawn" in shown(recipes_list(catalogue.recipes[:4], AS_OF), width)


def test_a_rate_says_what_is_in_force():
    ran = inside("rates", "deepseek/deepseek-v4-pro", "--as-of", "2026-04-27")
    assert "on 2026-04-27 USD 0.435 input, USD 0.87 output, since 2026-04-26T12:15Z, a promotion" in flat(ran.out)


def test_no_price_in_force_is_said(catalogue):
    rate = catalogue.get(Rate, "deepseek/deepseek-v4-pro")
    assert period_at(rate, rate.available_from.replace(year=2025)) is None
    assert "no price in force" in shown(rate_document(rate, (), None, date(2025, 1, 1)))


def test_layer_groups_are_told_in_words(catalogue):
    groups = catalogue.get(Model, "glm-5.3-flash").architecture.groups
    assert [kept(group) for group in groups[1:]] == [
        "for every 4 tokens an index key of 132 B",
        "per sequence a state of 1,048,576 elements of 4 B, and 73,728 of 2 B for the convolution (kda)",
    ]
    assert kept(groups[0]).startswith("per token one latent of 512 elements")


def test_no_layer_group_of_any_model_shows_python(catalogue):
    for model in catalogue.models:
        for group in (*model.architecture.groups, *model.architecture.draft_groups) if model.architecture else ():
            words = kept(group)
            assert words
            assert not {"None", "{", "'"} & {*words, *words.split()}, words


def test_kv_bytes_are_in_the_table_and_in_json(catalogue):
    import json

    rows = kv_by_dtype(catalogue.get(Model, "glm-5.3-flash"))
    # 11 latent layers of 512 x 2 B, and 11 index keys of 132 B for 4 tokens: 11,264 + 363
    assert (rows["bf16"].bytes_per_token, rows["fp8"].bytes_per_token) == (11_627, 5_995)
    answer = json.loads(inside("models", "glm-5.3-flash", "--format", "json").out)["result"]["kv"]
    assert answer["fp8"] == {"bytes_per_token": 5_995, "fixed_bytes_per_sequence": 147_619_840}


def test_every_device_cluster_and_recipe_can_be_shown(catalogue):
    for device in catalogue.devices:
        assert "None" not in shown(device_document(device, AS_OF), 60)
    for recipe in catalogue.recipes:
        document = recipe_document(recipe, AS_OF)
        assert all(len(row) == len(part.columns) for part in document.parts if isinstance(part, Table) for row in part.rows)
