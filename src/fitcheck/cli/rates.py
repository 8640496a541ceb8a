"""`fitcheck rates [ID]` and `fitcheck rates price`: rate cards listed, shown, and used to price an instant."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from fitcheck.cli.common import INVOCATION, AsOfOption, FormatOption, OverlayOption, day_of_answer, emit, epilog, open_catalogue
from fitcheck.errors import UnknownId, UsageError
from fitcheck.views.document import Format

if TYPE_CHECKING:
    from fitcheck.catalogue.load import Catalogue

EXAMPLES = """
Examples:

  fitcheck rates

  fitcheck rates deepseek/deepseek-flash

  fitcheck rates price deepseek/deepseek-flash --at 2026-11-30T03:59Z --input 1M --output 1M
"""
PRICE_EXAMPLES = """
Examples:

  fitcheck rates price deepseek/deepseek-flash --at 2026-11-30T03:59Z --input 1M --output 1M

  fitcheck rates price zai/glm-5.3-flash --at 2026-11-30T12:00Z --input 30000 --cached 20000 --output 500
"""


class RatesGroup(TyperGroup):
    """A group whose first word, where it is not a command, is the id of a rate to show."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the first word, else `show` with all the words."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["show", *args])


rates_app = typer.Typer(
    cls=RatesGroup,
    invoke_without_command=True,
    subcommand_metavar="[ID | price PROVIDER/ID …]",
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SubFormatOption = Annotated[Format | None, typer.Option("--format", help="How the answer is written.", rich_help_panel="Output")]
RateArgument = Annotated[str, typer.Argument(metavar="PROVIDER/ID", help="A rate: the provider and its own id of the model.")]


def _plain(record: Any) -> Any:
    return record.model_dump(mode="json", by_alias=True, exclude_none=True)


def end_of_day(day: date) -> datetime:
    """The last instant of a day, at which its prices are looked up."""
    return datetime.combine(day, time.max, UTC)


def _of_group(ctx: typer.Context, name: str) -> Any:
    """An option as it was given before the command's word."""
    return ctx.parent.params[name] if ctx.parent is not None else None


@rates_app.callback()
def rates(
    ctx: typer.Context,
    as_of: AsOfOption = None,
    format_: FormatOption = Format.TABLE,
    overlay: OverlayOption = None,
) -> None:
    """List what providers charge per million tokens; show one rate with its history (ID); price an instant (price)."""
    from fitcheck.catalogue.dated import rate_on
    from fitcheck.catalogue.ratecards import Rate
    from fitcheck.cost.tariff import period_at
    from fitcheck.views.rates import rates_list

    INVOCATION.format = format_
    if ctx.invoked_subcommand is not None:
        return
    day = day_of_answer(as_of)
    catalogue = open_catalogue(overlay)
    moment = end_of_day(day)
    records = tuple(known for known in (rate_on(rate, day) for rate in catalogue.all(Rate)) if known is not None)
    apart = format_ in (Format.TABLE, Format.MD)
    document = rates_list(records, {rate.id: period_at(rate, moment) for rate in records}, apart=apart)
    result = {"rates": [_plain(record) for record in records]}
    emit(document, command="rates", catalogue=catalogue, as_of=day, inputs={"id": None}, result=result)


@rates_app.command("show", hidden=True)
def show(
    ctx: typer.Context,
    id_: RateArgument,
    as_of: AsOfOption = None,
    format_: SubFormatOption = None,
    overlay: OverlayOption = None,
) -> None:
    """Show one rate: its history, windows and sources."""
    from fitcheck.catalogue.dated import rate_on
    from fitcheck.cost.ask import find_tariff
    from fitcheck.cost.tariff import period_at
    from fitcheck.views.rates import rate_document

    INVOCATION.format = format_ or _of_group(ctx, "format_")
    day = day_of_answer(as_of or _of_group(ctx, "as_of"))
    catalogue = _catalogue(ctx, overlay)
    tariff = find_tariff(catalogue, id_)
    rate = rate_on(tariff.rate, day)
    if rate is None:
        raise UnknownId(
            f"no price of {tariff.rate.id} was known by {day.isoformat()}", hint=f"'fitcheck rates {tariff.rate.id}' shows its history"
        )
    schedules = tuple(known for name, known in tariff.schedules.items() if any(period.schedule == name for period in rate.periods))
    result = {"rate": _plain(rate), "schedules": [_plain(one) for one in schedules]}
    document = rate_document(rate, schedules, period_at(rate, end_of_day(day)), day)
    emit(document, command="rates", catalogue=catalogue, as_of=day, inputs={"id": tariff.rate.id}, result=result)


@rates_app.command("price", epilog=epilog(PRICE_EXAMPLES), short_help="What tokens cost at an instant")
def price(
    ctx: typer.Context,
    id_: RateArgument,
    at: Annotated[str, typer.Option("--at", metavar="INSTANT", help="When, with time and zone: 2026-11-30T03:59Z.")],
    input_: Annotated[str, typer.Option("--input", metavar="N", help="Tokens of input, those read from cache among them.")],
    output: Annotated[str, typer.Option("--output", metavar="N", help="Tokens of output.")],
    cached: Annotated[str, typer.Option("--cached", metavar="N", help="The part of --input that is read from cache.")] = "0",
    format_: SubFormatOption = None,
    overlay: OverlayOption = None,
) -> None:
    """What tokens cost at an instant, as one request: to the cent, by the price and the hours in force then."""
    from fitcheck.cost.ask import find_tariff, read_instant, read_request
    from fitcheck.cost.quote import quote
    from fitcheck.views.cost import price_document

    INVOCATION.format = format_ or _of_group(ctx, "format_")
    if _of_group(ctx, "as_of") is not None:
        raise UsageError("--as-of says nothing here: --at names the instant", hint="leave --as-of out")
    moment, tokens = read_instant(at), read_request(input_, output, cached)
    catalogue = _catalogue(ctx, overlay)
    tariff = find_tariff(catalogue, id_)
    report = quote(tariff, moment, tokens)
    emit(
        price_document(report),
        command="rates price",
        catalogue=catalogue,
        as_of=moment.date(),
        inputs={"id": tariff.rate.id, "at": moment, "input": tokens.input, "output": tokens.output, "cached": tokens.cached},
        result=report,
        warnings=report.warnings,
    )


def _catalogue(ctx: typer.Context, overlay: list[Path] | None) -> Catalogue:
    return open_catalogue([*(_of_group(ctx, "overlay") or []), *(overlay or [])])
