"""From names and texts to a recommendation's case: the one way in for the command line and the Python API."""

from __future__ import annotations

from datetime import date

from fitcheck.advise.case import RecommendCase
from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.load import Catalogue
from fitcheck.catalogue.lookup import ClusterSpec, find_cluster, find_engine
from fitcheck.catalogue.recipes import Recipe
from fitcheck.errors import UsageError
from fitcheck.units import parse_context


def recommend_case(
    catalogue: Catalogue,
    *,
    cluster: str | ClusterSpec,
    as_of: date,
    context: str | int | None = None,
    users: int = 1,
    engine: str | None = None,
) -> RecommendCase:
    """Look up everything a `recommend` question names: the cluster, every model, and the recipes on that kind of device.

    Texts are read as on the command line. Raises as `fit_case` does, but for a context longer than a model's own: that is an answer; and
    `UsageError` for an engine that is not known to run on that kind of device at all.
    """
    found = find_cluster(catalogue, cluster)
    recipes = catalogue.mentioning(Recipe, device=found.device.platform)
    asked = find_engine(catalogue, engine) if engine is not None else None
    if asked is not None:
        _check_engine(catalogue, asked, found.device, recipes)
    return RecommendCase(
        models=catalogue.models,
        device=found.device,
        count=found.count,
        named_cluster=found.named,
        origin=found.origin,
        as_of=as_of,
        engines=catalogue.all(Engine),
        recipes=recipes,
        context_tokens=_context_tokens(context),
        users=users,
        engine_id=asked.id if asked is not None else None,
    )


def _context_tokens(context: str | int | None) -> int | None:
    """The tokens of `--context`. Raises `UsageError` that names the option."""
    if isinstance(context, int) and context < 1:
        context = str(context)
    if not isinstance(context, str):
        return context
    try:
        return parse_context(context)
    except UsageError as error:
        named = error.message if "--context" in error.message else f"--context: {error.message}"
        raise UsageError(named, hint=error.hint) from error


def _check_engine(catalogue: Catalogue, engine: Engine, device: Device, recipes: tuple[Recipe, ...]) -> None:
    """Refuse an engine for other chips, unless a recipe shows it on such a device all the same. Raises `UsageError`."""
    if device.chip in engine.chips or any(recipe.engine == engine.id for recipe in recipes):
        return
    fitting = ", ".join(sorted(known.id for known in catalogue.all(Engine) if device.chip in known.chips))
    hint = f"it is --engine {fitting}" if fitting and "," not in fitting else f"write --engine with one of {fitting}, or leave it out"
    raise UsageError(
        f"--engine {engine.id}: {engine.name} is not known to run on {device.name}", hint=hint if fitting else "leave --engine out"
    )
