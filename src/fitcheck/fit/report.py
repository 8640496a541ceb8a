"""What an answer to `fit` holds: plain frozen records that views render and never complete."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Literal

from fitcheck.catalogue.provenance import Grade
from fitcheck.frozen import frozen


class Verdict(StrEnum):
    """Whether it fits. `tight` leaves less than 5 % of usable memory on the fullest device; `unknown` is an answer, not a failure."""

    FITS = "fits"
    TIGHT = "tight"
    NO = "no"
    UNKNOWN = "unknown"

    @property
    def runs(self) -> bool:
        """Whether it fits, if only just."""
        return self in (Verdict.FITS, Verdict.TIGHT)


@frozen
class CitedSource:
    """An address, the day it was read, and what it is called."""

    url: str
    read: date
    title: str | None


@frozen
class Term:
    """One term of a device's memory, with the formula its bytes come from. `part` says which sum of the table it belongs to."""

    name: str
    part: Literal["weights", "state", "overhead"]
    bytes: int
    formula: str
    grade: Grade
    sources: tuple[CitedSource, ...]
    low_bytes: int | None = None
    high_bytes: int | None = None


@frozen
class OffDevice:
    """A component that lies outside the device's memory: bytes over the whole cluster, and where."""

    component: str
    place: str
    bytes: int
    because: str


@frozen
class DeviceLedger:
    """The terms of the fullest device; `count` devices carry no more than this. `off_device` takes none of the memory."""

    device: str
    count: int
    usable_bytes: int
    usable_formula: str
    usable_grade: Grade
    usable_sources: tuple[CitedSource, ...]
    visible_bytes: int
    total_bytes: int
    terms: tuple[Term, ...]
    off_device: tuple[OffDevice, ...]

    def part_bytes(self, part: str) -> int:
        """Sum of the terms of a part."""
        return sum(term.bytes for term in self.terms if term.part == part)


@frozen
class Startup:
    """What must be free on one device when the engine starts, and whether the engine checks that.

    `page_cache_bytes` is what reading the weights leaves cached at most, where that counts as used (unified memory).
    """

    free_needed_bytes: int
    checked: bool
    page_cache_bytes: int


@frozen
class ContextRow:
    """Memory of the fullest device at one context length."""

    context_tokens: int
    weights_bytes: int
    state_bytes: int
    overhead_bytes: int
    total_bytes: int
    verdict: Verdict


@frozen
class SpeedRow:
    """One measured speed of a recipe, in tokens per second."""

    phase: Literal["decode", "prefill"]
    users: int
    per: Literal["total", "stream"]
    low_tok_per_s: Decimal
    high_tok_per_s: Decimal
    workload: str | None
    headline: bool


@frozen
class RecipeRow:
    """A recipe beside the question. It is evidence where `differs` is empty."""

    id: str
    url: str
    date: str
    status: str
    trust: str
    checkpoint: str | None
    engine: str
    engine_version: str | None
    device: str
    count: int
    context_tokens: int | None
    kv_dtype: str | None
    speculation: str | None
    speeds: tuple[SpeedRow, ...]
    protocol: str | None
    differs: tuple[str, ...]
    note: str | None

    @property
    def matches(self) -> bool:
        """Whether it shows just what was asked."""
        return not self.differs


@frozen
class Evidence:
    """Whether anyone has shown it running: `recipe` with those that match, or arithmetic alone. `others` differ in what they say."""

    kind: Literal["recipe", "arithmetic"]
    recipes: tuple[RecipeRow, ...]
    others: tuple[RecipeRow, ...]


@frozen
class Range:
    """Tokens per second over matching recipes, `best` the headline of the best of them, and what it rests on."""

    low: Decimal
    best: Decimal
    high: Decimal
    basis: str


@frozen
class SpeedReport:
    """Measured speeds of matching recipes; None where nobody measured it.

    `decode_tok_per_s` and `prefill_tok_per_s` are for one user; `together_tok_per_s` counts the tokens of `together_users` at once, the
    most that were measured up to the users asked.
    """

    decode_tok_per_s: Range | None
    prefill_tok_per_s: Range | None
    together_users: int | None
    together_tok_per_s: Range | None


@frozen
class Assumption:
    """Something the answer takes for granted, and the option that changes it."""

    text: str
    option: str | None


@frozen
class Remedy:
    """A change that would make it fit, and the option for it."""

    text: str
    option: str


@frozen
class CheckpointRow:
    """One checkpoint in the list, best first; `because` says in words why it stands where it does."""

    id: str
    hub_id: str | None
    format: str
    bytes: int | None
    bits_per_weight: Decimal | None
    divergence: Decimal | None
    verdict: Verdict
    evidence: str
    recipes: int
    headroom_bytes: int | None
    status: str
    successors: tuple[str, ...]
    because: str


@frozen
class ClusterRow:
    """The cluster as understood. `free_now_bytes` is the least free of its devices where they were measured (`--cluster here`)."""

    device: str
    device_name: str
    count: int
    named: str | None
    joined_by: str | None
    sold_bytes: int
    visible_bytes: int
    free_at_boot_bytes: tuple[int, ...]
    free_now_bytes: int | None = None


@frozen
class FitReport:
    """The whole answer to one `fit`."""

    model: str
    model_name: str
    checkpoint: str | None
    cluster: ClusterRow
    engine: str | None
    layout: str | None
    kv_dtype: str | None
    context_tokens: int
    context_asked: bool
    users: int
    verdict: Verdict
    reason: str
    evidence: Evidence
    headroom_bytes: int | None
    max_context_tokens: int | None
    max_users: int | None
    kv_bytes_per_token: int | None
    state_bytes_per_sequence: int | None
    devices: tuple[DeviceLedger, ...]
    startup: Startup | None
    by_context: tuple[ContextRow, ...]
    checkpoints: tuple[CheckpointRow, ...]
    smallest_cluster: int | None
    remedies: tuple[Remedy, ...]
    speed: SpeedReport
    assumptions: tuple[Assumption, ...]
    oldest_source: date | None
    oldest_source_age_days: int | None
    warnings: tuple[str, ...]
