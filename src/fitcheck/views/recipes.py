"""How recipes are listed and shown: settings, speculation, speeds, protocol, where it was published."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from fitcheck.catalogue.provenance import Status, status_on
from fitcheck.catalogue.recipes import Recipe, Speed
from fitcheck.units import format_gib
from fitcheck.views.document import Cell, Column, Document, Line, Table, cell, clean
from fitcheck.views.records import plain_number, sources_table


def recipes_list(recipes: tuple[Recipe, ...], day: date) -> Document:
    """All recipes, one to a row; one that was withdrawn says so at any width."""
    columns = (
        Column("recipe"),
        Column("devices", rank=2),
        Column("checkpoint", rank=3),
        Column("engine", rank=4),
        Column("ctx", right=True, rank=5),
        Column("decode tok/s", right=True, rank=1),
        Column("status"),
        Column("date", rank=2),
    )
    rows = tuple(_row(recipe, day) for recipe in recipes)
    return Document(
        f"{len(recipes)} recipes", (Table("recipes", "Recipes", columns, rows),), ("'fitcheck recipes ID' shows one with its source",)
    )


def _row(recipe: Recipe, day: date) -> tuple[Cell, ...]:
    lead = next((speed for speed in recipe.speeds if speed.headline), None)
    return (
        cell(recipe.id),
        cell(f"{recipe.count}x {recipe.device}"),
        cell(recipe.checkpoint or recipe.checkpoint_as_named),
        cell(recipe.engine),
        cell(f"{recipe.setup.context_tokens:,}" if recipe.setup.context_tokens else None),
        cell(_span(lead) if lead else None),
        cell("withdrawn", "bad") if _withdrawn(recipe, day) else cell("stands"),
        cell(recipe.date),
    )


def _withdrawn(recipe: Recipe, day: date) -> bool:
    event = status_on(recipe.events, day)
    return event is not None and event.status is Status.WITHDRAWN


def _span(speed: Speed) -> str:
    low, high = plain_number(speed.low), plain_number(speed.high)
    return low if speed.low == speed.high else f"{low} to {high}"


def recipe_document(recipe: Recipe, day: date) -> Document:
    """One recipe: what ran on what, its settings and speeds, its protocol and source, and whether it still stands."""
    parts: list[Line | Table] = [
        Line(name, clean(text), "bad" if text.startswith("withdrawn") else "plain") for name, text in _facts(recipe, day)
    ]
    parts.append(_speeds(recipe))
    if recipe.protocol:
        parts.append(Line("protocol", clean(recipe.protocol)))
    parts.append(sources_table(recipe.sources))
    return Document(clean(recipe.id), tuple(parts), (clean(recipe.note),) if recipe.note else ())


def _facts(recipe: Recipe, day: date) -> Iterator[tuple[str, str]]:
    yield "status", _status(recipe, day)
    yield "model", recipe.model
    as_named = f' (there named "{recipe.checkpoint_as_named}")' if recipe.checkpoint_as_named else ""
    yield "checkpoint", f"{recipe.checkpoint or 'not told which'}{as_named}"
    yield "cluster", f"{recipe.count}x {recipe.device}"
    yield "engine", f"{recipe.engine}, {recipe.engine_version}" if recipe.engine_version else recipe.engine
    yield "settings", ", ".join(_settings(recipe)) or "none published"
    speculation = recipe.speculation
    if speculation is None:
        yield "speculation", "not told: a speed means little without it"
    else:
        drafts = f", {speculation.draft_tokens} draft tokens" if speculation.draft_tokens else ""
        yield "speculation", f"{speculation.method}{drafts}"
    if recipe.requires:
        yield "needs", f"{format_gib(recipe.requires.usable_bytes)} usable on each device: {recipe.requires.because}"
    yield "known by", f"{recipe.grade.value}, {recipe.trust} trust"
    source = recipe.sources.get(recipe.source)
    yield "link", source.url if source else recipe.source


def _status(recipe: Recipe, day: date) -> str:
    event = status_on(recipe.events, day)
    if event is None:
        return f"public since {recipe.date}"
    words = "withdrawn" if event.status is Status.WITHDRAWN else event.status.value
    return f"{words} since {event.since}{': ' + event.note if event.note else ''} ({', '.join(event.source)}); public since {recipe.date}"


def _settings(recipe: Recipe) -> Iterator[str]:
    setup = recipe.setup
    for name, size in (("TP", setup.tp), ("PP", setup.pp), ("EP", setup.ep), ("DCP", setup.dcp)):
        if size is not None:
            yield f"{name}{size}"
    if setup.context_tokens:
        yield f"context of {setup.context_tokens:,} tokens"
    if setup.kv_dtype:
        yield f"KV cache in {setup.kv_dtype}"
    if setup.memory_fraction is not None:
        yield f"{setup.memory_fraction:f} of visible memory"
    if setup.kv_bytes_per_device is not None:
        yield f"KV pool of {format_gib(setup.kv_bytes_per_device)} on each device"
    if setup.kv_tokens_printed:
        yield f"{setup.kv_tokens_printed:,} tokens of KV printed"


def _speeds(recipe: Recipe) -> Table:
    columns = (
        Column("phase"),
        Column("users", right=True),
        Column("tok/s", right=True),
        Column("counted", rank=1),
        Column("workload", wrap=True),
        Column("lead", rank=2),
    )
    rows = tuple(
        (
            cell(speed.phase),
            cell(f"{speed.users:,}"),
            cell(_span(speed), "strong" if speed.headline else "plain"),
            cell(None if speed.users == 1 else "all users together" if speed.per == "total" else "each user"),
            cell(speed.workload),
            cell("author's own" if speed.headline else None),
        )
        for speed in recipe.speeds
    )
    return Table("speeds", f"Measured speeds in tokens per second ({recipe.date})", columns, rows, empty="no speed was published")
