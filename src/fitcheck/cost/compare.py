"""From a case to its report: every card, owning, the break-even, the verdict and what moves it.

The verdict compares the same model on both sides. Owning is judged at the highest throughput its recipe measured, which favours it: where
renting wins even so, it wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal

from fitcheck.cost.capacity import Speeds, Throughput, find_speeds
from fitcheck.cost.case import CostCase
from fitcheck.cost.caveats import assumptions, oldest_figures, warnings
from fitcheck.cost.explain import break_even_words, own_steps, reason, rent_words, rented_words, split_words, workload_words
from fitcheck.cost.fits import does_not_fit, fits_words, model_fits
from fitcheck.cost.machine import Purchase, hire, purchase, watts
from fitcheck.cost.money import format_number, tidy
from fitcheck.cost.moves import Side, break_even, choose, moves
from fitcheck.cost.own import HOURS_PER_MONTH, OwnPlan, capacity_output_tokens, full_month, hours_for, per_mtok
from fitcheck.cost.rent import Rents, rents, tidied
from fitcheck.cost.report import (
    BreakEven,
    Choice,
    ClusterLine,
    CostReport,
    Figure,
    FitLine,
    Hire,
    LoadRow,
    OwnReport,
    Pace,
    RentOption,
    Step,
)
from fitcheck.cost.workload import Workload, from_profile
from fitcheck.errors import UsageError
from fitcheck.fit.report import Verdict
from fitcheck.fit.sources import oldest
from fitcheck.units import format_gib

_NO_BREAK_EVEN = BreakEven(None, reachable=False)


def cost(case: CostCase) -> CostReport:
    """Answer the case: rent or own. Raises `UsageError` where an option cannot be honoured (a recipe of another cluster or model)."""
    speeds = find_speeds(case)
    names = tuple(dict.fromkeys([model.id for model in case.models] + ([speeds.model.id] if speeds else [])))
    found = rents(case, frozenset(names))
    bought = purchase(case)
    fits = model_fits(case, speeds.model, speeds.ran) if speeds else None
    side, missing = _side(case, speeds, bought, found, fits)
    own = _own(case, speeds, bought, side, fits) if speeds and bought and side and fits else None
    cheapest = found.cheapest(speeds.model.id) if speeds else next(iter(found.usd), None)
    choice = choose(side) if side else Choice.RENT if cheapest else Choice.NEITHER
    even = break_even(side) if side else _NO_BREAK_EVEN
    why = reason(choice, side, cheapest)
    if side and fits and not side.fits:
        why += f"; the machine does not hold {fits.checkpoint or names[0]} ({format_gib(fits.short_by_bytes or 0)} short on each device)"
    elif side and speeds:
        why += _for_one_user(side, choice, speeds)
    judged = f"{choice.value}: {why}" if side else f"{choice.value} (owning not judged: {missing}): {why}"
    known = tuple(warnings(case, found, own, bought.not_counted if bought and own else ()))
    seen = _oldest(case, found, own)
    return CostReport(
        workload=case.workload,
        priced_at=case.priced_at,
        load=LoadRow("offpeak" if case.offpeak else "schedule" if case.load else "even", case.schedule, tidy(case.load_hours_per_week)),
        models=names,
        rent=tuple(tidied(option) for option in found.usd),
        rent_other_currencies=tuple(tidied(option) for option in found.others),
        not_priced=found.not_priced,
        own=own,
        own_missing=missing,
        hire=_hire(case, speeds),
        same_model=speeds.model.id if speeds else None,
        cheapest_rent=cheapest.rate if cheapest else None,
        break_even=even,
        verdict=choice,
        reason=why,
        steps=(*_steps(case, found, own, side, cheapest), Step("verdict", judged)),
        moves=moves(side, speeds.one_user.tok_per_s, _splits(case)) if side and speeds else (),
        assumptions=tuple(assumptions(case, found, own)),
        oldest_source=seen,
        oldest_source_age_days=(case.as_of - seen).days if seen and seen <= case.as_of else None,
        warnings=(*((f"owning was not judged: {missing}",) if missing else ()), *(speeds.warnings if speeds else ()), *known),
    )


def _for_one_user(side: Side, choice: Choice, speeds: Speeds) -> str:
    """What the verdict would be at the speed for one user, where that is another."""
    slower = choose(replace(side, plan=replace(side.plan, decode_tok_per_s=speeds.one_user.tok_per_s)))
    if slower is choice:
        return ""
    return f"; with one user at a time ({format_number(speeds.one_user.tok_per_s)} tok/s) it would be {slower.value}"


def _splits(case: CostCase) -> dict[str, Workload]:
    """The same volume by every other profile."""
    splits = {profile.id: from_profile(case.workload.total_tokens, profile) for profile in case.profiles}
    return {name: work for name, work in splits.items() if work.split_from != case.workload.split_from}


def _side(
    case: CostCase, speeds: Speeds | None, bought: Purchase | None, found: Rents, fits: FitLine | None
) -> tuple[Side | None, str | None]:
    """Both sides of the comparison at the highest throughput, or what is not known."""
    label = case.cluster.label
    if speeds is None:
        names = ", ".join(model.id for model in case.models)
        unfit = does_not_fit(case)
        if unfit is not None:
            return None, unfit
        options = f"--speed gives one{_also_missing(case, priced=bought is not None)}"
        return None, f"by {case.as_of.isoformat()} no recipe in the catalogue gives a speed for {names} on {label} ({options})"
    if bought is None:
        device, day = case.cluster.device.id, case.as_of.isoformat()
        return None, f"no price in USD is known for {device} on {day} (--price gives it for all {label}{_also_missing(case, priced=True)})"
    busy, idle = watts(case, "busy"), watts(case, "idle")
    if busy is None:
        return None, f"nobody has published what {label} draws when busy (--watts gives it)"
    if idle is not None and idle.given and idle.value > busy.value:
        raise UsageError(
            f"--idle-watts: {idle.value:f} W idle is more than {busy.value:f} W busy", hint="write --idle-watts with less, or give --watts"
        )
    plan = OwnPlan(
        purchase_usd=bought.figure.value,
        life_months=int(case.terms.life_months.value),
        residual_share=case.terms.residual_share.value,
        busy_watts=busy.value,
        idle_watts=min(idle.value, busy.value) if idle else None,
        usd_per_kwh=case.terms.usd_per_kwh.value,
        decode_tok_per_s=speeds.most.tok_per_s,
        prefill_tok_per_s=speeds.prefill.value if speeds.prefill else None,
        hours_per_month=case.usable_hours_per_month,
    )
    cards = tuple(option.billed_per_mtok for option in found.usd if option.model == speeds.model.id)
    return Side(plan, case.workload, cards, _own_cached(case), fits is None or fits.verdict is not Verdict.NO), None


def _also_missing(case: CostCase, *, priced: bool) -> str:
    """Further options without which owning this cluster cannot be judged, for a message that already names one."""
    price = [] if priced else ["--price what it costs"]
    power = [] if watts(case, "busy") is not None else ["--watts what it draws"]
    return "".join(f", {option}" for option in (*price, *power))


def _own_cached(case: CostCase) -> Decimal:
    return Decimal(1) if case.overrides.own_cached is None else case.overrides.own_cached


def _own(case: CostCase, speeds: Speeds, bought: Purchase, side: Side, fits: FitLine) -> OwnReport:
    plan, spec = side.plan, case.cluster
    month, full = side.month, full_month(plan)
    ways = dict.fromkeys((speeds.one_user, speeds.most))
    paces = tuple(_pace(replace(side, plan=replace(plan, decode_tok_per_s=way.tok_per_s)), way) for way in ways)
    busy, idle = watts(case, "busy"), watts(case, "idle")
    assert busy is not None
    used = paces[-1]
    return OwnReport(
        model=speeds.model.id,
        cluster=ClusterLine(
            device=spec.device.id,
            device_name=spec.device.name,
            count=spec.count,
            named=spec.named.id if spec.named else None,
            joined_by=spec.named.joined_by if spec.named else None,
        ),
        fits=fits,
        recipe=speeds.recipe,
        own_cached_share=side.own_cached,
        purchase=bought.figure,
        life_months=case.terms.life_months,
        residual_share=case.terms.residual_share,
        usd_per_kwh=case.terms.usd_per_kwh,
        busy_watts=busy,
        idle_watts=_capped(idle, busy) if idle else None,
        prefill_tok_per_s=speeds.prefill,
        hours_per_month=HOURS_PER_MONTH,
        usable_hours_per_month=tidy(plan.hours_per_month),
        paces=paces,
        busy_hours=tidy(month.busy_hours),
        busy_kwh=tidy(month.busy_kwh),
        idle_kwh=tidy(month.idle_kwh),
        capital_usd_per_month=tidy(month.capital_usd),
        energy_usd_per_month=tidy(month.energy_usd),
        usd_per_month=tidy(month.total_usd),
        full_energy_usd_per_month=tidy(full.energy_usd),
        full_usd_per_month=tidy(full.total_usd),
        capacity_output_tokens_per_month=used.capacity_output_tokens_per_month,
        utilisation=used.utilisation,
        usd_per_mtok_output=used.usd_per_mtok_output,
        usd_per_mtok_output_busy=used.usd_per_mtok_output_busy,
    )


def _capped(idle: Figure, busy: Figure) -> Figure:
    """Idle watts, no more than the busy ones: a machine at work draws at least what it draws at rest."""
    return idle if idle.value <= busy.value else replace(idle, value=busy.value, words=f"no more than busy (known: {idle.words})")


def _pace(side: Side, way: Throughput) -> Pace:
    month, capacity = side.month, side.capacity
    done = side.work.output_tokens if month.utilisation <= 1 else capacity
    each, busy = per_mtok(month.total_usd, done), per_mtok(full_month(side.plan).total_usd, capacity)
    alone = capacity_output_tokens(replace(side.plan, prefill_tok_per_s=None), side.work)
    only = per_mtok(full_month(side.plan).total_usd, alone)
    return Pace(
        label=way.label,
        users=way.users,
        decode_tok_per_s=way.tok_per_s,
        capacity_output_tokens_per_month=capacity,
        utilisation=round(float(month.utilisation), 6),
        usd_per_month=tidy(month.total_usd),
        usd_per_mtok_output=None if each is None else tidy(each),
        usd_per_mtok_output_busy=None if busy is None else tidy(busy),
        output_only_tokens_per_month=alone,
        usd_per_mtok_output_only=None if only is None else tidy(only),
        break_even=break_even(side),
    )


def _hire(case: CostCase, speeds: Speeds | None) -> Hire | None:
    if speeds is None:
        return hire(case, None, HOURS_PER_MONTH)
    prefill, work = speeds.prefill.value if speeds.prefill else None, case.workload.with_cache_hits(_own_cached(case))
    return hire(case, hours_for(work, speeds.most.tok_per_s, prefill), HOURS_PER_MONTH)


def _steps(case: CostCase, found: Rents, own: OwnReport | None, side: Side | None, cheapest: RentOption | None) -> Iterator[Step]:
    yield Step("workload", workload_words(case.workload))
    yield Step("split", split_words(case.workload))
    if found.usd and found.usd[0] is not cheapest:
        yield Step("cheapest card", f"{rent_words(found.usd[0], case.workload, found.as_cheap(found.usd[0]))}, of another model")
    if cheapest is not None:
        yield Step("rent", rent_words(cheapest, case.workload, found.as_cheap(cheapest)))
    if own is not None and side is not None:
        yield Step("fit", f"{own.model}: {fits_words(own.fits, case.cluster.label)}")
        yield from own_steps(own, side)
        if cheapest is not None:
            yield Step("rented", rented_words(cheapest, case.workload))
            yield Step("break-even", break_even_words(break_even(side), own, case.workload))


def _oldest(case: CostCase, found: Rents, own: OwnReport | None) -> date | None:
    cited = [source for option in (*found.usd, *found.others) for source in option.sources]
    cited += [source for figure in oldest_figures(own) for source in figure.sources]
    return oldest([*cited, *case.workload.sources])
