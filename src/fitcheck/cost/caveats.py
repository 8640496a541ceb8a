"""What a cost answer takes for granted, each with the option that changes it, and what to be careful about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fitcheck.cost.case import CostCase
from fitcheck.cost.machine import stale_price
from fitcheck.cost.money import format_number, format_percent, format_usd
from fitcheck.cost.own import HOURS_PER_MONTH
from fitcheck.cost.rent import Rents
from fitcheck.cost.report import Figure, OwnReport
from fitcheck.cost.tariff import period_at
from fitcheck.fit.report import Assumption, Verdict

_SHOWN = 8


def assumptions(case: CostCase, found: Rents, own: OwnReport | None) -> Iterator[Assumption]:
    """What the answer takes for granted."""
    work = case.workload
    if case.cluster.origin is not None:
        yield from (Assumption(text, "--cluster") for text in case.cluster.origin.assumed)
    if work.sources:
        yield Assumption(f"the split of {work.split_from}, {work.grade.value}", "--profile, --input --output --cached")
    if case.load is None and not case.offpeak:
        yield Assumption("the load is even, round the clock", "--offpeak, --schedule")
    if any(option.peak_share is not None for option in found.usd):
        yield Assumption("hours of a usual week, without public holidays", None)
    if found.tiers_unread:
        yield Assumption(f"requests below the length at which the price rises: {_some(found.tiers_unread)}", "--input, --output")
    if own is not None:
        yield from _own_assumptions(case, own)


def _own_assumptions(case: CostCase, own: OwnReport) -> Iterator[Assumption]:
    if own.recipe is not None:
        recipe = f"the speed of recipe {own.recipe.id} ({own.recipe.date}): {own.recipe.because}"
        yield Assumption(recipe, "--recipe, --speed")
    if len(own.paces) > 1:
        fastest = own.paces[-1]
        speed = f"{format_number(fastest.decode_tok_per_s)} tok/s ({fastest.label})"
        yield Assumption(f"the verdict takes the highest speed, {speed}: this favours owning", "--speed")
    if not own.purchase.given:
        yield Assumption(f"the machine costs {format_usd(own.purchase.value)}: {own.purchase.words}, {own.purchase.grade.value}", "--price")
    if not own.life_months.given:
        yield Assumption(f"it lasts {own.life_months.value:f} months, {own.life_months.grade.value}", "--months")
    if not own.residual_share.given:
        share = format_percent(own.residual_share.value)
        yield Assumption(f"{share} of its price is left at the end, {own.residual_share.grade.value}", "--residual")
    if not own.usd_per_kwh.given:
        yield Assumption(f"electricity at ${own.usd_per_kwh.value:f} a kWh, {own.usd_per_kwh.grade.value}", "--electricity")
    for state, figure in (("busy", own.busy_watts), ("idle", own.idle_watts)):
        if figure is not None and not figure.given:
            yield Assumption(f"{format_number(figure.value)} W {state}: {figure.words}, {figure.grade.value}", figure.option)
    if own.recipe is None:
        yield Assumption(f"the machine runs {own.model} at the --speed given", "MODEL, --recipe")
    reading = own.prefill_tok_per_s
    if reading is None:
        why = "as nobody measured it" if own.recipe is not None else "as --speed was given without --prefill"
        yield Assumption(f"reading input takes the machine no time, {why}: this favours owning", "--prefill")
    elif own.recipe is None and not reading.given:
        yield Assumption(f"input is read at {format_number(reading.value)} tok/s: {reading.words}, {reading.grade.value}", "--prefill")
    if case.workload.cached_input_tokens and case.overrides.own_cached is None:
        yield Assumption("the machine's own cache hits as often as the provider's, and a hit takes no time", "--own-cached")
    yield Assumption(f"a month of {HOURS_PER_MONTH} hours; no staff, space, cooling or interest", None)


def warnings(case: CostCase, found: Rents, own: OwnReport | None, not_counted: Iterable[str]) -> Iterator[str]:
    """What to be careful about."""
    priced = {option.model for option in (*found.usd, *found.others)}
    for model in case.models:
        if model.id not in priced:
            yield f"no card in the catalogue sells {model.id} on {case.as_of.isoformat()}"
    without_hours = sum(option.peak_share is None for option in found.usd)
    if case.offpeak and without_hours:
        yield f"{without_hours} of {len(found.usd)} cards have no off-peak hours and one price all day ('none' under hours)"
    as_fresh = [option.rate for option in (*found.usd, *found.others) if option.cached_charged_as_fresh]
    if as_fresh:
        yield f"no price for cached input is known, so it is charged as fresh: {', '.join(as_fresh)}"
    for option in (*found.usd, *found.others):
        if option.promotion:
            until = f" until {option.price_until.date().isoformat()}" if option.price_until else ""
            yield f"{option.rate} is at a promotional price{until}"
    if found.not_priced:
        later = tuple(f"{card.rate} (price known only from {card.price_known_from.isoformat()})" for card in found.not_priced)
        yield f"no price known on {case.as_of.isoformat()}, so left out: {_some(later)}"
    yield from _served_by_another(case)
    yield from case.workload.caveats
    yield from (f"owning costs more than this: {words} is not counted" for words in not_counted)
    if own is not None:
        yield from _own_warnings(case, own)


def _own_warnings(case: CostCase, own: OwnReport) -> Iterator[str]:
    if own.fits.verdict is Verdict.UNKNOWN:
        yield f"whether {own.model} fits is not known: {own.fits.reason}"
    if own.fits.verdict is Verdict.NO:
        yield f"{own.model} does not fit on {case.cluster.label}: {own.fits.reason}"
    stale = stale_price(case)
    if stale is not None:
        yield stale
    if "all in" in own.busy_watts.words and not own.purchase.given and not case.cluster.device.memory.unified:
        yield "mixed scope: the busy watts count a share of a whole server, the price the bare device (--watts, --price)"
    if own.busy_watts.given and own.idle_watts is not None and own.idle_watts.words.startswith("no more than busy"):
        yield f"--watts is below the idle watts known, so idle is taken as busy: {own.idle_watts.words}"
    if own.idle_watts is None:
        yield "owning costs more than this: nobody measured its idle watts, so idle hours are not charged (--idle-watts)"


def _served_by_another(case: CostCase) -> Iterator[str]:
    """Names that a model asked for answered once, and another answers on the day."""
    asked = {model.id for model in case.models} if case.models_asked else set()
    for tariff in case.tariffs:
        begun = [entry for entry in tariff.rate.serves if entry.since is None or entry.since <= case.priced_at]
        once = [entry.model for entry in begun[:-1] if entry.model in asked]
        if not once or begun[-1].model in asked or period_at(tariff.rate, case.priced_at) is None:
            continue
        since = f" since {begun[-1].since.date().isoformat()}" if begun[-1].since else ""
        yield f"{tariff.rate.id} is not {once[-1]} any more: {begun[-1].model or 'another model'} answers{since}"


def oldest_figures(own: OwnReport | None) -> tuple[Figure, ...]:
    """The figures that owning rests on."""
    if own is None:
        return ()
    found = (own.purchase, own.life_months, own.residual_share, own.usd_per_kwh, own.busy_watts, own.idle_watts, own.prefill_tok_per_s)
    return tuple(figure for figure in found if figure is not None)


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
