"""Logs and benchmark results of one run, read and put together into one record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from fitcheck.errors import DataError
from fitcheck.sources.logs.bench import Bench, read_bench
from fitcheck.sources.logs.contexts import of_the_model
from fitcheck.sources.logs.facts import ranks_named
from fitcheck.sources.logs.reading import Figure, LogReading, Setting
from fitcheck.sources.logs.scan import Run, scan
from fitcheck.sources.logs.text import log_name, read_log

HINT = "logs of vLLM, SGLang and llama.cpp as they start are read, and results of llama-bench, vllm bench and sglang.bench_serving"
MOST_LOGS = 1_024


class _Part(NamedTuple):
    """What one file gave."""

    file: str
    engine: str | None
    run: Run
    bench: Bench | None
    day: str | None
    notes: tuple[str, ...]
    fork: str | None


def read_logs(paths: Sequence[Path]) -> LogReading:
    """What the logs of one run say, its ranks' logs and benchmark results among them.

    Raises `DataError` for a file that is neither, and for files that are of different runs.
    """
    if not paths or len(paths) > MOST_LOGS:
        raise DataError(f"{len(paths)} logs were given, and 1 to {MOST_LOGS:,} can be", hint=HINT)
    return _together([_read(path) for path in paths])


def read_text(text: str, file: str = "log") -> LogReading:
    """What one log says, given as text. Raises `DataError` where it is none."""
    return _together([_part(text, file, cut=False)])


def _read(path: Path) -> _Part:
    text, cut = read_log(path)
    return _part(text, log_name(path), cut=cut)


def _part(text: str, file: str, *, cut: bool) -> _Part:
    found = scan(text, file)
    bench = read_bench(text)
    engine = max(found.runs, key=lambda name: sum(len(run.figures) for run in found.runs[name]))
    runs = [run for run in found.runs[engine] if run.figures or run.settings]
    if not any(run.figures for run in runs) and bench is None:
        raise DataError(f"{ascii(file)[1:-1]}: no line of an engine's start and no benchmark result is in it", hint=HINT)
    notes = []
    if cut:
        notes.append("only the first 64 MiB of the log were read")
    if found.full:
        notes.append("the log prints more figures than are kept; what came last was not read")
    run, more = _chosen(engine, runs)
    return _Part(
        file, engine if run.figures else None, run, bench, found.day, (*notes, *more), found.fork if engine == "llama.cpp" else None
    )


def _chosen(engine: str, runs: list[Run]) -> tuple[Run, tuple[str, ...]]:
    """The last run that came as far as memory, with its settings, and what was passed over."""
    if engine == "llama.cpp":
        return of_the_model(runs)
    allocating = [run for run in runs if run.allocates]
    if not runs:
        return Run(), ()
    chosen = (allocating or runs)[-1]
    notes = (f"the log holds {len(allocating)} starts; the last is read",) if len(allocating) > 1 else ()
    return chosen, notes


def _together(parts: list[_Part]) -> LogReading:
    engine = _one((part.engine or (part.bench and part.bench.engine) for part in parts), "engines")
    figures = tuple(figure for part in parts for figure in _placed(part, len(parts)))
    settings = tuple(setting for part in parts for setting in part.run.settings)
    version = _version(str(figure.value) for figure in figures if figure.term == "version")
    benches = [part.bench for part in parts if part.bench is not None]
    for bench in benches:
        _one(bench.models, "models")  # of one form and one file: a table and a server call the same model differently
    names = [*_models(settings, figures), *(bench.model for bench in benches if bench.model)]
    devices = {figure.where for figure in figures if figure.term == "device" and figure.where is not None}
    named = [str(figure.value) for figure in figures if figure.term == "device"]
    notes = tuple(dict.fromkeys(note for part in parts for note in (*part.notes, *(part.bench.notes if part.bench else ()))))
    notes = (*notes, *_unstated_ranks(settings, figures))
    return LogReading(
        engine=engine,
        build=next((part.fork for part in parts if part.fork), None),
        version=version or next((bench.version for bench in benches if bench.version), None),
        model=names[0] if names else None,
        settings=settings,
        figures=figures,
        device=named[0] if named else next((bench.device for bench in benches if bench.device), None),
        devices=len(devices) or None,
        day=next((day for part in parts for day in (part.day, part.bench.day if part.bench else None) if day), None),
        speeds=tuple(dict.fromkeys(speed for bench in benches for speed in bench.speeds)),
        notes=notes,
        files=tuple(part.file for part in parts),
    )


def _unstated_ranks(settings: tuple[Setting, ...], figures: tuple[Figure, ...]) -> Iterable[str]:
    """What follows from the ranks' names alone, where the settings were not logged."""
    stated = {setting.name for setting in settings}
    for name, ranks in ranks_named(figures).items():
        if ranks > 1 and name not in stated:
            yield f"{name} {ranks} by the names of the ranks, of which {name.upper()}{ranks - 1} is the last: the log has no settings"


def _placed(part: _Part, parts: int) -> Iterable[Figure]:
    """A file's figures; where several files are read and a line names no process, the file stands for it."""
    for figure in part.run.figures:
        yield figure if parts == 1 or figure.where else _moved(figure, part.file)


def _moved(figure: Figure, where: str) -> Figure:
    values = {name: getattr(figure, name) for name in figure.__dataclass_fields__}
    return Figure(**{**values, "where": where})


def _models(settings: tuple[Setting, ...], figures: tuple[Figure, ...]) -> list[str]:
    stated = [setting.value for setting in settings if setting.name == "model"]
    printed = [figure.value for figure in figures if figure.term == "model"]
    names = [name for name in (*stated, *printed) if isinstance(name, str) and name]
    if len(set(stated)) > 1 and len({name for name in stated if isinstance(name, str)}) > 1:
        raise DataError(f"the logs are of different models: {_listed(stated)}", hint="give the logs of one run")
    return names


def _version(values: Iterable[str]) -> str | None:
    """The one version, in its fullest form: one process prints `0.9.2` where another adds its commit, `0.9.2+g2c11a73`."""
    found = sorted(dict.fromkeys(values), key=len)
    if found and all(found[-1].partition("+")[0] == value.partition("+")[0] for value in found):
        locals_ = {value.partition("+")[2] for value in found} - {""}
        if len(locals_) < 2:
            return found[-1]
    return _one(found, "versions")


def _one(values: Iterable[object], what: str) -> str | None:
    found = list(dict.fromkeys(str(value) for value in values if value is not None))
    if len(found) > 1:
        raise DataError(f"the logs are of different {what}: {_listed(found)}", hint="give the logs of one run")
    return found[0] if found else None


def _listed(values: Iterable[object]) -> str:
    shown = [ascii(str(value))[1:-1][:80] for value in dict.fromkeys(values)]
    return ", ".join(shown[:4])
