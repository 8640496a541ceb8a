"""`fitcheck models | hardware | recipes [ID]`: the catalogue, listed and shown with its sources."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fitcheck.cli.common import INVOCATION, AsOfOption, FormatOption, OverlayOption, day_of_answer, emit, open_catalogue
from fitcheck.views.document import Format

IdArgument = Annotated[str | None, typer.Argument(metavar="[ID]", help="One record, shown with its sources; without it, the list.")]


def _plain(record: Any) -> Any:
    return record.model_dump(mode="json", by_alias=True, exclude_none=True)


def models(id_: IdArgument = None, as_of: AsOfOption = None, format_: FormatOption = Format.TABLE, overlay: OverlayOption = None) -> None:
    """List the models, or show one: architecture, KV bytes per token, checkpoints, names, sources."""
    from fitcheck.catalogue.lookup import find_model
    from fitcheck.catalogue.models import Model
    from fitcheck.views.models import model_document, models_list

    INVOCATION.format = format_
    day = day_of_answer(as_of)
    catalogue = open_catalogue(overlay)
    if id_ is None:
        records = catalogue.all(Model)
        document, result = models_list(records), {"models": [_plain(record) for record in records]}
    else:
        record = find_model(catalogue, id_, day)
        document, result = model_document(record, day), {"model": _plain(record)}
    emit(document, command="models", catalogue=catalogue, as_of=day, inputs={"id": id_}, result=result)


def hardware(id_: IdArgument = None, as_of: AsOfOption = None, format_: FormatOption = Format.TABLE, overlay: OverlayOption = None) -> None:
    """List devices and named clusters, or show one: memory sold, visible and usable, power, dated prices, sources."""
    from fitcheck.catalogue.hardware import Cluster, Device
    from fitcheck.catalogue.load import normalise
    from fitcheck.catalogue.lookup import find_cluster
    from fitcheck.views.hardware import hardware_list
    from fitcheck.views.records import record_document

    INVOCATION.format = format_
    day = day_of_answer(as_of)
    catalogue = open_catalogue(overlay)
    if id_ is None:
        devices, clusters = catalogue.all(Device), catalogue.all(Cluster)
        document = hardware_list(devices, clusters)
        result: dict[str, Any] = {"devices": [_plain(one) for one in devices], "clusters": [_plain(one) for one in clusters]}
    else:
        found = find_cluster(catalogue, id_)
        named = (
            found.named if found.named and normalise(id_) in {normalise(name) for name in (found.named.id, *found.named.aliases)} else None
        )
        record: Device | Cluster = named or found.device
        document = record_document(record, record.name, record.sources, record.note)
        result = {record.kind: _plain(record)}
    emit(document, command="hardware", catalogue=catalogue, as_of=day, inputs={"id": id_}, result=result)


def recipes(id_: IdArgument = None, as_of: AsOfOption = None, format_: FormatOption = Format.TABLE, overlay: OverlayOption = None) -> None:
    """List the measured recipes that were public on the day, or show one with its settings, protocol and source."""
    from fitcheck.catalogue.recipes import Recipe
    from fitcheck.units import counted_from
    from fitcheck.views.hardware import recipes_list
    from fitcheck.views.records import record_document

    INVOCATION.format = format_
    day = day_of_answer(as_of)
    catalogue = open_catalogue(overlay)
    if id_ is None:
        records = tuple(recipe for recipe in catalogue.all(Recipe) if counted_from(recipe.date) <= day)
        document, result = recipes_list(records), {"recipes": [_plain(record) for record in records]}
    else:
        record = catalogue.get(Recipe, id_)
        document, result = record_document(record, record.id, record.sources, record.note), {"recipe": _plain(record)}
    emit(document, command="recipes", catalogue=catalogue, as_of=day, inputs={"id": id_}, result=result)
