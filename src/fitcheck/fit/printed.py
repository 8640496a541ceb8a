"""What an engine printed about one run, as plain values: what a prediction is held against."""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal
from typing import Any, Literal

from fitcheck.frozen import frozen


@frozen
class Fact:
    """One printed figure: bytes or a count, half of its last printed digit, and the line it stands in."""

    value: int
    rounding: int = 0
    line: str = ""
    at: str = ""


@frozen
class PrintedSpeed:
    """One benchmarked speed in tokens per second; `users` 0 where the benchmark does not say how many ran at once."""

    phase: Literal["decode", "prefill"]
    tok_per_s: Decimal
    users: int
    per: Literal["total", "stream"]
    workload: str
    tool: str


@frozen
class Printed:
    """One run: what it was asked for, and what it allocated on its fullest device.

    `model` is a hub id, a folder or a file, `called` what the file calls itself. `named` are settings by the engine's own names, as its
    allocator takes them. `tokens` are cache slots or tokens of one device's pool; for llama.cpp caches and states are those of all devices
    together (`whole`), since it splits them by layers, and `weights_host` are the buffers of the model in host memory, all there is where
    the `processor` ran it. `uncounted` says what of the run an allocator does not know, such as a drafter's
    cache; `unless_latent` why the cache cannot be compared where attention is latent.
    """

    engine: str
    build: str | None = None
    version: str | None = None
    model: str | None = None
    called: str | None = None
    file_type: str | None = None
    quantization: str | None = None
    device: str | None = None
    devices: int | None = None
    day: str | None = None
    context_tokens: int | None = None
    users: int | None = None
    kv_dtype: str = "auto"
    tp: int = 1
    pp: int = 1
    dp: int = 1
    dcp: int = 1
    named: dict[str, Any] = field(default_factory=dict)
    whole: bool = False
    processor: bool = False
    weights: Fact | None = None
    weights_host: Fact | None = None
    weights_file: Fact | None = None
    kv: Fact | None = None
    kv_is_budget: bool = False
    tokens: Fact | None = None
    concurrency: Decimal | None = None
    needed: Fact | None = None
    needed_tokens: int | None = None
    state: Fact | None = None
    compute: Fact | None = None
    graphs: Fact | None = None
    activation: Fact | None = None
    non_torch: Fact | None = None
    total: Fact | None = None
    utilisation: Decimal | None = None
    speculation: str | None = None
    draft_tokens: int | None = None
    uncounted: tuple[str, ...] = ()
    unless_latent: str | None = None
    speeds: tuple[PrintedSpeed, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
