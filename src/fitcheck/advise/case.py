"""The question of `recommend`: a cluster, what is asked of it, and everything needed to answer for each model."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from fitcheck.catalogue.hardware import Cluster, Device, Engine
from fitcheck.catalogue.models import Model
from fitcheck.catalogue.recipes import Recipe
from fitcheck.fit.case import Case, check_asked
from fitcheck.frozen import frozen
from fitcheck.units import counted_from

if TYPE_CHECKING:
    from fitcheck.catalogue.described import Origin


@frozen
class RecommendCase:
    """One `recommend` question. `recipes` may be those of any model; each model is given its own."""

    models: tuple[Model, ...]
    device: Device
    count: int
    as_of: date
    engines: tuple[Engine, ...]
    recipes: tuple[Recipe, ...]
    named_cluster: Cluster | None = None
    origin: Origin | None = None
    context_tokens: int | None = None
    users: int = 1
    engine_id: str | None = None

    def __post_init__(self) -> None:
        check_asked(self.context_tokens, self.users)

    @property
    def released(self) -> tuple[Model, ...]:
        """The models that were out on the day; one dated by month counts from the month's end."""
        return tuple(model for model in self.models if counted_from(model.released.value) <= self.as_of)

    def ends_before(self, model: Model) -> bool:
        """Whether the model's own context is shorter than what was asked."""
        longest = model.architecture.max_context_tokens if model.architecture else None
        return longest is not None and self.context_tokens is not None and longest < self.context_tokens

    def fit_case(self, model: Model) -> Case:
        """The `fit` question for one model, with the builds that the asked engine serves; at its context's end where that comes first."""
        longest = model.architecture.max_context_tokens if model.architecture else None
        return Case(
            model=self._with_served(model),
            device=self.device,
            count=self.count,
            as_of=self.as_of,
            engines=self.engines,
            recipes=tuple(recipe for recipe in self.recipes if recipe.model == model.id),
            named_cluster=self.named_cluster,
            origin=self.origin,
            context_tokens=longest if self.ends_before(model) else self.context_tokens,
            users=self.users,
            engine_id=self.engine_id,
        )

    def _with_served(self, model: Model) -> Model:
        engine = next((engine for engine in self.engines if engine.id == self.engine_id), None)
        if engine is None or self.device.chip not in engine.chips:
            return model
        served = tuple(build for build in model.checkpoints if build.format in engine.formats)
        # Where it serves none, all are kept: each then says that it is not served.
        return model.model_copy(update={"checkpoints": served}) if served else model
