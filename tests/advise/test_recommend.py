"""The article's own question: what must stand first and why, what misses, and laws that the order keeps."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fitcheck
from fitcheck.advise.ask import recommend_case
from fitcheck.advise.misses import FITS_ON_UP_TO
from fitcheck.advise.order import CRITERIA, Standing, arranged, choose_quality
from fitcheck.advise.recommend import limited, recommend
from fitcheck.advise.report import ScoreRow
from fitcheck.catalogue.models import Model
from fitcheck.errors import UsageError
from fitcheck.fit.ask import fit_case
from fitcheck.fit.solve import fit
from fitcheck.units import counted_from
from tests.conftest import AS_OF
from tests.golden import rows

CLUSTERS = ("2xspark", "spark", "rtx-4090", "8xh100", "mac-studio-m5-ultra-256")


@pytest.fixture(scope="module")
def ask(catalogue):
    known = {}

    def answer(cluster, as_of=AS_OF, **options):
        key = (cluster, as_of, tuple(sorted(options.items())))
        if key not in known:
            known[key] = fitcheck.recommend(cluster=cluster, as_of=as_of, catalogue=catalogue, **options)
        return known[key]

    return answer


@pytest.mark.parametrize("row", rows("recommend.yaml"), ids=lambda row: f"{row['cluster']}-{row['options']}")
def test_the_golden_answers(ask, row):
    options = dict(row["options"])
    as_of = date.fromisoformat(options.pop("as_of")) if "as_of" in options else AS_OF
    report = ask(row["cluster"], as_of, **options)
    by_model = {found.model: found for found in report.rows}
    if row["first"] is not None:
        assert report.first == row["first"], report.reason
        assert report.quality.version == row["version"]
    standing = [by_model[model].position for model in row["order"]]
    assert standing == sorted(standing), row["source"]
    for model, decided_by in row["decided"].items():
        assert by_model[model].decided_by == decided_by, by_model[model].why
    for model, score in row["scores"].items():
        found = by_model[model].score
        assert (str(found.score) if found else None) == score
    assert set(row["misses"]) <= {miss.model for miss in report.misses}
    assert set(row.get("unknown", [])) <= {unknown.model for unknown in report.unknown}
    everywhere = {entry.model for entry in (*report.rows, *report.misses, *report.unknown)}
    assert not set(row.get("absent", [])) & everywhere


def test_the_reasons_of_the_articles_answer_are_printed(ask):
    report = ask("2xspark", date(2026, 9, 16))
    first, second, third = report.rows[:3]
    assert "52 against 57" in first.why[0]
    assert "52 against 57" in report.reason
    assert any("recipes show exl3-4bpw on 2x dgx-spark" in reason for reason in first.why)
    assert 'not scored in Artificial Analysis Intelligence Index "as of 2026-09 (article)"' in third.why[3]
    assert third.decode_tok_per_s.best > first.decode_tok_per_s.best  # faster, and still below: quality comes first
    assert second.score_not_compared.version == "v4.1"
    assert "is not compared" in second.why[3]
    assert any("v4.1" in words for words in report.quality.passed_over)


def test_a_score_of_another_version_is_shown_and_never_used(ask):
    report = ask("2xspark")
    older = next(row for row in report.rows if row.model == "deepseek-v4-flash")
    assert older.score is None
    assert older.score_not_compared.score == 52  # above the 42 that stands first
    assert older.position > report.rows[0].position
    assert '52 in "as of 2026-09 (article)" is not compared' in older.why[0]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_model_stands_once_and_those_that_run_in_the_rows(ask, catalogue, cluster):
    report = ask(cluster)
    assert all(row.verdict.runs for row in report.rows)
    assert [row.position for row in report.rows] == list(range(1, len(report.rows) + 1))
    names = [entry.model for entry in (*report.rows, *report.misses, *report.unknown)]
    assert sorted(names) == sorted(set(names))
    assert set(names) | set(report.left_out) == {model.id for model in catalogue.models}
    for row in report.rows:
        record = catalogue.get(Model, row.model)
        assert not record.checkpoint(row.checkpoint).withdrawn_on(AS_OF)
        assert len(row.why) == 5
        assert row.why[0].startswith(("below ", "above ", "the only"))


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_rows_agree_with_fit(ask, catalogue, cluster):
    for row in ask(cluster).rows[:6]:
        report = fit(fit_case(catalogue, row.model, cluster=cluster, as_of=AS_OF))
        assert (row.verdict, row.checkpoint, row.headroom_bytes) == (report.verdict, report.checkpoint, report.headroom_bytes)
        assert row.decode_tok_per_s == report.speed.decode_tok_per_s


@pytest.mark.parametrize(
    ("cluster", "options"), [("2xspark", {}), ("rtx-4090", {"context": 65_536}), ("spark", {"context": 65_536, "users": 8})]
)
def test_a_miss_says_by_how_much_and_what_would_do(ask, catalogue, cluster, options):
    report = ask(cluster, **options)
    memory = [miss for miss in report.misses if miss.limit == "memory"]
    assert memory
    assert [miss.short_by_bytes for miss in memory] == sorted(miss.short_by_bytes for miss in memory)
    assert report.misses[: len(memory)] == tuple(memory)
    for miss in memory[:4]:
        assert miss.short_by_bytes > 0
        build = fit(fit_case(catalogue, miss.model, cluster=cluster, as_of=AS_OF, checkpoint=miss.checkpoint, **options))
        assert build.headroom_bytes == -miss.short_by_bytes
        device = report.cluster.device
        last = miss.fits_on or FITS_ON_UP_TO + 1
        assert last > report.cluster.count
        for count in {last - 1, last} & set(range(1, FITS_ON_UP_TO + 1)):
            asked = fit(fit_case(catalogue, miss.model, cluster=f"{count}x{device}", as_of=AS_OF, **options))
            assert asked.verdict.runs is (count == miss.fits_on)
        if miss.context_that_fits:
            fewer = {**options, "context": miss.context_that_fits}
            assert fit(fit_case(catalogue, miss.model, cluster=cluster, as_of=AS_OF, checkpoint=miss.checkpoint, **fewer)).verdict.runs


def test_a_context_beyond_the_models_own_is_a_miss_and_no_error(ask):
    report = ask("2xspark", context=262_144)
    miss = next(miss for miss in report.misses if miss.model == "gpt-oss-120b")
    assert (miss.limit, miss.short_by_bytes, miss.fits_on) == ("context", None, None)
    assert miss.context_that_fits == miss.model_max_context_tokens == 131_072
    assert "ends at 131,072 tokens, at which it fits" in miss.note


def test_what_is_not_known_says_which_figure(catalogue):
    case = recommend_case(catalogue, cluster="2xspark", as_of=AS_OF)
    record = catalogue.get(Model, "kimi-k2")
    official = record.checkpoint("official-fp8")
    nameless = official.model_copy(update={"id": "smaller", "components": ()})
    sixteen = recommend_case(catalogue, cluster="16xspark", as_of=AS_OF)  # 958.5 GiB / 16 = 59.9 GiB: the weights alone would fit
    asked = [(sixteen, {"architecture": None}), (case, {"checkpoints": (nameless,)}), (case, {"checkpoints": ()})]
    reasons = []
    for question, change in asked:
        report = recommend(replace(question, models=(record.model_copy(update=change),)))
        assert (report.rows, report.misses, report.first) == ((), (), None)
        reasons.append(report.unknown[0].reason)
    assert "architecture is not published" in reasons[0]
    assert reasons[1] == "the size of this build is not published"
    assert "no checkpoint" in reasons[2]


def test_weights_that_are_too_large_settle_it_whatever_else_is_unknown(catalogue):
    case = recommend_case(catalogue, cluster="2xspark", as_of=AS_OF)
    record = catalogue.get(Model, "kimi-k2")
    official = record.checkpoint("official-fp8")
    nameless = official.model_copy(update={"id": "smaller", "components": ()})
    for change in ({"architecture": None}, {"checkpoints": (nameless, official)}):  # 958.5 GiB / 2 > 105.87 GiB
        report = recommend(replace(case, models=(record.model_copy(update=change),)))
        assert [miss.checkpoint for miss in report.misses] == ["official-fp8"]
        assert (report.rows, report.unknown) == ((), ())


def test_a_withdrawn_build_is_never_recommended(catalogue):
    day = date(2026, 8, 29)
    record = catalogue.get(Model, "glm-5.3-flash")
    only = record.model_copy(update={"checkpoints": (record.checkpoint("libertai-nvfp4"),)})
    before, after = (
        recommend(replace(recommend_case(catalogue, cluster="2xspark", as_of=as_of), models=(only,))) for as_of in (day, AS_OF)
    )
    assert before.rows[0].checkpoint == "libertai-nvfp4"
    assert before.rows[0].decided_by == "only"
    assert after.rows == ()
    assert "withdrawn" in after.unknown[0].reason


def test_an_engine_is_held_to_its_own_builds(ask, catalogue):
    report = ask("2xspark", engine="llama.cpp")
    assert report.rows
    assert {row.engine for row in report.rows} == {"llama.cpp"}
    assert all(catalogue.get(Model, row.model).checkpoint(row.checkpoint).format == "gguf" for row in report.rows)
    assert any("llama.cpp is not known to serve" in row.reason for row in report.unknown)


def test_no_model_and_no_score_from_after_the_day(ask, catalogue):
    day = date(2026, 8, 20)
    report = ask("2xspark", day)
    for row in report.rows:
        assert counted_from(catalogue.get(Model, row.model).released.value) <= day
        assert all(counted_from(score.date) <= day for score in (row.score, row.score_not_compared) if score)
        assert all(counted_from(recipe.date) <= day for recipe in row.recipes)
    assert "glm-5.3-flash" in report.left_out
    nothing = ask("2xspark", date(2020, 1, 1))
    assert (nothing.rows, nothing.first, nothing.assessed) == ((), None, 0)
    assert "2020-01-01" in nothing.reason


def test_the_order_of_the_catalogue_does_not_matter(catalogue):
    case = recommend_case(catalogue, cluster="2xspark", as_of=AS_OF)
    assert recommend(replace(case, models=case.models[::-1])) == recommend(case)


def test_a_limit_leaves_the_count(ask):
    report = ask("2xspark")
    few = limited(report, 3)
    assert few.rows == report.rows[:3]
    assert few.rows_total == report.rows_total == len(report.rows)


def test_a_low_bit_build_does_not_pass_for_its_full_model(ask):
    report = ask("spark")
    first, second = report.rows[:2]
    assert (first.checkpoint, first.score_is_of_other_weights) == ("exl3-2.05bpw", True)
    words = "its build has 2.05 bits a weight; the score is of the makers' weights"
    assert first.caveats == (words,)
    assert words in report.reason
    assert f"glm-5.3-flash: {words}" in report.warnings
    assert second.caveats[0] == "its build has 2.37 bits a weight; the score is of the makers' weights"
    whole = ask("2xspark").rows[0]  # 4 bits
    assert (whole.checkpoint, whole.caveats, whole.score_is_of_other_weights) == ("exl3-4bpw", (), False)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_row_is_marked_by_its_build_and_by_its_arithmetic(ask, catalogue, cluster):
    for row in ask(cluster).rows:
        build = catalogue.get(Model, row.model).checkpoint(row.checkpoint)
        low = build.pruned or (row.bits_per_weight is not None and row.bits_per_weight < 4)
        assert row.score_is_of_other_weights is bool(row.score and low)
        short = row.headroom_bytes is not None and row.headroom_bytes < 0
        assert any("arithmetic says no" in caveat for caveat in row.caveats) is short
        if short:
            assert (row.max_context_tokens, row.max_users) == (None, None)


def test_an_engine_for_other_chips_is_refused(catalogue):
    with pytest.raises(UsageError, match="--engine mlx: MLX is not known to run on DGX Spark") as caught:
        recommend_case(catalogue, cluster="2xspark", engine="mlx", as_of=AS_OF)
    assert "vllm" in caught.value.hint
    assert recommend_case(catalogue, cluster="mac-studio-m5-ultra-256", engine="mlx", as_of=AS_OF).engine_id == "mlx"


@pytest.mark.parametrize(("context", "words"), [(0, "'0'"), (-5, "'-5'"), ("0", "'0'"), ("lots", "'lots'")])
def test_a_context_that_makes_no_sense_names_its_option(catalogue, context, words):
    with pytest.raises(UsageError, match=r"^--context: ") as caught:
        recommend_case(catalogue, cluster="2xspark", as_of=AS_OF, context=context)
    assert words in caught.value.message


def test_near_misses_and_those_by_far(ask):
    """Near: less than half of the need is short, or at most four times the devices would do; JSON keeps the others too."""
    near = {miss.model: (miss.near, miss.fits_on) for miss in ask("rtx-4090").misses}
    assert near["granite-4.1-8b"] == (True, 2)
    assert near["qwen3-235b-a22b"] == (True, 4)
    assert near["glm-5.3-flash"] == (False, 5)
    assert near["kimi-k2"] == (False, None)
    early = {miss.model: miss.near for miss in ask("2xspark", context=262_144).misses if miss.limit == "context"}
    assert early["gpt-oss-120b"] is True  # 131,072 is half of what was asked


@pytest.mark.parametrize("options", [{"context": 0}, {"context": -5}, {"users": 0}, {"users": 10**9}])
def test_what_makes_no_sense_is_refused(catalogue, options):
    with pytest.raises(UsageError):
        recommend_case(catalogue, cluster="2xspark", as_of=AS_OF, **options)


SCORES = st.builds(
    ScoreRow,
    index=st.just("an index"),
    version=st.sampled_from(["one", "two", "three"]),
    score=st.integers(1, 5).map(Decimal),
    date=st.sampled_from(["2026-06", "2026-07-01", "2026-09-16"]),
    of=st.none(),
    sources=st.just(()),
)
STANDINGS = st.lists(
    st.builds(
        Standing,
        model=st.text("abcdef", min_size=1, max_size=3),
        recipes=st.integers(0, 2),
        scores=st.lists(SCORES, max_size=3).map(tuple),
        decode_tok_per_s=st.none() | st.integers(1, 4).map(Decimal),
        bits_per_weight=st.none() | st.integers(2, 6).map(Decimal),
        parameters=st.integers(1, 3),
        released=st.sampled_from(["2026-01", "2026-02-03"]),
    ),
    max_size=8,
    unique_by=lambda standing: standing.model,
)


@settings(max_examples=60)
@given(STANDINGS, st.randoms(use_true_random=False))
def test_the_order_is_total_and_the_same_from_any_start(standings, random):
    quality = choose_quality(standings)
    ranked = arranged(standings, quality)
    shuffled = list(standings)
    random.shuffle(shuffled)
    assert choose_quality(shuffled) == quality
    assert arranged(shuffled, quality) == ranked
    keys = [[criterion.key(standing, quality) for criterion in CRITERIA] for standing in ranked]
    assert all(one < other for one, other in pairwise(keys))


@settings(max_examples=60)
@given(STANDINGS, st.integers(0, 7))
def test_removing_a_model_reorders_others_only_where_the_version_changes(standings, place):
    if place >= len(standings):
        return
    quality = choose_quality(standings)
    fewer = [standing for index, standing in enumerate(standings) if index != place]
    again = choose_quality(fewer)
    if (quality and (quality.index, quality.version)) == (again and (again.index, again.version)):
        kept = [standing for standing in arranged(standings, quality) if standing is not standings[place]]
        assert arranged(fewer, again) == kept


@settings(max_examples=60)
@given(STANDINGS)
def test_each_criterion_only_speaks_where_those_before_it_are_silent(standings):
    quality = choose_quality(standings)
    ranked = arranged(standings, quality)
    for upper, lower in pairwise(ranked):
        assert bool(upper.recipes) >= bool(lower.recipes)
        if bool(upper.recipes) == bool(lower.recipes):
            high, low = (standing.score_in(quality) for standing in (upper, lower))
            assert low is None or (high is not None and high.score >= low.score)


@settings(max_examples=60)
@given(STANDINGS)
def test_the_version_scores_as_many_models_with_a_recipe_as_any(standings):
    quality = choose_quality(standings)
    versions = {score.version for standing in standings for score in standing.scores}
    assert (quality is None) == (not versions)
    for version in versions:
        scored = [standing for standing in standings if any(score.version == version for score in standing.scores)]
        with_recipe = sum(1 for standing in scored if standing.recipes)
        assert (quality.with_recipe, quality.scored) >= (with_recipe, len(scored))
