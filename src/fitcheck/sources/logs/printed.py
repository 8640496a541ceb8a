"""A reading as the plain record that `fit` knows: over ranks and devices the fullest, in the words of the engine's allocator."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from fitcheck.catalogue.provenance import Source
from fitcheck.errors import DataError, UsageError
from fitcheck.fit.printed import Printed, PrintedSpeed
from fitcheck.sources.logs.facts import text, text_of
from fitcheck.sources.logs.reading import LogReading
from fitcheck.sources.logs.run_llamacpp import llamacpp_run
from fitcheck.sources.logs.run_sglang import sglang_run
from fitcheck.sources.logs.run_vllm import vllm_run
from fitcheck.sources.logs.text import log_name


def printed_of(reading: LogReading, engine: str | None = None) -> Printed:
    """The run of a reading; `engine` is that of a benchmark that names none.

    Raises `DataError` where no engine can be told, or the reading is of another one.
    """
    known = reading.engine or engine
    if known is None:
        raise DataError("the files do not say which engine ran", hint="give the engine's own log beside the benchmark, or --engine")
    if engine is not None and engine != known:
        raise DataError(f"the log is of {known}, and --engine {engine} was asked", hint=f"leave --engine out, or write --engine {known}")
    common: dict[str, Any] = {
        "engine": known,
        "build": reading.build,
        "version": reading.version,
        "model": reading.model,
        "called": text_of(reading, "name"),
        "device": reading.device,
        "day": reading.day,
        "quantization": text(reading.setting("quantization")),
        "file_type": text_of(reading, "file_type"),
        "speeds": tuple(
            PrintedSpeed(each.phase, each.tok_per_s, each.users, each.per, each.workload, each.tool) for each in reading.speeds
        ),
        "files": reading.files,
    }
    return _READERS.get(reading.engine or "", _plain)(reading, common)


def _plain(reading: LogReading, common: dict[str, Any]) -> Printed:
    return Printed(**common, notes=reading.notes)


def source_url(source: str | None, log: Path) -> str:
    """An address as the catalogue cites it, of the log itself where none is given. Raises `UsageError` for one that it would refuse."""
    url = source or "file:" + (re.sub(r"[^\w.+-]+", "-", log_name(log)) or "log")
    try:
        return Source(url=url, read=date.min).url
    except ValueError:
        raise UsageError(f"--source {url!r} is not an address", hint="write https://…, github:… or file:…") from None


_READERS: dict[str, Callable[[LogReading, dict[str, Any]], Printed]] = {"vllm": vllm_run, "sglang": sglang_run, "llama.cpp": llamacpp_run}
