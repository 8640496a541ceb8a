"""The system's memory from the kernel's meminfo, and what a control group leaves of it."""

from __future__ import annotations

import re

from fitcheck.sources.host.edge import Machine
from fitcheck.sources.host.records import Ram
from fitcheck.units import KIB, format_gib

_LINE = re.compile(r"^(\w[\w()]*):\s+(\d{1,18})(\s+kB)?\s*$", re.MULTILINE)


def parse_meminfo(text: str) -> dict[str, int]:
    """The fields of /proc/meminfo: bytes where the kernel writes kB, counts (pages of HugePages_*) as they are."""
    return {name: int(number) * (KIB if unit else 1) for name, number, unit in _LINE.findall(text)}


def unified_memory(fields: dict[str, int]) -> tuple[int | None, int | None]:
    """Bytes that a GPU sharing the system's memory can see, and can have now.

    As NVIDIA says to read them where NVML has no figure (DGX Spark, known issues, "Memory reporting differences with unified memory
    architecture", which llama.cpp follows in its pull request 17368): with huge pages reserved only these can be allocated, else
    MemAvailable. Swap is left out: what lies there is not served from memory.
    """
    pages = fields.get("HugePages_Total", 0)
    free = fields.get("HugePages_Free", 0) * fields.get("Hugepagesize", 0) if pages else fields.get("MemAvailable")
    return fields.get("MemTotal"), free


def read_ram(machine: Machine) -> Ram:
    """Total and available memory under Linux, with the limit of the control group this process is in."""
    fields = parse_meminfo(machine.text("proc/meminfo") or "")
    total, available = fields.get("MemTotal"), fields.get("MemAvailable")
    limit, used = control_group(machine)
    if limit is None or (total is not None and limit >= total):
        return Ram(total, available)
    left = max(0, limit - (used or 0))
    note = f"a control group (container) limits memory to {format_gib(limit)}"
    return Ram(total, left if available is None else min(left, available), limit, note)


def control_group(machine: Machine) -> tuple[int | None, int | None]:
    """The lowest memory limit over this process's control groups, and what that group uses; None without a limit.

    Version 2 writes `memory.max` (`max` is none), version 1 `memory.limit_in_bytes`; inside a container the group is often the root itself.
    """
    found = []
    for line in (machine.text("proc/self/cgroup") or "").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        home = "sys/fs/cgroup/memory" if controllers else "sys/fs/cgroup"
        limit_file, used_file = ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
        parts = [part for part in path.split("/") if part not in ("", "..", ".")]
        for depth in range(len(parts) + 1):
            folder = "/".join([home, *parts[:depth]])
            limit = machine.number(f"{folder}/{limit_file}")
            if limit is not None:
                found.append((limit, machine.number(f"{folder}/{used_file}")))
    return min(found, key=lambda pair: pair[0], default=(None, None))
