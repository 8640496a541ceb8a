"""Which engine serves a build on a device, in which layout and with which cache dtype, where the question leaves that open."""

from __future__ import annotations

from fitcheck.catalogue.hardware import Engine
from fitcheck.catalogue.models import Checkpoint
from fitcheck.catalogue.recipes import Recipe
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.case import Case
from fitcheck.fit.layout import Degrees, Layout, choose_layout
from fitcheck.fit.state import KvDtype, Share, kv_dtype, state_bytes


def engine_for(case: Case, checkpoint: Checkpoint, lead: Recipe | None, recipes: tuple[Recipe, ...]) -> Engine | None:
    """As asked; else that of the best recipe of this build on this kind of device; else the usual one for its format."""
    if case.engine_id is not None:
        return case.engine(case.engine_id)
    if lead is not None and case.engine(lead.engine) is not None:
        return case.engine(lead.engine)
    serving = [engine for engine in case.engines if serves(case, checkpoint, engine, recipes)]
    return min(serving, key=lambda engine: engine.preference, default=None)


def serves(case: Case, checkpoint: Checkpoint, engine: Engine, recipes: tuple[Recipe, ...]) -> bool:
    """Whether the engine serves the build here: its stock builds do, or a recipe on this kind of device shows it for the format."""
    if engine.serves(checkpoint.format, case.device.chip):
        return True
    shown = {recipe.checkpoint for recipe in recipes if recipe.engine == engine.id and recipe.checkpoint is not None}
    return any(build.id in shown and build.format == checkpoint.format for build in case.model.checkpoints)


def why_not_served(case: Case, checkpoint: Checkpoint, engine: Engine | None, recipes: tuple[Recipe, ...]) -> str | None:
    """In words, why no engine, or not this one, serves the build here; None where it does."""
    if engine is None:
        return f"no engine in the catalogue serves {checkpoint.format} on {case.device.name}"
    if serves(case, checkpoint, engine, recipes):
        return None
    if case.device.chip not in engine.chips:
        return f"{engine.name} is not known to run on {case.device.name}"
    return f"{engine.name} is not known to serve {checkpoint.format} on {case.device.name}"


def layout_for(case: Case, engine: Engine, lead: Recipe | None) -> Layout:
    """As asked, else as the best recipe on as many devices runs it, else what the engine does by itself."""
    theirs = lead.setup if lead is not None and lead.count == case.count and lead.engine == engine.id else None
    recipe = Degrees(theirs.tp, 1, theirs.dcp, theirs.ep is not None) if theirs is not None else Degrees()
    return choose_layout(case.count, engine, case.model.architecture, case.degrees, recipe)


HEEDS_BUILD = ("vllm",)
"""Engines that take the cache dtype which a build asks for where the dtype is `auto`: vLLM's `resolve_kv_cache_dtype_string`
(utils/torch_utils.py). SGLang heeds one of the two ways of asking only, and is taken to stay at 16 bits, the safe side."""


def dtype_for(case: Case, engine: Engine, lead: Recipe | None, checkpoint: Checkpoint) -> KvDtype:
    """As asked, else as the best recipe runs it where the architecture has a layout for that, else as the build asks or the engine does."""
    if case.kv_dtype is not None:
        return kv_dtype(case.kv_dtype)
    if lead is not None and lead.count == case.count and lead.engine == engine.id and lead.setup.kv_dtype is not None:
        try:
            theirs = kv_dtype(lead.setup.kv_dtype)
            if case.model.architecture is not None:
                state_bytes(case.model.architecture, 1, theirs, Share())
        except (UsageError, UnknownFact):
            return kv_dtype("auto")
        return theirs
    own = checkpoint.kv_dtype if engine.id in HEEDS_BUILD else None
    return kv_dtype(own or "auto")
