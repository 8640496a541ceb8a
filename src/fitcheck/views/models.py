"""How models are listed and shown: architecture, KV bytes per token, checkpoints, names, scores, sources."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from fitcheck.catalogue.models import Model
from fitcheck.fit.state import Share, kv_dtype, sequence_state
from fitcheck.units import format_gib, gib
from fitcheck.views.document import Column, Document, Line, Table, cell
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
            cell(_billions(model.parameters.total.value)),
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


def model_document(model: Model, day: date) -> Document:
    """One model: architecture, KV bytes per token, checkpoints, names, scores, sources."""
    facts = [
        Line("id", model.id),
        Line("developer", model.developer),
        Line("license", model.license),
        Line("released", model.released.value),
        Line("parameters", _parameters(model)),
    ]
    if model.hub_id:
        facts.insert(1, Line("hub", model.hub_id))
    parts: list[Line | Table] = list(facts)
    if model.architecture is None:
        parts.append(Line("architecture", "not published: the KV cache is unknown"))
    else:
        parts += [*_architecture_lines(model), _state_table(model)]
    parts.append(_checkpoint_table(model, day))
    if model.aliases:
        parts.append(_alias_table(model))
    if model.scores:
        parts.append(_score_table(model))
    parts.append(sources_table(model.sources))
    return Document(model.name, tuple(parts), (model.note,) if model.note else ())


def _parameters(model: Model) -> str:
    counts = model.parameters
    words = [f"{counts.total.value:,} in all"]
    if counts.active:
        words.append(f"{counts.active.value:,} active per token")
    if counts.active_prefill:
        words.append(f"{counts.active_prefill.value:,} active while reading input")
    if counts.stored:
        words.append(f"{counts.stored.value:,} stored")
    return ", ".join(words)


def _architecture_lines(model: Model) -> Iterator[Line]:
    architecture = model.architecture
    if architecture is None:
        return
    yield Line("family", architecture.family)
    yield Line("context", f"{architecture.max_context_tokens:,} tokens at most")
    for name in SHOWN_DTYPES:
        parts = sequence_state(architecture, architecture.max_context_tokens, kv_dtype(name), Share())
        per_token = float(sum(part.per_token for part in parts))
        fixed = sum(part.bytes for part in parts if part.per_token == 0)
        tail = f", and {fixed:,} B per sequence (windows, recurrent state)" if fixed else ""
        yield Line(f"KV in {name}", f"{per_token:,.10g} B per token{tail}")


def _state_table(model: Model) -> Table:
    architecture = model.architecture
    tokens = architecture.max_context_tokens if architecture else 0
    rows = []
    for group in architecture.groups if architecture else ():
        fields = ", ".join(f"{name} {value}" for name, value in group.model_dump().items() if name not in ("kind", "layers"))
        rows.append((cell(group.kind), cell(group.layers), cell(fields or None)))
    columns = (Column("layer group"), Column("layers", right=True), Column("what it keeps", wrap=True))
    return Table("layer_groups", f"Layer groups (context up to {tokens:,} tokens)", columns, tuple(rows))


def _checkpoint_table(model: Model, day: date) -> Table:
    columns = (
        Column("checkpoint"),
        Column("format", rank=1),
        Column("GiB", right=True),
        Column("parts", wrap=True, rank=3),
        Column("KLD", right=True, rank=4),
        Column("status", rank=2),
        Column("from", rank=3),
        Column("hub id", rank=5),
    )
    rows = []
    for build in model.checkpoints:
        event = build.event_on(day) or build.events[0]
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
    return Table("checkpoints", "Checkpoints", columns, tuple(rows), empty="no checkpoint in the catalogue")


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
