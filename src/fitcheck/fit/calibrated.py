"""What was measured on somebody's own machine, in place of the catalogue's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fitcheck.catalogue.hardware import Device, Engine, Overhead
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import UsageError
from fitcheck.fit.report import CitedSource, Term
from fitcheck.frozen import frozen

if TYPE_CHECKING:
    from fitcheck.catalogue.models import Checkpoint
    from fitcheck.fit.layout import Layout
    from fitcheck.fit.placement import Placed


@frozen
class Calibrated:
    """An engine's overhead on a device as one run showed it, with the memory that the device showed and the weights that it held.

    `device` is None where the log names none; `devices` is how many the weights were split over, as `tp` ranks.
    """

    engine: str
    device: str | None
    devices: int | None
    tp: int | None
    model: str | None
    checkpoint: str | None
    overhead_bytes: int
    formula: str
    visible_bytes: int | None
    weights_bytes: int | None
    source: CitedSource

    def overhead(self) -> Overhead:
        """The overhead as the catalogue would hold it."""
        return Overhead(engine=self.engine, value=self.overhead_bytes, source=("calibrated",), grade=Grade.MEASURED, note=self.formula)

    def words(self) -> str:
        """What the figure is of, for a ledger."""
        of = f" with {self.model}" if self.model else ""
        return f"as measured{of}: {self.formula}"


def check_calibrated(calibrated: Calibrated, device: Device, engine: Engine | None) -> None:
    """Raise `UsageError` where the measurement is of another kind of device, or of another engine than was asked."""
    if calibrated.device is not None and calibrated.device not in (device.id, device.platform):
        raise UsageError(
            f"--calibrated: it was measured on {calibrated.device}, and {device.id} was asked",
            hint="calibrate on the machine that is asked about, or leave --calibrated out",
        )
    if engine is not None and calibrated.engine != engine.id:
        raise UsageError(
            f"--calibrated: it was measured with {calibrated.engine}, and {engine.id} was asked",
            hint=f"leave --engine out, or write --engine {calibrated.engine}",
        )


def calibrated_weights(
    calibrated: Calibrated | None, model: str, checkpoint: Checkpoint, layout: Layout, placed: tuple[Placed, ...]
) -> Term | None:
    """The weights term as measured, where it was the same build on as many ranks with nothing moved; else None."""
    if calibrated is None or calibrated.weights_bytes is None:
        return None
    same = (calibrated.model, calibrated.checkpoint, calibrated.tp, calibrated.devices) == (model, checkpoint.id, layout.tp, layout.tp)
    if not same or layout.pp > 1 or any(part.moved for part in placed):
        return None
    words = "resident as measured" if layout.tp == 1 else f"resident on each of {layout.tp} devices, as measured"
    return Term("weights", "weights", calibrated.weights_bytes, words, Grade.MEASURED, (calibrated.source,))
