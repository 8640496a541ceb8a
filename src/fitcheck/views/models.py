"""How models are listed and shown: architecture, KV bytes per token, checkpoints, names, scores, sources."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from fractions import Fraction

from fitcheck.catalogue.models import Architecture, Model
from fitcheck.errors import UnknownFact
from fitcheck.fit.state import Share, kv_dtype, sequence_state
from fitcheck.frozen import frozen
from fitcheck.units import format_gib, gib
from fitcheck.views.document import Column, Document, Line, Table, cell, clean
from fitcheck.views.layers import kept
from fitcheck.views.records import sources_table

SHOWN_DTYPES = ("bf16", "fp8")


def models_list(models: tuple[Model, ...]) -> Document:
    """All models, one to a row."""
    columns = (
        Column("model"),
        Column("params B", right=True, rank=1),
        Column("active B", right=True, rank=2),
        Column("context", right=True, rank=1),
        Column("builds", right=True, rank=2),
        Column("released", rank=3),
        Column("license", rank=4),
        Column("developer", rank=4),
    )
    rows = tuple(
        (
            cell(model.id),
            cell(_billions(model.parameters.total.value) if model.parameters.total else None),
            cell(_billions(model.parameters.active.value) if model.parameters.active else None),
            cell(f"{model.architecture.max_context_tokens:,}" if model.architecture else None),
            cell(len(model.checkpoints)),
            cell(model.released.value),
            cell(model.license),
            cell(model.developer),
        )
        for model in models
    )
    return Document(
        f"{len(models)} models", (Table("models", "Models", columns, rows),), ("'fitcheck models ID' shows one with its sources",)
    )


def _billions(count: int) -> str:
    return f"{count / 1e9:,.1f}"


def model_document(model: Model, left_out: int = 0) -> Document:
    """One model as it is known on a day; `left_out` builds were not published by then."""
    facts = [("id", model.id), ("hub", model.hub_id), ("developer", model.developer), ("license", model.license)]
    parts: list[Line | Table] = [Line(name, clean(text)) for name, text in facts if text]
    parts += [Line("released", model.released.value), Line("parameters", _parameters(model))]
    if model.architecture is None:
        parts.append(Line("architecture", "not published: the KV cache is unknown"))
    else:
        parts += [*_architecture_lines(model, model.architecture), _state_table(model.architecture)]
    parts.append(_checkpoint_table(model))
    if model.aliases:
        parts.append(_alias_table(model))
    if model.scores:
        parts.append(_score_table(model))
    parts.append(sources_table(model.sources))
    later = f"{left_out} build{'' if left_out == 1 else 's'} published later left out" if left_out else None
    return Document(clean(model.name), tuple(parts), tuple(clean(note) for note in (later, model.note) if note))


@frozen
class KvRow:
    """What one sequence keeps in a KV dtype: bytes for each token of context, and bytes whatever the length."""

    bytes_per_token: int | float
    fixed_bytes_per_sequence: int


def kv_by_dtype(model: Model) -> dict[str, KvRow]:
    """KV bytes by dtype, by the architecture's general formula at its longest context; nothing where it is not published."""
    architecture = model.architecture
    if architecture is None:
        return {}
    found = {}
    for name in SHOWN_DTYPES:
        try:
            parts = sequence_state(architecture, architecture.max_context_tokens, kv_dtype(name), Share())
        except UnknownFact:  # it depends on the input (images), and the table of layer groups says so
            continue
        per_token = sum((part.per_token for part in parts), start=Fraction(0))
        whole = int(per_token) if per_token.denominator == 1 else float(per_token)
        found[name] = KvRow(whole, sum(part.bytes for part in parts if part.per_token == 0))
    return found


def _parameters(model: Model) -> str:
    counts = model.parameters
    words = [f"{counts.total.value:,} in all" if counts.total else "not counted"]
    if counts.active:
        words.append(f"{counts.active.value:,} active per token")
    if counts.active_prefill:
        words.append(f"{counts.active_prefill.value:,} active while reading input")
    if counts.stored:
        words.append(f"{counts.stored.value:,} stored")
    return ", ".join(words)


def _architecture_lines(model: Model, architecture: Architecture) -> Iterator[Line]:
    yield Line("family", clean(architecture.family))
    yield Line("context", f"{architecture.max_context_tokens:,} tokens at most")
    for name, row in kv_by_dtype(model).items():
        fixed = row.fixed_bytes_per_sequence
        tail = f", and {fixed:,} B per sequence (windows, recurrent state)" if fixed else ""
        yield Line(f"KV in {name}", f"{row.bytes_per_token:,.10g} B per token{tail}")


def _state_table(architecture: Architecture) -> Table:
    groups = [*((group, "") for group in architecture.groups), *((group, ", of the draft layers") for group in architecture.draft_groups)]
    rows = tuple((cell(f"{group.kind}{whose}"), cell(group.layers), cell(kept(group))) for group, whose in groups)
    columns = (Column("layer group"), Column("layers", right=True), Column("what each layer keeps", wrap=True))
    return Table("layer_groups", "Layer groups", columns, rows)


def _checkpoint_table(model: Model) -> Table:
    columns = (
        Column("checkpoint"),
        Column("format", rank=2),
        Column("GiB", right=True, rank=1),
        Column("parts", wrap=True, rank=4, below=True),
        Column("KLD", right=True, rank=4),
        Column("status"),
        Column("from", rank=3),
        Column("hub id", rank=5),
    )
    rows = []
    for build in model.checkpoints:
        event = build.event_on(date.max) or build.events[0]
        parts = ", ".join(f"{part.kind} {format_gib(part.value)}" for part in build.components) if len(build.components) > 1 else None
        rows.append(
            (
                cell(build.id),
                cell(build.format),
                cell(f"{gib(build.total_bytes):,.2f}" if build.total_bytes is not None else None),
                cell(parts),
                cell(build.divergence.value if build.divergence else None),
                cell(event.status.value, "bad" if event.status == "withdrawn" else "plain"),
                cell(event.since),
                cell(build.hub_id),
            )
        )
    return Table("checkpoints", "Checkpoints", columns, tuple(rows), empty="no build is known")


def _alias_table(model: Model) -> Table:
    rows = tuple(
        (cell(alias.name), cell(alias.status.value), cell(alias.since), cell(alias.until), cell(alias.note)) for alias in model.aliases
    )
    columns = (Column("name"), Column("status"), Column("from"), Column("until", rank=2), Column("note", wrap=True, rank=1))
    return Table("aliases", "Other names", columns, rows)


def _score_table(model: Model) -> Table:
    columns = (Column("index", wrap=True), Column("version", rank=1), Column("score", right=True), Column("date"), Column("of", rank=2))
    rows = tuple((cell(score.index), cell(score.version), cell(score.score), cell(score.date), cell(score.of)) for score in model.scores)
    return Table("scores", "Quality scores (compare only within one version)", columns, rows)
