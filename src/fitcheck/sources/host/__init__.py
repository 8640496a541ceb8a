"""The machine this runs on: its accelerators and memory, through what each vendor's software or the kernel tells.

Each reader is a function over a `Machine`: a root of the file system, tools, and NVML's bindings. What cannot be read is said, never
guessed.
"""

from __future__ import annotations

import re

from fitcheck.sources.host.edge import Machine
from fitcheck.sources.host.records import Host, Port, Ram

__all__ = ["read_host"]


def read_host(machine: Machine) -> Host:
    """Everything found on a machine. Never fails: what cannot be read is a note."""
    from fitcheck.sources.host.masks import apply_masks

    if machine.system == "macOS":
        from fitcheck.sources.host.apple import read_apple

        found, ram, model, processor = read_apple(machine)
        return Host(machine.system, model, found, ram, notes=(ram.note,) if ram.note else (), processor=processor)
    from fitcheck.sources.host.amd import read_amd
    from fitcheck.sources.host.intel import read_intel
    from fitcheck.sources.host.meminfo import read_ram
    from fitcheck.sources.host.nvidia import read_nvidia

    read = [reader(machine) for reader in (read_nvidia, read_amd, read_intel)]
    found, masks = apply_masks(tuple(known for devices, _ in read for known in devices), machine.environment)
    unread = f"under {machine.system} only NVIDIA's accelerators are read, and not the system's memory"
    ram = read_ram(machine) if machine.system == "Linux" else Ram(note=unread)
    notes = [note for _, notes in read for note in notes] + list(masks) + ([ram.note] if ram.note else [])
    if not found:
        from fitcheck.sources.host.nvidia import INSTALL

        notes += [
            "no accelerator was found that a driver tells of",
            *([] if machine.nvml() or any(INSTALL in one for one in notes) else [INSTALL]),
        ]
    return Host(machine.system, _model(machine), found, ram, _ports(machine), tuple(notes), _processor(machine))


def _model(machine: Machine) -> str | None:
    """The machine's maker and product as its firmware names them."""
    words = [machine.text(f"sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name")]
    return " ".join(word for word in words if word) or machine.text("proc/device-tree/model")


def _processor(machine: Machine) -> str | None:
    """The processor as the kernel names it, which on ARM it often does not."""
    found = re.search(r"^model name\s*:\s*(.+)$", machine.text("proc/cpuinfo") or "", re.MULTILINE)
    return found[1].strip() if found else None


def _ports(machine: Machine) -> tuple[Port, ...]:
    """InfiniBand and RoCE ports, ConnectX among them; `rate` is such as `200 Gb/sec (4X HDR)`, `state` such as `4: ACTIVE`."""
    found = []
    for path in machine.names("sys/class/infiniband/*/ports/*"):
        rate, state = machine.text(f"{path}/rate"), machine.text(f"{path}/state")
        if rate and state:
            kind = machine.text(f"{path.rpartition('/ports/')[0]}/hca_type")
            name = path.split("/")[3]
            found.append(Port(f"{name} ({kind})" if kind else name, rate, state.partition(": ")[2] or state))
    return tuple(found)
