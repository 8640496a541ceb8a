"""`fitcheck calibrate`."""

# Annotations are evaluated as they stand (no `from __future__ import annotations`): typer would compile each text again at start-up.

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fitcheck.cli.common import INVOCATION, AsOfOption, FormatOption, OverlayOption, day_of_answer, emit, open_catalogue, write
from fitcheck.cli.model import OfflineOption
from fitcheck.views.document import Format

if TYPE_CHECKING:
    from datetime import date

    from fitcheck.catalogue.load import Catalogue
    from fitcheck.catalogue.models import Model
    from fitcheck.fit.calibration import CalibrationReport
    from fitcheck.sources.config import ConfigModel

EXAMPLES = """
Examples:

  fitcheck calibrate server.log --cluster 2xspark

  fitcheck calibrate llama-server.log llama-bench.md --model qwen3.8-27b

  fitcheck calibrate vllm.log bench.json --cluster rtx-5090 --yaml > mine.yaml
"""


def calibrate(  # noqa: PLR0917 - typer's parameters are options, given by name
    logs: Annotated[
        list[Path],
        typer.Argument(metavar="LOG...", help="Start-up logs of one run (vLLM, SGLang, llama.cpp), and its benchmark results."),
    ],
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="The model as for fit, where the log's own name is not in the catalogue.")
    ] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", metavar="SPEC", help="How many of what it ran on: 2xspark, rtx-4090.")] = None,
    engine: Annotated[str | None, typer.Option(metavar="E", help="The engine, for a benchmark that names none.")] = None,
    checkpoint: Annotated[str | None, typer.Option(metavar="ID", help="The build that ran.")] = None,
    yaml: Annotated[bool, typer.Option("--yaml", help="Print a recipe and the measured overhead as catalogue entries.")] = False,
    source: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the log is published, for --yaml; otherwise file: and its name.")
    ] = None,
    offline: OfflineOption = False,
    as_of: AsOfOption = None,
    format_: FormatOption = Format.TABLE,
    overlay: OverlayOption = None,
) -> None:
    """Hold what fitcheck predicts against what an engine printed: weights, KV cache, state, buffers, overhead."""
    INVOCATION.format = format_
    day = day_of_answer(as_of)
    catalogue = open_catalogue(overlay)
    from fitcheck.api import calibration_case
    from fitcheck.fit.calibrate import calibrate as answer

    asked = _asked(catalogue, model, day, checkpoint=checkpoint, offline=offline)
    case = calibration_case(catalogue, logs, day=day, model=asked, cluster=cluster, engine=engine, checkpoint=checkpoint, source=source)
    report = answer(case)
    if yaml:
        from fitcheck.cli.contribute import contribution

        write(contribution(case, report, catalogue))
        return
    _show(report, catalogue, day)


def _show(report: "CalibrationReport", catalogue: "Catalogue", day: "date") -> None:
    from fitcheck.views.calibrate import calibrate_document

    emit(
        calibrate_document(report, catalogue_version=catalogue.version, as_of=day.isoformat()),
        command="calibrate",
        catalogue=catalogue,
        as_of=day,
        inputs={"logs": list(report.files), "model": report.model, "checkpoint": report.checkpoint, "engine": report.engine,
                "cluster": {"device": report.device, "count": report.devices}},
        result=report,
        warnings=report.notes,
    )  # fmt: skip


def _asked(
    catalogue: "Catalogue", model: str | None, day: "date", *, checkpoint: str | None, offline: bool
) -> "str | Model | ConfigModel | None":
    """A name, what a config says where the name is the path of one, or the record of what lies elsewhere."""
    if model is None:
        return None
    if not model.endswith(".json"):
        from fitcheck.cli.model import asked_model

        return asked_model(catalogue, model, day, checkpoint=checkpoint, offline=offline)
    from fitcheck.sources.config import read_config

    return read_config(Path(model))
