"""NVIDIA's accelerators: through NVML, else the table that nvidia-smi prints, else a Jetson's device tree."""

from __future__ import annotations

import csv
import re
import time
from typing import Any

from fitcheck.errors import UsageError
from fitcheck.sources.host.edge import TOOL_SECONDS, Machine
from fitcheck.sources.host.meminfo import parse_meminfo, unified_memory
from fitcheck.sources.host.records import Accelerator
from fitcheck.units import parse_bytes

INSTALL = "nvidia-ml-py is not installed: pip install 'fitcheck-advisor[detect]' reads more, and reads it exactly"
_SHARING = re.compile(r"\b(GB10|Thor|Orin|Xavier|Tegra)\b")
"""Chips whose GPU shares the system's memory, by the name the driver gives: for these NVML has no memory figure of its own."""

_FIELDS = "index,name,uuid,memory.total,memory.reserved,memory.used,memory.free,compute_cap,driver_version,pci.device_id,mig.mode.current"
_OLD_FIELDS = "index,name,uuid,memory.total,memory.used,memory.free,driver_version"
"""What drivers before 510 know of these: one unknown field makes nvidia-smi refuse them all."""

Memory = tuple[int | None, int | None, int | None]
"""Bytes installed, visible and free."""


def read_nvidia(machine: Machine) -> tuple[tuple[Accelerator, ...], tuple[str, ...]]:
    """NVIDIA's accelerators, and what to say of how they were read."""
    shared = unified_memory(parse_meminfo(machine.text("proc/meminfo") or ""))
    module = machine.nvml()
    if module is not None:
        found = from_nvml(module, shared)
        if found is not None:
            return found, ()
    began_s = time.monotonic()
    table = machine.run(["nvidia-smi", f"--query-gpu={_FIELDS}", "--format=csv"])
    if not table and time.monotonic() - began_s < TOOL_SECONDS / 2:  # one that hangs does so again
        table = machine.run(["nvidia-smi", f"--query-gpu={_OLD_FIELDS}", "--format=csv"])
    if table:
        return from_smi(table, shared), (INSTALL,) if module is None else ("NVML did not start, so nvidia-smi was read",)
    jetson = _jetson(machine, shared)
    if jetson is not None:
        return (jetson,), (INSTALL,) if module is None else ()
    if machine.text("proc/driver/nvidia/version") is not None:
        return (), (
            f"an NVIDIA driver is loaded, and neither NVML nor nvidia-smi answers; {INSTALL if module is None else 'check the driver'}",
        )
    return (), ()


def from_nvml(nvml: Any, shared: tuple[int | None, int | None]) -> tuple[Accelerator, ...] | None:
    """The devices of an NVML module, slices in place of a sliced device; None where NVML does not start (no driver, no device)."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    try:
        driver = _words(_ask(nvml, "nvmlSystemGetDriverVersion"))
        found: list[Accelerator] = []
        for index in range(min(_ask(nvml, "nvmlDeviceGetCount") or 0, 1024)):
            handle = _ask(nvml, "nvmlDeviceGetHandleByIndex", index)
            if handle is not None:
                found += _slices(nvml, handle, index, driver) or [_device(nvml, handle, index, driver, shared)]
        return tuple(found)
    finally:
        _ask(nvml, "nvmlShutdown")


def _ask(nvml: Any, name: str, *arguments: Any) -> Any:
    """What an NVML function answers; None where the driver does not support it, or the bindings do not know it."""
    try:
        return getattr(nvml, name)(*arguments)
    except (AttributeError, TypeError, nvml.NVMLError):
        return None


def _words(value: Any) -> str | None:
    """Text of NVML, which older bindings give as bytes."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value


def _device(nvml: Any, handle: Any, index: int, driver: str | None, shared: tuple[int | None, int | None]) -> Accelerator:
    name = _words(_ask(nvml, "nvmlDeviceGetName", handle)) or "NVIDIA GPU without a name"
    sharing = _SHARING.search(name) is not None
    installed, visible, free = (None, *shared) if sharing else _nvml_memory(nvml, handle)
    capability = _ask(nvml, "nvmlDeviceGetCudaComputeCapability", handle)
    return Accelerator(
        name=name,
        chip="nvidia",
        through="nvml",
        installed_bytes=installed,
        visible_bytes=visible,
        free_bytes=free,
        unified=sharing,
        index=index,
        uuid=_words(_ask(nvml, "nvmlDeviceGetUUID", handle)),
        pci=_pci(getattr(_ask(nvml, "nvmlDeviceGetPciInfo", handle), "pciDeviceId", None)),
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        driver=driver,
        link=_links(nvml, handle, sharing=sharing),
        note=_memory_note(sharing=sharing, visible=visible, installed=installed),
    )


def _nvml_memory(nvml: Any, handle: Any) -> Memory:
    """Total, total without what the driver keeps for itself (`reserved` of the second version), and free."""
    second = _ask(nvml, "nvmlDeviceGetMemoryInfo", handle, getattr(nvml, "nvmlMemory_v2", None))
    memory = second or _ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    if memory is None or not memory.total:
        return None, None, None
    return int(memory.total), int(memory.total) - int(getattr(memory, "reserved", 0)), int(memory.free)


def _memory_note(*, sharing: bool, visible: int | None, installed: int | None = None) -> str | None:
    if sharing:
        return "shares the system's memory: the kernel's MemTotal and MemAvailable, where CUDA counts the page cache as used"
    if visible is None:
        return "the driver tells no memory figure"
    # the driver always keeps a part: 317 to 870 MiB on the cards whose two figures were published
    return "all of its memory: how much of it the driver keeps for itself is not told" if visible == installed else None


def _slices(nvml: Any, handle: Any, index: int, driver: str | None) -> list[Accelerator]:
    """The MIG slices of a device that is cut into such, else none."""
    mode = _ask(nvml, "nvmlDeviceGetMigMode", handle)
    if not mode or mode[0] != 1:
        return []
    whole = _words(_ask(nvml, "nvmlDeviceGetName", handle)) or "NVIDIA GPU"
    capability = _ask(nvml, "nvmlDeviceGetCudaComputeCapability", handle)
    found = []
    for number in range(min(_ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle) or 0, 64)):
        part = _ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
        if part is None:
            continue
        installed, visible, free = _nvml_memory(nvml, part)
        found.append(
            Accelerator(
                name=_words(_ask(nvml, "nvmlDeviceGetName", part)) or f"{whole} MIG slice",
                chip="nvidia",
                through="nvml",
                installed_bytes=installed,
                visible_bytes=visible,
                free_bytes=free,
                index=index,
                uuid=_words(_ask(nvml, "nvmlDeviceGetUUID", part)),
                compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
                driver=driver,
                sliced=True,
                note=f"a MIG slice of {whole} {index}",
            )
        )
    return found


def _pci(packed: Any) -> str | None:
    """`vendor:device` of NVML's and nvidia-smi's packed number, the device above the vendor."""
    return None if packed is None else f"{packed & 0xFFFF:04x}:{packed >> 16 & 0xFFFF:04x}"


def _links(nvml: Any, handle: Any, *, sharing: bool) -> str | None:
    """NVLinks that are up, and the widest PCIe the device and its slot agree on."""
    up = sum(_ask(nvml, "nvmlDeviceGetNvLinkState", handle, link) == 1 for link in range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", 0)))
    generation, width = (_ask(nvml, f"nvmlDeviceGetMaxPcieLink{what}", handle) for what in ("Generation", "Width"))
    pcie = f"PCIe {generation}.0 x{width}" if generation and width and not sharing else None
    return ", ".join(part for part in (f"{up} NVLinks" if up else None, pcie) if part) or None


def from_smi(table: str, shared: tuple[int | None, int | None]) -> tuple[Accelerator, ...]:
    """The devices in a table of `nvidia-smi --query-gpu=… --format=csv`, by the names of its columns."""
    try:
        rows = [row for row in csv.reader(table.splitlines(), skipinitialspace=True) if row]
    except csv.Error:
        return ()
    if not rows:
        return ()
    columns = [name.split(" [")[0].strip() for name in rows[0]]
    return tuple(_from_row(dict(zip(columns, row, strict=False)), number, shared) for number, row in enumerate(rows[1:]))


def _from_row(row: dict[str, str], number: int, shared: tuple[int | None, int | None]) -> Accelerator:
    def told(name: str) -> str | None:
        value = row.get(name, "").strip()
        return None if not value or value.startswith("[") or value == "N/A" else value

    def size(name: str) -> int | None:
        try:
            return parse_bytes(told(name) or "")
        except UsageError:
            return None

    name = told("name") or "NVIDIA GPU without a name"
    sharing = _SHARING.search(name) is not None
    installed = size("memory.total")
    visible, free = (
        shared if sharing else (None if installed is None else max(0, installed - (size("memory.reserved") or 0)), size("memory.free"))
    )
    index, packed = told("index") or "", told("pci.device_id") or ""
    cut = told("mig.mode.current") == "Enabled"
    note = (
        "cut into MIG slices, which nvidia-smi's table does not list"
        if cut
        else _memory_note(sharing=sharing, visible=visible, installed=installed)
    )
    return Accelerator(
        name=name,
        chip="nvidia",
        through="nvidia-smi",
        installed_bytes=None if sharing else installed,
        visible_bytes=None if cut else visible,
        free_bytes=None if cut else free,
        unified=sharing,
        index=int(index) if re.fullmatch(r"[0-9]{1,5}", index) else number,
        uuid=told("uuid"),
        pci=_pci(int(packed, 16)) if re.fullmatch(r"0x[0-9A-Fa-f]{1,8}", packed) else None,
        compute_capability=capability if re.fullmatch(r"[0-9]{1,3}\.[0-9]{1,2}", capability := told("compute_cap") or "") else None,
        driver=told("driver_version"),
        sliced=cut,
        note=note,
    )


def _jetson(machine: Machine, shared: tuple[int | None, int | None]) -> Accelerator | None:
    """A Jetson without NVML, by the model in its device tree."""
    model = machine.text("proc/device-tree/model") or machine.text("sys/firmware/devicetree/base/model") or ""
    if not model.startswith("NVIDIA Jetson"):
        return None
    note = _memory_note(sharing=True, visible=shared[0])
    return Accelerator(model, "nvidia", "device-tree", None, *shared, unified=True, note=note)
