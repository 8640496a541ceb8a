"""Models and their checkpoints: architecture, parameters, downloadable builds."""

# Annotations are evaluated as they stand (no `from __future__ import annotations`): pydantic would compile each text again at start-up.

from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fitcheck.catalogue.layers import LayerGroup
from fitcheck.catalogue.provenance import (
    BytesFigure,
    Cited,
    CountFigure,
    DayFigure,
    DayOrMonth,
    Event,
    NumberFigure,
    Record,
    Source,
    Status,
    status_on,
)
from fitcheck.units import counted_from


class ComponentKind(StrEnum):
    """Parts of a checkpoint that are placed as one."""

    WEIGHTS = "weights"
    """Everything not named apart: the whole model where no split is known, else the dense, always-active part."""
    EXPERTS = "experts"
    EMBEDDING = "embedding"
    """Tables from which a token's rows are read: named apart in GGUF builds, where the head is stored besides (a tied one is weights)."""
    NGRAM = "ngram"
    DRAFTER = "drafter"
    VISION = "vision"


class Component(BytesFigure):
    """One part of a checkpoint.

    `split` says how tensor parallelism treats it: divided over the ranks, or whole on each. An `optional` part is not loaded unless
    it is placed (`--place drafter=gpu`), such as a drafter that is downloaded apart. `place` is where those who run it keep the part, when
    that is not where the engine would put it by itself. `layer_bytes` are those of each layer that has the part, first to last, where they
    are known and differ (llama.cpp's mixes); they add up to `value`. `whole_bytes` of `value` lie on every rank though the rest is divided:
    norms, routers, MLA's projections down to what all heads share.
    """

    place: Literal["gpu", "ram", "nvme"] | None = None
    kind: ComponentKind
    split: Literal["divided", "replicated"] = "divided"
    optional: bool = False
    layer_bytes: tuple[Annotated[int, Field(ge=0)], ...] = ()
    whole_bytes: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _layers_add_up(self) -> "Component":
        total = sum(self.layer_bytes)
        if self.layer_bytes and total != self.value:
            raise ValueError(f"layer_bytes add up to {total:,}, not to {self.value:,}")
        if self.whole_bytes > self.value:
            raise ValueError(f"whole_bytes are {self.whole_bytes:,}, more than the part's {self.value:,}")
        return self


class ResidentFigure(BytesFigure):
    """Weight bytes that an engine was seen to hold on the fullest device when it ran on `devices` of them; outranks a division."""

    devices: Annotated[int, Field(ge=1)]
    engine: str | None = None


class CheckpointEvent(Event):
    """A checkpoint is published, or withdrawn in favour of `successors` (ids of checkpoints of the same model)."""

    successors: tuple[str, ...] = ()


class Checkpoint(Record):
    """One downloadable build of a model.

    `components` add up to what is downloaded. `bits_per_weight` is the build's own label; where it is absent it is the resident bytes
    over the parameters. `divergence` is the KL divergence from the 16-bit original, where someone published it. `native` builds are the
    weights as their maker trained or released them first: the zero of any divergence. From a `pruned` build experts were removed: another
    model in quality, with fewer parameters than its model's.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.\-]*$")
    hub_id: str | None = None
    format: str
    native: bool = False
    pruned: bool = False
    components: tuple[Component, ...] = ()
    resident: tuple[ResidentFigure, ...] = ()
    kv_dtype: str | None = None
    """The cache dtype that the build itself asks for (`kv_cache_scheme`, `kv_cache_quant_algo`), taken where none is named."""
    bits_per_weight: NumberFigure | None = None
    divergence: NumberFigure | None = None
    events: tuple[CheckpointEvent, ...] = Field(min_length=1)
    note: str | None = None

    @property
    def total_bytes(self) -> int | None:
        """Bytes of all components that come with the download, or None where no figure is known."""
        return sum(part.value for part in self.components if not part.optional) if self.components else None

    def event_on(self, day: date) -> CheckpointEvent | None:
        """The checkpoint's status on a day, or None when it had not been published yet."""
        found = status_on(self.events, day)
        return found if isinstance(found, CheckpointEvent) else None

    def withdrawn_on(self, day: date) -> bool:
        """Whether its maker, or those who ran it, had withdrawn it by that day."""
        event = self.event_on(day)
        return event is not None and event.status is Status.WITHDRAWN


class Alias(Event):
    """Another name for the model, in force from a day: an API id that serves it, a refresh, a nickname.

    `until` ends it (exclusive). `announced` and `withdrawn` names never resolve, but are kept and shown.
    """

    name: str
    checkpoint: str | None = None
    """The build that the name means, where it is that of one (a refresh)."""
    until: DayOrMonth | None = None

    def serves_on(self, day: date) -> bool:
        """Whether the name means this model on that day."""
        begun = self.status is Status.EFFECTIVE and counted_from(self.since) <= day
        return begun and (self.until is None or day < counted_from(self.until))


class Parameters(Record):
    """Parameter counts. `stored` includes n-gram tables, drafters and vision towers that `total` leaves out.

    `total` is absent only where a model was read from files that do not tell it.
    """

    total: CountFigure | None = None
    active: CountFigure | None = None
    active_prefill: CountFigure | None = None
    stored: CountFigure | None = None


class Architecture(Cited):
    """What decides the state: read from the published config."""

    family: str
    max_context_tokens: Annotated[int, Field(gt=0)]
    layers: Annotated[int, Field(gt=0)]
    hidden_size: Annotated[int, Field(gt=0)] | None = None
    attention_heads: Annotated[int, Field(gt=0)] | None = None
    vocabulary: Annotated[int, Field(gt=0)] | None = None
    feed_forward_size: Annotated[int, Field(gt=0)] | None = None
    expert_feed_forward_size: Annotated[int, Field(gt=0)] | None = None
    experts: Annotated[int, Field(gt=0)] | None = None
    experts_per_token: Annotated[int, Field(gt=0)] | None = None
    expert_layers: Annotated[int, Field(gt=0)] | None = None
    """Layers that have routed experts, draft layers not among them."""
    only_llama_cpp: tuple[str, ...] = ()
    """What the source leaves out and engines other than llama.cpp need: read from a GGUF file, their figures are then not known."""
    groups: tuple[LayerGroup, ...] = Field(min_length=1)
    draft_groups: tuple[LayerGroup, ...] = ()
    """What the model's own draft (MTP) layers keep in addition, where speculative decoding uses them."""


class Score(Cited):
    """A quality score. Scores compare only within the same `index` and `version`."""

    index: str
    version: str
    score: Decimal
    date: DayOrMonth
    of: str | None = None


class Model(Record):
    """An open-weight language model."""

    kind: Literal["model"]
    id: str
    name: str
    developer: str
    license: str
    hub_id: str | None = None
    released: DayFigure
    parameters: Parameters = Parameters()
    architecture: Architecture | None = None
    aliases: tuple[Alias, ...] = ()
    scores: tuple[Score, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    sources: dict[str, Source]
    note: str | None = None

    @property
    def parameter_count(self) -> int:
        """Parameters in all; 0 where nobody counted them."""
        return self.parameters.total.value if self.parameters.total is not None else 0

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        """The checkpoint with this id, or None."""
        return next((checkpoint for checkpoint in self.checkpoints if checkpoint.id == checkpoint_id), None)
