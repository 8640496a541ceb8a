"""Has anyone shown it running? Recipes beside the question, and what keeps one from being evidence for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from fitcheck.catalogue.provenance import Status, status_on
from fitcheck.catalogue.recipes import Recipe, Speed
from fitcheck.errors import UsageError
from fitcheck.fit.case import Case
from fitcheck.fit.report import Evidence, Range, RecipeRow, SpeedReport, SpeedRow
from fitcheck.fit.state import kv_dtype
from fitcheck.units import counted_from, format_gib

_TRUST = {"high": 0, "medium": 1, "low": 2}


class Setting(NamedTuple):
    """What the arithmetic was done for, to hold a recipe against."""

    checkpoint_id: str
    context_tokens: int
    users: int
    usable_bytes: int
    moved: tuple[str, ...] = ()
    """Components that lie elsewhere than usual."""


def known_recipes(case: Case) -> tuple[Recipe, ...]:
    """Recipes of the model on this kind of device that were public on the day, newest and most trusted first."""
    public = [recipe for recipe in case.recipes if recipe.device == case.device.platform and counted_from(recipe.date) <= case.as_of]
    return tuple(sorted(public, key=lambda recipe: (_TRUST[recipe.trust], -counted_from(recipe.date).toordinal(), recipe.id)))


def recipe_status(recipe: Recipe, day: date) -> Status:
    """A recipe is effective from its date on, until an event says otherwise."""
    event = status_on(recipe.events, day)
    return event.status if event else Status.EFFECTIVE


def differences(recipe: Recipe, case: Case, setting: Setting) -> tuple[str, ...]:
    """What keeps a recipe from showing just what was asked; nothing means that it is evidence."""
    found: list[str | None] = [
        None if recipe_status(recipe, case.as_of) is Status.EFFECTIVE else "withdrawn",
        _build_withdrawn(recipe, case),
        None if recipe.count == case.count else f"{recipe.count} device{'s' if recipe.count > 1 else ''}",
        _checkpoint_difference(recipe, setting),
        f"engine {recipe.engine}" if case.engine_id not in (None, recipe.engine) else None,
        *_degree_differences(recipe, case),
        _kv_difference(recipe, case),
        f"{', '.join(setting.moved)} placed otherwise" if setting.moved else None,
        _context_difference(recipe, case, setting),
        _users_difference(recipe, setting),
        _memory_difference(recipe, case, setting),
    ]
    return tuple(difference for difference in found if difference)


def _degree_differences(recipe: Recipe, case: Case) -> Iterator[str]:
    """Degrees of parallelism that were asked and that the recipe states otherwise, or does not state."""
    asked, setup = case.degrees, recipe.setup
    if asked.tp is not None and setup.tp not in (None, asked.tp):
        yield f"TP{setup.tp}"
    if asked.dp > 1:
        yield "no data parallelism stated"
    if asked.dcp is not None and (setup.dcp or 1) != asked.dcp:
        yield f"DCP{setup.dcp or 1}"
    if asked.ep and setup.ep is None:
        yield "no expert parallelism stated"


def _build_withdrawn(recipe: Recipe, case: Case) -> str | None:
    build = case.model.checkpoint(recipe.checkpoint) if recipe.checkpoint else None
    return "its build is withdrawn" if build is not None and build.withdrawn_on(case.as_of) else None


def _checkpoint_difference(recipe: Recipe, setting: Setting) -> str | None:
    if recipe.checkpoint == setting.checkpoint_id:
        return None
    return f"checkpoint {recipe.checkpoint}" if recipe.checkpoint else "its build is not named"


def _kv_difference(recipe: Recipe, case: Case) -> str | None:
    """What was asked must be what the recipe states. Of a flag and the row layout it brings (`fp8`, `fp8_ds_mla`), either is the other."""
    if case.kv_dtype is None:
        return None
    if recipe.setup.kv_dtype is None:
        return "KV dtype not stated"
    try:
        theirs, asked = kv_dtype(recipe.setup.kv_dtype), kv_dtype(case.kv_dtype)
    except UsageError:
        return f"KV in {recipe.setup.kv_dtype}"
    same = [(one.k.removesuffix("_ds_mla"), one.v.removesuffix("_ds_mla")) for one in (theirs, asked)]
    return None if same[0] == same[1] else f"KV in {recipe.setup.kv_dtype}"


def _context_difference(recipe: Recipe, case: Case, setting: Setting) -> str | None:
    shown = recipe.setup.context_tokens
    if shown is None and case.context_tokens is not None:
        return "context not stated"
    return f"context {shown:,}" if shown is not None and shown < setting.context_tokens else None


def _users_difference(recipe: Recipe, setting: Setting) -> str | None:
    """One user is shown by any recipe; more, where it measured as many or its pool holds as many at that context."""
    if setting.users == 1:
        return None
    measured = max((speed.users for speed in recipe.speeds), default=1)
    pool = recipe.setup.kv_tokens_printed or 0
    return None if measured >= setting.users or pool >= setting.users * setting.context_tokens else f"{measured} users measured"


def _memory_difference(recipe: Recipe, case: Case, setting: Setting) -> str | None:
    """A recipe shows nothing about a machine with less memory for the engine than it had: as it states, else as is usual there."""
    if recipe.requires is not None and setting.usable_bytes < recipe.requires.usable_bytes:
        return f"needs {format_gib(recipe.requires.usable_bytes)} usable: {recipe.requires.because}"
    if recipe.requires is not None or case.usable_bytes is None:
        return None
    visible = case.device.memory.visible[0].value
    shares = {share.engine: share.fraction for share in case.device.usable}
    usual = shares.get(recipe.engine, max(shares.values(), default=Decimal(1)))
    had = int(visible * min(recipe.setup.memory_fraction or usual, usual))
    return f"had {format_gib(had)} usable" if setting.usable_bytes < had else None


def recipe_row(recipe: Recipe, case: Case, differs: tuple[str, ...]) -> RecipeRow:
    """A recipe as it is shown."""
    speculation = recipe.speculation
    words = None
    if speculation is not None:
        words = speculation.method if speculation.draft_tokens is None else f"{speculation.method}-{speculation.draft_tokens}"
    return RecipeRow(
        id=recipe.id,
        url=recipe.sources[recipe.source].url if recipe.source in recipe.sources else "",
        date=recipe.date,
        status=recipe_status(recipe, case.as_of).value,
        trust=recipe.trust,
        checkpoint=recipe.checkpoint or recipe.checkpoint_as_named,
        engine=recipe.engine,
        engine_version=recipe.engine_version,
        device=recipe.device,
        count=recipe.count,
        context_tokens=recipe.setup.context_tokens,
        kv_dtype=recipe.setup.kv_dtype,
        speculation=words,
        speeds=tuple(_speed_row(speed) for speed in recipe.speeds),
        protocol=recipe.protocol,
        differs=differs,
        note=recipe.note,
    )


def _speed_row(speed: Speed) -> SpeedRow:
    return SpeedRow(speed.phase, speed.users, speed.per, speed.low, speed.high, speed.workload, speed.headline)


def weigh(case: Case, setting: Setting, recipes: Iterable[Recipe]) -> Evidence:
    """The recipes that show just this, and the others with what they do differently, nearest first."""
    rows = [recipe_row(recipe, case, differences(recipe, case, setting)) for recipe in recipes]
    matching = tuple(row for row in rows if row.matches)
    others = tuple(sorted((row for row in rows if not row.matches), key=lambda row: len(row.differs)))
    return Evidence("recipe" if matching else "arithmetic", matching, others)


def measured_speed(evidence: Evidence, users: int) -> SpeedReport:
    """Speeds over the matching recipes of the best one's engine: for one user, and in all for as many users as were measured."""
    engine = next((row.engine for row in evidence.recipes if row.speeds), None)
    recipes = tuple(row for row in evidence.recipes if row.engine == engine)
    together = max((speed.users for row in recipes for speed in row.speeds if 1 < speed.users <= users and _in_all(speed)), default=None)
    return SpeedReport(
        decode_tok_per_s=_range(recipes, "decode", 1),
        prefill_tok_per_s=_range(recipes, "prefill", 1),
        together_users=together,
        together_tok_per_s=_range(recipes, "decode", together) if together is not None else None,
    )


def _in_all(speed: SpeedRow) -> bool:
    return speed.phase == "decode" and (speed.per == "total" or speed.users == 1)


def _range(recipes: tuple[RecipeRow, ...], phase: str, users: int) -> Range | None:
    """The span of what was measured, `best` the low end of what the best recipe leads with (nobody measured a middle)."""
    with_speed = [(row, [speed for speed in row.speeds if _asked_for(speed, phase, users)]) for row in recipes]
    with_speed = [(row, speeds) for row, speeds in with_speed if speeds]
    if not with_speed:
        return None
    row, speeds = with_speed[0]
    lead = next((speed for speed in speeds if speed.headline), speeds[0])
    everything = [speed for _, found in with_speed for speed in found]
    others = f"; span over {len(with_speed)} recipes and all prompts" if len(with_speed) > 1 else ""
    workload = f", {lead.workload}" if lead.workload else ""
    speculation = f", speculation {row.speculation}" if row.speculation else ", speculation not stated"
    basis = f"measured: {row.id} ({row.date}{workload}{speculation}){others}"
    low, high = min(speed.low_tok_per_s for speed in everything), max(speed.high_tok_per_s for speed in everything)
    return Range(low, lead.low_tok_per_s, high, basis)


def _asked_for(speed: SpeedRow, phase: str, users: int) -> bool:
    return speed.phase == phase and speed.users == users and (users == 1 or _in_all(speed))
