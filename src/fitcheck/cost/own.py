"""What a machine of one's own costs in a month, and what it can do in it.

    capital  = purchase x (1 - residual share) / months of life
    energy   = (busy watts x busy hours + idle watts x idle hours) / 1000 x price of a kWh
    busy hours = (output tokens / decode speed + fresh input tokens / prefill speed) / 3600

Input read from the machine's own cache takes no time here. A month is 730 hours (365 x 24 / 12), as clouds bill it: 36 months are
3 x 365 days.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from fitcheck.cost.tariff import MTOK
from fitcheck.cost.workload import Workload
from fitcheck.frozen import frozen

HOURS_PER_MONTH = Decimal(730)
SECONDS_PER_HOUR = 3600
WATTS_PER_KILOWATT = 1000


@frozen
class OwnPlan:
    """A machine and the terms it is owned on; watts and speeds are those of the whole cluster.

    `idle_watts` is None where nobody measured them: idle hours are then not charged, which favours owning. `prefill_tok_per_s` is None
    where it is not known: input then takes no time, which favours owning too. `hours_per_month` are those in which the work arrives.
    """

    purchase_usd: Decimal
    life_months: int
    residual_share: Decimal
    busy_watts: Decimal
    idle_watts: Decimal | None
    usd_per_kwh: Decimal
    decode_tok_per_s: Decimal
    prefill_tok_per_s: Decimal | None
    hours_per_month: Decimal = HOURS_PER_MONTH


@frozen
class OwnMonth:
    """One month of owning for some work, in hours, kWh and USD. `utilisation` above 1 is more than the machine can do."""

    busy_hours: Decimal
    idle_hours: Decimal
    utilisation: Decimal
    busy_kwh: Decimal
    idle_kwh: Decimal
    capital_usd: Decimal
    energy_usd: Decimal

    @property
    def total_usd(self) -> Decimal:
        """Capital and energy together."""
        return self.capital_usd + self.energy_usd


def capital_per_month(plan: OwnPlan) -> Decimal:
    """USD a month: what the purchase loses over its life, in equal parts."""
    return plan.purchase_usd * (1 - plan.residual_share) / plan.life_months


def hours_for(work: Workload, decode_tok_per_s: Decimal, prefill_tok_per_s: Decimal | None) -> Decimal:
    """Hours that a month's work takes at these speeds."""
    seconds = work.output_tokens / decode_tok_per_s
    if prefill_tok_per_s is not None:
        seconds += work.fresh_input_tokens / prefill_tok_per_s
    return seconds / SECONDS_PER_HOUR


def month_of(plan: OwnPlan, work: Workload) -> OwnMonth:
    """A month of that work; of more than the machine can do it does what it can, and is busy in all its hours."""
    needed = hours_for(work, plan.decode_tok_per_s, plan.prefill_tok_per_s)
    return _month(plan, busy_hours=min(needed, plan.hours_per_month), utilisation=needed / plan.hours_per_month)


def full_month(plan: OwnPlan) -> OwnMonth:
    """A month of being busy in all the hours in which work arrives."""
    return _month(plan, busy_hours=plan.hours_per_month, utilisation=Decimal(1))


def _month(plan: OwnPlan, *, busy_hours: Decimal, utilisation: Decimal) -> OwnMonth:
    idle_hours = HOURS_PER_MONTH - busy_hours
    busy_kwh = plan.busy_watts * busy_hours / WATTS_PER_KILOWATT
    idle_kwh = (plan.idle_watts or Decimal(0)) * idle_hours / WATTS_PER_KILOWATT
    return OwnMonth(
        busy_hours=busy_hours,
        idle_hours=idle_hours,
        utilisation=utilisation,
        busy_kwh=busy_kwh,
        idle_kwh=idle_kwh,
        capital_usd=capital_per_month(plan),
        energy_usd=(busy_kwh + idle_kwh) * plan.usd_per_kwh,
    )


def capacity_output_tokens(plan: OwnPlan, work: Workload) -> int:
    """The most output tokens of a month at this mix, rounded down: busy in all its hours, reading the fresh input that goes with them."""
    seconds = plan.hours_per_month * SECONDS_PER_HOUR
    if plan.prefill_tok_per_s is None or work.output_tokens == 0:
        tokens = seconds * plan.decode_tok_per_s if work.output_tokens else Decimal(0)
    else:
        reading = work.fresh_input_tokens * plan.decode_tok_per_s
        writing = work.output_tokens * plan.prefill_tok_per_s
        tokens = seconds * plan.decode_tok_per_s * writing / (writing + reading)
    return int(tokens.to_integral_value(ROUND_FLOOR))


def per_mtok(usd: Decimal, output_tokens: int) -> Decimal | None:
    """USD per million output tokens; None where none are written."""
    return usd * MTOK / output_tokens if output_tokens else None


def break_even_output_tokens(plan: OwnPlan, work: Workload, rent_usd: Decimal) -> int | None:
    """The monthly output from which on owning costs no more than renting, at this mix; None where it never does.

    Renting costs in proportion to the volume. Owning costs capital and idle power in any case, and for each token what being busy takes
    beyond being idle. The volume may be more than the machine can do.
    """
    if work.output_tokens == 0:
        return None
    idle_watts = plan.idle_watts or Decimal(0)
    standing = capital_per_month(plan) + idle_watts * HOURS_PER_MONTH / WATTS_PER_KILOWATT * plan.usd_per_kwh
    busy_hours = hours_for(work, plan.decode_tok_per_s, plan.prefill_tok_per_s)
    running = (plan.busy_watts - idle_watts) * busy_hours / WATTS_PER_KILOWATT * plan.usd_per_kwh
    if rent_usd <= running:
        return None
    return int((standing * work.output_tokens / (rent_usd - running)).to_integral_value(ROUND_CEILING))
