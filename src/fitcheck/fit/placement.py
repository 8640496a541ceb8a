"""Where the components of a build lie, and what each takes of the fullest device."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.models import Architecture, Checkpoint, Component, ComponentKind, ResidentFigure
from fitcheck.fit.layout import Layout
from fitcheck.fit.offload import Place, divided, with_experts_apart


class Placed(NamedTuple):
    """A component and where it lies; `usual` is where it would lie unasked (None: it is left out)."""

    component: Component
    place: str
    usual: str | None
    layers: int | None = None
    """In how many layers it lies, where the component's other layers lie elsewhere."""
    of_layers: int | None = None

    @property
    def moved(self) -> bool:
        """Whether a part that is loaded anyway lies elsewhere than usual."""
        return self.usual is not None and self.place != self.usual

    @property
    def added(self) -> bool:
        """Whether a part that is left out by itself is loaded because it was asked for."""
        return self.usual is None


def place_components(
    checkpoint: Checkpoint,
    engine: Engine,
    asked: dict[ComponentKind, str],
    architecture: Architecture | None = None,
    parameters: int = 0,
    *,
    apart: bool = False,
    drafting: bool = False,
) -> tuple[Placed, ...]:
    """Where each component lies: as asked, else as its record says, else where the engine puts it.

    Optional parts lie nowhere (they are left out) unless asked for, as does the build's own drafter in an engine that loads it to draft
    alone, but for `drafting`. With `apart` the architecture and the model's parameters tell routed experts from the rest where the build
    itself does not. Raises `UsageError` for a place that makes no sense.
    """
    placed: list[Placed] = []
    for component in with_experts_apart(checkpoint, architecture, parameters) if apart else checkpoint.components:
        usual = None if component.optional else component.place or _usual(component.kind, engine, drafting=drafting)
        place = Place.read(asked[component.kind]) if component.kind in asked else Place(usual) if usual is not None else None
        if place is not None and place.layers is not None:
            shares = divided(component, place, architecture.expert_layers if architecture else None)
            placed += [Placed(share.component, share.where, usual, share.layers, share.of_layers) for share in shares]
        elif place is not None:
            placed.append(Placed(component, place.where, usual))
    return tuple(placed)


def _usual(kind: ComponentKind, engine: Engine, *, drafting: bool) -> str | None:
    """Where the engine keeps a component by itself; None where it leaves it out.

    llama.cpp reads rows of the input embedding on the host, whatever is offloaded (`LLM_TENSOR_LAYER_INPUT` in `src/llama-arch.cpp`: "input
    layers are usually assigned to CPU/host buffer types"). It passes over draft layers (`TENSOR_SKIP`), as vLLM and SGLang do ("skip spec
    decode layers for main model" in `load_weights` of vLLM's models) and mlx-lm (`sanitize`), unless they draft.
    """
    place = engine.places.get(kind, "gpu")
    if place == "none":
        return "gpu" if drafting else None
    return place


def left_out(checkpoint: Checkpoint, placed: tuple[Placed, ...]) -> list[Component]:
    """Parts of a build, or offered beside it, that are not loaded."""
    loaded = {part.component.kind for part in placed}
    return [component for component in checkpoint.components if component.kind not in loaded]


def refused_place(placed: tuple[Placed, ...], engine: Engine) -> str | None:
    """Why the engine cannot keep a part where it was asked to; None where it can."""
    for part in placed:
        if part.moved and part.place != "gpu" and part.place not in engine.offloads.get(part.component.kind, ()):
            return f"{engine.name} is not known to keep {part.component.kind} in {part.place}"
        if part.layers and engine.split != "pipeline":
            return f"{engine.name} is not known to keep the experts of some layers elsewhere"
    return None


def on_device(placed: Placed, device: Device) -> bool:
    """Whether the component takes the device's memory: on the GPU, or in the RAM of a machine whose RAM is the GPU's memory."""
    return placed.place == "gpu" or (placed.place == "ram" and device.memory.unified)


def component_bytes(
    component: Component, layout: Layout, layers: int | None, experts: int | None = None, expert_layers: int | None = None
) -> tuple[int, str]:
    """Bytes of a component on the fullest device, and the formula in words. `experts` is how many routed experts a layer has.

    Tensor parallelism divides what is divisible; replicated parts lie whole on each rank of a stage; routed experts are divided over the
    ranks of all replicas, in whole experts under expert parallelism. A pipeline stage holds its part of the layers, rounded up; embeddings
    and head are spread alike for want of their sizes. `expert_layers` says in how many layers the component's experts lie, where others
    lie elsewhere: they are the last ones, so a stage may hold nothing but such. Where the bytes of each layer are known, the heaviest run
    of as many layers as a stage has counts. An input embedding that is named apart lies whole on the first stage.
    """
    routed = component.kind is ComponentKind.EXPERTS
    layout = layout._replace(pp=1) if component.kind is ComponentKind.EMBEDDING else layout
    ranks = 1 if component.split == "replicated" else layout.tp * (layout.dp if routed else 1)
    stage, stages = (ceil(layers / layout.pp), layers) if layers and layout.pp > 1 else (1, layout.pp)
    if expert_layers is not None and stages > 1:
        stage, stages = min(stage, expert_layers), expert_layers
    sizes = component.layer_bytes if layers and stages > 1 else ()
    value = max(sum(sizes[at : at + stage]) for at in range(len(sizes))) if sizes else component.value
    words = f"{value:,} B" + (f", the largest {stage} of {len(sizes)} layers in a row" if stage < len(sizes) else "")
    stage, stages = (1, 1) if sizes else (stage, stages)
    words += f" x {stage}/{stages} layers" if stages > 1 else ""
    if routed and layout.ep and experts and ranks > 1:
        most = ceil(experts / ranks)
        return ceil(value * stage * most / (stages * experts)), f"{words} x {most} of {experts} experts"
    whole = component.whole_bytes if ranks > 1 and not sizes else 0
    if whole:
        words = f"({value:,} B - {whole:,} B) / {ranks} ranks + {whole:,} B whole on each" + (
            f", x {stage}/{stages} layers" if stages > 1 else ""
        )
    elif ranks > 1:
        words += f" / {ranks} ranks"
    elif layout.tp > 1:
        words += ", whole on each rank"
    return ceil((value + whole * (ranks - 1)) * stage / (stages * ranks)), words


def measured_resident(checkpoint: Checkpoint, engine: Engine, layout: Layout, placed: tuple[Placed, ...]) -> ResidentFigure | None:
    """Weight bytes an engine was seen to hold with this many ranks, where no part lies elsewhere than usual."""
    if layout.pp > 1 or layout.dp > 1 or any(part.moved or part.layers for part in placed):
        return None
    fitting = [figure for figure in checkpoint.resident if figure.devices == layout.tp]
    return next((figure for figure in fitting if figure.engine in (engine.id, None)), None)
