"""Records as they were known on a day: what began later is left out, unless one of its sources had been read by then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from typing import Protocol, TypeVar

from fitcheck.catalogue.hardware import Cluster, Device, Price
from fitcheck.catalogue.models import Model
from fitcheck.catalogue.provenance import Source
from fitcheck.catalogue.ratecards import Rate
from fitcheck.catalogue.recipes import Recipe
from fitcheck.units import counted_from


class _Dated(Protocol):
    @property
    def source(self) -> tuple[str, ...]: ...


_Entry = TypeVar("_Entry", bound=_Dated)


def released_on(model: Model, day: date) -> bool:
    """Whether a model was out by that day."""
    return counted_from(model.released.value) <= day


def public_on(recipe: Recipe, day: date) -> bool:
    """Whether a recipe was public by that day."""
    return counted_from(recipe.date) <= day


def model_on(model: Model, day: date) -> Model:
    """The model with the builds, names and scores of that day; builds that were not out are left out."""
    builds = tuple(
        build.model_copy(update={"events": tuple(event for event in build.events if counted_from(event.since) <= day)})
        for build in model.checkpoints
        if build.event_on(day) is not None
    )
    aliases = tuple(alias for alias in model.aliases if counted_from(alias.since) <= day)
    scores = tuple(score for score in model.scores if counted_from(score.date) <= day)
    return model.model_copy(update={"checkpoints": builds, "aliases": aliases, "scores": scores})


def device_on(device: Device, day: date) -> Device:
    """The device with the prices that were known on that day."""
    return device.model_copy(update={"prices": _prices_on(device.prices, device.sources, day)})


def cluster_on(cluster: Cluster, day: date) -> Cluster:
    """The cluster with the prices of what joins it that were known on that day."""
    return cluster.model_copy(update={"extras": _prices_on(cluster.extras, cluster.sources, day)})


def recipe_on(recipe: Recipe, day: date) -> Recipe:
    """The recipe with what had happened to it by that day."""
    return recipe.model_copy(update={"events": tuple(event for event in recipe.events if counted_from(event.since) <= day)})


def rate_on(rate: Rate, day: date) -> Rate | None:
    """The rate with the prices and models that were known on that day, None where no price was."""
    end = datetime.combine(day, time.max, UTC)
    periods = _known(((period, period.since is not None and period.since <= end) for period in rate.periods), rate.sources, day)
    serves = _known(((entry, entry.since is None or entry.since <= end) for entry in rate.serves), rate.sources, day)
    return rate.model_copy(update={"periods": periods, "serves": serves}) if periods else None


def in_force(prices: Iterable[Price], day: date) -> list[Price]:
    """The prices that hold on a day, the latest to begin first; of one kind, currency and seller only that one."""
    begun = [price for price in prices if counted_from(price.since) <= day]
    latest: dict[tuple[str, str, str | None], Price] = {}
    for price in sorted(begun, key=lambda price: counted_from(price.since)):
        latest[price.kind, price.currency, price.seller] = price
    held = [price for price in latest.values() if price.until is None or day < counted_from(price.until)]
    return sorted(held, key=lambda price: -counted_from(price.since).toordinal())


def _prices_on(prices: tuple[Price, ...], sources: Mapping[str, Source], day: date) -> tuple[Price, ...]:
    return _known(((price, counted_from(price.since) <= day) for price in prices), sources, day)


def _known(entries: Iterable[tuple[_Entry, bool]], sources: Mapping[str, Source], day: date) -> tuple[_Entry, ...]:
    """Entries that have begun, and those to come that somebody had read of."""
    return tuple(entry for entry, begun in entries if begun or any(sources[key].read <= day for key in entry.source if key in sources))
