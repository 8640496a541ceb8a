"""Machines made of published texts: a tree of files, tools that print, and an NVML that answers as the real one does."""

from __future__ import annotations

from types import SimpleNamespace

from fitcheck.sources.host.edge import Machine


class NvmlError(Exception):
    """As `pynvml.NVMLError`."""


class FakeNvml:
    """The functions of NVML that are used, over a row of the golden table. What a row does not say is not supported."""

    NVMLError = NvmlError
    nvmlMemory_v2 = 0x2000028  # noqa: N815 - NVML's own name
    NVML_NVLINK_MAX_LINKS = 18

    def __init__(self, driver=None, devices=(), repeat=1):
        self.driver = driver
        self.devices = [device for device in devices for _ in range(repeat)]
        self.closed = False

    def _told(self, value):
        if value is None:
            raise NvmlError("Not Supported")
        return value

    def nvmlInit(self):  # noqa: N802
        if not self.devices:
            raise NvmlError("Driver Not Loaded")

    def nvmlShutdown(self):  # noqa: N802
        self.closed = True

    def nvmlSystemGetDriverVersion(self):  # noqa: N802
        return self._told(self.driver)

    def nvmlDeviceGetCount(self):  # noqa: N802
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return self.devices[index]

    def nvmlDeviceGetName(self, handle):  # noqa: N802
        return handle["name"]

    def nvmlDeviceGetUUID(self, handle):  # noqa: N802
        return self._told(handle.get("uuid"))

    def nvmlDeviceGetMemoryInfo(self, handle, version=None):  # noqa: N802
        total = self._told(handle.get("total"))
        memory = SimpleNamespace(total=total, free=handle.get("free", 0), used=0)
        if version:
            memory.reserved = handle.get("reserved", 0)
        return memory

    def nvmlDeviceGetCudaComputeCapability(self, handle):  # noqa: N802
        return tuple(self._told(handle.get("capability")))

    def nvmlDeviceGetPciInfo(self, handle):  # noqa: N802
        return SimpleNamespace(pciDeviceId=self._told(handle.get("pci")))

    def nvmlDeviceGetNvLinkState(self, handle, link):  # noqa: N802
        return int(link < self._told(handle.get("nvlinks")))

    def nvmlDeviceGetMigMode(self, handle):  # noqa: N802
        return [1, 1] if handle.get("slices") else self._told(None)

    def nvmlDeviceGetMaxMigDeviceCount(self, handle):  # noqa: N802
        return handle["slots"]

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, index):  # noqa: N802
        if index >= len(handle["slices"]):
            raise NvmlError("Not Found")
        return handle["slices"][index]


def machine_of(root, *, files=None, tools=None, nvml=None, environment=None, system="Linux"):
    """A `Machine` over a folder that is filled with the given files."""
    for path, text in (files or {}).items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    module = FakeNvml(**nvml) if nvml is not None else None
    return Machine(root, environment or {}, system, lambda words: (tools or {}).get(words[0]), lambda: module)
