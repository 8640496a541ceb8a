"""At which speed a cluster does the work: the recipe it is taken from, and what that recipe measured."""

from __future__ import annotations

import re
from decimal import Decimal

from fitcheck.catalogue.models import Model, Score
from fitcheck.catalogue.provenance import Status
from fitcheck.catalogue.recipes import Recipe, Speed
from fitcheck.cost.case import CostCase
from fitcheck.cost.fits import lacks_memory
from fitcheck.cost.report import Figure, RecipeLine, given
from fitcheck.errors import UsageError
from fitcheck.fit.evidence import recipe_status
from fitcheck.fit.report import CitedSource
from fitcheck.frozen import frozen
from fitcheck.units import counted_from, format_gib

_TRUST = {"high": 0, "medium": 1, "low": 2}
_BEST_CASE = re.compile(r"\b(structured|counting|code|json|math|easy)\b", re.IGNORECASE)
"""Text that speculation guesses best: its speeds stand for others only where nothing else was measured."""


@frozen
class Throughput:
    """Output tokens per second of the whole cluster, for how many users at once, and of what."""

    tok_per_s: Decimal
    users: int
    label: str


@frozen
class Speeds:
    """The model that the machine runs and how fast: for one user, at most, and reading input. The last two may be the first or None.

    `ran` is the recipe behind it, `recipe` the line of it where its own writing speeds are the ones.
    """

    model: Model
    ran: Recipe | None
    recipe: RecipeLine | None
    one_user: Throughput
    most: Throughput
    prefill: Figure | None
    warnings: tuple[str, ...] = ()


def find_speeds(case: CostCase) -> Speeds | None:
    """The speeds asked for, else those of the cluster's best recipe; None where nobody measured one there."""
    asked = case.overrides
    found: Recipe | None = asked.recipe
    because = "asked for with --recipe"
    if asked.recipe is not None:
        _check_recipe(case, asked.recipe)
    else:
        ranked = ranked_recipes(case)
        found = ranked[0] if ranked else None
        because = _because(case, ranked)
    if asked.decode_tok_per_s is None:
        return _measured(case, found, because) if found is not None else None
    own = Throughput(asked.decode_tok_per_s, 1, "as given (--speed)")
    if found is None:
        prefill = None if asked.prefill_tok_per_s is None else given(asked.prefill_tok_per_s, "--prefill")
        return Speeds(case.models[0], None, None, own, own, prefill)
    return Speeds(case.known_models[found.model], found, None, own, own, _prefill(case, found), _skipped(case))


def ranked_recipes(case: CostCase) -> tuple[Recipe, ...]:
    """Recipes for just this cluster, best first.

    Only those that were public on the day, neither withdrawn nor of a withdrawn build, with no more memory than the machine usually
    gives, with a speed for one user, and of the models asked; where none of the default models has one, of any model. The order: most
    trusted; the model with the best published score, within one version of an index; how much was measured (several users, of usual
    text, reading input); the highest throughput; the newest.
    """
    able = [recipe for recipe in case.recipes if _counts(case, recipe) and not lacks_memory(case, recipe)]
    models = {model.id for model in case.models}
    chosen = [recipe for recipe in able if recipe.model in models]
    if not chosen and not case.models_asked:
        chosen = able
    scores = comparable_scores({recipe.model: case.known_models[recipe.model] for recipe in chosen})

    def order(recipe: Recipe) -> tuple[object, ...]:
        score = scores.get(recipe.model)
        return (
            _TRUST[recipe.trust],
            score is None,
            -score.score if score is not None else Decimal(0),
            -(_several_users(recipe) + _several_usual(recipe) + _reads(recipe)),
            -_most(recipe).tok_per_s,
            -counted_from(recipe.date).toordinal(),
            recipe.id,
        )

    return tuple(sorted(chosen, key=order))


def comparable_scores(models: dict[str, Model]) -> dict[str, Score]:
    """Each model's score in the one index version that scores most of them, the newest where several do; its best build's counts."""
    tables: dict[tuple[str, str], dict[str, Score]] = {}
    for name, model in models.items():
        for score in model.scores:
            table = tables.setdefault((score.index, score.version), {})
            if name not in table or score.score > table[name].score:
                table[name] = score
    if not tables:
        return {}
    return max(tables.values(), key=lambda table: (len(table), max(counted_from(score.date) for score in table.values())))


def _counts(case: CostCase, recipe: Recipe) -> bool:
    same_cluster = recipe.device == case.cluster.device.platform and recipe.count == case.cluster.count
    public = counted_from(recipe.date) <= case.as_of
    if not (same_cluster and public and _single(recipe) is not None and recipe.model in case.known_models):
        return False
    return not _withdrawn(case, recipe)


def _skipped(case: CostCase) -> tuple[str, ...]:
    """A note on each recipe of the models asked that needs more memory than the machine usually gives."""
    if case.overrides.recipe is not None:
        return ()
    models = {model.id for model in case.models}
    lacking = [recipe for recipe in case.recipes if recipe.model in models and _counts(case, recipe) and lacks_memory(case, recipe)]
    return tuple(
        f"recipe {recipe.id} is left out: it needs {format_gib(recipe.requires.usable_bytes)} usable, {recipe.requires.because}"
        for recipe in lacking
        if recipe.requires is not None
    )


def _withdrawn(case: CostCase, recipe: Recipe) -> bool:
    if recipe_status(recipe, case.as_of) is Status.WITHDRAWN:
        return True
    model = case.known_models.get(recipe.model)
    builds = [build for build in model.checkpoints if build.id == recipe.checkpoint] if model else []
    return any(build.withdrawn_on(case.as_of) for build in builds)


def _check_recipe(case: CostCase, recipe: Recipe) -> None:
    cluster = case.cluster
    if recipe.device != cluster.device.platform or recipe.count != cluster.count:
        ran_on = f"{recipe.count}x {recipe.device}"
        raise UsageError(f"--recipe {recipe.id} ran on {ran_on}, and --cluster is {cluster.label}", hint=f"write --cluster '{ran_on}'")
    if case.models_asked and recipe.model not in {model.id for model in case.models}:
        asked = ", ".join(model.id for model in case.models)
        raise UsageError(f"--recipe {recipe.id} runs {recipe.model}, and {asked} was asked", hint=f"ask for {recipe.model}")
    if case.overrides.decode_tok_per_s is None and _single(recipe) is None:
        raise UsageError(f"--recipe {recipe.id} gives no decode speed for one user", hint="give one with --speed")


def _decode(recipe: Recipe) -> list[Speed]:
    return [speed for speed in recipe.speeds if speed.phase == "decode"]


def _single(recipe: Recipe) -> Speed | None:
    single = [speed for speed in _decode(recipe) if speed.users == 1]
    return next((speed for speed in single if speed.headline), single[0] if single else None)


def _several_users(recipe: Recipe) -> bool:
    return any(speed.users > 1 for speed in _decode(recipe))


def _several_usual(recipe: Recipe) -> bool:
    return any(speed.users > 1 and _usual(speed) for speed in _decode(recipe))


def _usual(speed: Speed) -> bool:
    return not (speed.workload and _BEST_CASE.search(speed.workload))


def _reads(recipe: Recipe) -> bool:
    return any(speed.phase == "prefill" for speed in recipe.speeds)


def _total(speed: Speed) -> Decimal:
    return speed.high * speed.users if speed.per == "stream" else speed.high


def _most(recipe: Recipe) -> Throughput:
    """The highest throughput of usual text; of text that speculation guesses best only where several users wrote nothing else."""
    measured = _decode(recipe)
    usual = [speed for speed in measured if _usual(speed)]
    counted = usual if usual and (_several_usual(recipe) or not _several_users(recipe)) else measured
    fastest = max(counted, key=_total)
    users = "1 user" if fastest.users == 1 else f"{fastest.users} users at once"
    only = "" if _usual(fastest) else " only, the best case for speculation"
    return Throughput(_total(fastest), fastest.users, f"{users}, highest measured{_of(fastest)}{only}")


def _of(speed: Speed) -> str:
    return f", {speed.workload}" if speed.workload else ""


def _measured(case: CostCase, recipe: Recipe, because: str) -> Speeds:
    lead = _single(recipe)
    assert lead is not None
    one_user = Throughput((lead.low + lead.high) / 2, 1, f"1 user, the recipe's headline{_of(lead)}")
    most = _most(recipe)
    url = recipe.sources[recipe.source].url if recipe.source in recipe.sources else ""
    line = RecipeLine(recipe.id, recipe.checkpoint or recipe.checkpoint_as_named, recipe.date, recipe.trust, url, because)
    warnings = _skipped(case)
    if _withdrawn(case, recipe):
        warnings += (f"{recipe.id} is withdrawn, or its build is: 'fitcheck recipes {recipe.id}' says why",)
    if lacks_memory(case, recipe) and recipe.requires is not None:
        needed = format_gib(recipe.requires.usable_bytes)
        warnings += (f"{recipe.id} needs {needed} usable, more than is usual here: {recipe.requires.because}",)
    return Speeds(
        model=case.known_models[recipe.model],
        ran=recipe,
        recipe=line,
        one_user=one_user,
        most=most if most.tok_per_s > one_user.tok_per_s else one_user,
        prefill=_prefill(case, recipe),
        warnings=warnings,
    )


def _prefill(case: CostCase, recipe: Recipe) -> Figure | None:
    if case.overrides.prefill_tok_per_s is not None:
        return given(case.overrides.prefill_tok_per_s, "--prefill")
    reading = [speed for speed in recipe.speeds if speed.phase == "prefill"]
    lead = next((speed for speed in reading if speed.headline), reading[0] if reading else None)
    if lead is None:
        return None
    source = recipe.sources.get(recipe.source)
    sources = (CitedSource(source.url, source.read, source.title),) if source is not None else ()
    return Figure((lead.low + lead.high) / 2, f"{recipe.id}{_of(lead)}", recipe.grade, sources, "--prefill")


def _because(case: CostCase, ranked: tuple[Recipe, ...]) -> str:
    if not ranked:
        return ""
    best = ranked[0]
    words = [f"first of {len(ranked)} with a speed on {case.cluster.label}: trust {best.trust}"]
    models = {recipe.model for recipe in ranked}
    score = comparable_scores({name: case.known_models[name] for name in models}).get(best.model)
    if len(models) > 1 and score is not None:
        words.append(f"the best-scored model ({score.score:f}, {score.index}, {score.version})")
    measured = ["one user"] + ["several users"] * _several_users(best) + ["reading input"] * _reads(best)
    words.append(f"measured for {' and '.join(measured) if len(measured) < 3 else 'one user, several users and reading input'}")
    return ", ".join(words)
