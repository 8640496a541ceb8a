"""Names as people type them."""

from datetime import date

import pytest

from fitcheck.catalogue.lookup import find_cluster, find_engine, find_model
from fitcheck.errors import UnknownId, UsageError

DAY = date(2026, 11, 30)


@pytest.mark.parametrize(
    "name", ["glm-5.3-flash", "GLM 5.3 Flash", "glm_5.3_flash", "zai-org/GLM-5.3-Flash", "redhatai/glm-5.3-flash-nvfp4", "GLM5.3FLASH"]
)
def test_a_model_by_any_of_its_names(catalogue, name):
    assert find_model(catalogue, name, DAY).id == "glm-5.3-flash"


def test_an_alias_counts_from_its_day_on(catalogue):
    assert find_model(catalogue, "deepseek-flash", DAY).id == "deepseek-v4.1-flash"
    with pytest.raises(UnknownId, match="from 2026-09-10 on"):
        find_model(catalogue, "deepseek-flash", date(2026, 8, 18))


def test_a_rerouting_that_was_withdrawn_never_resolves(catalogue):
    assert find_model(catalogue, "deepseek-v4-pro", DAY).id == "deepseek-v4-pro"


@pytest.mark.parametrize(
    ("spec", "device", "count"),
    [
        ("2xspark", "dgx-spark", 2),
        ("2x dgx-spark", "dgx-spark", 2),
        ("spark*2", "dgx-spark", 2),
        ("2 x SPARK", "dgx-spark", 2),
        ("2×spark", "dgx-spark", 2),
        ("spark", "dgx-spark", 1),
        ("2x3090", "rtx-3090", 2),
        ("3090", "rtx-3090", 1),
        ("rtx 4090", "rtx-4090", 1),
        ("spark-pair", "dgx-spark", 2),
        ("8xh100", "h100", 8),
        ("sparkx2", "dgx-spark", 2),
        ("spark x 2", "dgx-spark", 2),
        ("2spark", "dgx-spark", 2),
        ("2 spark", "dgx-spark", 2),
        ("2-dgx-spark", "dgx-spark", 2),
        ("mi300x", "mi300x", 1),
        ("mi300xx8", "mi300x", 8),
        ("rtx 5090", "rtx-5090", 1),
    ],
)
def test_clusters(catalogue, spec, device, count):
    found = find_cluster(catalogue, spec)
    assert (found.device.id, found.count) == (device, count)


def test_a_pair_is_joined_by_a_cable(catalogue):
    assert find_cluster(catalogue, "2xspark").named.id == "spark-pair"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("0xspark", "a cluster of 0 devices"),
        ("-1xspark", "a cluster of -1 devices"),
        ("4097xspark", "a cluster of 4097 devices"),
        ("123456789012xspark", "a cluster of 123456789012 devices"),
        ("sparkx0", "a cluster of 0 devices"),
        ("", "the cluster is empty"),
        ("   ", "the cluster is empty"),
    ],
)
def test_a_count_that_makes_no_sense(catalogue, spec, message):
    with pytest.raises(UsageError, match=message) as caught:
        find_cluster(catalogue, spec)
    assert message.endswith("empty") or "1 to 4096" in caught.value.hint


@pytest.mark.parametrize(
    ("spec", "nearest"),
    [("2xsprak", "2xspark"), ("sprak", "spark"), ("sprak-pair", "spark-pair"), ("8xh10", "8xh100"), ("sprak*3", "3xspark")],
)
def test_the_nearest_cluster_has_the_count_that_was_asked(catalogue, spec, nearest):
    with pytest.raises(UnknownId) as caught:
        find_cluster(catalogue, spec)
    assert caught.value.nearest[0] == nearest
    for suggested in caught.value.nearest:
        find_cluster(catalogue, suggested)


@pytest.mark.parametrize("name", ["deepseek-v4-pro (rerouted)", "deepseek-v4-pro (reroute", "deepseek-v4-prq"])
@pytest.mark.parametrize("day", [DAY, date(2026, 9, 1)])
def test_only_names_that_answer_are_suggested(catalogue, name, day):
    with pytest.raises(UnknownId) as caught:
        find_model(catalogue, name, day)
    assert "deepseek-v4-pro" in caught.value.nearest
    for suggested in caught.value.nearest:
        find_model(catalogue, suggested, day)


@pytest.mark.parametrize(
    ("name", "expected"), [("glm-5.3-flsh", "glm-5.3-flash"), ("gptoss120", "gpt-oss-120b"), ("deepsek-v3", "deepseek-v3")]
)
def test_a_typo_brings_the_nearest_three(catalogue, name, expected):
    with pytest.raises(UnknownId) as caught:
        find_model(catalogue, name, DAY)
    assert expected in caught.value.nearest
    assert len(caught.value.nearest) == 3


def test_unknown_engines_are_told_which_there_are(catalogue):
    with pytest.raises(UnknownId, match="unknown engine") as caught:
        find_engine(catalogue, "vlm")
    assert "vllm" in caught.value.nearest
