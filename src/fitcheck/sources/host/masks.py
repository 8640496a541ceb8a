"""Environment variables that hide accelerators from programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fitcheck.sources.host.records import Accelerator

_VARIABLES = {"nvidia": ("CUDA_VISIBLE_DEVICES",), "amd": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")}


def apply_masks(found: tuple[Accelerator, ...], environment: Mapping[str, str]) -> tuple[tuple[Accelerator, ...], tuple[str, ...]]:
    """The accelerators with those marked that a variable hides, and a line for each variable that is set.

    As CUDA reads its variable (CUDA C++ Programming Guide, environment variables): indices or the beginnings of UUIDs, in order; what
    stands after the first entry that names no device does not count. ROCm's are read alike.
    """
    notes = []
    for chip, names in _VARIABLES.items():
        for name in names:
            mask = environment.get(name)
            here = [known for known in found if known.chip == chip and known.hidden is None]
            if mask is None or not here:
                continue
            kept = _kept(mask, here)
            found = tuple(replace(known, hidden=name) if known in here and known not in kept else known for known in found)
            notes.append(f"{name}={mask[:60]}: {len(kept)} of {len(here)} accelerators are open to programs")
            if _by_speed(name, mask, here, environment):
                notes.append(
                    f"{name} counts the fastest GPU first unless CUDA_DEVICE_ORDER=PCI_BUS_ID: with unlike GPUs check which it means"
                )
    return found, tuple(notes)


def _kept(mask: str, here: list[Accelerator]) -> list[Accelerator]:
    kept: list[Accelerator] = []
    for entry in (part.strip() for part in mask.split(",")):
        named = [known for known in here if _names(entry, known, here)]
        if len(named) != 1 or named[0] in kept:
            break
        kept += named
    return kept


def _names(entry: str, known: Accelerator, here: list[Accelerator]) -> bool:
    if entry.isascii() and entry.isdigit():
        return here.index(known) == int(entry[:9])
    return bool(entry) and known.uuid is not None and known.uuid.startswith(entry)


def _by_speed(name: str, mask: str, here: list[Accelerator], environment: Mapping[str, str]) -> bool:
    counted = any(part.strip().isdigit() for part in mask.split(","))
    unlike = len({known.name for known in here}) > 1
    return name.startswith("CUDA") and counted and unlike and environment.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID"
