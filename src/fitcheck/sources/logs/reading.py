"""What was read from engines' logs and from benchmark results: one record, each figure with the line it comes from."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from fitcheck.frozen import frozen

Sort = Literal["bytes", "count", "ratio", "text"]

TERMS: dict[str, Sort] = {
    "model": "text",
    "name": "text",
    "version": "text",
    "fork": "text",
    "architecture": "text",
    "file_type": "text",
    "dtype": "text",
    "device": "text",
    "type_k": "text",
    "type_v": "text",
    "kv_dtype": "text",
    "weights": "bytes",
    "weights_file": "bytes",
    "weights_and_runtime": "bytes",
    "total_memory": "bytes",
    "free_before": "bytes",
    "free_after_load": "bytes",
    "free_after_pool": "bytes",
    "free_at_end": "bytes",
    "budget": "bytes",
    "utilisation": "ratio",
    "non_torch": "bytes",
    "activation": "bytes",
    "torch_peak": "bytes",
    "graphs": "bytes",
    "kv_available": "bytes",
    "kv_in_use": "bytes",
    "kv_allocated": "bytes",
    "k_bytes": "bytes",
    "v_bytes": "bytes",
    "latent_bytes": "bytes",
    "kv_tokens": "count",
    "kv_blocks": "count",
    "block_tokens": "count",
    "concurrency": "ratio",
    "concurrency_tokens": "count",
    "needed": "bytes",
    "needed_tokens": "count",
    "stored_tokens": "count",
    "estimated_tokens": "count",
    "batched_tokens": "count",
    "running_requests": "count",
    "context_tokens": "count",
    "cells": "count",
    "layers": "count",
    "streams": "count",
    "sequences": "count",
    "state": "bytes",
    "conv_state": "bytes",
    "ssm_state": "bytes",
    "draft_ssm_state": "bytes",
    "draft_conv_state": "bytes",
    "state_slots": "count",
    "swa_tokens": "count",
    "full_tokens": "count",
    "device_kv": "bytes",
    "device_state": "bytes",
    "compute": "bytes",
    "output": "bytes",
    "breakdown_total": "bytes",
    "breakdown_free": "bytes",
    "breakdown_model": "bytes",
    "breakdown_context": "bytes",
    "breakdown_compute": "bytes",
    "n_ctx": "count",
    "n_seq_max": "count",
    "n_batch": "count",
    "n_ubatch": "count",
    "n_rs_seq": "count",
    "flash_attention": "text",
    "kv_unified": "text",
    "mla_attn": "count",
    "full_window": "text",
    "no_alloc": "count",
    "offloaded": "count",
    "offloadable": "count",
    "second_context": "text",
    "hybrid_padding": "ratio",
}
"""Every term that a wording can give, and what it is. Bytes are of one device unless the term says otherwise."""


@frozen
class Figure:
    """One figure as an engine printed it. `where` is the process or device that its line names; `rounding` half of its last digit.

    `line` is the part of the log that was read, without control characters; `context` numbers llama.cpp's contexts from 0.
    """

    term: str
    value: int | Decimal | str
    rounding: int
    where: str | None
    file: str
    number: int
    line: str
    context: int = 0


@frozen
class Setting:
    """One setting as an engine printed it, by the engine's own name (`max_num_seqs`; nested: `speculative_config.method`)."""

    name: str
    value: str | int | Decimal | bool | None
    file: str
    number: int


@frozen
class BenchSpeed:
    """One measured speed in tokens per second. `per` says whether all `users` are counted together; `tokens` what was read or written.

    `spread` is the standard deviation where the tool prints one.
    """

    phase: Literal["decode", "prefill"]
    tok_per_s: Decimal
    users: int
    per: Literal["total", "stream"]
    workload: str
    tool: str
    spread: Decimal | None = None


@frozen
class LogReading:
    """All that one run printed.

    `engine` is the catalogue's id, or None where only a benchmark of no particular engine was read; `build` names a fork
    (`ik_llama.cpp`). `model` is as printed: a hub id, a path or a file. `notes` says what the log does not print, or prints twice.
    """

    engine: str | None
    build: str | None
    version: str | None
    model: str | None
    settings: tuple[Setting, ...]
    figures: tuple[Figure, ...]
    device: str | None
    devices: int | None
    day: str | None
    speeds: tuple[BenchSpeed, ...]
    notes: tuple[str, ...]
    files: tuple[str, ...]

    def all(self, term: str) -> tuple[Figure, ...]:
        """Every figure of a term, in the order in which they were printed."""
        return tuple(figure for figure in self.figures if figure.term == term)

    def setting(self, name: str) -> str | int | Decimal | bool | None:
        """The value of a setting, None where it was not printed (or printed as None)."""
        return next((setting.value for setting in self.settings if setting.name == name and setting.value is not None), None)
