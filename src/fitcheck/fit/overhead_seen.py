"""The overhead that a run shows: what is left of the engine's share of memory after weights, caches and state."""

from __future__ import annotations

from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.models import Checkpoint, Model
from fitcheck.fit.calibrated import Calibrated
from fitcheck.fit.printed import Printed
from fitcheck.fit.report import CitedSource


def known_overhead(device: Device | None, engine: Engine, count: int, version: str | None) -> tuple[int, str] | None:
    """The catalogue's overhead of an engine on so many of a device, else the engine's own; None where neither is known."""
    if device is None:
        return None
    own = device.overhead_of(engine.id, count, version)
    if own is not None:
        return own.value, f"the catalogue's for {engine.name} on {device.name}"
    return (engine.overhead.value, f"the catalogue's for {engine.name} on any device") if engine.overhead is not None else None


def seen_overhead(printed: Printed, device: Device | None) -> tuple[int, str] | str:
    """Bytes and the arithmetic, or why they cannot be told.

    vLLM and SGLang: share x memory - weights - pool - states, of one device. llama.cpp sizes nothing by a share: its overhead is the
    compute buffer of the fullest device, as the catalogue has it.
    """
    if printed.whole:
        if printed.compute is None:
            return "the log prints no compute buffer of a GPU"
        where = "the processor" if printed.processor else "the fullest device"
        return printed.compute.value, f"compute buffer of {where}, {printed.compute.value:,} B"
    if printed.pp > 1:
        return "stages of a pipeline differ, and the log does not say which device holds most"
    total = printed.total.value if printed.total is not None else device.memory.visible[0].value if device is not None else None
    missing = {
        "the share of memory (gpu_memory_utilization, mem_fraction_static)": printed.utilisation,
        "the device's memory (--cluster names the device)": total,
        "the weights": printed.weights,
        "the cache": printed.kv,
    }
    absent = [name for name, value in missing.items() if value is None]
    if absent or printed.utilisation is None or total is None or printed.weights is None or printed.kv is None:
        return f"the log does not print {', '.join(absent)}"
    state = printed.state.value if printed.state is not None else 0
    left = int(printed.utilisation * total) - printed.weights.value - printed.kv.value - state
    states = f" - {state:,}" if state else ""
    words = f"{printed.utilisation} x {total:,} - {printed.weights.value:,} - {printed.kv.value:,}{states} B"
    if left < 0:
        return f"{words} is below zero: the figures printed are not of one device"
    return left, words


def measured_overhead(
    printed: Printed, device: Device | None, model: Model | None, checkpoint: Checkpoint | None, devices: int, source: CitedSource
) -> Calibrated | None:
    """What `fit` may take in place of the catalogue's figures; None where the run does not show it."""
    found = seen_overhead(printed, device)
    if isinstance(found, str):
        return None
    size, words = found
    return Calibrated(
        engine=printed.engine,
        device=device.id if device is not None else None,
        devices=devices,
        tp=printed.tp,
        model=model.id if model is not None else printed.model,
        checkpoint=checkpoint.id if checkpoint is not None else None,
        overhead_bytes=size,
        formula=words,
        visible_bytes=printed.total.value if printed.total is not None and not printed.whole else None,
        weights_bytes=printed.weights.value if printed.weights is not None and not printed.whole else None,
        source=source,
    )
