"""State and cache of one plan: as its engine allocates them where that is modelled for the architecture, else by general formulas."""

from __future__ import annotations

from decimal import Decimal
from math import ceil
from typing import Any, NamedTuple

from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.models import Architecture
from fitcheck.catalogue.recipes import Recipe, Speculation
from fitcheck.errors import UnknownFact, UnknownId, UsageError
from fitcheck.fit.engines.base import Allocate, Settings, StateTerm, allocator, check_told
from fitcheck.fit.layout import Layout
from fitcheck.fit.state import KvDtype, sequence_state
from fitcheck.units import GIB

OWN_DRAFTS = ("mtp", "dspark", "nextn")
"""Methods of speculation that run the model's own draft layers; the cache of a drafter downloaded apart is not in the model's config."""

GB10 = Decimal("12.1")

_LEAST_TOKENS = 256
"""Below this llama.cpp allocates the same for any context (`GGML_PAD(n_ctx, 256)`), so growth is told from here on."""

_GROWTH_TOKENS = 65_536
"""Engines allocate in blocks, so growth per token is told over as many tokens as smooth them out."""


class StateModel(NamedTuple):
    """How to count: the engine's own allocator with the settings it gets, or (`allocate` None) general formulas and why."""

    architecture: Architecture | None
    dtype: KvDtype
    layout: Layout
    allocate: Allocate | None
    named: dict[str, Any]
    because: str | None
    refused: bool = False
    """Whether the engine is modelled and does not take this dtype or layout."""

    def terms(self, tokens: int, users: int) -> tuple[StateTerm, ...]:
        """Terms on the fullest device for `users` sequences of `tokens` each; none where the architecture is not known."""
        if self.architecture is None:
            return ()
        users = self.layout.users(users)
        if self.allocate is not None:
            layout = self.layout
            return self.allocate(
                self.architecture, Settings(tokens, users, self.dtype, tp=layout.tp, pp=layout.pp, dcp=layout.dcp, named=self.named)
            )
        parts = sequence_state(self.architecture, tokens, self.dtype, self.layout.share)
        times = f" x {users:,} users" if users > 1 else ""
        return tuple(StateTerm(part.name, "state" if part.fixed else "cache", part.bytes * users, part.formula + times) for part in parts)

    def bytes(self, tokens: int, users: int) -> int:
        """Caches and state together, without compute buffers."""
        return sum(term.bytes for term in self.terms(tokens, users) if term.sort != "compute")

    def compute_bytes(self, tokens: int, users: int) -> int | None:
        """Compute buffers where the engine's module counts them."""
        found = [term.bytes for term in self.terms(tokens, users) if term.sort == "compute"]
        return sum(found) if found else None

    def growth(self, tokens: int) -> int:
        """Bytes that one more token of one user takes from that context on, rounded up."""
        maximum = self.architecture.max_context_tokens if self.architecture else 0
        start = max(min(_LEAST_TOKENS, maximum - 1), min(tokens, maximum - _GROWTH_TOKENS), 1)
        end = min(start + _GROWTH_TOKENS, maximum)
        return ceil((self.bytes(end, 1) - self.bytes(start, 1)) / (end - start)) if end > start else 0

    def fixed(self, tokens: int) -> int:
        """Bytes of one sequence at that context that do not grow with it."""
        return max(0, self.bytes(tokens, 1) - self.growth(tokens) * tokens)


def state_model(
    architecture: Architecture | None, engine: Engine, device: Device, layout: Layout, dtype: KvDtype, lead: Recipe | None
) -> StateModel:
    """The engine's allocator where it answers for this architecture and dtype, else the general formulas with the reason."""
    general = StateModel(architecture, dtype, layout, None, {}, f"{engine.name}'s allocator is not modelled")
    if architecture is None:
        return general
    try:
        allocate = allocator(engine.id)
    except UnknownId:
        return general
    reason, refused = general.because, False
    for named in _settings(engine, device, lead, layout):
        model = StateModel(architecture, dtype, layout, allocate, named, None)
        try:
            check_told(architecture, engine.id)
            model.terms(min(architecture.max_context_tokens, 8192), 1)
        except (UnknownFact, UsageError) as error:
            reason, refused = error.message, isinstance(error, UsageError)
        else:
            return model
    return general._replace(because=reason, refused=refused)


def _settings(engine: Engine, device: Device, lead: Recipe | None, layout: Layout) -> list[dict[str, Any]]:
    """Settings to try, the fullest first: what the recipe drafts, and what the device is."""
    if engine.id != "vllm":
        return [{}]
    known: dict[str, Any] = batch_defaults(device)
    if layout.ep:
        known["enable_expert_parallel"] = True
    if device.compute_capability is not None:
        known["compute_capability"] = float(device.compute_capability.value)
    speculation = own_drafts(lead, engine)
    if speculation is None or speculation.draft_tokens is None:
        return [known]
    return [{**known, "num_speculative_tokens": speculation.draft_tokens}, known]


def own_drafts(lead: Recipe | None, engine: Engine) -> Speculation | None:
    """The speculation of a recipe that runs the model's own draft layers in this engine; None where it runs none."""
    speculation = lead.speculation if lead is not None and lead.engine == engine.id else None
    return speculation if speculation is not None and speculation.method in OWN_DRAFTS else None


def batch_defaults(device: Device) -> dict[str, Any]:
    """The batch that vLLM's server takes on a device (`EngineArgs.get_batch_defaults`, 0.33.0), by its own names.

    2,048 tokens and 256 sequences below 70 GiB, on A100 and on compute capability 12.1; 1,024 sequences elsewhere, with 16,384 tokens
    from 160 GiB on and 8,192 between. Windows outlive two batches, so this decides what sliding layers reserve, and the profiling peak.
    """
    visible = device.memory.visible[0].value
    slow = "a100" in device.name.lower() or (device.compute_capability is not None and device.compute_capability.value == GB10)
    if visible >= 160 * GIB:
        return {"max_num_batched_tokens": 16_384, "max_num_seqs": 1024}
    if visible < 70 * GIB or slow:
        return {"max_num_batched_tokens": 2_048, "max_num_seqs": 256}
    return {"max_num_batched_tokens": 8_192, "max_num_seqs": 1024}
