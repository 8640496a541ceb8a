"""How devices, named clusters and recipes are listed."""

from __future__ import annotations

from fitcheck.catalogue.hardware import Cluster, Device
from fitcheck.catalogue.recipes import Recipe
from fitcheck.units import gib
from fitcheck.views.document import Column, Document, Table, cell


def hardware_list(devices: tuple[Device, ...], clusters: tuple[Cluster, ...]) -> Document:
    """All devices and named clusters."""
    columns = (
        Column("device"),
        Column("names", rank=2, wrap=True),
        Column("sold", right=True, rank=1),
        Column("visible GiB", right=True),
        Column("GB/s", right=True, rank=2),
        Column("price", right=True, rank=3),
    )
    rows = tuple(
        (
            cell(device.id),
            cell(", ".join(device.aliases) or None),
            cell(device.memory.sold.printed or device.memory.sold.value),
            cell(f"{gib(device.memory.visible[0].value):,.2f}"),
            cell(_bandwidth(device)),
            cell(_latest_price(device)),
        )
        for device in devices
    )
    named = tuple((cell(item.id), cell(f"{item.count}x {item.device}"), cell(item.joined_by)) for item in clusters)
    tables = (
        Table("devices", "Devices", columns, rows),
        Table("clusters", "Named clusters", (Column("cluster"), Column("devices"), Column("joined by", wrap=True, rank=1)), named),
    )
    return Document(f"{len(devices)} devices, {len(clusters)} clusters", tables, ("'fitcheck hardware ID' shows one with its sources",))


def _bandwidth(device: Device) -> str | None:
    figure = device.memory.bandwidth_bytes_per_s
    return f"{figure.value / 10**9:,.0f}" if figure else None


def _latest_price(device: Device) -> str | None:
    listed = [price for price in device.prices if price.kind in ("list", "street")]
    if not listed:
        return None
    latest = max(listed, key=lambda price: price.since)
    return f"{latest.amount:,} {latest.currency}"


def recipes_list(recipes: tuple[Recipe, ...]) -> Document:
    """All recipes, one to a row."""
    columns = (
        Column("recipe"),
        Column("devices", rank=2),
        Column("checkpoint", rank=3),
        Column("engine", rank=4),
        Column("ctx", right=True, rank=5),
        Column("decode tok/s", right=True, rank=1),
        Column("date", rank=2),
    )
    rows = tuple(
        (
            cell(recipe.id),
            cell(f"{recipe.count}x {recipe.device}"),
            cell(recipe.checkpoint or recipe.checkpoint_as_named),
            cell(recipe.engine),
            cell(f"{recipe.setup.context_tokens:,}" if recipe.setup.context_tokens else None),
            cell(_headline(recipe)),
            cell(recipe.date),
        )
        for recipe in recipes
    )
    return Document(
        f"{len(recipes)} recipes", (Table("recipes", "Recipes", columns, rows),), ("'fitcheck recipes ID' shows one with its source",)
    )


def _headline(recipe: Recipe) -> str | None:
    lead = next((speed for speed in recipe.speeds if speed.headline), None)
    if lead is None:
        return None
    return format(lead.low, "f") if lead.low == lead.high else f"{lead.low:f}-{lead.high:f}"
