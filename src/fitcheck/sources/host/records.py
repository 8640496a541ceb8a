"""What is found on a machine: its accelerators, its memory, its network ports, and what could not be read."""

from __future__ import annotations

from fitcheck.catalogue.hardware import Chip
from fitcheck.frozen import frozen


@frozen
class Accelerator:
    """One accelerator, or a slice of one, as the system tells of it. What nobody tells is None.

    `installed_bytes` is the memory of the device as its driver counts it, `visible_bytes` what programs can be given of it, `free_bytes`
    what is free now. `through` names what told of it: `nvml`, `nvidia-smi`, `sysfs`, `sysctl`, `device-tree`. `hidden` says what keeps it
    from programs, such as `CUDA_VISIBLE_DEVICES`. `pci` is `vendor:device` in hexadecimal. `note` says what is behind a missing figure.
    """

    name: str
    chip: Chip
    through: str
    installed_bytes: int | None = None
    visible_bytes: int | None = None
    free_bytes: int | None = None
    unified: bool = False
    index: int = 0
    uuid: str | None = None
    pci: str | None = None
    compute_capability: str | None = None
    gfx: str | None = None
    driver: str | None = None
    link: str | None = None
    sliced: bool = False
    hidden: str | None = None
    wired_limit_bytes: int | None = None
    note: str | None = None


@frozen
class Ram:
    """The system's memory. `limit_bytes` is what the container or control group may take, where that is less than all of it."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    limit_bytes: int | None = None
    note: str | None = None


@frozen
class Port:
    """A port that can join machines (InfiniBand or RoCE), with its rate as the driver prints it."""

    name: str
    rate: str
    state: str


@frozen
class Host:
    """A whole machine. `notes` are single lines: what could not be read, and what to install for it. `processor` is its name."""

    system: str
    model: str | None
    accelerators: tuple[Accelerator, ...]
    ram: Ram
    ports: tuple[Port, ...] = ()
    notes: tuple[str, ...] = ()
    processor: str | None = None
