"""From names and texts to a cost case or a tariff: the one way in for the command line and the Python API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.load import Catalogue, normalise
from fitcheck.catalogue.lookup import ClusterSpec, find_cluster, find_model, told_apart
from fitcheck.catalogue.models import Model
from fitcheck.catalogue.ratecards import Assumption, Calendar, Profile, Rate, Schedule
from fitcheck.catalogue.recipes import Recipe
from fitcheck.cost.amounts import MAX_MONTHS, read_amount, read_tokens, read_whole
from fitcheck.cost.case import CostCase, Overrides, Terms, hours_per_week
from fitcheck.cost.hours import Hours, parse_schedule, week_of
from fitcheck.cost.report import Figure, given
from fitcheck.cost.tariff import Tariff, Tokens
from fitcheck.cost.workload import Workload, from_profile, from_request
from fitcheck.errors import UnknownId, UsageError
from fitcheck.fit.sources import cite
from fitcheck.units import parse_instant

ARTICLE_MODELS = ("deepseek-v4.1-flash", "glm-5.3-flash", "deepseek-v4-flash", "deepseek-v4-pro")
"""The open models of the article this tool began with, asked about where no model is named."""

DEFAULT_CLUSTER = "2xspark"
DEFAULT_PROFILE = "chat"
_FIRST_DAY, _LAST_DAY = date(1900, 1, 1), date(9000, 1, 1)


def find_tariff(catalogue: Catalogue, rate_id: str) -> Tariff:
    """The rate that is meant, without regard to case, spaces, `_` and `-`, with its schedules and calendars.

    Raises `UnknownId` with the nearest ids where there is none, or more than one.
    """
    known = catalogue.ids("rate")
    meant = [rate_id] if rate_id in known else [name for name in known if normalise(name) == normalise(rate_id)]
    if len(meant) != 1:
        raise UnknownId(f"unknown rate {rate_id!r}", hint="'fitcheck rates' lists them all", nearest=catalogue.nearest("rate", rate_id))
    return tariff_of(catalogue, catalogue.get(Rate, meant[0]))


def tariff_of(catalogue: Catalogue, rate: Rate) -> Tariff:
    """A rate with the schedules and calendars it names."""
    names = {period.schedule for period in rate.periods if period.schedule}
    schedules = {name: catalogue.get(Schedule, name) for name in sorted(names)}
    days = {rule.holidays for schedule in schedules.values() for rule in schedule.rules if rule.holidays}
    return Tariff(rate, schedules, {name: catalogue.get(Calendar, name) for name in sorted(days)})


def read_instant(text: str) -> datetime:
    """The instant in `--at`. Raises `UsageError` for one without time and zone."""
    hint = "write the time and its zone, such as 2026-08-16T16:00Z or 2026-08-17T00:00+08:00"
    try:
        moment = parse_instant(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--at: {text!r} is not an instant with time and zone", hint=hint) from error
    if not _FIRST_DAY <= moment.date() <= _LAST_DAY:
        raise UsageError(f"--at: {text!r} is too far away", hint=hint)
    return moment


def read_request(input_: str | int, output: str | int, cached: str | int) -> Tokens:
    """The tokens of `--input`, `--output` and `--cached`. Raises `UsageError` that names the field."""
    return Tokens(read_tokens(input_, "--input"), read_tokens(output, "--output"), read_tokens(cached, "--cached"))


def cost_case(
    catalogue: Catalogue,
    models: Sequence[str | Model] = (),
    *,
    tokens: str | int,
    as_of: date,
    profile: str | None = None,
    input: str | int | None = None,
    output: str | int | None = None,
    cached: str | int | None = None,
    offpeak: bool = False,
    schedule: str | None = None,
    cluster: str | ClusterSpec = DEFAULT_CLUSTER,
    months: str | int | None = None,
    residual: str | Decimal | None = None,
    electricity: str | Decimal | None = None,
    price: str | Decimal | None = None,
    watts: str | Decimal | None = None,
    idle_watts: str | Decimal | None = None,
    recipe: str | None = None,
    speed: str | Decimal | None = None,
    prefill: str | Decimal | None = None,
    own_cached: str | Decimal | None = None,
) -> CostCase:
    """Look up everything a `cost` question names.

    `models` are names, or records made elsewhere. Texts are read as on the command line (`50M`, `$0.17`). Raises `UnknownId` for names
    nobody catalogued and `UsageError`, with the option named, for values that make no sense.
    """
    if offpeak and schedule is not None:
        raise UsageError("--offpeak and --schedule exclude each other", hint="--offpeak bills all of it off-peak; --schedule says when")
    if not _FIRST_DAY <= as_of <= _LAST_DAY:
        raise UsageError(f"--as-of: {as_of.isoformat()} is too far away", hint="write it as YYYY-MM-DD, such as 2026-09-10")
    spec = find_cluster(catalogue, cluster)
    asked = [_model(catalogue, name, as_of) for name in models] or _article_models(catalogue)
    recipes = _recipes_for(catalogue, spec, recipe)
    load = _load(schedule, as_of) if schedule is not None else None
    request = _request(input, output, cached, profile)
    known = {model.id: model for model in asked}
    for name in sorted({known_recipe.model for known_recipe in recipes} - set(known)):
        if name in catalogue.blocks("model"):
            known[name] = catalogue.get(Model, name)
    return CostCase(
        as_of=as_of,
        workload=_workload(catalogue, read_tokens(tokens, "--tokens", at_least=1), profile, request),
        request=request,
        profiles=catalogue.all(Profile),
        models=tuple({model.id: model for model in asked}.values()),
        models_asked=bool(models),
        known_models=known,
        tariffs=tuple(tariff_of(catalogue, rate) for rate in _rates_that_serve(catalogue, known)),
        recipes=recipes,
        platform_recipes=catalogue.mentioning(Recipe, device=spec.device.platform),
        engines=catalogue.all(Engine),
        cluster=spec,
        original=catalogue.get(Device, spec.device.variant_of) if spec.device.variant_of else None,
        terms=_terms(catalogue, months, residual, electricity),
        overrides=Overrides(
            purchase_usd=read_amount(price, "--price", currency=True),
            busy_watts=read_amount(watts, "--watts", above_zero=True),
            idle_watts=read_amount(idle_watts, "--idle-watts"),
            decode_tok_per_s=read_amount(speed, "--speed", above_zero=True),
            prefill_tok_per_s=read_amount(prefill, "--prefill", above_zero=True),
            recipe=_recipe(catalogue, recipe),
            own_cached=read_amount(own_cached, "--own-cached", at_most=Decimal(1)),
        ),
        load=load,
        schedule=_echo(schedule, load) if schedule is not None and load is not None else None,
        offpeak=offpeak,
    )


def _model(catalogue: Catalogue, name: str | Model, as_of: date) -> Model:
    """As `find_model`, or a record made elsewhere as it is; the name of a rate is refused with the command that prices it."""
    if isinstance(name, Model):
        return told_apart(catalogue, name)
    try:
        return find_model(catalogue, name, as_of)
    except UnknownId as error:
        wanted = normalise(name)
        rates = [rate for rate in catalogue.ids("rate") if wanted in (normalise(rate), normalise(rate.partition("/")[2]))]
        rates = rates or [rate.id for rate in catalogue.all(Rate) if normalise(rate.name) == wanted]
        if not rates:
            raise
        hint = f"'fitcheck rates price {rates[0]} --at … --input N --output N' prices it"
        raise UnknownId(f"{name!r} is the name of a rate, not of an open model", hint=hint, nearest=error.nearest) from error


def _load(schedule: str, as_of: date) -> Hours:
    """The hours of a schedule. Raises `UsageError` where the week has none of them, as when the clocks skip the only one."""
    load = parse_schedule(schedule)
    if not hours_per_week(load, as_of):
        monday = week_of(as_of)[0].isoformat()
        hint = "the clocks skip it in that week; add other hours, or ask with another --as-of"
        raise UsageError(f"--schedule: {schedule.strip()!r} has no hour of that week, the one from {monday} on", hint=hint)
    return load


def _echo(schedule: str, load: Hours) -> str:
    """The schedule as understood: with its zone, where none was named."""
    return schedule if load.zone.key.lower() in schedule.lower() else f"{schedule.strip()} {load.zone.key}"


def _article_models(catalogue: Catalogue) -> list[Model]:
    found = [catalogue.get(Model, name) for name in ARTICLE_MODELS if name in catalogue.blocks("model")]
    if not found:
        raise UsageError("no model is named, and the catalogue has none of the default ones", hint="name one, such as glm-5.3-flash")
    return found


def _rates_that_serve(catalogue: Catalogue, models: dict[str, Model]) -> list[Rate]:
    """Rates that have ever served one of the models; only records whose text names one are parsed."""
    blocks = catalogue.blocks("rate").values()
    rates = (catalogue.get(Rate, block.id) for block in blocks if any(name in block.text for name in models))
    return [rate for rate in rates if any(served.model in models for served in rate.serves)]


def _recipes_for(catalogue: Catalogue, spec: ClusterSpec, recipe: str | None) -> tuple[Recipe, ...]:
    found = catalogue.mentioning(Recipe, device=spec.device.platform)
    asked = _recipe(catalogue, recipe)
    same = tuple(known for known in found if known.count == spec.count)
    return same if asked is None or asked in same else (*same, asked)


def _recipe(catalogue: Catalogue, recipe: str | None) -> Recipe | None:
    if recipe is None:
        return None
    if recipe not in catalogue.blocks("recipe"):
        nearest = catalogue.nearest("recipe", recipe)
        raise UnknownId(f"--recipe: unknown recipe {recipe!r}", hint="'fitcheck recipes' lists them all", nearest=nearest)
    return catalogue.get(Recipe, recipe)


def _request(input_: str | int | None, output: str | int | None, cached: str | int | None, profile: str | None) -> Tokens | None:
    if input_ is None and output is None and cached is None:
        return None
    if profile is not None:
        raise UsageError("--profile and --input/--output/--cached exclude each other", hint="a profile is a split of its own")
    if input_ is None or output is None:
        missing = "--input" if input_ is None else "--output"
        hint = "give the tokens of a typical request, such as --input 3000 --output 500 --cached 2000"
        raise UsageError(f"{missing} is missing: a split needs --input and --output", hint=hint)
    return read_request(input_, output, 0 if cached is None else cached)


def _workload(catalogue: Catalogue, total_tokens: int, profile: str | None, request: Tokens | None) -> Workload:
    if request is not None:
        return from_request(total_tokens, request)
    return from_profile(total_tokens, _profile(catalogue, DEFAULT_PROFILE if profile is None else profile))


def _profile(catalogue: Catalogue, name: str) -> Profile:
    if not name.strip():
        raise UsageError("--profile is empty", hint=f"one of {', '.join(catalogue.ids('profile'))}")
    if name.lower() not in catalogue.blocks("profile"):
        known = ", ".join(catalogue.ids("profile"))
        nearest = catalogue.nearest("profile", name)
        raise UnknownId(f"--profile: unknown profile {name!r}", hint=f"known profiles: {known}", nearest=nearest)
    return catalogue.get(Profile, name.lower())


def _terms(catalogue: Catalogue, months: str | int | None, residual: str | Decimal | None, electricity: str | Decimal | None) -> Terms:
    life = read_whole(months, "--months", at_least=1, at_most=MAX_MONTHS)
    left = read_amount(residual, "--residual", at_most=Decimal(1))
    kwh = read_amount(electricity, "--electricity", currency=True)
    return Terms(
        life_months=_term(catalogue, "life-months", Decimal(life) if life is not None else None, "--months"),
        residual_share=_term(catalogue, "residual-share", left, "--residual"),
        usd_per_kwh=_term(catalogue, "electricity-usd-per-kwh", kwh, "--electricity"),
    )


def _term(catalogue: Catalogue, assumption_id: str, value: Decimal | None, option: str) -> Figure:
    if value is not None:
        return given(value, option)
    known = catalogue.get(Assumption, assumption_id)
    return Figure(known.value, known.name, known.grade, cite(known.sources, known), option)
