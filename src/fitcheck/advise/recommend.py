"""Which model for a cluster: every model judged, those that run put in order, the others told with what they lack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from fitcheck.advise.case import RecommendCase
from fitcheck.advise.misses import by_how_little, context_miss, memory_miss, nearest_build, unknown_row
from fitcheck.advise.order import SOUND_BITS, Standing, arranged, choose_quality
from fitcheck.advise.report import MissRow, Quality, RecipeLink, RecommendReport, RecommendRow, ScoreRow, UnknownRow
from fitcheck.advise.words import (
    evidence_sentence,
    first_reason,
    fit_sentence,
    none_reason,
    place_sentence,
    quality_sentence,
    recipe_caveat,
    score_caveat,
    speed_sentence,
)
from fitcheck.errors import UsageError
from fitcheck.fit.case import HEADLINE_CONTEXT_TOKENS, Case, cluster_row
from fitcheck.fit.report import Assumption, CheckpointRow, FitReport, Verdict
from fitcheck.fit.solve import fit
from fitcheck.fit.sources import cite
from fitcheck.units import counted_from


class Candidate(NamedTuple):
    """A model that runs on the cluster: its answer to `fit`, its best build, and what decides its place."""

    case: Case
    report: FitReport
    build: CheckpointRow
    standing: Standing


def recommend(question: RecommendCase) -> RecommendReport:
    """Answer the question. The order of `rows` does not depend on the order of the models."""
    running: list[Candidate] = []
    misses: list[MissRow] = []
    unknown: list[UnknownRow] = []
    for model in question.released:
        case = question.fit_case(model)
        try:
            report = fit(case)
        except UsageError as error:  # the engine asked for serves no build of this model: an answer here, not a mistake
            unknown.append(UnknownRow(model.id, model.name, None, error.message, ()))
            continue
        build = next((row for row in report.checkpoints if row.id == report.checkpoint and row.status != "withdrawn"), None)
        nearest = nearest_build(report)
        if question.ends_before(model):
            misses.append(context_miss(case, report, question.context_tokens or 0))
        elif build is not None and report.verdict.runs:
            running.append(Candidate(case, report, build, _standing(case, report, build)))
        elif report.verdict is Verdict.NO and nearest is not None:
            misses.append(memory_miss(case, nearest))
        else:
            unknown.append(unknown_row(case, report, _links(report)))
    return _report(question, running, tuple(sorted(misses, key=by_how_little)), tuple(sorted(unknown, key=lambda row: row.model)))


def limited(report: RecommendReport, rows: int) -> RecommendReport:
    """The same answer with its first `rows` rows; `rows_total` goes on counting all."""
    return replace(report, rows=report.rows[:rows])


def _standing(case: Case, report: FitReport, build: CheckpointRow) -> Standing:
    speed = report.speed.decode_tok_per_s
    return Standing(
        model=case.model.id,
        recipes=len(report.evidence.recipes),
        scores=_scores(case),
        decode_tok_per_s=speed.best if speed else None,
        bits_per_weight=build.bits_per_weight,
        parameters=case.model.parameter_count,
        released=case.model.released.value,
    )


def _scores(case: Case) -> tuple[ScoreRow, ...]:
    """The model's scores of the day or before; one dated by month counts from the month's end."""
    return tuple(
        ScoreRow(score.index, score.version, score.score, score.date, score.of, cite(case.model.sources, score))
        for score in case.model.scores
        if counted_from(score.date) <= case.as_of
    )


def _links(report: FitReport) -> tuple[RecipeLink, ...]:
    return tuple(RecipeLink(recipe.id, recipe.date, recipe.url) for recipe in report.evidence.recipes)


def _report(
    question: RecommendCase, running: list[Candidate], misses: tuple[MissRow, ...], unknown: tuple[UnknownRow, ...]
) -> RecommendReport:
    quality = choose_quality(candidate.standing for candidate in running)
    by_model = {candidate.standing.model: candidate for candidate in running}
    ranked = [by_model[standing.model] for standing in arranged((candidate.standing for candidate in running), quality)]
    rows = tuple(_row(ranked, index, quality) for index in range(len(ranked)))
    cluster = cluster_row(question.device, question.count, question.named_cluster, question.origin)
    released = question.released
    if ranked:
        caveat = rows[0].caveats[0] if rows[0].score_is_of_other_weights else None
        reason = first_reason(rows[0].model, ranked[0].report, len(rows[0].recipes), len(rows), rows[0].why[0], caveat)
    else:
        reason = none_reason(len(released), cluster, misses, unknown, question.as_of)
    oldest = [candidate.report.oldest_source for candidate in ranked if candidate.report.oldest_source is not None]
    return RecommendReport(
        cluster=cluster,
        context_tokens=question.context_tokens,
        users=question.users,
        engine=question.engine_id,
        assessed=len(released),
        first=rows[0].model if rows else None,
        reason=reason,
        quality=quality,
        rows=rows,
        rows_total=len(rows),
        misses=misses,
        unknown=unknown,
        left_out=tuple(sorted(model.id for model in question.models if model not in released)),
        assumptions=tuple(_assumptions(question)),
        oldest_source=min(oldest, default=None),
        warnings=tuple(_warnings(rows)),
    )


def _row(ranked: list[Candidate], index: int, quality: Quality | None) -> RecommendRow:
    case, report, build, standing = ranked[index]
    score, links = standing.score_in(quality), _links(report)
    others = [found for found in standing.scores if quality is None or (found.index, found.version) != (quality.index, quality.version)]
    elsewhere = max(others, key=lambda found: (counted_from(found.date), found.score), default=None)
    decided_by, place = place_sentence([candidate.standing for candidate in ranked], index, quality, elsewhere)
    pruned = any(known.pruned for known in case.model.checkpoints if known.id == build.id)
    own = build.hub_id is not None and build.hub_id == case.model.hub_id
    of_others = score_caveat(build, pruned=pruned) if score is not None and not own else None
    by_recipe = recipe_caveat(report)
    return RecommendRow(
        position=index + 1,
        model=case.model.id,
        model_name=case.model.name,
        checkpoint=build.id,
        verdict=report.verdict,
        evidence=build.evidence,
        recipes=links,
        engine=report.engine,
        context_tokens=report.context_tokens,
        headroom_bytes=report.headroom_bytes,
        max_context_tokens=None if by_recipe else report.max_context_tokens,
        max_users=None if by_recipe else report.max_users,
        decode_tok_per_s=report.speed.decode_tok_per_s,
        score=score,
        score_not_compared=elsewhere,
        bytes=build.bytes,
        bits_per_weight=build.bits_per_weight,
        parameters=standing.parameters,
        decided_by=decided_by,
        why=(
            place,
            fit_sentence(report),
            evidence_sentence(report, links, case.as_of),
            quality_sentence(score, elsewhere, quality),
            speed_sentence(report),
        ),
        caveats=tuple(caveat for caveat in (of_others, by_recipe) if caveat),
        score_is_of_other_weights=of_others is not None,
        warnings=report.warnings,
    )


def _warnings(rows: tuple[RecommendRow, ...]) -> Iterator[str]:
    if not rows:
        return
    if rows[0].decided_by in ("speed", "size", "age", "name"):
        yield f"nothing published tells {rows[0].model} from the next by quality: it stands first by {rows[0].decided_by} alone"
    if rows[0].score_is_of_other_weights:
        yield f"{rows[0].model}: {rows[0].caveats[0]}"
    yield from (f"{rows[0].model}: {warning}" for warning in rows[0].warnings)


def _assumptions(question: RecommendCase) -> Iterator[Assumption]:
    if question.origin is not None:
        yield from (Assumption(text, "--cluster") for text in question.origin.assumed)
    if question.context_tokens is None:
        words = f"a context of {HEADLINE_CONTEXT_TOKENS:,} tokens per user, or the model's maximum where that is smaller"
        yield Assumption(words, "--context")
    if question.users == 1:
        yield Assumption("one user at a time", "--users")
    if question.engine_id is None:
        yield Assumption("each build under the engine of its best recipe, else the one its format is served with", "--engine")
    yield Assumption("one build a model: of those that run the one with a recipe, the least divergence, the most bits per weight", None)
    yield Assumption("scores are of the makers' own weights; a smaller build may do worse than its model's score", None)
    yield Assumption(
        "speeds are for one user, as their recipes measured them, with different prompts and speculation; they favour small models", None
    )
    yield Assumption(
        f"where nothing published tells two apart: {SOUND_BITS} bits a weight or more first, then more parameters, then newer", None
    )
