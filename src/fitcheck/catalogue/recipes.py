"""Recipes: published, measured deployments."""

# Annotations are evaluated as they stand (no `from __future__ import annotations`): pydantic would compile each text again at start-up.

from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fitcheck.catalogue.provenance import Bytes, DayOrMonth, Event, Grade, Record, Source

Count = Annotated[int, Field(ge=1)]


class Setup(Record):
    """The settings that the recipe states; what it does not state is absent."""

    tp: Count | None = None
    pp: Count | None = None
    ep: Count | None = None
    dcp: Count | None = None
    context_tokens: Count | None = None
    kv_dtype: str | None = None
    memory_fraction: Annotated[Decimal, Field(gt=0, le=1)] | None = None
    kv_bytes_per_device: Bytes | None = None
    kv_tokens_printed: Count | None = None
    weights_bytes_per_device: Bytes | None = None
    """Weights that the engine said each device holds."""
    overhead_bytes_per_device: Bytes | None = None
    """What the run left of its share after weights, cache and state (`fitcheck calibrate`)."""
    visible_bytes_per_device: Bytes | None = None
    """The device's memory as the engine printed it."""


class Speculation(Record):
    """Speculative decoding: a speed means little without it. `method: none` says that there was none."""

    method: str
    draft_tokens: Count | None = None


class Speed(Record):
    """One measured speed. A range has `low` and `high`; a single figure has both equal.

    `per` says whether tokens of all `users` at once are counted (`total`) or of one of them (`stream`).
    """

    phase: Literal["decode", "prefill"]
    users: Count = 1
    per: Literal["total", "stream"] = "total"
    low: Annotated[Decimal, Field(gt=0)] = Field(alias="low_tok_per_s")
    high: Annotated[Decimal, Field(gt=0)] = Field(alias="high_tok_per_s")
    workload: str | None = None
    """What was generated (prose, code, structured): speculation makes these differ by more than twice."""
    headline: bool = False
    """The figure the recipe's own author leads with."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low_tok_per_s {self.low} is above high_tok_per_s {self.high}")
        return self


class Requirement(Record):
    """What a machine needs beyond its usual state for the recipe to run."""

    usable_bytes: Bytes
    because: str


class Recipe(Record):
    """A published deployment of one checkpoint on one cluster.

    `checkpoint` is absent where the source does not say which build it was. `date` is the day the result was public.
    """

    kind: Literal["recipe"]
    id: str
    model: str
    checkpoint: str | None = None
    checkpoint_as_named: str | None = None
    device: str
    count: Count
    engine: str
    engine_version: str | None = None
    setup: Setup = Setup()
    speculation: Speculation | None = None
    speeds: tuple[Speed, ...] = ()
    protocol: str | None = None
    requires: Requirement | None = None
    date: DayOrMonth
    events: tuple[Event, ...] = ()
    grade: Grade = Grade.MEASURED
    trust: Literal["high", "medium", "low"]
    source: str
    sources: dict[str, Source]
    note: str | None = None
