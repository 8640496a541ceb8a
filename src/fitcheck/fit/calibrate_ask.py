"""From what a log prints, and names and texts, to a calibration case: the one way in for the command line and the Python API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from fitcheck.catalogue.hardware import Device
from fitcheck.catalogue.load import Catalogue
from fitcheck.catalogue.lookup import ClusterSpec, find_build, find_checkpoint, find_cluster, find_engine
from fitcheck.catalogue.models import Checkpoint, Model
from fitcheck.errors import FitcheckError, UnknownId, UsageError
from fitcheck.fit.calibration import CalibrationCase
from fitcheck.fit.printed import Printed
from fitcheck.fit.report import CitedSource

_CACHE = re.compile(r"models--([\w.-]{1,96}?)--([\w.-]{1,96})(?:[/\\]|$)")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_QUANT = re.compile(r"[-._](?:UD-)?(?:I?Q\d(?:_[0-9A-Z]{1,3}){0,3}|B?F16|F32|MXFP4(?:_MOE)?|NVFP4)$", re.IGNORECASE)
_MAKERS = re.compile(r"\b(?:NVIDIA|GeForce|AMD|Radeon|Instinct|Tesla|AI PRO|OAM|80GB HBM3)\b|\([^)]*\)", re.IGNORECASE)

GGUF_TYPES = {
    "Q4_K - Medium": "q4-k-m",
    "Q5_K - Medium": "q5-k-m",
    "Q3_K - Medium": "q3-k-m",
    "Q2_K - Medium": "q2-k",
    "Q6_K": "q6-k",
    "Q8_0": "q8-0",
    "IQ4_XS - 4.25 bpw": "iq4-xs",
}
"""llama.cpp's names of file types (`llama_model_ftype_name`) to the ends of our build ids."""


def calibration_case(
    catalogue: Catalogue,
    printed: Printed,
    *,
    as_of: date,
    source: str,
    model: str | Model | None = None,
    cluster: str | ClusterSpec | None = None,
    checkpoint: str | None = None,
    forced_kv_dtype: str | None = None,
) -> CalibrationCase:
    """Look up what the log names, and what was named beside it.

    `model` and `cluster` win over the log's own. Raises `UnknownId` for names that were given and nobody catalogued; a model or device
    that the log names and the catalogue lacks is said in the answer.
    """
    record, build = _model(catalogue, printed, model, as_of)
    device, count = _device(catalogue, printed, cluster)
    if checkpoint is not None and record is None:
        raise UsageError(f"--checkpoint {checkpoint}: {_unknown_model(printed)}", hint="write --model beside it")
    chosen = find_checkpoint(record, checkpoint) if checkpoint is not None and record is not None else build
    if chosen is None and record is not None:
        chosen = _by_type(record, printed)
    return CalibrationCase(
        printed=printed,
        as_of=as_of,
        engine=find_engine(catalogue, printed.engine),
        source=CitedSource(source, as_of, ", ".join(printed.files) or None),
        model=record,
        unknown_model=None if record is not None else _unknown_model(printed),
        forced_kv_dtype=forced_kv_dtype,
        checkpoint=chosen,
        unknown_build=None if chosen is not None or record is None else f"which build of {record.id} it is: --checkpoint says it",
        another_model=_another_model(catalogue, printed, record, as_of) if model is not None else None,
        device=device,
        count=count,
    )


def _unknown_model(printed: Printed) -> str:
    if printed.model is None:
        return "the log does not name the model: --model says which it is"
    return f"the catalogue does not know {ascii(printed.model)[1:-1][:120]}: --model says which it is (an id, or a config.json)"


def _model(catalogue: Catalogue, printed: Printed, model: str | Model | None, as_of: date) -> tuple[Model | None, Checkpoint | None]:
    if isinstance(model, Model):
        return model, None
    if model is not None:
        return find_build(catalogue, model, as_of)
    return _model_named(catalogue, printed, as_of)


def _another_model(catalogue: Catalogue, printed: Printed, model: Model | None, as_of: date) -> str | None:
    """That the catalogue knows the log's name, and as another model than the one asked for."""
    own, _ = _model_named(catalogue, printed, as_of)
    if own is None or model is None or own.id == model.id:
        return None
    return f"the log names {ascii(printed.model)[1:-1][:120]}, which is {own.id} in the catalogue, and it is held against {model.id}"


def _model_named(catalogue: Catalogue, printed: Printed, as_of: date) -> tuple[Model | None, Checkpoint | None]:
    for name in (*model_names(printed.model or ""), *([printed.called] if printed.called else [])):
        try:
            return find_build(catalogue, name, as_of)
        except UnknownId:
            continue
    return None, None


def model_names(printed: str) -> Iterator[str]:
    """What a model may be called that a log names by hub id, by folder, by file or by a place in the hub's cache; the fullest first."""
    cached = _CACHE.search(printed)
    if cached is not None:
        yield f"{cached[1]}/{cached[2]}"
    parts = [part for part in re.split(r"[/\\]+", printed) if part not in ("", ".", "~")]
    if len(parts) >= 2:
        yield "/".join(parts[-2:])
    if parts:
        yield parts[-1]
        stem = _SHARD.sub("", parts[-1].removesuffix(".gguf"))
        if stem != parts[-1]:
            yield stem
        bare = _QUANT.sub("", stem)
        if bare != stem:
            yield bare


def _device(catalogue: Catalogue, printed: Printed, cluster: str | ClusterSpec | None) -> tuple[Device | None, int | None]:
    if cluster is not None:
        found = find_cluster(catalogue, cluster)
        counted = found.count if found.count > 1 or printed.devices is None else printed.devices
        return found.device, counted
    if printed.device is None:
        return None, printed.devices
    name = " ".join(_MAKERS.sub(" ", printed.device).split())
    try:
        return find_cluster(catalogue, name).device, printed.devices
    except FitcheckError:  # whatever stands there is the log's, not the asker's
        return None, printed.devices


def _by_type(model: Model, printed: Printed) -> Checkpoint | None:
    """The only build; the one of the file's type; for a config the log's own model is of, the build as configured."""
    if len(model.checkpoints) == 1:
        return model.checkpoints[0]
    end = GGUF_TYPES.get(printed.file_type or "")
    if printed.whole:
        named = [build for build in model.checkpoints if end and build.id.endswith(end)]
        return named[0] if len(named) == 1 else None
    derived = [build for build in model.checkpoints if build.native and build.note == "derived from the config"]
    if printed.quantization is not None and any(build.id == "bf16" for build in derived):
        return None  # the config is of the original, and the log's weights are quantised
    return derived[0] if len(derived) == 1 else None
