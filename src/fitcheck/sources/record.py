"""A model known by its published config alone, as a record that `fit` can be asked about.

Nothing was downloaded, so what its builds would take is derived tensor by tensor for the formats people use; a listing of real files
outranks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from fitcheck.catalogue.models import Architecture, Checkpoint, CheckpointEvent, Component, ComponentKind, Model, Parameters
from fitcheck.catalogue.provenance import CountFigure, DayFigure, Grade, NumberFigure, Source
from fitcheck.errors import FitcheckError
from fitcheck.sources.config import ConfigModel, load_config, read_config
from fitcheck.sources.tensors.record import Part
from fitcheck.sources.weights import DerivedComponent, derive_components, derive_tensors, missing_parts, parameters

SOURCE = "config"
_LONGEST_ID = 96
"""No longer than a hub's names; a key of more than 128 characters is no plain key of YAML."""
_APART = (ComponentKind.VISION, ComponentKind.DRAFTER, ComponentKind.NGRAM)
FORMATS: tuple[tuple[str, str, str], ...] = (
    ("as-configured", "native", ""),
    ("bf16", "bf16", "bf16"),
    ("fp8", "fp8", "fp8"),
    ("nvfp4", "nvfp4", "nvfp4"),
    ("awq-int4", "awq", "awq"),
    *((f"gguf-{mix.lower().replace('_', '-')}", mix, "gguf") for mix in ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "IQ4_XS", "Q3_K_M", "Q2_K")),
)
"""Builds to derive: id, the format as `derive_components` names it, and as the catalogue does."""


def config_record(path: Path, day: date) -> Model:
    """The record of a `config.json`, or of the folder that holds one, as read on a day. Raises `DataError` for a file that is no config."""
    read = read_config(path)
    source = Source(url=f"file:{slug(Path(read.path).name)}", read=day, title=read.name)
    return model_of_config(load_config(Path(read.path)), read, source, day)


def model_of_config(raw: dict[str, Any], read: ConfigModel, source: Source, day: date) -> Model:
    """The record of a config's fields, its builds derived for the usual formats."""
    counted = counted_by_config(raw)
    builds = tuple(_builds(raw, day, read.forced_kv_dtype)) if read.architecture is not None else ()
    absent = "; ".join([*missing_parts(raw), *read.assumed])
    notes = [*(f"not known: {reason}" for reason in read.unknown), *([f"not in the weights: {absent}"] if absent else [])]
    return Model(
        kind="model",
        id=slug(read.name),
        name=read.name,
        developer="as in the config",
        license="see the model card",
        released=DayFigure(value=day.isoformat(), source=(SOURCE,), grade=Grade.ASSUMED, note="not read: the day that was asked about"),
        parameters=Parameters(total=counted),
        architecture=architecture_of(read.architecture, raw) if read.architecture is not None else None,
        checkpoints=with_bits(builds, counted.value if counted else 0, SOURCE),
        sources={SOURCE: source},
        note="; ".join(notes) or None,
    )


def with_bits(builds: Iterable[Checkpoint], parameters: int, source: str) -> tuple[Checkpoint, ...]:
    """Builds with the bits that they take for each parameter, towers, drafters and n-gram tables aside."""
    return tuple(_with_bits(build, parameters, source) for build in builds)


def _with_bits(build: Checkpoint, parameters: int, source: str) -> Checkpoint:
    size = sum(part.value for part in build.components if part.kind not in _APART and not part.optional)
    if not size or not parameters:
        return build
    bits = (Decimal(8 * size) / parameters).quantize(Decimal("0.001"))
    figure = NumberFigure(value=bits, source=(source,), grade=Grade.DERIVED, note="its bytes over the parameters")
    return build.model_copy(update={"bits_per_weight": figure})


def architecture_of(read: Architecture, raw: dict[str, Any]) -> Architecture:
    """The architecture with what the tensors add: in how many layers there are routed experts."""
    try:
        routed = [tensor.layers for tensor in derive_tensors(raw) if tensor.part is Part.EXPERTS and tensor.layers]
    except FitcheckError:
        routed = []
    layers = len({layer for layers in routed for layer in layers})
    return read.model_copy(update={"source": (SOURCE,), "expert_layers": layers or None})


def slug(name: str) -> str:
    """A name as an id: lower case, dots and dashes."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower())[:_LONGEST_ID].strip("-.") or "model"


def counted_by_config(raw: dict[str, Any]) -> CountFigure | None:
    """Parameters that the config's tensors come to; None where it does not settle them."""
    try:
        return CountFigure(value=parameters(raw), source=(SOURCE,), grade=Grade.DERIVED)
    except FitcheckError:
        return None


def _builds(raw: dict[str, Any], day: date, kv_dtype: str | None) -> Iterator[Checkpoint]:
    """A checkpoint for each format whose layout the config settles; a config that is quantised itself comes first, as it says.

    The cache dtype that its quantisation asks for is that build's alone.
    """
    quantised = raw.get("quantization_config") is not None
    for name, form, catalogued in FORMATS:
        if name == "as-configured" and not quantised:
            continue
        try:
            parts = derive_components(raw, form)
        except FitcheckError:
            continue
        native = name == ("as-configured" if quantised else "bf16")
        build = _checkpoint(name, catalogued or _configured_format(raw), parts, day, native=native)
        yield build.model_copy(update={"kv_dtype": kv_dtype}) if name == "as-configured" else build


def _configured_format(raw: dict[str, Any]) -> str:
    """What the config's own quantisation is called in the catalogue."""
    method = str(raw["quantization_config"].get("quant_method", "")) if isinstance(raw["quantization_config"], dict) else ""
    return {"fp8": "fp8", "awq": "awq", "gptq": "gptq", "mxfp4": "mxfp4", "modelopt": "nvfp4"}.get(method, "fp8")


def _checkpoint(name: str, form: str, parts: tuple[DerivedComponent, ...], day: date, *, native: bool) -> Checkpoint:
    components = tuple(
        Component(
            kind=part.kind,
            value=part.bytes,
            source=(SOURCE,),
            grade=part.grade,
            note=part.formula,
            optional=part.kind is ComponentKind.DRAFTER,
            layer_bytes=part.layer_bytes,
            whole_bytes=part.whole_bytes,
        )
        for part in parts
        if part.bytes
    )
    event = CheckpointEvent.model_validate({"status": "effective", "from": day.isoformat(), "source": SOURCE, "grade": "assumed"})
    return Checkpoint(id=name, format=form, native=native, components=components, events=(event,), note="derived from the config")
