"""The terms that add up to the fullest device's memory."""

from __future__ import annotations

from fitcheck.catalogue.hardware import Engine, Overhead
from fitcheck.catalogue.models import Checkpoint, ComponentKind
from fitcheck.catalogue.provenance import Grade
from fitcheck.catalogue.recipes import Recipe
from fitcheck.fit.calibrated import calibrated_weights
from fitcheck.fit.case import Budget, Case
from fitcheck.fit.layout import Layout
from fitcheck.fit.memory import StateModel, own_drafts
from fitcheck.fit.placement import Placed, component_bytes, measured_resident, on_device, place_components
from fitcheck.fit.report import CitedSource, DeviceLedger, OffDevice, Term
from fitcheck.fit.sources import cite
from fitcheck.fit.state import KvDtype
from fitcheck.frozen import frozen

_COMPONENT_NAMES = {
    ComponentKind.WEIGHTS: "weights",
    ComponentKind.EXPERTS: "routed experts",
    ComponentKind.EMBEDDING: "input embedding",
    ComponentKind.NGRAM: "n-gram tables",
    ComponentKind.DRAFTER: "drafter",
    ComponentKind.VISION: "vision tower",
}


@frozen
class Plan:
    """Everything settled about one checkpoint on the cluster, but for context and users."""

    case: Case
    checkpoint: Checkpoint
    engine: Engine
    layout: Layout
    dtype: KvDtype
    memory: StateModel
    budget: Budget
    placed: tuple[Placed, ...]
    fixed_terms: tuple[Term, ...]
    off_device: tuple[OffDevice, ...]

    def total_bytes(self, tokens: int, users: int) -> int:
        """All memory taken on the fullest device."""
        return sum(term.bytes for term in self.terms(tokens, users))

    def terms(self, tokens: int, users: int) -> tuple[Term, ...]:
        """Every term of the fullest device at a context for a number of users."""
        return self.fixed_terms + self._state_terms(tokens, users)

    def ledger(self, tokens: int, users: int) -> DeviceLedger:
        """The fullest device's ledger at a context for a number of users."""
        terms = self.terms(tokens, users)
        return DeviceLedger(
            device=self.case.device.id,
            count=self.case.count,
            usable_bytes=self.budget.bytes,
            usable_formula=self.budget.formula,
            usable_grade=self.budget.grade,
            usable_sources=self.budget.sources,
            visible_bytes=self.case.device.memory.visible[0].value,
            total_bytes=sum(term.bytes for term in terms),
            terms=terms,
            off_device=self.off_device,
        )

    def _state_terms(self, tokens: int, users: int) -> tuple[Term, ...]:
        architecture = self.case.model.architecture
        if architecture is None:
            return ()
        sources = cite(self.case.model.sources, architecture)
        found = self.memory.terms(tokens, users)
        terms = tuple(
            Term(part.name, "state", part.bytes, part.formula, Grade.DERIVED, sources) for part in found if part.sort != "compute"
        )
        return terms + self._buffers(sum(part.bytes for part in found if part.sort == "compute"))

    def _buffers(self, compute_bytes: int) -> tuple[Term, ...]:
        """What the engine's own buffers and what comes beside them take more than the overhead that was seen, where its module counts them.

        An overhead that was seen holds both already, so only what exceeds it is added.
        """
        if not compute_bytes:
            return ()
        device = self.case.device
        beside = self.engine.beside_on(device, self.case.count)
        whole = compute_bytes + (beside.value if beside is not None else 0)
        seen = sum(term.bytes for term in self.fixed_terms if term.part == "overhead")
        if whole <= seen:
            return ()
        words = f"{compute_bytes:,} B by {self.engine.name}'s own rule"
        words += f" + {beside.value:,} B for context and collectives" if beside is not None else ""
        words += f": {whole - seen:,} B more than the overhead above, which holds such buffers too" if seen else ""
        sources = cite(device.sources if beside in device.beside_buffers else self.engine.sources, beside) if beside is not None else ()
        return (Term("compute buffers", "overhead", whole - seen, words, Grade.ESTIMATED if beside else Grade.DERIVED, sources),)


def make_plan(case: Case, checkpoint: Checkpoint, engine: Engine, memory: StateModel, budget: Budget, placed: tuple[Placed, ...]) -> Plan:
    """Settle weights and overhead for one checkpoint whose parts lie as `placed` says. The checkpoint must have components."""
    layout = memory.layout
    weights = _weight_terms(case, checkpoint, engine, layout, placed)
    overhead = _overhead_term(case, engine)
    return Plan(
        case=case,
        checkpoint=checkpoint,
        engine=engine,
        layout=layout,
        dtype=memory.dtype,
        memory=memory,
        budget=budget,
        placed=placed,
        fixed_terms=weights + ((overhead,) if overhead else ()),
        off_device=_off_device(case, engine, placed),
    )


def _weight_terms(case: Case, checkpoint: Checkpoint, engine: Engine, layout: Layout, placed: tuple[Placed, ...]) -> tuple[Term, ...]:
    own = calibrated_weights(case.calibrated, case.model.id, checkpoint, layout, placed) if _measured_with(case, engine) else None
    seen = measured_resident(checkpoint, engine, layout, placed)
    if own is not None:
        terms = [own]
    elif seen is not None:
        where = "resident on one device" if seen.devices == 1 else f"resident on each of {seen.devices} devices"
        words = where + (f", {seen.note}" if seen.note else "")
        terms = [Term("weights", "weights", seen.value, words, seen.grade, cite(case.model.sources, seen))]
    else:
        terms = []
    architecture = case.model.architecture
    layers, experts = (architecture.layers, architecture.experts) if architecture else (None, None)
    for part in placed:
        if on_device(part, case.device) and ((own is None and seen is None) or part.added):
            size, words = component_bytes(part.component, layout, layers, experts, part.layers)
            grade = part.component.grade if case.count == 1 else max(part.component.grade, Grade.DERIVED, key=lambda grade: grade.rank)
            name = _named(part) + (" (in unified RAM)" if part.place == "ram" else "")
            terms.append(Term(name, "weights", size, words, grade, cite(case.model.sources, part.component)))
    return tuple(terms)


def _named(part: Placed) -> str:
    return _COMPONENT_NAMES[part.component.kind] + (f", {part.layers} of {part.of_layers} layers" if part.layers else "")


def placed_parts(case: Case, checkpoint: Checkpoint, engine: Engine, lead: Recipe | None) -> tuple[Placed, ...]:
    """Where each part of a build lies under the case, with the drafter that the leading recipe drafts with.

    Routed experts are apart where they are placed or divided otherwise than the rest.
    """
    apart = ComponentKind.EXPERTS in case.places or case.degrees.dp > 1 or case.degrees.ep
    architecture, parameters = case.model.architecture, case.model.parameter_count
    drafting = own_drafts(lead, engine) is not None
    return place_components(checkpoint, engine, case.places, architecture, parameters, apart=apart, drafting=drafting)


def _measured_with(case: Case, engine: Engine) -> bool:
    return case.calibrated is not None and case.calibrated.engine == engine.id


def overhead_of(case: Case, engine: Engine) -> tuple[Overhead, dict[str, tuple[CitedSource, ...]]] | None:
    """What was measured, else the engine's overhead on so many of this device, else its own default; with the sources of its figure."""
    if _measured_with(case, engine) and case.calibrated is not None:
        return case.calibrated.overhead(), {"value": (case.calibrated.source,)}
    overhead = case.device.overhead_of(engine.id, case.count)
    if overhead is not None:
        return overhead, {"value": cite(case.device.sources, overhead)}
    if engine.overhead is not None:
        return engine.overhead, {"value": cite(engine.sources, engine.overhead)}
    return None


def _overhead_term(case: Case, engine: Engine) -> Term | None:
    found = overhead_of(case, engine)
    if found is None:
        return None
    overhead, sources = found
    low, high = (figure.value if figure else None for figure in (overhead.low, overhead.high))
    where = case.device.name if overhead in case.device.overhead else "no figure for this device, so the engine's own"
    if overhead.devices is not None and overhead.devices != case.count:
        where += f", as seen on {overhead.devices} of them"
    if _measured_with(case, engine) and case.calibrated is not None:
        where = case.calibrated.words()
    words = f"{engine.name}: context, collectives, graphs, activation peak ({where})"
    return Term("engine overhead", "overhead", overhead.value, words, overhead.grade, sources["value"], low, high)


def _off_device(case: Case, engine: Engine, placed: tuple[Placed, ...]) -> tuple[OffDevice, ...]:
    return tuple(
        OffDevice(
            component=_named(part),
            place=part.place,
            bytes=part.component.value,
            because="as asked (--place)" if part.moved or part.added else f"{engine.name} reads its rows there",
        )
        for part in placed
        if not on_device(part, case.device)
    )
