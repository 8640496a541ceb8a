"""What answers to `cost` and `rates price` hold: plain frozen records that views render and never complete."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Literal

from fitcheck.catalogue.provenance import Grade
from fitcheck.cost.workload import Workload
from fitcheck.fit.report import Assumption, CitedSource, Verdict
from fitcheck.frozen import frozen


class Choice(StrEnum):
    """How to get the work done. `hybrid` owns what the machine can do and rents the rest; `neither`: no way is known."""

    RENT = "rent"
    OWN = "own"
    HYBRID = "hybrid"
    NEITHER = "neither"


@frozen
class UnitPrices:
    """Money per million tokens, in the currency beside it. Absent is unknown, never free."""

    input: Decimal
    cached_input: Decimal | None
    output: Decimal


@frozen
class PriceReport:
    """The whole answer to one `rates price`. `usd` is None where the card is in another currency: nothing is converted."""

    rate: str
    name: str
    provider: str
    at: datetime
    usd: Decimal | None
    amount: Decimal
    currency: str
    fresh_input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    fresh_input_amount: Decimal
    cached_input_amount: Decimal
    output_amount: Decimal
    per_mtok: UnitPrices
    hour: Literal["peak", "offpeak", "flat"]
    tier_above_input_tokens: int | None
    price_since: datetime | None
    price_until: datetime | None
    promotion: bool
    served_by: str | None
    grade: Grade
    sources: tuple[CitedSource, ...]
    warnings: tuple[str, ...]


@frozen
class PerMonth:
    """What the work costs in a month at off-peak prices, at peak prices, and as it would be billed."""

    offpeak: Decimal
    peak: Decimal
    billed: Decimal


@frozen
class RentOption:
    """One rate card for the work. `usd_per_month` is None where it is in another currency.

    `peak_share` is the part of the load billed at peak prices, None for a card without hours.
    """

    provider: str
    rate: str
    name: str
    model: str
    currency: str
    usd_per_month: PerMonth | None
    amount_per_month: PerMonth
    billed_per_mtok: UnitPrices
    peak_share: Decimal | None
    cached_charged_as_fresh: bool
    tier_above_input_tokens: int | None
    promotion: bool
    price_until: datetime | None
    grade: Grade
    sources: tuple[CitedSource, ...]


@frozen
class Figure:
    """A number that the answer rests on: what it is, how it is known, and the option that changes it, or gave it."""

    value: Decimal
    words: str
    grade: Grade
    sources: tuple[CitedSource, ...]
    option: str
    given: bool = False


def given(value: Decimal, option: str, words: str = "as given") -> Figure:
    """A figure that the person gave with an option: nobody's to vouch for."""
    return Figure(value, words, Grade.ASSUMED, (), option, given=True)


@frozen
class ClusterLine:
    """The cluster as understood."""

    device: str
    device_name: str
    count: int
    named: str | None
    joined_by: str | None


@frozen
class RecipeLine:
    """The recipe that the machine's speed is taken from, and why this one."""

    id: str
    checkpoint: str | None
    date: str
    trust: str
    url: str
    because: str


@frozen
class FitLine:
    """Whether the machine holds the model at all, as `fit` says: of which build, at which context, and what it lacks on a device."""

    verdict: Verdict
    checkpoint: str | None
    engine: str | None
    context_tokens: int
    short_by_bytes: int | None
    reason: str


@frozen
class BreakEven:
    """The monthly output from which on owning costs no more than the cheapest card for the same model, at the workload's mix.

    None where it never does. `reachable` is whether the machine can produce as much.
    """

    output_tokens_per_month: int | None
    reachable: bool


@frozen
class Pace:
    """The machine at one of its measured speeds: what it can do, and what the work costs on it.

    The figures of `output_only` are of writing alone, with no input to read.
    """

    label: str
    users: int
    decode_tok_per_s: Decimal
    capacity_output_tokens_per_month: int
    utilisation: float
    usd_per_month: Decimal
    usd_per_mtok_output: Decimal | None
    usd_per_mtok_output_busy: Decimal | None
    output_only_tokens_per_month: int
    usd_per_mtok_output_only: Decimal | None
    break_even: BreakEven


@frozen
class OwnReport:
    """Owning, for the work asked. The figures on top are those of the pace that the verdict uses, the last and fastest of `paces`."""

    model: str
    cluster: ClusterLine
    fits: FitLine
    recipe: RecipeLine | None
    own_cached_share: Decimal
    purchase: Figure
    life_months: Figure
    residual_share: Figure
    usd_per_kwh: Figure
    busy_watts: Figure
    idle_watts: Figure | None
    prefill_tok_per_s: Figure | None
    hours_per_month: Decimal
    usable_hours_per_month: Decimal
    paces: tuple[Pace, ...]
    busy_hours: Decimal
    busy_kwh: Decimal
    idle_kwh: Decimal
    capital_usd_per_month: Decimal
    energy_usd_per_month: Decimal
    usd_per_month: Decimal
    full_energy_usd_per_month: Decimal
    full_usd_per_month: Decimal
    capacity_output_tokens_per_month: int
    utilisation: float
    usd_per_mtok_output: Decimal | None
    usd_per_mtok_output_busy: Decimal | None


@frozen
class Hire:
    """The same cluster rented by the hour: for the hours the work takes, and for the whole month.

    The hours are None where no speed is known; `clusters_needed` is how many it takes where one has too few hours.
    """

    seller: str | None
    usd_per_hour: Decimal
    busy_hours: Decimal | None
    usd_per_month_busy: Decimal | None
    clusters_needed: int | None
    usd_per_month_always: Decimal
    sources: tuple[CitedSource, ...]


@frozen
class Move:
    """What one changed assumption does to the answer."""

    change: str
    usd_per_month: Decimal
    usd_per_mtok_output_busy: Decimal | None
    break_even: BreakEven
    verdict: Choice


@frozen
class Step:
    """One line of the arithmetic."""

    name: str
    text: str


@frozen
class LoadRow:
    """When the work is done: `billing` even round the clock, all off-peak, or by a schedule."""

    billing: Literal["even", "offpeak", "schedule"]
    schedule: str | None
    hours_per_week: Decimal


@frozen
class NotPriced:
    """A card of one of the models whose price is not known yet on the day, and from which day it is."""

    rate: str
    price_known_from: date


@frozen
class CostReport:
    """The whole answer to one `cost`."""

    workload: Workload
    priced_at: datetime
    load: LoadRow
    models: tuple[str, ...]
    rent: tuple[RentOption, ...]
    rent_other_currencies: tuple[RentOption, ...]
    not_priced: tuple[NotPriced, ...]
    own: OwnReport | None
    own_missing: str | None
    hire: Hire | None
    same_model: str | None
    cheapest_rent: str | None
    break_even: BreakEven
    verdict: Choice
    reason: str
    steps: tuple[Step, ...]
    moves: tuple[Move, ...]
    assumptions: tuple[Assumption, ...]
    oldest_source: date | None
    oldest_source_age_days: int | None
    warnings: tuple[str, ...]
