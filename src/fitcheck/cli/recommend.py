"""`fitcheck recommend`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fitcheck.api import find_machine
from fitcheck.cli.common import INVOCATION, AsOfOption, FormatOption, OverlayOption, day_of_answer, emit, open_catalogue
from fitcheck.errors import UsageError
from fitcheck.views.document import Format

if TYPE_CHECKING:
    from fitcheck.advise.case import RecommendCase

EXAMPLES = """
Examples:

  fitcheck recommend --cluster 2xspark

  fitcheck recommend --cluster rtx-4090 --context 128k --why

  fitcheck recommend --cluster 2xspark --context 64k --users 8 --limit 5

  fitcheck recommend --cluster 2xspark --as-of 2026-09-16 --format json
"""

ROWS_ON_SCREEN = 12
"""Rows of a table where `--limit` says nothing; formats for programs hold all."""


def recommend(
    *,
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="SPEC", help="How many of what: 2xspark, rtx-4090, 2x24GiB@936GB/s; or here.")
    ],
    context: Annotated[str | None, typer.Option(metavar="N", help="Tokens of context per user: 32768, 128k, 1M.")] = None,
    users: Annotated[int, typer.Option(metavar="N", help="Users at once, each with the whole context.")] = 1,
    engine: Annotated[str | None, typer.Option(metavar="E", help="Only this engine: vllm, sglang, llama.cpp, …")] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help=f"Rows shown; {ROWS_ON_SCREEN} in a table without it, all in other formats.")
    ] = None,
    as_of: AsOfOption = None,
    why: Annotated[bool, typer.Option("--why", help="Show every reason of each row, its recipes and scores.")] = False,
    format_: FormatOption = Format.TABLE,
    overlay: OverlayOption = None,
) -> None:
    """Say which models suit a cluster: those that fit first, then by evidence, published quality, speed; and what just misses."""
    from fitcheck.advise.ask import recommend_case
    from fitcheck.advise.recommend import limited
    from fitcheck.advise.recommend import recommend as answer
    from fitcheck.views.recommend import recommend_document

    INVOCATION.format = format_
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit} shows nothing", hint="write --limit with a number from 1 on")
    day = day_of_answer(as_of)
    catalogue = open_catalogue(overlay)
    case = recommend_case(catalogue, cluster=find_machine(catalogue, cluster), context=context, users=users, engine=engine, as_of=day)
    report = answer(case)
    shown = limit or (ROWS_ON_SCREEN if format_ in (Format.TABLE, Format.MD) else None)
    document = recommend_document(report, catalogue_version=catalogue.version, as_of=day.isoformat(), why=why, limit=shown)
    emit(
        document,
        command="recommend",
        catalogue=catalogue,
        as_of=day,
        inputs=_inputs(case, limit),
        result=limited(report, limit) if limit else report,
        warnings=report.warnings,
    )


def _inputs(case: RecommendCase, limit: int | None) -> dict[str, object]:
    """What was asked, as it was understood; `engine` is None where each build has its own."""
    from fitcheck.fit.case import HEADLINE_CONTEXT_TOKENS

    return {
        "cluster": {"device": case.device.id, "count": case.count},
        "context_tokens": case.context_tokens if case.context_tokens is not None else HEADLINE_CONTEXT_TOKENS,
        "users": case.users,
        "engine": case.engine_id,
        "limit": limit,
    }
