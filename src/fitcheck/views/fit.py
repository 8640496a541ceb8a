"""How the answer to `fit` is laid out."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from fitcheck.fit.report import CheckpointRow, CitedSource, DeviceLedger, FitReport, Range, RecipeRow, SpeedRow, Term, Verdict
from fitcheck.units import format_gb, format_gib, format_size, gib
from fitcheck.views.document import Cell, Column, Document, Line, Table, Tone, cell, clean

TONES: dict[Verdict, Tone] = {Verdict.FITS: "good", Verdict.TIGHT: "warn", Verdict.NO: "bad", Verdict.UNKNOWN: "quiet"}
SHOWN_RECIPES = 6


def fit_document(report: FitReport, *, catalogue_version: str, as_of: str, why: bool) -> Document:
    """The whole answer; with `why` the ledger, its formulas and sources too, and every recipe."""
    cluster = report.cluster
    users = "1 user" if report.users == 1 else f"{report.users:,} users"
    heading = f"{report.model_name} on {cluster.count}x {cluster.device_name}, {report.context_tokens:,} tokens of context each, {users}"
    parts: list[Line | Table] = list(_facts(report))
    if report.by_context:
        parts.append(_by_context(report))
    if report.remedies:
        rows = tuple((cell(item.text), cell(item.option)) for item in report.remedies)
        parts.append(Table("remedies", "What would make it fit", (Column("change", wrap=True), Column("option")), rows))
    if len(report.checkpoints) > 1:
        parts.append(_checkpoints(report.checkpoints))
    parts.append(_recipes(report, everything=why))
    if why:
        for ledger in report.devices:
            parts.extend(_ledger(ledger))
    if report.assumptions:
        parts.append(_assumptions(report))
    return Document(clean(heading), tuple(parts), (*report.warnings, _foot(report, catalogue_version, as_of, why)))


def _facts(report: FitReport) -> Iterator[Line]:
    yield Line("verdict", f"{report.verdict.upper()}: {clean(report.reason)}", TONES[report.verdict])
    count = len(report.evidence.recipes)
    yield Line("evidence", f"recipe ({count}) on just this cluster" if count else "arithmetic: no recipe in the catalogue shows just this")
    if report.checkpoint is not None:
        yield Line("checkpoint", _checkpoint_line(report))
    if report.max_context_tokens is not None and report.max_users is not None:
        yield Line("goes to", _reach(report))
    yield Line("decode", _speed(report.speed.decode_tok_per_s, "for one user"))
    if report.users > 1:
        together = f"for {report.speed.together_users} users together" if report.speed.together_users else ""
        yield Line("all users", _speed(report.speed.together_tok_per_s, together))
    yield Line("prefill", _speed(report.speed.prefill_tok_per_s, "for one user"))
    yield Line("memory", _memory(report))
    if report.smallest_cluster is not None:
        hold = "holds" if report.smallest_cluster == 1 else "hold"
        yield Line("smallest", f"{report.smallest_cluster}x {report.cluster.device} {hold} this build")
    if report.kv_bytes_per_token is not None:
        per_session = report.state_bytes_per_sequence or 0
        fixed = f", and {format_size(per_session)} per sequence whatever its length" if per_session else ""
        yield Line("KV cache", f"{report.kv_bytes_per_token:,} B more per token on each device at this context{fixed}")


def _checkpoint_line(report: FitReport) -> str:
    row = next((row for row in report.checkpoints if row.id == report.checkpoint), None)
    words = [report.checkpoint or ""]
    if row is not None and row.hub_id:
        words[0] += f" ({row.hub_id})"
    if row is not None and row.bytes is not None:
        words.append(format_gib(row.bytes))
    words += [part for part in (report.engine, report.layout, f"KV {report.kv_dtype}" if report.kv_dtype else None) if part]
    return clean(", ".join(words))


def _reach(report: FitReport) -> str:
    users = "1 user" if report.users == 1 else f"{report.users:,} users"
    context = f"{report.max_context_tokens:,} tokens for {users}" if report.max_context_tokens else f"by arithmetic no context for {users}"
    return f"{context}; {report.max_users:,} user{'' if report.max_users == 1 else 's'} at {report.context_tokens:,} tokens each"


def _speed(speed: Range | None, whom: str) -> str:
    if speed is None:
        return "not known: no matching recipe measured it"
    span = "" if speed.low == speed.high else f", seen {format_rate(speed.low)} to {format_rate(speed.high)}"
    return f"{format_rate(speed.best)} tok/s {whom}{span}; {clean(speed.basis)}"


def format_rate(value: Decimal) -> str:
    """A speed without needless zeros; its unit stands in the heading or beside it."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _memory(report: FitReport) -> str:
    cluster = report.cluster
    sold = f"{format_gb(cluster.sold_bytes)} sold, " if cluster.sold_bytes != cluster.visible_bytes else ""  # equal where nobody sold it so
    words = f"{sold}{format_gib(cluster.visible_bytes)} visible"
    if report.devices:
        words += f", {format_gib(report.devices[0].usable_bytes)} usable"
    if cluster.free_now_bytes is not None:
        words += f" ({format_gib(cluster.free_now_bytes)} free now)"
    elif cluster.free_at_boot_bytes:
        low, high = min(cluster.free_at_boot_bytes), max(cluster.free_at_boot_bytes)
        words += f" (owners report {gib(low):.1f} to {gib(high):.1f} GiB free at boot)" if low != high else f" ({format_gib(low)} free)"
    return f"{words} per device" if cluster.count > 1 else words


def _verdict_cell(verdict: Verdict) -> Cell:
    return Cell(verdict.value, TONES[verdict])


def _gib_cell(size_bytes: int | None) -> Cell:
    return cell(None if size_bytes is None else f"{gib(size_bytes):,.2f}")


def _by_context(report: FitReport) -> Table:
    columns = (
        Column("context tokens", right=True),
        Column("weights GiB", right=True, rank=2),
        Column("KV + state GiB", right=True, rank=1),
        Column("overhead GiB", right=True, rank=3),
        Column("total GiB", right=True),
        Column("verdict"),
    )
    rows = tuple(
        (
            cell(f"{row.context_tokens:,}"),
            _gib_cell(row.weights_bytes),
            _gib_cell(row.state_bytes),
            _gib_cell(row.overhead_bytes),
            _gib_cell(row.total_bytes),
            _verdict_cell(row.verdict),
        )
        for row in report.by_context
    )
    users = "" if report.users == 1 else f", {report.users:,} users"
    title = f"Memory by context length ({report.checkpoint}, fullest device{users})"
    return Table("by_context", title, columns, rows)


def _checkpoints(checkpoints: tuple[CheckpointRow, ...]) -> Table:
    columns = (
        Column("checkpoint"),
        Column("verdict"),
        Column("evidence"),
        Column("GiB", right=True, rank=3),
        Column("left GiB", right=True, rank=1),
        Column("KLD", right=True, rank=4),
        Column("bits", right=True, rank=5),
        Column("status"),
        Column("why", rank=2, wrap=True),
    )
    rows = tuple(
        (
            cell(row.id),
            _verdict_cell(row.verdict),
            cell(row.evidence),
            _gib_cell(row.bytes),
            _gib_cell(row.headroom_bytes),
            cell(row.divergence),
            cell(row.bits_per_weight),
            cell(row.status, "bad" if row.status == "withdrawn" else "plain"),
            cell(row.because or None),
        )
        for row in checkpoints
    )
    return Table("checkpoints", "Checkpoints, best first", columns, rows)


def _recipes(report: FitReport, *, everything: bool) -> Table:
    matching, others = report.evidence.recipes, report.evidence.others
    shown = (*matching, *others) if everything else (*matching, *others)[: max(SHOWN_RECIPES, len(matching))]
    columns = (
        Column("date"),
        Column("ctx", right=True, rank=3),
        Column("engine", rank=4),
        Column("speculation", rank=3),
        Column("decode tok/s", right=True, rank=2),
        Column("against the question", wrap=True, rank=1),
        Column("link", reference=True),
    )
    rows = tuple(_recipe_row(row) for row in shown)
    left_out = len(matching) + len(others) - len(shown)
    more = f" ({left_out} more with --why)" if left_out else ""
    return Table(
        "recipes",
        f"Recipes{f' of {report.checkpoint}' if report.checkpoint else ''}{more}",
        columns,
        rows,
        empty="none in the catalogue for this build on this device",
    )


def _recipe_row(row: RecipeRow) -> tuple[Cell, ...]:
    return (
        cell(row.date),
        cell(f"{row.context_tokens:,}" if row.context_tokens else None),
        cell(row.engine),
        cell(row.speculation),
        cell(_recipe_speed(row)),
        cell("matches" if row.matches else "; ".join(row.differs), "good" if row.matches else "quiet"),
        cell(row.url),
    )


def _recipe_speed(row: RecipeRow) -> str | None:
    single = [speed for speed in row.speeds if speed.phase == "decode" and speed.users == 1]
    lead = next((speed for speed in single if speed.headline), single[0] if single else None)
    return _span(lead) if lead else None


def _span(speed: SpeedRow) -> str:
    low, high = format_rate(speed.low_tok_per_s), format_rate(speed.high_tok_per_s)
    return low if low == high else f"{low}-{high}"


def _ledger(ledger: DeviceLedger) -> Iterator[Table]:
    columns = (
        Column("term", wrap=True),
        Column("GiB", right=True),
        Column("bytes", right=True, rank=2),
        Column("grade", rank=1),
        Column("how", wrap=True),
    )
    rows = [_term_row(term) for term in ledger.terms]
    rows.append((Cell("total", "strong"), _gib_cell(ledger.total_bytes), cell(f"{ledger.total_bytes:,}"), cell(None), cell(None)))
    rows.append(
        (
            cell("usable"),
            _gib_cell(ledger.usable_bytes),
            cell(f"{ledger.usable_bytes:,}"),
            cell(ledger.usable_grade.value),
            cell(ledger.usable_formula),
        )
    )
    rows.extend(
        (cell(f"{part.component} on {part.place}"), _gib_cell(0), cell("0"), cell(None), cell(f"{part.bytes:,} B there; {part.because}"))
        for part in ledger.off_device
    )
    yield Table("ledger", f"Ledger of the fullest {ledger.device}", columns, tuple(rows))
    yield _sources(ledger)


def _sources(ledger: DeviceLedger) -> Table:
    """Each address once, with the terms that rest on it."""
    terms_of: dict[CitedSource, list[str]] = {}
    for name, sources in [*((term.name, term.sources) for term in ledger.terms), ("usable", ledger.usable_sources)]:
        for source in sources:
            terms_of.setdefault(source, []).append(name)
    columns = (Column("for", wrap=True), Column("read", rank=1), Column("address", reference=True))
    rows = tuple(
        (cell(", ".join(dict.fromkeys(names))), cell(source.read.isoformat()), cell(source.url)) for source, names in terms_of.items()
    )
    return Table("sources", "Sources of the ledger", columns, rows)


def _term_row(term: Term) -> tuple[Cell, ...]:
    span = ""
    if term.low_bytes is not None and term.high_bytes is not None:
        span = f"; seen {gib(term.low_bytes):.1f} to {gib(term.high_bytes):.1f} GiB"
    return (
        cell(term.name),
        _gib_cell(term.bytes),
        cell(f"{term.bytes:,}"),
        cell(term.grade.value),
        cell(term.formula + span),
    )


def _assumptions(report: FitReport) -> Table:
    rows = tuple((cell(item.text), cell(item.option)) for item in report.assumptions)
    return Table("assumptions", "Assumed", (Column("what", wrap=True), Column("changed by", rank=1)), rows)


def _foot(report: FitReport, version: str, as_of: str, why: bool) -> str:
    days = report.oldest_source_age_days
    age = "" if days is None else f", oldest source used read {days:,} day{'' if days == 1 else 's'} ago"
    if days is not None and days < 0:
        age = f", from sources read later (the oldest on {report.oldest_source})"
    return f"catalogue {version}, as of {as_of}{age}" + ("" if why else "; --why shows the ledger and its sources")
