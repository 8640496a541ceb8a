"""The cases that must come out right, each with its reason."""

from datetime import date

import pytest

import fitcheck
from fitcheck.cli.fit import exit_code
from tests.conftest import AS_OF
from tests.golden import rows


def ask(catalogue, model, cluster, **options):
    as_of = options.pop("as_of", None)
    return fitcheck.fit(model, cluster=cluster, as_of=date.fromisoformat(as_of) if as_of else AS_OF, catalogue=catalogue, **options)


@pytest.mark.parametrize("row", rows("fit.yaml"), ids=lambda row: f"{row['model']}-{row['cluster']}-{row['options']}")
def test_verdict_and_evidence(catalogue, row):
    report = ask(catalogue, row["model"], row["cluster"], **row["options"])
    assert report.verdict.value in row["verdict"], (row["source"], report.reason)
    assert report.evidence.kind == row["evidence"], row["source"]
    assert exit_code(report, strict=False) == row["exit"]
    if "layout" in row:
        assert report.layout == row["layout"]


def test_no_recipe_from_after_the_day_is_shown(catalogue):
    report = ask(catalogue, "deepseek-v4.1-flash", "2xspark", as_of="2026-09-10")
    shown = [*report.evidence.recipes, *report.evidence.others]
    assert all(recipe.date <= "2026-09-10" for recipe in shown)
    assert {row.id for row in report.checkpoints} == {"official"}


def test_ngram_tables_lie_on_nvme_and_can_be_put_on_the_gpu(catalogue):
    report = ask(catalogue, "deepseek-v4.1-flash", "4xspark", checkpoint="official")
    [off] = report.devices[0].off_device
    assert (off.component, off.place, off.bytes) == ("n-gram tables", "nvme", 202_758_032_400)
    from fitcheck.catalogue.models import ComponentKind

    on_gpu = ask(catalogue, "deepseek-v4.1-flash", "4xspark", checkpoint="official", places={ComponentKind.NGRAM: "gpu"})
    assert on_gpu.verdict == "no"  # 202,758,032,400 / 4 = 47.2 GiB more on each
    in_ram = ask(catalogue, "deepseek-v4.1-flash", "4xspark", checkpoint="official", places={ComponentKind.NGRAM: "ram"})
    assert in_ram.devices[0].total_bytes == on_gpu.devices[0].total_bytes  # on a unified machine RAM is the GPU's memory


def test_the_best_checkpoint_has_a_recipe_and_the_least_divergence(catalogue):
    report = ask(catalogue, "glm-5.3-flash", "2xspark", context=262_144)
    assert report.checkpoint == "exl3-4bpw"  # KLD 0.0246 against 0.0605 of NVFP4, both with recipes
    order = [row.id for row in report.checkpoints]
    assert order.index("exl3-4bpw") < order.index("redhat-nvfp4") < order.index("official-fp8")
    assert order[-1] == "libertai-nvfp4"  # withdrawn
    withdrawn = report.checkpoints[-1]
    assert withdrawn.status == "withdrawn"
    assert "token corruption" in withdrawn.because
    assert "redhat-nvfp4" in withdrawn.successors


def test_the_articles_recipe_is_kept_and_marked(catalogue):
    report = ask(catalogue, "glm-5.3-flash", "2xspark", checkpoint="libertai-nvfp4", context=262_144, as_of="2026-08-29")
    article = next(recipe for recipe in report.evidence.recipes if "381429" in recipe.url)
    [speed] = [speed for speed in article.speeds if speed.headline]
    assert str(speed.low_tok_per_s) == "21.8"
    assert article.speculation == "mtp-4"
    later = ask(catalogue, "glm-5.3-flash", "2xspark", checkpoint="libertai-nvfp4", context=262_144)
    assert next(recipe for recipe in later.evidence.others if "381429" in recipe.url).status == "withdrawn"


def test_three_sparks_use_tp3_only_because_a_recipe_does(catalogue):
    report = ask(catalogue, "deepseek-v4.1-flash", "3xspark", checkpoint="official")
    assert any("64 attention heads do not divide by 3" in warning for warning in report.warnings)
    without = ask(catalogue, "deepseek-v4.1-flash", "3xspark", checkpoint="nvidia-nvfp4")
    assert without.layout == "PP3"
