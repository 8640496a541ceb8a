"""Intel's graphics through sysfs, as far as its drivers tell."""

from __future__ import annotations

import re

from fitcheck.sources.host.edge import Machine
from fitcheck.sources.host.records import Accelerator


def read_intel(machine: Machine) -> tuple[tuple[Accelerator, ...], tuple[str, ...]]:
    """Intel's accelerators with memory of their own where xe or i915 write its size; nothing tells what is free of it.

    xe writes `tileN/physical_vram_size_bytes`, i915 `lmem_total_bytes` beside the card (read so by llmfit since its pull request 733).
    """
    found: list[Accelerator] = []
    notes: list[str] = []
    for card in machine.names("sys/class/drm/card*"):
        if not re.search(r"/card\d+$", card) or machine.text(f"{card}/device/vendor") != "0x8086":
            continue
        device = f"{machine.number(f'{card}/device/device', 16) or 0:04x}"
        tiles = [machine.number(path) for path in machine.names(f"{card}/device/tile*/physical_vram_size_bytes")]
        own = sum(size for size in tiles if size) or machine.number(f"{card}/lmem_total_bytes")
        name = f"Intel GPU 8086:{device}"
        note = None if own else "no memory of its own that the driver tells of: integrated graphics, or a driver that does not say"
        if own:
            notes.append(f"{name}: the driver does not say how much of its memory is free")
        found.append(Accelerator(name, "intel", "sysfs", own, own, unified=not own, index=len(found), pci=f"8086:{device}", note=note))
    return tuple(found), tuple(notes)
