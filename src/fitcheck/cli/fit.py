"""`fitcheck fit`."""

# Annotations are evaluated as they stand (no `from __future__ import annotations`): typer would compile each text again at start-up.

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fitcheck.api import find_machine
from fitcheck.cli.common import INVOCATION, AsOfOption, FormatOption, OverlayOption, day_of_answer, emit, open_catalogue
from fitcheck.cli.model import OfflineOption, asked_build, asked_model
from fitcheck.errors import ExitCode, UsageError
from fitcheck.views.document import Format

if TYPE_CHECKING:
    from datetime import date

    from fitcheck.catalogue.load import Catalogue
    from fitcheck.catalogue.lookup import ClusterSpec
    from fitcheck.catalogue.models import ComponentKind
    from fitcheck.fit.calibrated import Calibrated
    from fitcheck.fit.case import Case
    from fitcheck.fit.report import FitReport

EXAMPLES = """
Examples:

  fitcheck fit glm-5.3-flash --cluster 2xspark

  fitcheck fit gpt-oss-120b --cluster spark --context 128k --users 4

  fitcheck fit deepseek-v4.1-flash --cluster 3xspark --checkpoint official --why

  fitcheck fit deepseek-v4.1-flash --cluster 2xspark --checkpoint exl3-3bpw --usable 108GiB
"""


def fit(  # noqa: PLR0917 - typer's parameters are options, given by name
    model: Annotated[
        str,
        typer.Argument(
            help="A model's id or alias; a hub's org/name[@rev], a folder, a .gguf or .safetensors file, an address, ollama:NAME."
        ),
    ],
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="SPEC", help="How many of what: 2xspark, rtx-4090, 2x24GiB@936GB/s; or here.")
    ],
    context: Annotated[str | None, typer.Option(metavar="N", help="Tokens of context per user: 32768, 128k, 1M.")] = None,
    users: Annotated[int, typer.Option(metavar="N", help="Users at once, each with the whole context.")] = 1,
    checkpoint: Annotated[str | None, typer.Option(metavar="ID", help="One build, instead of the best of all.")] = None,
    engine: Annotated[str | None, typer.Option(metavar="E", help="vllm, sglang, llama.cpp, …; selects recipes and overhead.")] = None,
    kv_dtype: Annotated[str | None, typer.Option(metavar="T", help="Element type of the KV cache: auto, fp8, q8_0, or K/V.")] = None,
    tp: Annotated[int | None, typer.Option("--tp", metavar="N", help="Tensor-parallel size; the rest is pipeline parallel.")] = None,
    dp: Annotated[int, typer.Option("--dp", metavar="N", help="Replicas that share the users, and routed experts between them.")] = 1,
    ep: Annotated[bool, typer.Option("--ep", help="Expert parallel: routed experts lie whole on one rank.")] = False,
    dcp: Annotated[int | None, typer.Option("--dcp", metavar="N", help="Decode-context parallel: ranks that share a context.")] = None,
    usable: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory the engine may take per device: 102GiB.")] = None,
    place: Annotated[
        list[str] | None,
        typer.Option(metavar="COMPONENT=PLACE", help="Where a component lies: ngram=nvme, drafter=gpu, experts=ram; may be repeated."),
    ] = None,
    calibrated: Annotated[
        Path | None, typer.Option("--calibrated", metavar="FILE", help="Take overhead as measured: a log, or what calibrate --yaml wrote.")
    ] = None,
    offline: OfflineOption = False,
    as_of: AsOfOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 11 for a tight fit.")] = False,
    why: Annotated[bool, typer.Option("--why", help="Show the ledger, its formulas and sources, and every recipe.")] = False,
    format_: FormatOption = Format.TABLE,
    overlay: OverlayOption = None,
) -> None:
    """Say whether a model fits a cluster, at which context, for how many users, and who has shown it running."""
    from fitcheck.fit.solve import fit as answer
    from fitcheck.views.fit import fit_document

    INVOCATION.format = format_
    day = day_of_answer(as_of)
    catalogue = open_catalogue(overlay)
    from fitcheck.fit.ask import fit_case

    machine = find_machine(catalogue, cluster)
    asked = asked_model(catalogue, model, day, checkpoint=checkpoint, offline=offline)
    case = fit_case(
        catalogue,
        asked,
        cluster=machine,
        context=context,
        users=users,
        checkpoint=asked_build(asked, checkpoint),
        engine=engine,
        kv_dtype=kv_dtype,
        tp=tp,
        dp=dp,
        dcp=dcp,
        ep=ep,
        usable=usable,
        places=_places(place or []),
        as_of=day,
        calibrated=_measured(catalogue, calibrated, day, machine) if calibrated is not None else None,
    )
    report = answer(case)
    document = fit_document(report, catalogue_version=catalogue.version, as_of=day.isoformat(), why=why)
    emit(
        document,
        command="fit",
        catalogue=catalogue,
        as_of=day,
        inputs=_inputs(case, report),
        result=report,
        warnings=report.warnings,
    )
    code = exit_code(report, strict=strict)
    if code:
        raise typer.Exit(code)


def _measured(catalogue: "Catalogue", file: Path, day: "date", cluster: "str | ClusterSpec") -> "Calibrated":
    from fitcheck.sources.logs.calibrated import read_calibrated

    return read_calibrated(catalogue, file, day, cluster)


def _places(asked: list[str]) -> "dict[ComponentKind, str]":
    from fitcheck.catalogue.models import ComponentKind

    places = {}
    for text in asked:
        component, equals, place = (part.strip().lower() for part in text.partition("="))
        names = [kind.value for kind in ComponentKind]
        if not equals or component not in names:
            raise UsageError(
                f"cannot read --place {text!r}",
                hint=f"write COMPONENT=gpu|ram|nvme (experts=ram:12 for 12 layers) with one of {', '.join(names)}",
            )
        places[ComponentKind(component)] = place
    return places


def _inputs(case: "Case", report: "FitReport") -> dict[str, object]:
    """The question as it was resolved: what was asked, and what was chosen where nothing was."""
    return {
        "model": case.model.id,
        "cluster": {"device": case.device.id, "count": case.count},
        "context_tokens": report.context_tokens,
        "users": case.users,
        "checkpoint": report.checkpoint,
        "engine": report.engine,
        "kv_dtype": report.kv_dtype,
        "layout": report.layout,
        "tp": case.degrees.tp,
        "dp": case.degrees.dp,
        "ep": case.degrees.ep,
        "dcp": case.degrees.dcp,
        "usable_bytes": report.devices[0].usable_bytes if report.devices else case.usable_bytes,
        "place": {kind.value: place for kind, place in case.places.items()},
    }


def exit_code(report: "FitReport", *, strict: bool) -> ExitCode:
    """What `fit` returns for a verdict."""
    from fitcheck.fit.report import Verdict

    codes = {
        Verdict.FITS: ExitCode.ANSWERED,
        Verdict.TIGHT: ExitCode.TIGHT if strict else ExitCode.ANSWERED,
        Verdict.NO: ExitCode.DOES_NOT_FIT,
        Verdict.UNKNOWN: ExitCode.UNKNOWN,
    }
    return codes[report.verdict]
