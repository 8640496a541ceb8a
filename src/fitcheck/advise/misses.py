"""Models that do not run as asked: by how little they miss, and what would do."""

from __future__ import annotations

from dataclasses import replace

from fitcheck.advise.report import MissRow, RecipeLink, UnknownRow
from fitcheck.advise.words import context_note, memory_note
from fitcheck.fit.assess import assess
from fitcheck.fit.case import Case
from fitcheck.fit.evidence import known_recipes
from fitcheck.fit.rank import rank_key
from fitcheck.fit.report import CheckpointRow, FitReport, Verdict
from fitcheck.fit.solve import fit
from fitcheck.units import format_size

FITS_ON_UP_TO = 16
"""The largest number of the same device that is tried for a model that does not fit."""

NEAR_TIMES = 4
"""What runs on so many times the devices, or with so much of the context, still misses nearly."""


def nearest_build(report: FitReport) -> CheckpointRow | None:
    """The build of known size, not withdrawn, that leaves the most (lacks the least) on the fullest device: as a rule the smallest."""
    known = [(row.headroom_bytes, row) for row in report.checkpoints if row.headroom_bytes is not None and row.status != "withdrawn"]
    return min(known, key=lambda pair: (-pair[0], pair[1].bytes or 0, pair[1].id))[1] if known else None


def smallest_count(case: Case) -> tuple[int, str] | None:
    """The smallest larger number of the same device, up to `FITS_ON_UP_TO`, on which a build runs; and the best such build."""
    builds = [build for build in case.model.checkpoints if build.event_on(case.as_of) and not build.withdrawn_on(case.as_of)]
    recipes = known_recipes(case)
    for count in range(case.count + 1, FITS_ON_UP_TO + 1):
        larger = replace(case, count=count, named_cluster=None)
        running = [found for found in (assess(larger, build, recipes) for build in builds) if found.verdict.runs]
        if running:
            return count, min(running, key=lambda found: rank_key(found, larger)).checkpoint.id
    return None


def memory_miss(case: Case, build: CheckpointRow) -> MissRow:
    """A model whose nearest build is too large for the devices."""
    nearest = fit(replace(case, checkpoint_id=build.id))
    found = smallest_count(case)
    count, checkpoint = found or (None, None)
    short = -(nearest.headroom_bytes or 0)
    needs = max((ledger.total_bytes for ledger in nearest.devices), default=0)
    return MissRow(
        model=case.model.id,
        model_name=case.model.name,
        checkpoint=build.id,
        limit="memory",
        near=2 * short < needs or (count is not None and count <= NEAR_TIMES * case.count),
        short_by_bytes=short,
        fits_on=count,
        fits_on_checkpoint=checkpoint,
        context_that_fits=nearest.max_context_tokens or None,
        users_that_fit=nearest.max_users or None,
        model_max_context_tokens=case.model.architecture.max_context_tokens if case.model.architecture else None,
        note=memory_note(nearest, case.users, count, checkpoint, FITS_ON_UP_TO),
    )


def context_miss(case: Case, report: FitReport, asked_tokens: int) -> MissRow:
    """A model whose own context ends before the `asked_tokens`; `case` and `report` are at that end."""
    build = nearest_build(report)
    runs = report.verdict.runs
    short = -build.headroom_bytes if build and build.headroom_bytes is not None and build.headroom_bytes < 0 and not runs else None
    return MissRow(
        model=case.model.id,
        model_name=case.model.name,
        checkpoint=report.checkpoint if runs else build.id if build else None,
        limit="context",
        near=NEAR_TIMES * (report.max_context_tokens or 0) >= asked_tokens,
        short_by_bytes=short,
        fits_on=None,
        fits_on_checkpoint=None,
        context_that_fits=report.max_context_tokens or None,
        users_that_fit=None,
        model_max_context_tokens=case.headline_tokens,
        note=context_note(report, case.headline_tokens),
    )


def unknown_row(case: Case, report: FitReport, recipes: tuple[RecipeLink, ...]) -> UnknownRow:
    """A model about which a figure is missing; builds of known size that do not fit are said too."""
    reason = report.reason if report.verdict is Verdict.UNKNOWN else "all its builds have been withdrawn"
    build = nearest_build(report)
    if build is not None and build.headroom_bytes is not None and build.headroom_bytes < 0:
        reason += f"; of those known {build.id} comes nearest, {format_size(-build.headroom_bytes)} short on each device"
    if recipes:
        reason += f"; a recipe shows it running all the same ({recipes[0].id})"
    return UnknownRow(case.model.id, case.model.name, report.checkpoint, reason, recipes)


def by_how_little(row: MissRow) -> tuple[object, ...]:
    """Nearest first: those short of memory by their bytes, then those whose context ends too early, the longest that fits first."""
    ends_early = row.limit == "context"
    return (ends_early, -(row.context_that_fits or 0) if ends_early else 0, row.short_by_bytes or 0, row.model)
