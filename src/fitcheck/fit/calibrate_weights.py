"""Weights as a calibration sets them beside the log: the whole file, and what one device holds."""

from __future__ import annotations

from collections.abc import Iterator

from fitcheck.catalogue.models import Checkpoint
from fitcheck.fit.calibration import CalibrationCase, CalibrationRow, row_of
from fitcheck.fit.layout import Layout
from fitcheck.fit.offload import PLACES
from fitcheck.fit.placement import component_bytes, measured_resident, place_components
from fitcheck.fit.printed import Fact
from fitcheck.units import MIB


def weight_rows(case: CalibrationCase) -> Iterator[CalibrationRow]:
    """Per device; for llama.cpp the whole file besides, since its buffers are split over devices as the user said."""
    printed = case.printed
    fact, term = (printed.weights_file, "weights, the whole file") if printed.whole else (printed.weights, "weights, fullest device")
    if printed.whole and printed.weights is not None:
        yield _one_device(case, printed.weights)
        if fact is None:
            return
    if fact is None:
        yield row_of(term, None, None, because="the log does not print it")
        return
    build = case.checkpoint
    if build is None or not build.components:
        yield row_of(term, fact, None, because=case.unknown_model or case.unknown_build or "the size of this build is not published")
        return
    if printed.whole:
        parts = [part for part in build.components if not part.optional]
        yield row_of(term, fact, sum(part.value for part in parts), " + ".join(f"{part.kind} {part.value:,} B" for part in parts))
        return
    yield row_of(term, fact, *_divided(case, build))


def _one_device(case: CalibrationCase, fact: Fact) -> CalibrationRow:
    """What llama.cpp put on its only device, where nothing but the input embedding stays in host memory."""
    term, build, host = "weights, fullest device", case.checkpoint, case.printed.weights_host
    if build is None or not build.components:
        return row_of(term, fact, None, because=case.unknown_model or case.unknown_build or "the size of this build is not published")
    if case.printed.processor:
        return row_of(term, fact, *_loaded(case, build, PLACES))
    if case.devices != 1:
        return row_of(term, fact, None, because="llama.cpp splits layers over devices as it was told")
    elsewhere, _ = _loaded(case, build, ("ram",))
    if host is not None and host.value > elsewhere + max(MIB, host.value // 100):
        return row_of(term, fact, None, because="more of the model lies in host memory than llama.cpp puts there by itself")
    return row_of(term, fact, *_loaded(case, build, ("gpu",)))


def _loaded(case: CalibrationCase, build: Checkpoint, places: tuple[str, ...]) -> tuple[int, str]:
    """Bytes of the parts that are loaded to these places, and of which."""
    parts = [part.component for part in place_components(build, case.engine, {}) if part.place in places]
    return sum(part.value for part in parts), " + ".join(f"{part.kind} {part.value:,} B" for part in parts)


def _divided(case: CalibrationCase, build: Checkpoint) -> tuple[int, str]:
    layout = Layout(case.printed.tp, case.printed.pp, "as printed")
    placed = place_components(build, case.engine, {}, drafting=bool(case.printed.named.get("num_speculative_tokens")))
    seen = measured_resident(build, case.engine, layout, placed)
    if seen is not None:
        return seen.value, f"resident as the catalogue has it for {layout.tp} devices"
    layers = case.architecture.layers if case.architecture else None
    parts = [(part.component.kind, *component_bytes(part.component, layout, layers)) for part in placed if part.place == "gpu"]
    return sum(size for _, size, _ in parts), " + ".join(f"{kind} {words}" for kind, _, words in parts)
