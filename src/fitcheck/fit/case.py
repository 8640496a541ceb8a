"""The question, with everything needed to answer it: records in, no look-ups after."""

from __future__ import annotations

from dataclasses import field
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from fitcheck.catalogue.hardware import Cluster, Device, Engine
from fitcheck.catalogue.models import ComponentKind, Model
from fitcheck.catalogue.provenance import BytesFigure, Grade
from fitcheck.catalogue.recipes import Recipe
from fitcheck.errors import UsageError
from fitcheck.fit.calibrated import Calibrated
from fitcheck.fit.layout import Degrees
from fitcheck.fit.report import CitedSource, ClusterRow
from fitcheck.fit.sources import cite
from fitcheck.frozen import frozen

if TYPE_CHECKING:
    from fitcheck.catalogue.described import Origin

HEADLINE_CONTEXT_TOKENS = 32_768
"""The context that the verdict is given for when none was asked (or the model's maximum, if smaller)."""

TABLE_CONTEXT_TOKENS = (8_192, 32_768, 131_072, 262_144)
"""The rows of memory by context length; the model's own maximum follows."""

MAX_USERS = 1_000_000


@frozen
class Case:
    """One `fit` question. What was not asked is None: it is then taken from the best recipe, else from the engine."""

    model: Model
    device: Device
    count: int
    as_of: date
    engines: tuple[Engine, ...]
    recipes: tuple[Recipe, ...]
    named_cluster: Cluster | None = None
    origin: Origin | None = None
    context_tokens: int | None = None
    users: int = 1
    checkpoint_id: str | None = None
    engine_id: str | None = None
    kv_dtype: str | None = None
    degrees: Degrees = Degrees()
    usable_bytes: int | None = None
    places: dict[ComponentKind, str] = field(default_factory=dict)
    calibrated: Calibrated | None = None
    notes: tuple[str, ...] = ()
    """What was noticed, and what is not known, of a model that was read where it lies."""

    def __post_init__(self) -> None:
        check_asked(self.context_tokens, self.users)
        if self.usable_bytes is not None and self.usable_bytes < 1:
            raise UsageError("no usable memory is left with --usable 0", hint="write --usable with a size, such as 102GiB")
        maximum = self.model.architecture.max_context_tokens if self.model.architecture else None
        if maximum is not None and self.context_tokens is not None and self.context_tokens > maximum:
            raise UsageError(
                f"{self.model.id} has a context of {maximum:,} tokens at most, and {self.context_tokens:,} was asked",
                hint=f"write --context {maximum} or less",
            )

    @property
    def headline_tokens(self) -> int:
        """The context that the verdict is for."""
        if self.context_tokens is not None:
            return self.context_tokens
        maximum = self.model.architecture.max_context_tokens if self.model.architecture else HEADLINE_CONTEXT_TOKENS
        return min(HEADLINE_CONTEXT_TOKENS, maximum)

    def engine(self, engine_id: str) -> Engine | None:
        """The engine of this id, or None."""
        return next((engine for engine in self.engines if engine.id == engine_id), None)

    def cluster_row(self) -> ClusterRow:
        """The cluster as it is shown."""
        return cluster_row(self.device, self.count, self.named_cluster, self.origin)


def cluster_row(device: Device, count: int, named: Cluster | None, origin: Origin | None = None) -> ClusterRow:
    """A number of one device as it is shown."""
    memory = device.memory
    return ClusterRow(
        device=device.id,
        device_name=device.name,
        count=count,
        named=named.id if named else None,
        joined_by=named.joined_by if named else None,
        sold_bytes=memory.sold.value,
        visible_bytes=memory.visible[0].value,
        free_at_boot_bytes=tuple(figure.value for figure in memory.free_at_boot),
        free_now_bytes=origin.free_bytes if origin is not None else None,
    )


def check_asked(context_tokens: int | None, users: int) -> None:
    """Refuse a context or a number of users that makes no sense for any model. Raises `UsageError`."""
    if context_tokens is not None and context_tokens < 1:
        raise UsageError(f"a context of {context_tokens} tokens makes no sense", hint="write --context 32768 or --context 128k")
    if not 1 <= users <= MAX_USERS:
        raise UsageError(f"{users} users make no sense", hint=f"write --users with a number from 1 to {MAX_USERS:,}")


class Budget(NamedTuple):
    """What the engine may take on one device, and how that was arrived at."""

    bytes: int
    formula: str
    grade: Grade
    sources: tuple[CitedSource, ...]
    asked: bool


def usable_budget(case: Case, engine: Engine) -> Budget | None:
    """Visible memory times the share recipes use on this device with this engine, else the engine's default; `--usable` wins.

    An engine whose share nobody has published is given what the device has been seen to have free at boot, at the least. None where
    there is no figure at all.
    """
    if case.usable_bytes is not None:
        return Budget(case.usable_bytes, "as asked (--usable)", Grade.ASSUMED, (), True)
    visible = _visible(case)
    for share in case.device.usable:
        if share.engine == engine.id:
            sources = _visible_sources(case, visible) + cite(case.device.sources, share)
            words = f"{visible.value:,} B visible x {share.fraction} ({engine.name} on {case.device.name})"
            return Budget(int(visible.value * share.fraction), words, max(visible.grade, share.grade, key=_rank), sources, False)
    if engine.usable is None:
        return _free_at_boot(case, engine)
    sources = _visible_sources(case, visible) + cite(engine.sources, engine.usable)
    words = f"{visible.value:,} B visible x {engine.usable.fraction} ({engine.name}'s default)"
    grade = max(visible.grade, engine.usable.grade, key=_rank)
    return Budget(int(visible.value * engine.usable.fraction), words, grade, sources, False)


def _visible(case: Case) -> BytesFigure:
    """The memory that the device shows: as measured in a calibration, else the catalogue's first figure."""
    seen = case.calibrated.visible_bytes if case.calibrated is not None else None
    return case.device.memory.visible[0] if seen is None else BytesFigure(value=seen, source=("calibrated",), grade=Grade.MEASURED)


def _visible_sources(case: Case, visible: BytesFigure) -> tuple[CitedSource, ...]:
    if case.calibrated is not None and case.calibrated.visible_bytes is not None:
        return (case.calibrated.source,)
    return cite(case.device.sources, visible)


def _free_at_boot(case: Case, engine: Engine) -> Budget | None:
    now = case.origin.free_bytes if case.origin is not None else None
    if now is not None:
        return Budget(now, f"free on this machine now, as {engine.name}'s own share is not published", Grade.MEASURED, (), False)
    seen = min(case.device.memory.free_at_boot, key=lambda figure: figure.value, default=None)
    if seen is None:
        return None
    words = f"the least seen free at boot, as {engine.name}'s own share is not published"
    return Budget(seen.value, words, Grade.ESTIMATED, cite(case.device.sources, seen), False)


def _rank(grade: Grade) -> int:
    return grade.rank
