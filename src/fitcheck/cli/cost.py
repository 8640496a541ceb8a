"""`fitcheck cost`."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from fitcheck.api import find_machine
from fitcheck.cli.common import INVOCATION, AsOfOption, FormatOption, OverlayOption, day_of_answer, emit, open_catalogue
from fitcheck.cli.model import OfflineOption, asked_model
from fitcheck.errors import UsageError
from fitcheck.views.document import Format

if TYPE_CHECKING:
    from fitcheck.cost.case import CostCase
    from fitcheck.cost.report import CostReport

EXAMPLES = """
Examples:

  fitcheck cost --tokens 50M --offpeak

  fitcheck cost glm-5.3-flash --tokens 50M --profile agent

  fitcheck cost deepseek-v4.1-flash --tokens 200M --schedule "Mon-Fri 09:00-17:00 Europe/Berlin"

  fitcheck cost glm-5.3-flash --tokens 50M --input 3000 --output 500 --cached 2000 --cluster 4xspark

  fitcheck cost glm-5.3-flash --tokens 50M --cluster 2xspark --speed 21.8 --watts 190
"""


def cost(
    models: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="As for fit; without any, the article's open ones.")
    ] = None,
    *,
    tokens: Annotated[str, typer.Option(metavar="N", help="Tokens a month, input and output together: 50M.")],
    profile: Annotated[str | None, typer.Option(metavar="P", help="How they split: chat (the default), rag, agent, batch.")] = None,
    input_: Annotated[
        str | None, typer.Option("--input", metavar="N", help="Input tokens of a typical request, cached ones among them; sets the split.")
    ] = None,
    output: Annotated[str | None, typer.Option(metavar="N", help="Output tokens of that request.")] = None,
    cached: Annotated[str | None, typer.Option(metavar="N", help="The part of --input that is read from cache.")] = None,
    offpeak: Annotated[bool, typer.Option("--offpeak", help="Bill all of it off-peak, where a card has such hours.")] = False,
    schedule: Annotated[
        str | None, typer.Option(metavar="HOURS", help="When the work arrives: 'Mon-Fri 09:00-17:00 Europe/Berlin'. Without it, evenly.")
    ] = None,
    cluster: Annotated[str, typer.Option(metavar="SPEC", help="The machine to own: 2xspark, 2x24GiB@936GB/s; or here.")] = "2xspark",
    months: Annotated[str | None, typer.Option(metavar="N", help="Months the machine lasts.")] = None,
    residual: Annotated[str | None, typer.Option(metavar="SHARE", help="What is left of its price then: 0.2.")] = None,
    electricity: Annotated[str | None, typer.Option(metavar="USD", help="Price of a kWh: 0.17.")] = None,
    price: Annotated[str | None, typer.Option(metavar="USD", help="What the whole cluster costs to buy.")] = None,
    watts: Annotated[str | None, typer.Option(metavar="W", help="What the whole cluster draws when busy.")] = None,
    idle_watts: Annotated[str | None, typer.Option("--idle-watts", metavar="W", help="What it draws when idle.")] = None,
    recipe: Annotated[str | None, typer.Option(metavar="ID", help="The recipe to take its speed from, instead of the best.")] = None,
    speed: Annotated[str | None, typer.Option(metavar="TOK/S", help="Output tokens per second, instead of a recipe's.")] = None,
    prefill: Annotated[str | None, typer.Option(metavar="TOK/S", help="Input tokens read per second.")] = None,
    own_cached: Annotated[
        str | None, typer.Option("--own-cached", metavar="SHARE", help="Share of the cached input that the machine's own cache hits: 0.8.")
    ] = None,
    offline: OfflineOption = False,
    why: Annotated[bool, typer.Option("--why", help="Show every source.")] = False,
    as_of: AsOfOption = None,
    format_: FormatOption = Format.TABLE,
    overlay: OverlayOption = None,
) -> None:
    """Rent or own: what a month's work costs through every rate card, on a machine of one's own, and where the answer flips."""
    from fitcheck.cost.ask import cost_case
    from fitcheck.cost.compare import cost as answer
    from fitcheck.views.cost import cost_document

    INVOCATION.format = format_
    day = _day(as_of)
    catalogue = open_catalogue(overlay)
    case = cost_case(
        catalogue,
        [asked_model(catalogue, name, day, offline=offline) for name in models or ()],
        tokens=tokens,
        as_of=day,
        profile=profile,
        input=input_,
        output=output,
        cached=cached,
        offpeak=offpeak,
        schedule=schedule,
        cluster=find_machine(catalogue, cluster),
        months=months,
        residual=residual,
        electricity=electricity,
        price=price,
        watts=watts,
        idle_watts=idle_watts,
        recipe=recipe,
        speed=speed,
        prefill=prefill,
        own_cached=own_cached,
    )
    report = answer(case)
    document = cost_document(report, catalogue_version=catalogue.version, as_of=day.isoformat(), why=why)
    emit(
        document,
        command="cost",
        catalogue=catalogue,
        as_of=day,
        inputs=_inputs(case, report),
        result=report,
        warnings=report.warnings,
    )


def _day(as_of: str | None) -> date:
    try:
        return day_of_answer(as_of)
    except UsageError as error:
        named = as_of is not None and "--as-of" not in error.message
        raise UsageError(f"--as-of: {error.message}" if named else error.message, hint=error.hint, nearest=error.nearest) from error


def _inputs(case: CostCase, report: CostReport) -> dict[str, object]:
    asked = case.overrides
    return {
        "models": list(report.models),
        "models_asked": case.models_asked,
        "tokens_per_month": case.workload.total_tokens,
        "split_from": case.workload.split_from,
        "offpeak": case.offpeak,
        "schedule": case.schedule,
        "cluster": {"device": case.cluster.device.id, "count": case.cluster.count},
        "life_months": case.terms.life_months.value,
        "residual_share": case.terms.residual_share.value,
        "usd_per_kwh": case.terms.usd_per_kwh.value,
        "purchase_usd": asked.purchase_usd,
        "busy_watts": asked.busy_watts,
        "idle_watts": asked.idle_watts,
        "recipe": asked.recipe.id if asked.recipe else None,
        "decode_tok_per_s": asked.decode_tok_per_s,
        "prefill_tok_per_s": asked.prefill_tok_per_s,
        "own_cached_share": asked.own_cached,
        "input_tokens": case.request.input if case.request else None,
        "output_tokens": case.request.output if case.request else None,
        "cached_tokens": case.request.cached if case.request else None,
    }
