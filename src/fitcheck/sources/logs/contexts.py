"""llama.cpp loads more than it runs: a trial without memory that fits the context, a drafter's model, a drafter's context.

The log prints all of them alike. What is compared is the first context of the model that was named first, as it was loaded last.
"""

from __future__ import annotations

from fitcheck.sources.logs.reading import Figure
from fitcheck.sources.logs.scan import Run

_OF_A_CONTEXT = (
    "n_ctx", "n_seq_max", "n_batch", "n_ubatch", "n_rs_seq", "flash_attention", "kv_unified", "mla_attn", "full_window", "device_kv",
    "kv_allocated", "cells", "layers", "streams", "sequences", "type_k", "type_v", "latent_bytes", "device_state", "state", "state_slots",
    "compute", "output",
)  # fmt: skip


def of_the_model(runs: list[Run]) -> tuple[Run, tuple[str, ...]]:
    """The run to compare, and what else the log holds."""
    loaded = [run for run in runs if _first(run, "model") is not None]
    real = [run for run in loaded if _first(run, "no_alloc") != 1]
    if not real:
        return _first_context(runs[-1] if runs else Run(), [])
    model = _first(real[0], "model")
    ours = [run for run in real if _first(run, "model") == model]
    chosen, notes = Run(), []
    if len(ours) < len(real):
        notes.append("the log loads a second model (a drafter or a projector), which is not compared")
    before = [
        figure for run in runs[: runs.index(ours[-1])] for figure in run.figures if figure.term in ("device", "free_before", "version")
    ]
    if runs[0] is not ours[-1] or before:
        chosen.figures.extend(_apart(before, ours[-1]))
    chosen.figures.extend(ours[-1].figures)
    return _first_context(chosen, notes)


def _first_context(run: Run, notes: list[str]) -> tuple[Run, tuple[str, ...]]:
    """The run without what belongs to later contexts."""
    numbered = contexts_numbered(run.figures)
    kept = Run()
    kept.figures.extend(figure for figure in numbered if figure.context == 0)
    kept.settings.extend(run.settings)
    if len(kept.figures) < len(numbered):
        notes.append("the log sets up a second context (a drafter's), which is not compared")
    return kept, tuple(notes)


def _apart(before: list[Figure], run: Run) -> list[Figure]:
    """Devices and the version, which are printed once, from before the run; each place once."""
    own = {(figure.term, figure.where) for figure in run.figures}
    found = {(figure.term, figure.where): figure for figure in before}
    return [figure for key, figure in found.items() if key not in own]


def _first(run: Run, term: str) -> object:
    return next((figure.value for figure in run.figures if figure.term == term), None)


def contexts_numbered(figures: list[Figure]) -> list[Figure]:
    """Figures with the number of the context they belong to: each `constructing llama_context`, or a second `n_ctx`, begins one."""
    number, opened, sized = 0, False, False
    found = []
    for figure in figures:
        if figure.term == "second_context":
            number, sized = number + opened, False
            opened = True
            continue
        if figure.term == "n_ctx" and sized:
            number += 1
        sized = sized or figure.term == "n_ctx"
        opened = opened or sized
        found.append(_in_context(figure, number) if number and figure.term in _OF_A_CONTEXT else figure)
    return found


def _in_context(figure: Figure, context: int) -> Figure:
    values = {name: getattr(figure, name) for name in figure.__dataclass_fields__}
    return Figure(**{**values, "context": context})
