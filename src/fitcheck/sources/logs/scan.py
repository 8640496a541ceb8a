"""One log, line by line: which engine it is of, and what its last run printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from fitcheck.sources.logs import llamacpp, sglang, vllm
from fitcheck.sources.logs.reading import Figure, Setting
from fitcheck.sources.logs.rows import Row, match_rows
from fitcheck.sources.logs.settings import read_settings
from fitcheck.sources.logs.text import DOCKER, clean_lines, uncollected

MOST_FIGURES = 20_000
"""Figures kept of one log: a thousand ranks print ten each."""

_MASKING = (*(chr(code) for code in (*range(10), 11, 12, *range(14, 32), *range(127, 161))), DOCKER)
"""What may stand within a word of a log: escape sequences, what becomes a space, and what Docker's JSON escapes."""

_DAY = re.compile(r"\b(20\d\d)[-/](0[1-9]|1[0-2])[-/](0[1-9]|[12]\d|3[01])[ T]\d\d:\d\d")


class Engine(NamedTuple):
    """How one engine's logs are read."""

    id: str
    rows: tuple[Row, ...]
    process: str | None
    settings_after: tuple[str, ...]
    settings: dict[str, str]


ENGINES = (
    Engine("vllm", vllm.ROWS, vllm.PROCESS, vllm.SETTINGS_AFTER, vllm.SETTINGS),
    Engine("sglang", sglang.ROWS, sglang.PROCESS, sglang.SETTINGS_AFTER, sglang.SETTINGS),
    Engine("llama.cpp", llamacpp.ROWS, None, (), {}),
)


class Run:
    """What one run of an engine printed; more of it comes while the log is read."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self.settings: list[Setting] = []
        self.begun: set[tuple[str, str | None]] = set()

    @property
    def allocates(self) -> bool:
        """Whether it came as far as memory."""
        return any(figure.term.startswith(("weights", "kv_", "k_bytes", "latent", "state", "needed", "stored")) for figure in self.figures)


class Scan(NamedTuple):
    """The runs in one log by engine, the day it names first, and whether figures beyond the most were left out."""

    runs: dict[str, list[Run]]
    day: str | None
    full: bool
    fork: str | None


def scan(text: str, file: str) -> Scan:
    """Everything that the tables of wordings find in a log."""
    runs: dict[str, list[Run]] = {engine.id: [Run()] for engine in ENGINES}
    engines = _present(text)
    processes = {engine.id: re.compile(engine.process) for engine in engines if engine.process}
    words = tuple(dict.fromkeys(word for engine in engines for word in _words(engine)))
    day, kept, fork = None, 0, None
    for number, line in clean_lines(text):
        if day is None and (dated := _DAY.search(line)):
            day = f"{dated[1]}-{dated[2]}-{dated[3]}"
        for word in words:  # most lines of a long log end here
            if word in line:
                break
        else:
            continue
        if fork is None and any(word in line for word in llamacpp.IK_WORDS):
            fork = "ik_llama.cpp"
        for engine in engines:
            own = processes.get(engine.id)
            named = own.match(uncollected(line)) if own else None
            where = named["where"].strip() if named else None
            kept += _one_line(engine, runs[engine.id], line, where, (file, number))
        if kept > MOST_FIGURES:
            return Scan(runs, day, True, fork)
    return Scan(runs, day, False, fork)


def _words(engine: Engine) -> tuple[str, ...]:
    """Texts of which a line has one, or nothing is read from it."""
    own = llamacpp.IK_WORDS if engine.id == "llama.cpp" else ()
    return (*(row.word for row in engine.rows), *engine.settings_after, *own)


def _present(text: str) -> tuple[Engine, ...]:
    """The engines with those of their wordings that are in a log at all: a server that ran for days prints a million other lines."""
    if any(text.find(masking) >= 0 for masking in _MASKING):
        return ENGINES
    return tuple(_with_words(engine, text) for engine in ENGINES)


def _with_words(engine: Engine, text: str) -> Engine:
    rows = tuple(row for row in engine.rows if row.word in text)
    return engine._replace(rows=rows, settings_after=tuple(words for words in engine.settings_after if words in text))


def _one_line(engine: Engine, runs: list[Run], line: str, where: str | None, at: tuple[str, int]) -> int:
    kept = 0
    for hit in match_rows(engine.rows, line, where, *at):
        if hit.once:
            key = (hit.once, where)
            if key in runs[-1].begun:
                runs.append(Run())
            runs[-1].begun.add(key)
        runs[-1].figures.extend(hit.figures)
        kept += len(hit.figures)
    for setting in _settings(engine, line, at):
        runs[-1].settings.append(setting)
        kept += 1
    return kept


def _settings(engine: Engine, line: str, at: tuple[str, int]) -> Iterator[Setting]:
    for words in engine.settings_after:
        start = line.find(words)
        if start >= 0:
            text: Any = line[start + len(words) :]
            yield from read_settings(text.lstrip(" {("), engine.settings, *at)
            return
