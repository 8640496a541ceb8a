"""`fitcheck models | hardware | recipes [ID]`: the catalogue, listed and shown with its sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fitcheck.api import find_machine
from fitcheck.cli.common import INVOCATION, AsOfOption, FormatOption, OverlayOption, day_of_answer, emit, open_catalogue
from fitcheck.errors import UnknownId
from fitcheck.views.document import Format

if TYPE_CHECKING:
    from fitcheck.catalogue.lookup import ClusterSpec

MODELS_EXAMPLES = """
Examples:

  fitcheck models

  fitcheck models glm-5.3-flash

  fitcheck models deepseek-v4.1-flash --as-of 2026-09-10 --format json
"""
HARDWARE_EXAMPLES = """
Examples:

  fitcheck hardware

  fitcheck hardware spark

  fitcheck hardware 2xspark

  fitcheck hardware spark --as-of 2025-11-01
"""
RECIPES_EXAMPLES = """
Examples:

  fitcheck recipes

  fitcheck recipes glm-5.3-flash-2x-miaai-exl3-dflash2

  fitcheck recipes --as-of 2026-09-10 --format csv
"""

IdArgument = Annotated[str | None, typer.Argument(metavar="[ID]", help="One record, shown with its sources; without it, the list.")]
SpecArgument = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="A device, a cluster such as 2xspark, or a named one; without it, the list.")
]


def _plain(record: Any) -> Any:
    return record.model_dump(mode="json", by_alias=True, exclude_none=True)


def models(id_: IdArgument = None, as_of: AsOfOption = None, format_: FormatOption = Format.TABLE, overlay: OverlayOption = None) -> None:
    """List the models that were out on the day, or show one: architecture, KV bytes per token, checkpoints, names, sources."""
    from fitcheck.catalogue.dated import model_on, released_on
    from fitcheck.catalogue.lookup import find_model
    from fitcheck.catalogue.models import Model
    from fitcheck.views.models import kv_by_dtype, model_document, models_list

    INVOCATION.format = format_
    day = day_of_answer(as_of)
    catalogue = open_catalogue(overlay)
    result: dict[str, Any]
    if id_ is None:
        records = tuple(model_on(model, day) for model in catalogue.all(Model) if released_on(model, day))
        document, result = models_list(records), {"models": [_plain(record) for record in records]}
    else:
        record = find_model(catalogue, id_, day)
        if not released_on(record, day):
            raise _not_yet(f"{record.id} was not released", record.released.value, day.isoformat())
        known = model_on(record, day)
        document = model_document(known, len(record.checkpoints) - len(known.checkpoints))
        result = {"model": _plain(known), "kv": kv_by_dtype(known)}
    emit(document, command="models", catalogue=catalogue, as_of=day, inputs={"id": id_}, result=result)


def _not_yet(what: str, first: str, day: str) -> UnknownId:
    return UnknownId(f"{what} by {day}: it is from {first}", hint=f"ask with --as-of {first} or later, or without --as-of")


def hardware(
    id_: SpecArgument = None, as_of: AsOfOption = None, format_: FormatOption = Format.TABLE, overlay: OverlayOption = None
) -> None:
    """List devices and named clusters, or show one: memory sold, visible and usable, power, dated prices, sources."""
    from fitcheck.catalogue.dated import cluster_on, device_on
    from fitcheck.catalogue.hardware import Cluster, Device
    from fitcheck.catalogue.lookup import find_cluster
    from fitcheck.views.hardware import cluster_document, device_document, hardware_list

    INVOCATION.format = format_
    day = day_of_answer(as_of)
    catalogue = open_catalogue(overlay)
    inputs: dict[str, Any] = {"id": id_}
    result: dict[str, Any]
    if id_ is None:
        devices = tuple(device_on(device, day) for device in catalogue.all(Device))
        clusters = tuple(cluster_on(cluster, day) for cluster in catalogue.all(Cluster))
        document = hardware_list(devices, clusters, day)
        result = {"devices": [_plain(one) for one in devices], "clusters": [_plain(one) for one in clusters]}
    else:
        found = find_cluster(catalogue, find_machine(catalogue, id_))
        inputs["cluster"] = {"device": found.device.id, "count": found.count}
        device = device_on(found.device, day)
        result = {"device": _plain(device)}
        if found.named is None:
            document = device_document(device, day, "; ".join(found.origin.assumed) if found.origin else _unnamed(found))
        else:
            cluster = cluster_on(found.named, day)
            document, result = cluster_document(cluster, device, day), {"cluster": _plain(cluster), **result}
    emit(document, command="hardware", catalogue=catalogue, as_of=day, inputs=inputs, result=result)


def _unnamed(found: ClusterSpec) -> str | None:
    if found.count == 1:
        return None
    return f"the catalogue names no cluster of {found.label}, so what joins them is not known: this is one of the devices"


def recipes(id_: IdArgument = None, as_of: AsOfOption = None, format_: FormatOption = Format.TABLE, overlay: OverlayOption = None) -> None:
    """List the measured recipes that were public on the day, or show one with its settings, speeds, protocol and source."""
    from fitcheck.catalogue.dated import public_on, recipe_on
    from fitcheck.catalogue.lookup import find_recipe
    from fitcheck.catalogue.recipes import Recipe
    from fitcheck.views.recipes import recipe_document, recipes_list

    INVOCATION.format = format_
    day = day_of_answer(as_of)
    catalogue = open_catalogue(overlay)
    result: dict[str, Any]
    if id_ is None:
        records = tuple(recipe_on(recipe, day) for recipe in catalogue.all(Recipe) if public_on(recipe, day))
        document, result = recipes_list(records, day), {"recipes": [_plain(record) for record in records]}
    else:
        record = find_recipe(catalogue, id_)
        if not public_on(record, day):
            raise _not_yet(f"the recipe {record.id} was not public", record.date, day.isoformat())
        record = recipe_on(record, day)
        document, result = recipe_document(record, day), {"recipe": _plain(record)}
    emit(document, command="recipes", catalogue=catalogue, as_of=day, inputs={"id": id_}, result=result)
