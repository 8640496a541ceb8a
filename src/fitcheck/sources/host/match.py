"""Which of the catalogue's devices an accelerator is: by the names the catalogue declares, and by its memory; never by likeness."""

from __future__ import annotations

from collections.abc import Iterable

from fitcheck.catalogue.hardware import Device
from fitcheck.sources.host.records import Accelerator, Host

SOLD_SHARE = (0.85, 1.08)
"""What a system counts of the memory a device is sold with: firmware keeps a part, and makers sell GiB (1.0737 GB) as GB."""


def matched(devices: Iterable[Device], known: Accelerator, host: Host) -> Device | None:
    """The device that the catalogue declares under this name with this memory; None for one it does not hold, and for a slice of one.

    Machines of one make-up under several badges cannot be told apart by it: the one that the others are variants of stands for them.
    """
    total = known.installed_bytes or (host.ram.total_bytes if known.unified else known.visible_bytes)
    if known.sliced or total is None:
        return None
    low, high = SOLD_SHARE
    named = [device for device in devices if device.chip == known.chip and _declared(device, known)]
    fitting = [device for device in named if low <= total / device.memory.sold.value <= high and device.variant_of is None]
    return fitting[0] if len(fitting) == 1 else None


def _declared(device: Device, known: Accelerator) -> bool:
    pci = known.pci or ""
    names = {"driver": {known.name}, "pci": {pci, pci.partition("/")[0]} - {""}}
    return any(entry.name in names[entry.by] for entry in device.detected_as)
