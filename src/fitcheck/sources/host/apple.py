"""Apple's machines through sysctl and vm_stat."""

from __future__ import annotations

import re

from fitcheck.sources.host.edge import Machine
from fitcheck.sources.host.records import Accelerator, Ram
from fitcheck.units import MIB, format_gib

_KEYS = ("hw.memsize", "hw.model", "machdep.cpu.brand_string", "iogpu.wired_limit_mb", "kern.osproductversion")
_PAGE = re.compile(r"page size of (\d{1,7}) bytes")
_PAGES = re.compile(r"^Pages ([a-z ]+):\s+(\d{1,15})\.?\s*$", re.MULTILINE)
_AVAILABLE = ("free", "inactive", "speculative")


def read_apple(machine: Machine) -> tuple[tuple[Accelerator, ...], Ram, str | None, str | None]:
    """The GPU of an Apple chip, the system's memory, the model, and the processor."""
    # -i leaves out keys that this macOS does not know, where sysctl would fail otherwise
    values = parse_sysctl(machine.run(["sysctl", "-i", *_KEYS]) or "")
    total = _number(values.get("hw.memsize"))
    free = parse_vm_stat(machine.run(["vm_stat"]) or "")
    brand, model = values.get("machdep.cpu.brand_string", ""), values.get("hw.model")
    if not brand.startswith("Apple"):
        return (), Ram(total, free, note="no Apple chip: nothing here runs models on Intel Macs' graphics"), model, brand or None
    limit = (_number(values.get("iogpu.wired_limit_mb")) or 0) * MIB
    note = (
        f"iogpu.wired_limit_mb lets the GPU wire {format_gib(limit)}" if limit else "macOS's own limit of what the GPU may wire is in force"
    )
    system = values.get("kern.osproductversion")
    driver = f"macOS {system}" if system else None
    gpu = Accelerator(brand, "apple", "sysctl", total, total, free, unified=True, driver=driver, wired_limit_bytes=limit or None, note=note)
    return (gpu,), Ram(total, free), model, brand


def parse_sysctl(text: str) -> dict[str, str]:
    """`key: value` lines of sysctl."""
    pairs = (line.partition(": ") for line in text.splitlines())
    return {key.strip(): value.strip() for key, separator, value in pairs if separator}


def parse_vm_stat(text: str) -> int | None:
    """Bytes available by vm_stat: pages free, inactive and speculative (which vm_stat takes off the free ones)."""
    page, pages = _PAGE.search(text), {name: int(count) for name, count in _PAGES.findall(text)}
    if page is None or "free" not in pages:
        return None
    return int(page[1]) * sum(pages.get(name, 0) for name in _AVAILABLE)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 20 else None
