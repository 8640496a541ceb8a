"""From names and texts to a recommendation's case: the one way in for the command line and the Python API."""

from __future__ import annotations

from datetime import date

from fitcheck.advise.case import RecommendCase
from fitcheck.catalogue.hardware import Engine
from fitcheck.catalogue.load import Catalogue
from fitcheck.catalogue.lookup import find_cluster, find_engine
from fitcheck.catalogue.recipes import Recipe
from fitcheck.units import parse_context


def recommend_case(
    catalogue: Catalogue,
    *,
    cluster: str,
    as_of: date,
    context: str | int | None = None,
    users: int = 1,
    engine: str | None = None,
) -> RecommendCase:
    """Look up everything a `recommend` question names: the cluster, every model, and the recipes on that kind of device.

    Texts are read as on the command line. Raises as `fit_case` does, but for a context longer than a model's own: that is an answer.
    """
    found = find_cluster(catalogue, cluster)
    return RecommendCase(
        models=catalogue.models,
        device=found.device,
        count=found.count,
        named_cluster=found.named,
        as_of=as_of,
        engines=catalogue.all(Engine),
        recipes=catalogue.mentioning(Recipe, device=found.device.platform),
        context_tokens=parse_context(context) if isinstance(context, str) else context,
        users=users,
        engine_id=find_engine(catalogue, engine).id if engine is not None else None,
    )
