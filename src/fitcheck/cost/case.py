"""The question of `cost`, with everything needed to answer it: records in, no look-ups after."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.lookup import ClusterSpec
from fitcheck.catalogue.models import Model
from fitcheck.catalogue.ratecards import Profile
from fitcheck.catalogue.recipes import Recipe
from fitcheck.cost.hours import HOURS_PER_WEEK, Hours, divide
from fitcheck.cost.own import HOURS_PER_MONTH
from fitcheck.cost.report import Figure
from fitcheck.cost.tariff import Tariff, Tokens
from fitcheck.cost.workload import Workload
from fitcheck.frozen import frozen


@frozen
class Terms:
    """The terms of owning; what was not given is a default of the catalogue."""

    life_months: Figure
    residual_share: Figure
    usd_per_kwh: Figure


@frozen
class Overrides:
    """What the person knows better than the catalogue, for the whole cluster. None: take the catalogue's."""

    purchase_usd: Decimal | None = None
    busy_watts: Decimal | None = None
    idle_watts: Decimal | None = None
    decode_tok_per_s: Decimal | None = None
    prefill_tok_per_s: Decimal | None = None
    recipe: Recipe | None = None
    own_cached: Decimal | None = None


def hours_per_week(load: Hours, day: date) -> Decimal:
    """Hours of a load in the week of a day."""
    return Decimal(int(divide(load, None, day)[1].total_seconds())) / 3600


@frozen
class CostCase:
    """One `cost` question.

    `models` are those asked, or the default ones; `known_models` also those of `recipes`, by id. `original` is the device that the
    cluster's device is a variant of. `load` is None for work round the clock. `recipes` are those for just this cluster, `platform_recipes`
    those on any number of its devices. `request` is the typical request that sets the split, where one was given.
    """

    as_of: date
    workload: Workload
    models: tuple[Model, ...]
    models_asked: bool
    known_models: dict[str, Model]
    tariffs: tuple[Tariff, ...]
    recipes: tuple[Recipe, ...]
    cluster: ClusterSpec
    original: Device | None
    terms: Terms
    platform_recipes: tuple[Recipe, ...] = ()
    engines: tuple[Engine, ...] = ()
    profiles: tuple[Profile, ...] = ()
    request: Tokens | None = None
    overrides: Overrides = Overrides()
    load: Hours | None = None
    schedule: str | None = None
    offpeak: bool = False

    @property
    def priced_at(self) -> datetime:
        """The instant whose prices count: the last minute of the day in UTC, so that a price that began on it is in force."""
        return datetime.combine(self.as_of, time(23, 59), UTC)

    @property
    def load_hours_per_week(self) -> Decimal:
        """Hours of the week in which the work arrives, on the clocks of the week of `as_of`."""
        return HOURS_PER_WEEK if self.load is None else hours_per_week(self.load, self.as_of)

    @property
    def usable_hours_per_month(self) -> Decimal:
        """Hours of a month in which the machine can work: those in which work arrives."""
        return min(HOURS_PER_MONTH, HOURS_PER_MONTH * self.load_hours_per_week / HOURS_PER_WEEK)
