"""Whether the machine holds the model at all: `fit` is asked before anything is priced."""

from __future__ import annotations

from dataclasses import replace

from fitcheck.catalogue.models import Model
from fitcheck.catalogue.recipes import Recipe
from fitcheck.cost.case import CostCase
from fitcheck.cost.report import FitLine
from fitcheck.errors import UsageError
from fitcheck.fit.case import Case, usable_budget
from fitcheck.fit.report import Verdict
from fitcheck.fit.solve import fit
from fitcheck.units import format_gib


def model_fits(case: CostCase, model: Model, recipe: Recipe | None) -> FitLine:
    """The verdict of `fit` at its default context: for the recipe's build and engine, else for the model's best build."""
    asked = _fit_case(case, model)
    if recipe is not None:
        known = {build.id for build in model.checkpoints}
        asked = replace(
            asked,
            checkpoint_id=recipe.checkpoint if recipe.checkpoint in known else None,
            engine_id=recipe.engine if asked.engine(recipe.engine) else None,
        )
    try:
        report = fit(asked)
    except UsageError:  # no engine is known to serve the build that the recipe names: what is known without it counts
        report = fit(replace(asked, engine_id=None))
    lacks = report.headroom_bytes is not None and report.headroom_bytes < 0
    return FitLine(
        verdict=report.verdict,
        checkpoint=report.checkpoint,
        engine=report.engine,
        context_tokens=report.context_tokens,
        short_by_bytes=-report.headroom_bytes if lacks and report.headroom_bytes is not None else None,
        reason=report.reason,
    )


def lacks_memory(case: CostCase, recipe: Recipe) -> bool:
    """Whether a recipe needs more usable memory than the cluster's devices usually give its engine."""
    if recipe.requires is None or recipe.model not in case.known_models:
        return False
    asked = _fit_case(case, case.known_models[recipe.model])
    engine = asked.engine(recipe.engine)
    budget = usable_budget(asked, engine) if engine else None
    return budget is not None and budget.bytes < recipe.requires.usable_bytes


def fits_words(found: FitLine, cluster: str) -> str:
    """The verdict in a sentence, with the build and what is missing."""
    build = f"{found.checkpoint} at a context of {found.context_tokens:,}" if found.checkpoint else "no build"
    if found.verdict is Verdict.UNKNOWN:
        return f"unknown on {cluster}, {build}: {found.reason}"
    short = f", {format_gib(found.short_by_bytes)} short on each device" if found.short_by_bytes else ""
    return f"{found.verdict.value} on {cluster}, {build}{short}"


def does_not_fit(case: CostCase) -> str | None:
    """That no model asked for fits on the cluster, in a sentence; None where one does or nobody knows."""
    found = {model.id: model_fits(case, model, None) for model in case.models}
    if not found or any(line.verdict is not Verdict.NO for line in found.values()):
        return None
    cluster = case.cluster.label
    if len(found) > 1:
        return f"none of {', '.join(found)} fits on {cluster}"
    name, line = next(iter(found.items()))
    short = f": its best build {line.checkpoint} is {format_gib(line.short_by_bytes)} short on each device" if line.short_by_bytes else ""
    return f"{name} does not fit on {cluster}{short}"


def _fit_case(case: CostCase, model: Model) -> Case:
    return Case(
        model=model,
        device=case.cluster.device,
        count=case.cluster.count,
        named_cluster=case.cluster.named,
        origin=case.cluster.origin,
        as_of=case.as_of,
        engines=case.engines,
        recipes=tuple(recipe for recipe in case.platform_recipes if recipe.model == model.id),
    )
