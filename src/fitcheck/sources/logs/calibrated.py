"""What `fit --calibrated FILE` takes: an engine's log, or the recipe that `calibrate --yaml` wrote of one."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

from fitcheck.catalogue.load import Catalogue, build
from fitcheck.catalogue.lookup import ClusterSpec, find_cluster
from fitcheck.catalogue.recipes import Recipe
from fitcheck.catalogue.text import split_records
from fitcheck.errors import DataError
from fitcheck.fit.calibrate_ask import calibration_case
from fitcheck.fit.calibrated import Calibrated
from fitcheck.fit.overhead_seen import measured_overhead, seen_overhead
from fitcheck.fit.report import CitedSource
from fitcheck.sources.logs.printed import printed_of, source_url
from fitcheck.sources.logs.read import read_text
from fitcheck.sources.logs.text import log_name, read_log

_RECIPE = re.compile(r"^ {2}kind: recipe\b", re.MULTILINE)
_HINT = "give a log that prints weights, cache and share of memory, or what 'fitcheck calibrate LOG --yaml' wrote"


def read_calibrated(catalogue: Catalogue, file: Path, day: date, cluster: str | ClusterSpec) -> Calibrated:
    """The measurement in a file. A log that names no device is taken to be of the cluster's.

    Raises `DataError` for a file that holds none, `UnknownId` for a cluster that nobody catalogued.
    """
    text, _ = read_log(file)
    if file.suffix in (".yaml", ".yml") or _RECIPE.search(text[: 1 << 20]):
        return _from_recipe(text, str(file))
    printed = printed_of(read_text(text, log_name(file)))
    case = calibration_case(catalogue, printed, as_of=day, source=source_url(None, file))
    device = case.device or find_cluster(catalogue, cluster).device
    found = measured_overhead(printed, device, case.model, case.checkpoint, case.devices, case.source)
    if found is None:
        raise DataError(f"{file}: the overhead cannot be told from it: {seen_overhead(printed, device)}", hint=_HINT)
    return found


def _from_recipe(text: str, name: str) -> Calibrated:
    recipes = [build(Recipe, block) for block in split_records(text, name) if block.kind == "recipe"]
    measured = [recipe for recipe in recipes if recipe.setup.overhead_bytes_per_device is not None]
    if len(measured) != 1:
        raise DataError(f"{name}: {len(measured)} recipes in it state a measured overhead, and one is needed", hint=_HINT)
    recipe = measured[0]
    setup, source = recipe.setup, recipe.sources.get(recipe.source)
    if source is None:
        raise DataError(f"{name}: {recipe.id} names a source that it does not have", hint=f"'fitcheck validate {name}' shows every finding")
    assert setup.overhead_bytes_per_device is not None
    return Calibrated(
        engine=recipe.engine,
        device=recipe.device,
        devices=recipe.count,
        tp=setup.tp or 1,
        model=recipe.model,
        checkpoint=recipe.checkpoint,
        overhead_bytes=setup.overhead_bytes_per_device,
        formula=f"recipe {recipe.id}",
        visible_bytes=setup.visible_bytes_per_device,
        weights_bytes=setup.weights_bytes_per_device if setup.tp is not None else None,
        source=CitedSource(source.url, source.read, source.title),
    )
