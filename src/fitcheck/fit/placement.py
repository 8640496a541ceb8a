"""How a model is split over the devices of a cluster, and where its components lie."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.layers import Attention, Chunked, Sliding
from fitcheck.catalogue.models import Architecture, Checkpoint, Component, ComponentKind, ResidentFigure
from fitcheck.errors import UsageError
from fitcheck.fit.state import Share

PLACES = ("gpu", "ram", "nvme")


class Layout(NamedTuple):
    """Tensor times pipeline parallelism over all devices, and why it was chosen. `stock` is false where only a recipe runs it so."""

    tp: int
    pp: int
    reason: str
    stock: bool = True

    @property
    def share(self) -> Share:
        """What one device holds."""
        return Share(tp=self.tp, pp=self.pp)

    @property
    def label(self) -> str:
        """`TP2`, `PP3`, `TP2 PP2`."""
        parts = [f"TP{self.tp}"] if self.tp > 1 or self.pp == 1 else []
        return " ".join(parts + ([f"PP{self.pp}"] if self.pp > 1 else []))


def choose_layout(count: int, engine: Engine, architecture: Architecture | None, *, asked_tp: int | None, recipe_tp: int | None) -> Layout:
    """The layout for `count` devices: as asked, as the best recipe runs it, else what the engine does by itself.

    Stock engines divide heads evenly, so tensor parallelism takes the largest divisor of the count that also divides the heads (vLLM:
    "Total number of attention heads must be divisible by tensor parallel size"); the rest is pipeline parallelism.
    Engines that split by layers (llama.cpp's default `--split-mode layer`) use pipeline stages alone.
    Raises `UsageError` for a tensor-parallel size that does not divide the count.
    """
    if asked_tp is not None:
        if not 1 <= asked_tp <= count or count % asked_tp:
            raise UsageError(f"--tp {asked_tp} does not divide {count} devices", hint=f"choose a divisor of {count}")
        return _named(asked_tp, count, architecture, "as asked (--tp)")
    if recipe_tp is not None and recipe_tp == count:
        return _named(recipe_tp, count, architecture, "as the best recipe runs it")
    if engine.split == "pipeline":
        return Layout(1, count, f"{engine.name} splits by layers")
    tp = max(size for size in range(1, count + 1) if count % size == 0 and indivisible(architecture, size) is None)
    reason = "tensor parallel over all devices" if tp == count else f"{indivisible(architecture, count)} do not divide by {count}"
    return Layout(tp, count // tp, reason)


def indivisible(architecture: Architecture | None, tp: int) -> str | None:
    """What does not divide over so many ranks, in words; None where all of it does.

    Attention heads must divide by the ranks, KV heads by the ranks or the ranks by them (they are then replicated).
    """
    if architecture is None:
        return None
    if architecture.attention_heads is not None and architecture.attention_heads % tp:
        return f"{architecture.attention_heads} attention heads"
    for group in architecture.groups:
        if isinstance(group, Attention | Sliding | Chunked) and group.kv_heads % tp and tp % group.kv_heads:
            return f"{group.kv_heads} KV heads"
    return None


def _named(tp: int, count: int, architecture: Architecture | None, reason: str) -> Layout:
    odd = indivisible(architecture, tp)
    if odd is not None:
        return Layout(tp, count // tp, f"{reason}, although {odd} do not divide by {tp}", stock=False)
    return Layout(tp, count // tp, reason)


class Placed(NamedTuple):
    """A component and where it lies; `usual` is where it would lie unasked (None: it is left out)."""

    component: Component
    place: str
    usual: str | None

    @property
    def moved(self) -> bool:
        """Whether a part that is loaded anyway lies elsewhere than usual."""
        return self.usual is not None and self.place != self.usual

    @property
    def added(self) -> bool:
        """Whether an optional part is loaded because it was asked for."""
        return self.usual is None


def place_components(checkpoint: Checkpoint, engine: Engine, asked: dict[ComponentKind, str]) -> tuple[Placed, ...]:
    """Where each component lies: as asked, else as its record says, else n-gram tables where the engine puts them and all else on the GPU.

    Optional parts lie nowhere (they are left out) unless asked for.
    """
    placed = []
    for component in checkpoint.components:
        engines_own = engine.ngram_placement if component.kind is ComponentKind.NGRAM else "gpu"
        usual = None if component.optional else component.place or engines_own
        place = asked.get(component.kind, usual)
        if place is not None:
            placed.append(Placed(component, place, usual))
    return tuple(placed)


def refused_place(placed: tuple[Placed, ...], engine: Engine) -> str | None:
    """Why the engine cannot keep a part where it was asked to; None where it can."""
    for part in placed:
        if part.moved and part.place != "gpu" and part.place not in engine.offloads.get(part.component.kind, ()):
            return f"{engine.name} is not known to keep {part.component.kind} in {part.place}"
    return None


def on_device(placed: Placed, device: Device) -> bool:
    """Whether the component takes the device's memory: on the GPU, or in the RAM of a machine whose RAM is the GPU's memory."""
    return placed.place == "gpu" or (placed.place == "ram" and device.memory.unified)


def component_bytes(component: Component, layout: Layout, layers: int | None) -> tuple[int, str]:
    """Bytes of a component on the fullest device, and the formula in words.

    Tensor parallelism divides what is divisible; replicated parts lie whole on each rank of a stage. A pipeline stage holds its part of
    the layers, rounded up; embeddings and head are spread alike for want of their sizes.
    """
    tp = 1 if component.split == "replicated" else layout.tp
    stage, stages = (ceil(layers / layout.pp), layers) if layers and layout.pp > 1 else (1, layout.pp)
    size = ceil(component.value * stage / (stages * tp)) if stages > 1 else ceil(component.value / tp)
    words = f"{component.value:,} B"
    if stages > 1:
        words += f" x {stage}/{stages} layers"
    if tp > 1:
        words += f" / {tp} ranks"
    elif layout.tp > 1:
        words += ", whole on each rank"
    return size, words


def measured_resident(checkpoint: Checkpoint, engine: Engine, layout: Layout, placed: tuple[Placed, ...]) -> ResidentFigure | None:
    """Weight bytes an engine was seen to hold with this many ranks, where no part lies elsewhere than usual."""
    if layout.pp > 1 or any(part.moved for part in placed):
        return None
    fitting = [figure for figure in checkpoint.resident if figure.devices == layout.tp]
    return next((figure for figure in fitting if figure.engine in (engine.id, None)), None)
