"""The sentences of an answer to `recommend`: why a model stands where it does, why one stands first, why one is missing."""

from __future__ import annotations

from datetime import date

from fitcheck.advise.order import SOUND_BITS, Standing, deciding, plain_number, version_label
from fitcheck.advise.report import DecidedBy, MissRow, Quality, RecipeLink, ScoreRow, UnknownRow
from fitcheck.fit.report import CheckpointRow, ClusterRow, FitReport
from fitcheck.units import format_size

_NAMED_RECIPES = 2


def cluster_label(cluster: ClusterRow) -> str:
    """As people write it: `2x dgx-spark`."""
    return f"{cluster.count}x {cluster.device}"


def users_label(users: int) -> str:
    """`1 user`, `8 users`."""
    return "1 user" if users == 1 else f"{users:,} users"


def place_sentence(standings: list[Standing], index: int, quality: Quality | None, elsewhere: ScoreRow | None) -> tuple[DecidedBy, str]:
    """What sets a model apart from the one above it (the first: from the one below), and the sentence that says so.

    A model without a score in the version compared in, but with one `elsewhere`, has that said.
    """
    if len(standings) == 1:
        return "only", "the only model that runs here"
    upper, lower = standings[max(index - 1, 0)], standings[max(index, 1)]
    criterion = deciding(upper, lower, quality)
    words = criterion.words(upper, lower, quality)
    place = f"below {upper.model}: {words}" if index else f"above {lower.model}, which {words}"
    unused = elsewhere if quality is not None and standings[index].score_in(quality) is None else None
    return criterion.name, f'{place}; its {unused.score} in "{unused.version}" is not compared' if unused else place


def fit_sentence(report: FitReport) -> str:
    """The verdict, and what decides it."""
    return f"{report.verdict.value}: {report.reason}"


def evidence_sentence(report: FitReport, recipes: tuple[RecipeLink, ...], as_of: date) -> str:
    """Who has shown it running; a claim of absence carries its date."""
    where = cluster_label(report.cluster)
    if not recipes:
        return f"arithmetic alone: as of {as_of.isoformat()} no recipe in the catalogue shows {report.checkpoint} on {where} as asked"
    names = ", ".join(f"{recipe.id} ({recipe.date})" for recipe in recipes[:_NAMED_RECIPES])
    more = f" and {len(recipes) - _NAMED_RECIPES} more" if len(recipes) > _NAMED_RECIPES else ""
    return f"{count_of(len(recipes), 'recipe')} {'shows' if len(recipes) == 1 else 'show'} {report.checkpoint} on {where}: {names}{more}"


def quality_sentence(score: ScoreRow | None, elsewhere: ScoreRow | None, quality: Quality | None) -> str:
    """Its score in the version compared in; a score in another version is said, and not used."""
    other = f"; {elsewhere.score} in {version_label(elsewhere)} ({elsewhere.date}) is not compared" if elsewhere else ""
    if quality is None:
        return "no model that runs here has a published score"
    if score is None:
        return f"not scored in {version_label(quality)}{other}"
    of = f" for {score.of}" if score.of else ""
    return f"{score.score} in {version_label(score)} ({score.date}){of}{other}"


def speed_sentence(report: FitReport) -> str:
    """Its measured decode speed, and what that rests on."""
    speed = report.speed.decode_tok_per_s
    if speed is None:
        return "no matching recipe measured how fast it decodes"
    return f"decodes {plain_number(speed.best)} tok/s; {speed.basis}"


def score_caveat(build: CheckpointRow, *, pruned: bool) -> str | None:
    """Why a score of the makers' weights says little about this build; None where it may stand for it."""
    if pruned:
        return "its build had experts removed; the score is of the makers' weights"
    if build.bits_per_weight is not None and build.bits_per_weight < SOUND_BITS:
        return f"its build has {plain_number(build.bits_per_weight)} bits a weight; the score is of the makers' weights"
    return None


def recipe_caveat(report: FitReport) -> str | None:
    """That a model counts as running by a recipe's word alone, against the arithmetic; None where the arithmetic says so too."""
    if report.headroom_bytes is None or report.headroom_bytes >= 0 or not report.verdict.runs:
        return None
    short = f"{format_size(-report.headroom_bytes)} short on {'the' if report.cluster.count == 1 else 'each'} device"
    names = ", ".join(recipe.id for recipe in report.evidence.recipes[:_NAMED_RECIPES])
    return f"arithmetic says no ({short}), and it counts as running only because a recipe says so ({names}): check before you buy"


def first_reason(model: str, report: FitReport, recipes: int, total: int, sentence: str, caveat: str | None) -> str:
    """The headline: which model stands first, and the reasons in their order; `caveat` is what its score leaves out."""
    shown = f"{count_of(recipes, 'recipe')} {'shows' if recipes == 1 else 'show'} it running" if recipes else "no recipe shows it running"
    place = f"stands first of the {total} that run" if total > 1 else "is the only one that runs"
    tail = (f"; {caveat}" if caveat else "") + (f"; {sentence}" if total > 1 else "")
    return f"{model} ({report.checkpoint}) {place}: {report.verdict.value}, {report.reason}; {shown}{tail}"


def none_reason(assessed: int, cluster: ClusterRow, misses: tuple[MissRow, ...], unknown: tuple[UnknownRow, ...], as_of: date) -> str:
    """The headline where no model runs."""
    if not assessed:
        return f"no model of the catalogue had been released by {as_of.isoformat()}"
    examples = [f"; the nearest miss is {row.model}: {row.note}" for row in misses[:1]]
    examples += [f"; {row.model} is one that is not known: {row.reason}" for row in unknown[:1] if not misses]
    return f"none of the {count_of(assessed, 'model')} is known to run on {cluster_label(cluster)} as asked{''.join(examples)}"


def memory_note(row: FitReport, users: int, fits_on: int | None, fits_on_checkpoint: str | None, up_to: int) -> str:
    """By how much the nearest build misses, and what would do."""
    parts = [f"{row.checkpoint} is {format_size(-(row.headroom_bytes or 0))} short on each device"]
    if row.max_context_tokens:
        parts.append(f"{row.max_context_tokens:,} tokens of context would fit for {users_label(users)}")
    if row.max_users and users > 1:
        parts.append(f"{users_label(row.max_users)} would fit")
    if fits_on is not None:
        parts.append(f"{fits_on}x {row.cluster.device} would run {fits_on_checkpoint}")
    elif row.cluster.count < up_to:
        parts.append(f"no number up to {up_to} would run it")
    return "; ".join(parts)


def context_note(report: FitReport, longest: int) -> str:
    """Why more memory would not help."""
    ends = f"its context ends at {longest:,} tokens"
    if report.verdict.runs:
        return f"{ends}, at which it {'fits' if report.verdict.value == 'fits' else 'is tight'}"
    return f"{ends}; besides, {report.reason}"


def count_of(number: int, noun: str) -> str:
    """`1 recipe`, `4 recipes`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
