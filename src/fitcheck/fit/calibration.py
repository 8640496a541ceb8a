"""The question and the answer of `calibrate`: plain frozen records."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.models import Architecture, Checkpoint, Model
from fitcheck.fit.calibrated import Calibrated
from fitcheck.fit.printed import Fact, Printed, PrintedSpeed
from fitcheck.fit.report import CitedSource
from fitcheck.frozen import frozen


@frozen
class CalibrationCase:
    """The question: what was printed, and what the catalogue knows of the model, the build, the device and the engine.

    `unknown_model` says why there is no model, `unknown_build` why there is no checkpoint, `another_model` that the log's own name is one
    of another model than was named beside it.
    """

    printed: Printed
    as_of: date
    engine: Engine
    source: CitedSource
    model: Model | None = None
    unknown_model: str | None = None
    forced_kv_dtype: str | None = None
    checkpoint: Checkpoint | None = None
    unknown_build: str | None = None
    another_model: str | None = None
    device: Device | None = None
    count: int | None = None

    @property
    def architecture(self) -> Architecture | None:
        """The model's architecture, where both are known."""
        return self.model.architecture if self.model is not None else None

    @property
    def devices(self) -> int:
        """How many devices ran it: as asked, else as printed."""
        return self.count or self.printed.devices or 1


@frozen
class CalibrationRow:
    """One term: as printed with half of its last digit, as predicted, and the error as a share; or why it is not compared."""

    term: str
    unit: Literal["bytes", "tokens"]
    printed: int | None
    rounding: int
    predicted: int | None
    error: float | None
    formula: str | None
    line: str | None
    at: str | None
    because: str | None


@frozen
class CalibrationReport:
    """The whole answer to one `calibrate`."""

    engine: str
    engine_name: str
    build: str | None
    version: str | None
    model_printed: str | None
    model: str | None
    model_name: str | None
    checkpoint: str | None
    device: str | None
    device_printed: str | None
    devices: int
    tp: int
    pp: int
    context_tokens: int | None
    kv_dtype: str
    settings: dict[str, Any]
    rows: tuple[CalibrationRow, ...]
    speeds: tuple[PrintedSpeed, ...]
    measured: Calibrated | None
    not_compared: tuple[str, ...]
    notes: tuple[str, ...]
    files: tuple[str, ...]
    day: str | None


def row_of(
    term: str, fact: Fact | None, predicted: float | None, formula: str | None = None, *, unit: Literal["bytes", "tokens"] = "bytes",
    because: str | None = None,
) -> CalibrationRow:  # fmt: skip
    """A term as printed and as predicted, with the error; `because` says why it is not compared."""
    error = round(predicted / fact.value - 1, 6) if fact is not None and fact.value > 0 and predicted is not None else None
    if because is None and fact is None:
        because = "the log does not print it"
    return CalibrationRow(
        term,
        unit,
        fact.value if fact else None,
        fact.rounding if fact else 0,
        round(predicted) if predicted is not None else None,
        error,
        formula,
        fact.line if fact else None,
        fact.at if fact else None,
        because if error is None else None,
    )
