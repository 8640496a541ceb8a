"""What an answer to `recommend` holds: plain frozen records that views render and never complete."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Literal

from fitcheck.fit.report import Assumption, CitedSource, ClusterRow, Range, Verdict
from fitcheck.frozen import frozen

DecidedBy = Literal["only", "evidence", "quality", "speed", "size", "age", "name"]
"""What sets a row apart from its neighbour, in the order in which the criteria are asked; `only` where it has no neighbour."""


@frozen
class ScoreRow:
    """A published quality score. It compares only within the same `index` and `version`; `of` is what exactly was scored."""

    index: str
    version: str
    score: Decimal
    date: str
    of: str | None
    sources: tuple[CitedSource, ...]


@frozen
class Quality:
    """The one version of an index that scores are compared in: it scores `scored` of the rows, `with_recipe` of those with a recipe.

    `newest` is the date of its newest score. `passed_over` names the other versions, with what they score.
    """

    index: str
    version: str
    newest: str
    scored: int
    with_recipe: int
    because: str
    passed_over: tuple[str, ...]


@frozen
class RecipeLink:
    """A recipe that shows just what was asked."""

    id: str
    date: str
    url: str


@frozen
class RecommendRow:
    """A model that runs on the cluster, with its best build.

    `score` is the score in the version that the answer compares in, `score_not_compared` the newest in another one. `why` is sentences:
    what put it below the row above (for the first row: above the next), then fit, evidence, quality and speed. `caveats` are what must
    be read beside the row: that its score is of other weights than its build, that it runs by a recipe's word alone.
    `max_context_tokens` and `max_users` are None where arithmetic says no.
    """

    position: int
    model: str
    model_name: str
    checkpoint: str
    verdict: Verdict
    evidence: str
    recipes: tuple[RecipeLink, ...]
    engine: str | None
    context_tokens: int
    headroom_bytes: int | None
    max_context_tokens: int | None
    max_users: int | None
    decode_tok_per_s: Range | None
    score: ScoreRow | None
    score_not_compared: ScoreRow | None
    bytes: int | None
    bits_per_weight: Decimal | None
    parameters: int
    decided_by: DecidedBy
    why: tuple[str, ...]
    caveats: tuple[str, ...]
    score_is_of_other_weights: bool
    warnings: tuple[str, ...]


@frozen
class MissRow:
    """A model that does not run as asked, and what it lacks.

    `checkpoint` is the build not withdrawn that comes nearest. `limit` says what is in the way: the devices' memory, or the context that
    the model itself ends at. `short_by_bytes` is on the fullest device. `fits_on` is the smallest number of the same device, up to 16, on
    which some build runs (`fits_on_checkpoint`). `context_that_fits` and `users_that_fit` are what this cluster would hold of that build
    with all else as asked; None where that is nothing. `near` is whether it lacks less than half of what it needs on a device, or runs on
    at most four times as many; of a context that ends too early, whether it is a quarter of what was asked or more.
    """

    model: str
    model_name: str
    checkpoint: str | None
    limit: Literal["memory", "context"]
    near: bool
    short_by_bytes: int | None
    fits_on: int | None
    fits_on_checkpoint: str | None
    context_that_fits: int | None
    users_that_fit: int | None
    model_max_context_tokens: int | None
    note: str


@frozen
class UnknownRow:
    """A model about which the catalogue cannot say, and which figure is missing; `recipes` show it running all the same."""

    model: str
    model_name: str
    checkpoint: str | None
    reason: str
    recipes: tuple[RecipeLink, ...]


@frozen
class RecommendReport:
    """The whole answer to one `recommend`.

    `rows` run on the cluster, best first, `rows_total` of them before any limit; `misses` do not, nearest first. `left_out` are the models
    of the catalogue that had not been released on the day.
    """

    cluster: ClusterRow
    context_tokens: int | None
    users: int
    engine: str | None
    assessed: int
    first: str | None
    reason: str
    quality: Quality | None
    rows: tuple[RecommendRow, ...]
    rows_total: int
    misses: tuple[MissRow, ...]
    unknown: tuple[UnknownRow, ...]
    left_out: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    oldest_source: date | None
    warnings: tuple[str, ...]
