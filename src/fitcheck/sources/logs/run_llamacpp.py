"""A run of llama.cpp or ik_llama.cpp in the words of its allocator."""

from __future__ import annotations

import re
from typing import Any

from fitcheck.fit.printed import Printed
from fitcheck.sources.logs.facts import count, fact, over, summed, text_of
from fitcheck.sources.logs.reading import Figure, LogReading

_FLASH = {"auto": "auto", "enabled": "on", "disabled": "off", "1": "on", "0": "off"}
_LLAMA = ("n_ctx", "n_batch", "n_ubatch", "n_rs_seq")


HOST = re.compile(r"CPU\w*|\w+_Host|\w*REPACK\w*|BLAS|AMX|Host")
"""Buffers of host memory by the names that llama.cpp gives them."""


def llamacpp_run(reading: LogReading, common: dict[str, Any]) -> Printed:
    """The run: caches and states of all devices, weights and buffers of the fullest GPU, or of the processor where no GPU took part."""
    notes = list(reading.notes)
    caches = reading.all("kv_allocated")
    named: dict[str, Any] = {name: value for name in _LLAMA if (value := count(reading, name)) is not None}
    sequences, streams = count(reading, "n_seq_max") or count(reading, "sequences"), count(reading, "streams")
    named["n_seq_max"] = sequences or 1
    unified = text_of(reading, "kv_unified")
    named["kv_unified"] = unified == "true" if unified else (streams is None or streams == 1) and (sequences or 1) > 1
    named["fa"] = _FLASH.get(text_of(reading, "flash_attention") or "auto", "auto")
    kinds = [text_of(reading, name) for name in ("type_k", "type_v")]
    if kinds[0]:
        named |= {"type_k": kinds[0], "type_v": kinds[1] or kinds[0]}
    fork = common["build"] == "ik_llama.cpp"
    if reading.all("full_window") or fork:
        named["swa_full"] = True
    weights, host = _by_place(reading, "weights")
    compute, host_compute = _by_place(reading, "compute")
    processor = bool(host and host_compute) and not weights and not compute
    if host and not weights:
        notes.append("the model lies in host memory: nothing of it is on a GPU")
    devices = {figure.where for figure in (*weights, *compute)}
    latent = fact(next(iter(reading.all("latent_bytes")), None))
    return Printed(
        **common,
        devices=1 if processor else len(devices) or reading.devices,
        context_tokens=count(reading, "n_ctx"),
        users=sequences,
        kv_dtype="auto",
        named={name: value for name, value in named.items() if value not in (0, None)} | {"n_seq_max": named["n_seq_max"]},
        whole=True,
        processor=processor,
        weights=summed(host if processor else _fullest(weights)),
        weights_host=summed(host),
        weights_file=over(reading, "weights_file", max),
        kv=summed(list(caches)),
        tokens=fact(next(iter(reading.all("cells")), None)) if latent is None else None,
        state=summed(list(reading.all("state"))),
        compute=summed(host_compute if processor else _fullest(compute)),
        total=fact(next(iter(reading.all("breakdown_total")), None)),
        unless_latent=_not_latent(reading),
        notes=tuple(notes),
    )


def _not_latent(reading: LogReading) -> str | None:
    """Why latent attention is not kept as modelled: `mla_attn` 0 keeps full heads, 1 the latent and its transpose; so did old builds."""
    if count(reading, "mla_attn") in (0, 1) and reading.all("mla_attn"):
        return f"mla_attn is {count(reading, 'mla_attn')}, so the cache holds more than the latent rows that are modelled"
    old = reading.all("kv_allocated") and not reading.all("cells") and not reading.all("latent_bytes")
    return "this build keeps full heads for latent attention, and latent rows are modelled" if old else None


def _by_place(reading: LogReading, term: str) -> tuple[list[Figure], list[Figure]]:
    """Buffers of GPUs, and those of host memory."""
    hosts = [bool(HOST.fullmatch(figure.where or "")) for figure in reading.all(term)]
    both = list(zip(reading.all(term), hosts, strict=True))
    return [figure for figure, host in both if not host], [figure for figure, host in both if host]


def _fullest(figures: list[Figure]) -> list[Figure]:
    """The figures of the device that holds most."""
    places: dict[str | None, list[Figure]] = {}
    for figure in figures:
        places.setdefault(figure.where, []).append(figure)
    return max(places.values(), key=lambda own: sum(int(figure.value) for figure in own), default=[])
