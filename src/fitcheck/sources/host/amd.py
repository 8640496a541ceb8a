"""AMD's accelerators through what the amdgpu driver writes in sysfs."""

from __future__ import annotations

import re

from fitcheck.sources.host.edge import Machine
from fitcheck.sources.host.meminfo import parse_meminfo
from fitcheck.sources.host.records import Accelerator

VENDOR = "0x1002"
_SHARING = {"gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036", "gfx1037", "gfx1103"} | {
    f"gfx115{step}" for step in range(4)
}
"""Processors that LLVM's user guide for AMDGPU lists as APUs (https://llvm.org/docs/AMDGPUUsage.html), without the MI300A."""

_SHARING_PCI = {"1114", "150e", "1586", "15bf", "15c8", "1681", "1900", "1901", "1902"}
"""PCI devices that libdrm's amdgpu.ids names as integrated graphics (860M, 890M, 8060S, 780M, 740M, 680M, 840M)."""


def read_amd(machine: Machine) -> tuple[tuple[Accelerator, ...], tuple[str, ...]]:
    """AMD's accelerators, and what to say of those the driver tells nothing of."""
    found: list[Accelerator] = []
    notes: list[str] = []
    for card in _cards(machine, VENDOR):
        known = _device(machine, card, len(found))
        if known.visible_bytes is None:
            notes.append(f"{known.name}: no mem_info_vram_total in sysfs, so the amdgpu driver is not at work: its memory is not known")
        found.append(known)
    return tuple(found), tuple(notes)


def _cards(machine: Machine, vendor: str) -> list[str]:
    """The device folders of the graphics cards of a vendor; connectors (`card0-DP-1`) are none."""
    cards = [path for path in machine.names("sys/class/drm/card*") if re.search(r"/card\d+$", path)]
    return [f"{card}/device" for card in cards if machine.text(f"{card}/device/vendor") == vendor]


def _device(machine: Machine, card: str, index: int) -> Accelerator:
    device = f"{machine.number(f'{card}/device', 16) or 0:04x}"
    gfx = _gfx(machine, card)
    sharing = gfx in _SHARING if gfx else device in _SHARING_PCI
    sizes = {name: machine.number(f"{card}/mem_info_{name}") for name in ("vram_total", "vram_used", "gtt_total", "gtt_used")}
    meminfo = parse_meminfo(machine.text("proc/meminfo") or "")
    visible, free, note = pool(sizes, meminfo, sharing=sharing)
    return Accelerator(
        name=_name(machine, card, device),
        chip="amd",
        through="sysfs",
        installed_bytes=sizes["vram_total"] if not sharing else (sizes["vram_total"] or 0) + meminfo.get("MemTotal", 0) or None,
        visible_bytes=visible,
        free_bytes=free,
        unified=sharing,
        index=index,
        uuid=None if (unique := machine.text(f"{card}/unique_id")) is None else f"GPU-{unique}",
        pci=f"1002:{device}/{_revision(machine, card)}",
        gfx=gfx,
        driver=_driver(machine),
        link=None if sharing else _pcie(machine, card),
        note=note,
    )


def pool(sizes: dict[str, int | None], meminfo: dict[str, int], *, sharing: bool) -> tuple[int | None, int | None, str | None]:
    """Bytes visible and free of a card, and which pool they are of.

    A card of its own has its VRAM. Where processor and GPU share the memory, VRAM is a part that the firmware set aside and GTT the part
    of the rest that the GPU may map: the driver allocates from the larger (`apu_prefer_gtt`, set in amdgpu_ttm.c where VRAM is smaller than
    GTT). GTT can be set above the memory there is, so it counts up to MemTotal, and what is free of it up to MemAvailable.
    """
    vram, gtt = sizes["vram_total"], sizes["gtt_total"]
    if vram is None:
        return None, None, None
    total = meminfo.get("MemTotal")
    mapped = min(size for size in (gtt, total) if size is not None) if gtt is not None else 0
    if not sharing or mapped <= vram:
        free = None if sizes["vram_used"] is None else max(0, vram - sizes["vram_used"])
        return vram, free, "the firmware's carve-out, which is larger than GTT" if sharing else None
    left = None if gtt is None or sizes["gtt_used"] is None else max(0, gtt - sizes["gtt_used"])
    available = meminfo.get("MemAvailable")
    free = left if available is None else available if left is None else min(left, available)
    capped = ", up to the memory there is" if gtt is not None and mapped < gtt else ""
    return mapped, free, f"GTT, the part of the system's memory that the GPU may map{capped}; ttm.pages_limit sets it"


def _gfx(machine: Machine, card: str) -> str | None:
    """The processor's name from the KFD topology (`gfx_target_version 110501` is gfx1151), else from the graphics block's version."""
    renders = {path.rpartition("renderD")[2] for path in machine.names(f"{card}/drm/renderD*")}
    for node in machine.names("sys/class/kfd/kfd/topology/nodes/*/properties"):
        values = dict(re.findall(r"^(\w+) (\d{1,20})$", machine.text(node) or "", re.MULTILINE))
        if values.get("drm_render_minor") in renders and values.get("gfx_target_version", "0") != "0":
            version = int(values["gfx_target_version"])
            return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    parts = [machine.number(f"{card}/ip_discovery/die/0/GC/0/{name}") for name in ("major", "minor", "revision")]
    return None if None in parts else f"gfx{parts[0]}{parts[1]:x}{parts[2]:x}"


def _name(machine: Machine, card: str, device: str) -> str:
    """The board's own name, else libdrm's for the PCI device and revision, else its numbers."""
    own = machine.text(f"{card}/product_name")
    if own:
        return own
    listed = machine.text("usr/share/libdrm/amdgpu.ids") or ""
    named = re.search(rf"^{device},\s*{_revision(machine, card)},\s*(\S.*?)\s*$", listed, re.MULTILINE | re.IGNORECASE)
    return named[1] if named else f"AMD GPU 1002:{device}"


def _revision(machine: Machine, card: str) -> str:
    return f"{machine.number(f'{card}/revision', 16) or 0:02x}"


def _driver(machine: Machine) -> str | None:
    version = machine.text("sys/module/amdgpu/version") or machine.text("proc/sys/kernel/osrelease")
    return f"amdgpu {version}" if version else None


def _pcie(machine: Machine, card: str) -> str | None:
    speed, width = machine.text(f"{card}/max_link_speed"), machine.text(f"{card}/max_link_width")
    return f"PCIe {speed.removesuffix(' PCIe')} x{width}" if speed and width and width != "255" else None
