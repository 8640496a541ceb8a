"""How the answer to `recommend` is laid out."""

from __future__ import annotations

from collections.abc import Iterator

from fitcheck.advise.report import MissRow, RecommendReport, RecommendRow
from fitcheck.units import gib
from fitcheck.views.document import Cell, Column, Document, Line, Table, cell, clean
from fitcheck.views.fit import TONES, format_rate

_NAMED_FAR = 6


def recommend_document(report: RecommendReport, *, catalogue_version: str, as_of: str, why: bool, limit: int | None) -> Document:
    """The whole answer: what stands first, the others in order, what misses, what is not known; with `why` each row's reasons and sources.

    `limit` is how many rows of a table are shown; None shows all.
    """
    cluster = report.cluster
    users = "1 user" if report.users == 1 else f"{report.users:,} users"
    context = "32,768 tokens (or its own maximum)" if report.context_tokens is None else f"{report.context_tokens:,} tokens"
    heading = f"Models for {cluster.count}x {cluster.device_name}, {context} of context each, {users}"
    parts: list[Line | Table] = [*_facts(report), _rows(report, limit)]
    if why:
        parts += [_reasons(report.rows[:limit]), _sources(report.rows[:limit])]
    if report.misses:
        parts += _misses(report.misses, limit)
    if report.unknown:
        parts.append(_unknown(report, limit))
    if report.assumptions:
        rows = tuple((cell(item.text), cell(item.option)) for item in report.assumptions)
        parts.append(Table("assumptions", "Assumed", (Column("what", wrap=True), Column("changed by", rank=1)), rows))
    return Document(clean(heading), tuple(parts), (*report.warnings, _foot(report, catalogue_version, as_of, why=why)))


def _facts(report: RecommendReport) -> Iterator[Line]:
    yield Line("verdict", clean(report.reason), TONES[report.rows[0].verdict] if report.rows else "bad")
    quality = report.quality
    if quality is not None:
        yield Line("quality", clean(f'compared only in {quality.index} "{quality.version}": {quality.because}'))
        if quality.passed_over:
            yield Line("not compared", clean("; ".join(quality.passed_over)))
    elif report.rows:
        yield Line("quality", "not compared: no model that runs here has a published score")
    left_out = f", {len(report.left_out)} not released by then left out" if report.left_out else ""
    counts = f"{report.rows_total} run, {len(report.misses)} do not, {len(report.unknown)} not known{left_out}"
    yield Line("models", f"{report.assessed} judged: {counts}")


def _more(shown: int, total: int) -> str:
    return f" ({shown} of {total}; --limit {total} shows all)" if shown < total else ""


def _rows(report: RecommendReport, limit: int | None) -> Table:
    columns = (
        Column("#", right=True, rank=5),
        Column("model"),
        Column("build"),
        Column("verdict"),
        Column("evidence"),
        Column("score", right=True, rank=3),
        Column("tok/s", right=True, rank=4),
        Column("left GiB", right=True, rank=6),
        Column("max context", right=True, rank=7),
        Column("users", right=True, rank=8),
        Column("why", wrap=True, below=True),
    )
    rows = tuple(_row(row) for row in report.rows[:limit])
    title = f"What runs, best first{_more(len(rows), report.rows_total)}"
    return Table("rows", title, columns, rows, empty="no model is known to run on this cluster as asked")


def _row(row: RecommendRow) -> tuple[Cell, ...]:
    speed = row.decode_tok_per_s
    return (
        cell(row.position),
        cell(row.model, "strong" if row.position == 1 else "plain"),
        cell(row.checkpoint),
        Cell(row.verdict.value, TONES[row.verdict]),
        cell(row.evidence),
        cell(_score(row)),
        cell(format_rate(speed.best) if speed else None),
        cell(None if row.headroom_bytes is None else f"{gib(row.headroom_bytes):,.2f}"),
        cell(None if row.max_context_tokens is None else f"{row.max_context_tokens:,}"),
        cell(None if row.max_users is None else f"{row.max_users:,}"),
        cell("; ".join([row.why[0], *row.caveats])),
    )


def _score(row: RecommendRow) -> str | None:
    """A score, marked where it is that of the full weights and not of this build."""
    if row.score is None:
        return None
    return f"{row.score.score} (full)" if row.score_is_of_other_weights else str(row.score.score)


def _reasons(rows: tuple[RecommendRow, ...]) -> Table:
    cells = tuple((cell(row.model), cell(reason)) for row in rows for reason in (*row.why, *row.caveats, *row.warnings))
    return Table("why", "Why each stands there", (Column("model"), Column("because", wrap=True)), cells)


def _sources(rows: tuple[RecommendRow, ...]) -> Table:
    """Recipes and scores of the rows, with their addresses."""
    columns = (Column("model", rank=1), Column("for", wrap=True), Column("date", rank=1), Column("address", reference=True))
    return Table("sources", "Recipes and scores", columns, tuple(_cited(rows)), empty="none: all of it is arithmetic")


def _cited(rows: tuple[RecommendRow, ...]) -> Iterator[tuple[Cell, ...]]:
    for row in rows:
        for recipe in row.recipes:
            yield cell(row.model), cell(recipe.id), cell(recipe.date), cell(recipe.url)
        for score in (row.score, row.score_not_compared):
            if score is not None:
                words = cell(f'score {score.score} in "{score.version}"')
                yield from ((cell(row.model), words, cell(score.date), cell(source.url)) for source in score.sources)


def _misses(misses: tuple[MissRow, ...], limit: int | None) -> Iterator[Line | Table]:
    """Those that miss nearly, and one line for the others; without a limit, all in one table."""
    near = tuple(row for row in misses if row.near or limit is None)
    far = [row for row in misses if row not in near]
    columns = (
        Column("model"),
        Column("build", rank=3),
        Column("short GiB", right=True, rank=1),
        Column("fits on", right=True, rank=2),
        Column("what misses", wrap=True),
    )
    rows = tuple(_miss(row) for row in near[:limit])
    if rows:
        title = "What misses" if limit is None else "What just misses"
        yield Table("misses", f"{title}, nearest first{_more(len(rows), len(near))}", columns, rows)
    if far:
        named = [row.model if row.fits_on is None else f"{row.model} (fits on {row.fits_on}x)" for row in far[:_NAMED_FAR]]
        rest = f" and {len(far) - _NAMED_FAR} others" if len(far) > _NAMED_FAR else ""
        one = len(far) == 1
        more = f"{len(far)}{' more' if near else ''} {'misses' if one else 'miss'} by far"
        yield Line("", clean(f"{more}: {', '.join(named)}{rest}; --format json has {'it' if one else 'them all'}"), "quiet")


def _miss(row: MissRow) -> tuple[Cell, ...]:
    return (
        cell(row.model),
        cell(row.checkpoint),
        cell(None if row.short_by_bytes is None else f"{gib(row.short_by_bytes):,.2f}", "bad"),
        cell(None if row.fits_on is None else f"{row.fits_on}x"),
        cell(row.note),
    )


def _unknown(report: RecommendReport, limit: int | None) -> Table:
    rows = tuple((cell(row.model), cell(row.checkpoint), cell(row.reason)) for row in report.unknown[:limit])
    title = f"Not known{_more(len(rows), len(report.unknown))}"
    return Table("unknown", title, (Column("model"), Column("build", rank=1), Column("why", wrap=True)), rows)


def _foot(report: RecommendReport, version: str, as_of: str, *, why: bool) -> str:
    oldest = f", oldest source used read {report.oldest_source.isoformat()}" if report.oldest_source else ""
    more = "" if why else "--why shows each row's reasons, recipes and scores; "
    return f"catalogue {version}, as of {as_of}{oldest}; {more}fitcheck fit tells one model in full, and has the options named here"
