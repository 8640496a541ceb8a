"""The order of models that run: evidence, quality within one index version, speed, size, age, name. Fit comes before all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from fitcheck.advise.report import DecidedBy, Quality, ScoreRow
from fitcheck.units import counted_from

SOUND_BITS = Decimal(4)
"""Bits per weight below which a build is taken to lose much: GLM 5.1's published KL divergence is 0.037 at 4.93 bits, 0.100 at 3.84 and
0.262 at 2.96."""


class Standing(NamedTuple):
    """What decides where a model that runs stands. `scores` are those of the day or before."""

    model: str
    recipes: int
    scores: tuple[ScoreRow, ...]
    decode_tok_per_s: Decimal | None
    bits_per_weight: Decimal | None
    parameters: int
    released: str

    def score_in(self, quality: Quality | None) -> ScoreRow | None:
        """Its score in that version of that index: the newest, and of one day the highest."""
        within = [score for score in self.scores if quality and (score.index, score.version) == (quality.index, quality.version)]
        return max(within, key=lambda score: (counted_from(score.date), score.score), default=None)

    @property
    def sound(self) -> bool:
        """Whether its build keeps at least `SOUND_BITS` per weight."""
        return self.bits_per_weight is not None and self.bits_per_weight >= SOUND_BITS


class Criterion(NamedTuple):
    """One question that orders two models: a key that sorts best first, and what the lower one lacks, as words after its name."""

    name: DecidedBy
    key: Callable[[Standing, Quality | None], tuple[object, ...]]
    words: Callable[[Standing, Standing, Quality | None], str]


def _score(standing: Standing, quality: Quality | None) -> Decimal | None:
    found = standing.score_in(quality)
    return found.score if found else None


def _quality_key(standing: Standing, quality: Quality | None) -> tuple[object, ...]:
    score = _score(standing, quality)
    return (score is None, -(score or 0))


def _quality_words(upper: Standing, lower: Standing, quality: Quality | None) -> str:
    high, low = _score(upper, quality), _score(lower, quality)
    version = f'"{quality.version}"' if quality else "any version"
    return f"is not scored in {version}" if low is None else f"scores {low} against {high} in {version}"


def _speed_words(upper: Standing, lower: Standing, _: Quality | None) -> str:
    high, low = upper.decode_tok_per_s, lower.decode_tok_per_s
    return "has no measured speed here" if low is None else f"decodes {plain_number(low)} against {plain_number(high or low)} tok/s"


def _size_words(upper: Standing, lower: Standing, _: Quality | None) -> str:
    if upper.sound and not lower.sound:
        bits = "unknown" if lower.bits_per_weight is None else plain_number(lower.bits_per_weight)
        return f"keeps {bits} bits a weight, and builds of {SOUND_BITS} or more come first"
    return f"is smaller ({billions(lower.parameters)} parameters against {billions(upper.parameters)})"


CRITERIA = (
    Criterion("evidence", lambda standing, _: (not standing.recipes,), lambda *_: "has no recipe on this cluster"),
    Criterion("quality", _quality_key, _quality_words),
    Criterion("speed", lambda standing, _: (standing.decode_tok_per_s is None, -(standing.decode_tok_per_s or 0)), _speed_words),
    Criterion("size", lambda standing, _: (not standing.sound, -standing.parameters), _size_words),
    Criterion(
        "age",
        lambda standing, _: (-counted_from(standing.released).toordinal(),),
        lambda upper, lower, _: f"is as large and older ({lower.released} against {upper.released})",
    ),
    Criterion("name", lambda standing, _: (standing.model,), lambda *_: "is alike in all of that, and later by name"),
)
"""Asked one after the other; the first that tells two models apart decides. Names differ, so the order is total."""


def arranged(standings: Iterable[Standing], quality: Quality | None) -> list[Standing]:
    """Best first. Where a model stands against another depends on these two and the version alone."""
    return sorted(standings, key=lambda standing: [criterion.key(standing, quality) for criterion in CRITERIA])


def deciding(upper: Standing, lower: Standing, quality: Quality | None) -> Criterion:
    """The criterion that puts one model above another."""
    return next(criterion for criterion in CRITERIA if criterion.key(upper, quality) != criterion.key(lower, quality))


def choose_quality(standings: Iterable[Standing]) -> Quality | None:
    """The index version to compare in, for scores compare only within one; None where nothing is scored.

    It is the one that scores the most models with a recipe, because those are told apart by quality first; then the most models in all;
    then the one with the newest score; then the last by name.
    """
    everyone = list(standings)
    pairs = sorted({(score.index, score.version) for standing in everyone for score in standing.scores})
    choices = [_quality(index, version, everyone) for index, version in pairs]
    best = max(choices, key=lambda made: (made.with_recipe, made.scored, counted_from(made.newest), made.index, made.version), default=None)
    return replace(best, passed_over=tuple(_counted(made, best) for made in choices if made is not best)) if best else None


def _quality(index: str, version: str, everyone: list[Standing]) -> Quality:
    scores = {one.model: [score for score in one.scores if (score.index, score.version) == (index, version)] for one in everyone}
    newest = max((score.date for found in scores.values() for score in found), key=counted_from)
    scored = [standing for standing in everyone if scores[standing.model]]
    with_recipe = sum(1 for standing in scored if standing.recipes)
    because = (
        f"it scores the most models that run here with a recipe ({with_recipe}), then the most of all ({len(scored)} of "
        f"{len(everyone)}), then it is the newest ({newest})"
    )
    return Quality(index, version, newest, len(scored), with_recipe, because, ())


def _counted(made: Quality, best: Quality) -> str:
    label = f'"{made.version}"' if made.index == best.index else version_label(made)
    return f"{label}: {made.scored} scored, {made.with_recipe} with a recipe, newest {made.newest}"


def version_label(scored: Quality | ScoreRow) -> str:
    """Index and version as they are named in a sentence."""
    return f'{scored.index} "{scored.version}"'


def billions(parameters: int) -> str:
    """A count of parameters: `284B`, `7.6B`, `0.8B`."""
    return f"{parameters / 1e9:,.0f}B" if parameters >= 99.5e9 else f"{parameters / 1e9:.1f}B"


def plain_number(value: Decimal) -> str:
    """A decimal without needless zeros: `36.70` is `36.7`."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
