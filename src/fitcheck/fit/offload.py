"""Parts of a build that are asked to lie outside the device's memory, by component and by layers.

llama.cpp keeps the routed experts of the first layers in host RAM (`--n-cpu-moe N`, which counts leading layers without experts too;
`--cpu-moe`; any tensors by `-ot`). llama.cpp's K mixes keep the first and last layers and some between them larger; where a build does
not say what each of its layers takes, they are taken to be alike.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from fitcheck.catalogue.models import Architecture, Checkpoint, Component, ComponentKind
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import UsageError

PLACES = ("gpu", "ram", "nvme")


class Place(NamedTuple):
    """Where a component lies as asked: all of it, or (routed experts) that of some `layers`, the rest on the GPU."""

    where: str
    layers: int | None = None

    @classmethod
    def read(cls, text: str) -> Place:
        """`ram`, or `ram:12` for twelve layers. Raises `UsageError` for anything else."""
        where, colon, layers = text.partition(":")
        if where not in PLACES:
            raise UsageError(f"there is no place {where!r}", hint=f"one of {', '.join(PLACES)}")
        if colon and where == "gpu":
            raise UsageError("layers are counted where they lie elsewhere", hint="such as ram:12")
        if colon and not (layers.isascii() and layers.isdigit() and 0 < len(layers) < 5):
            raise UsageError(f"cannot read {layers!r} as a number of layers", hint=f"such as {where}:12")
        return cls(where, int(layers) if colon else None)


class Share(NamedTuple):
    """A part of a component, where it lies, and in how many of the layers that have experts."""

    component: Component
    where: str
    layers: int
    of_layers: int


def divided(component: Component, place: Place, expert_layers: int | None) -> list[Share]:
    """Routed experts of the first so many layers at a place, of the others on the GPU. Raises `UsageError` for too many layers."""
    asked = f"--place {component.kind}={place.where}:{place.layers}"
    layers = place.layers or 0
    if component.kind is not ComponentKind.EXPERTS:
        raise UsageError(f"{asked}: only routed experts are divided by layers", hint="leave the number out")
    if expert_layers is None:
        raise UsageError(f"{asked}: how many layers have experts is not known", hint=f"--place experts={place.where}")
    if not 1 <= layers <= expert_layers:
        raise UsageError(f"{asked}: {expert_layers} layers have routed experts", hint=f"1 to {expert_layers}")
    sizes = _each_layer(component, expert_layers)
    away = first_layers(component, layers, expert_layers)
    parts = ((away, layers, place.where, sizes[:layers]), (component.value - away, expert_layers - layers, "gpu", sizes[layers:]))
    return [
        Share(component.model_copy(update={"value": size, "printed": None, "layer_bytes": of_each}), where, count, expert_layers)
        for size, count, where, of_each in parts
        if count
    ]


def first_layers(component: Component, layers: int, expert_layers: int) -> int:
    """Bytes of routed experts in the first `layers` of those that have any; rounded up where layers are taken to be alike."""
    sizes = _each_layer(component, expert_layers)
    return sum(sizes[:layers]) if sizes else ceil(component.value * layers / expert_layers)


def _each_layer(component: Component, expert_layers: int) -> tuple[int, ...]:
    return component.layer_bytes if len(component.layer_bytes) == expert_layers else ()


def with_experts_apart(checkpoint: Checkpoint, architecture: Architecture | None, parameters: int) -> tuple[Component, ...]:
    """A build's components with the routed experts apart, also where only its whole size is known.

    All that is not routed experts is then counted in 16 bits a parameter, more than which no build keeps, so that the experts are at least
    what is left: what moving them frees is never overstated. As they are where the widths are not known.
    """
    kinds = {component.kind for component in checkpoint.components}
    whole = next((component for component in checkpoint.components if component.kind is ComponentKind.WEIGHTS), None)
    experts = _expert_parameters(architecture) if architecture else None
    if ComponentKind.EXPERTS in kinds or whole is None or experts is None or checkpoint.pruned or not 0 < experts < parameters:
        return checkpoint.components
    rest = min(whole.value, 2 * (parameters - experts))
    at_least = whole.value - rest
    if at_least <= 0:
        return checkpoint.components
    words = f"{whole.value:,} B less 2 B for each of {parameters - experts:,} other parameters: at least"
    changed = {"printed": None, "grade": Grade.ESTIMATED}
    whole_bytes = min(whole.whole_bytes, rest)
    return tuple(
        part
        for component in checkpoint.components
        for part in (
            (
                component.model_copy(
                    update={**changed, "value": rest, "whole_bytes": whole_bytes, "note": "all but the routed experts, at most"}
                ),
                component.model_copy(update={**changed, "value": at_least, "whole_bytes": 0, "kind": ComponentKind.EXPERTS, "note": words}),
            )
            if component is whole
            else (component,)
        )
    )


def _expert_parameters(architecture: Architecture) -> int | None:
    """Gate, up and down of every routed expert; Nemotron's experts have no gate (`relu2`)."""
    sizes = (architecture.expert_layers, architecture.experts, architecture.hidden_size, architecture.expert_feed_forward_size)
    if any(size is None for size in sizes):
        return None
    layers, experts, hidden, inner = (size or 0 for size in sizes)
    return layers * experts * hidden * inner * (2 if architecture.family.startswith("nemotron") else 3)
