"""llama.cpp: what a context allocates on the fullest device, to the byte.

Read from llama.cpp's sources (build 11549) and equal to what the engine itself says in runs without allocation. `llamacpp_settings` pads
the context and splits it over sequences, `llamacpp_families` tells what is particular to an architecture, `llamacpp_model` what is refused,
`llamacpp_cache` holds the caches and states, `llamacpp_compute` the buffer of a micro-batch on one GPU.
"""

from __future__ import annotations

from collections.abc import Collection

from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import Settings, StateTerm
from fitcheck.fit.engines.llamacpp_cache import Piece, pieces
from fitcheck.fit.engines.llamacpp_compute import compute_term
from fitcheck.fit.engines.llamacpp_families import rules_for
from fitcheck.fit.engines.llamacpp_model import model_of
from fitcheck.fit.engines.llamacpp_settings import BLOCKS, run_of


def allocate(architecture: Architecture, settings: Settings, types: Collection[str] = BLOCKS.keys()) -> tuple[StateTerm, ...]:
    """Terms of the fullest device.

    `pp` devices share the layers (`--split-mode layer`); llama.cpp's other splits are not modelled. Raises `UnknownFact` for families that
    llama.cpp cannot read, `UsageError` for settings it refuses.
    """
    rules = rules_for(architecture)
    run = run_of(architecture, rules, settings, types)
    if settings.tp > 1 or settings.dcp > 1:
        raise UnknownFact("llama.cpp's split of tensors over devices is not modelled; pp splits layers, as --split-mode layer does")
    found = pieces(model_of(architecture, rules, run))
    if not run.on_device:
        return tuple(_host_term(piece) for piece in found)
    terms = tuple(_term(piece, architecture.layers, settings.pp, run.gpu_layers) for piece in found)
    whole = settings.pp == 1 and (run.gpu_layers is None or run.gpu_layers > architecture.layers)
    compute = compute_term(architecture, rules, run) if whole else None
    return terms if compute is None else (*terms, compute)


def _term(piece: Piece, all_layers: int, devices: int, offloaded: int | None) -> StateTerm:
    layers = fullest_layers(piece.layers, all_layers, devices, offloaded)
    over = f" over {devices} devices" if devices > 1 else ""
    shared = f" (of {piece.layers}{over})" if layers != piece.layers else ""
    return StateTerm(piece.name, piece.sort, layers * piece.layer_bytes, f"{layers} layers{shared} x {piece.formula}")


def _host_term(piece: Piece) -> StateTerm:
    """With `offload_kqv` off every cache and state stays in host memory."""
    size = piece.layers * piece.layer_bytes
    return StateTerm(f"{piece.name} (host)", piece.sort, 0, f"{size:,} B in host memory, {piece.layers} layers x {piece.formula}")


def fullest_layers(layers: int, all_layers: int, devices: int, offloaded: int | None = None) -> int:
    """Layers of a kind on the fullest of equal devices.

    `llama_model_base::load_tensors` (`src/llama-model.cpp`): of all layers and the output, which counts as the last, the last
    `n_gpu_layers` (`offloaded`) lie on devices (`i_gpu_start`, `act_gpu_layers`), layer il on the one in whose slice
    (il - i_gpu_start) / act_gpu_layers lies, so that the first gets ceil(act_gpu_layers / devices). Caches lie with their layers. Exact
    where all layers are alike; layers of one kind are taken to be spread evenly, since a group does not say where they are.
    """
    if devices > all_layers:
        raise UsageError(f"{all_layers} layers cannot be split over {devices} devices")
    placed = all_layers + 1 if offloaded is None else min(offloaded, all_layers + 1)
    first = min(max(placed - 1, 0), -(-placed // devices))
    return min(layers, -(-layers * first // all_layers))
