"""The buffer in which llama.cpp computes a micro-batch on one GPU.

`ggml_backend_sched_reserve` lays out the graph of a full micro-batch and lets tensors share memory once they are read; nobody prints a
formula. This one was fitted to runs without allocation of build 11434 on a pretend CUDA device (llamacpp-rules.md, "Compute buffer") and is
within 10 % of them for dense and mixture-of-experts models. Sizes are in units of U, one f32 activation of a micro-batch: 4 B x n_ubatch x
width. It holds the masks, and then the largest of: a feed-forward layer, the logits, and (where the cache is not f16) the f16 copies of one
layer's keys and values that flash attention makes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from fitcheck.catalogue.layers import Attention, Chunked, Indexer, Latent, Recurrent, Sliding, Stateless
from fitcheck.catalogue.models import Architecture
from fitcheck.fit.engines.base import StateTerm
from fitcheck.fit.engines.llamacpp_families import Rules
from fitcheck.fit.engines.llamacpp_settings import Run

_UNGATED = {"gpt2", "starcoder", "starcoder2", "falcon", "phi2", "gptneox", "mpt", "bloom", "nemotron", "arcee", "apertus"}
"""Feed-forward layers without a gate hold one inner activation, not three; without a width in the config it is 4 x width."""

_HALVED = {"qwen"}
"""qwen.cpp: `intermediate_size` counts gate and up together."""

_HYBRIDS = {"qwen3next", "qwen35moe", "lfm2moe", "kimi-linear", "kimi-k3", "bailingmoe3"}
"""Recurrent architectures whose mixture of experts is larger than their scan."""

_UNCOVERED = {"minicpm3", "qwen3vl", "qwen3vlmoe", "gemma3n", "llama4"}
"""No kernel for the head width on CUDA (minicpm3), inputs several widths long (deepstack, per-layer embeddings), layers of two kinds
(llama4)."""

_OVERLAID = {"gpt2"}
"""Logits take the masks' place."""


class _Sizes(NamedTuple):
    """Bytes: masks of full and sliding layers, U, logits, the widest feed-forward and its stage."""

    masks: tuple[int, int]
    unit: int
    logits: int
    inner: Fraction


def compute_term(architecture: Architecture, rules: Rules, run: Run) -> StateTerm | None:
    """The compute buffer of one GPU with flash attention; None where the formula was not tried or a figure is not known."""
    sizes, converted = _sizes(architecture, rules, run), (run.type_k, run.type_v) != ("f16", "f16")
    if sizes is None or not run.fa or (converted and rules.arch in _HYBRIDS):
        return None
    masks, unit = sum(sizes.masks), sizes.unit
    stages = {f"a layer {float(4 + sizes.inner):.4g} U": unit * (4 + sizes.inner)}
    if sizes.logits > max(sizes.masks) + 2 * unit:
        overlaid = rules.arch in _OVERLAID
        stages[f"logits {sizes.logits:,} B + 4 U"] = Fraction(sizes.logits + 4 * unit - (masks + 2 * unit if overlaid else 0))
    if converted:
        stages["f16 copies of a layer's cache"] = _copies(architecture, rules, run, unit)
    words, largest = max(stages.items(), key=lambda stage: stage[1])
    formula = f"masks {masks:,} B + {words}, U = 4 B x {run.n_ubatch} x {architecture.hidden_size}; one GPU, within 10 %"
    return StateTerm("compute buffer", "compute", masks + round(largest), formula)


def _sizes(architecture: Architecture, rules: Rules, run: Run) -> _Sizes | None:
    width, vocabulary = architecture.hidden_size, architecture.vocabulary
    kinds = {type(group) for group in architecture.groups}
    covered = rules.keeps and rules.arch not in _UNCOVERED and Indexer not in kinds and (Recurrent not in kinds or rules.arch in _HYBRIDS)
    shared = rules.arch == "gemma4" and Stateless in kinds
    if width is None or vocabulary is None or not covered or shared:
        return None
    inner = _inner(architecture, rules, width)
    if inner is None:
        return None
    outputs = min(run.n_ubatch, run.outputs or run.n_batch)
    return _Sizes(_masks(architecture, rules, run), 4 * run.n_ubatch * width, 4 * vocabulary * outputs, inner)


def _masks(architecture: Architecture, rules: Rules, run: Run) -> tuple[int, int]:
    """f16 masks: a micro-batch's rows over the cells of full and of sliding layers."""
    sliding = [group for group in architecture.groups if isinstance(group, Sliding | Chunked)] if rules.windows else []
    full = any(isinstance(group, Attention | Latent | Sliding) and group not in sliding for group in architecture.groups)
    cells = max((_window(group, rules, run) for group in sliding), default=0)
    return 2 * run.n_ubatch * run.cells * full, 2 * run.n_ubatch * cells


def _window(group: Sliding | Chunked, rules: Rules, run: Run) -> int:
    window = rules.window_tokens or (group.window_tokens if isinstance(group, Sliding) else group.chunk_tokens)
    return run.window_cells(window, shared=run.unified)


def _inner(architecture: Architecture, rules: Rules, width: int) -> Fraction | None:
    """What a layer holds at its widest, in U: inner activations of the feed-forward, of the experts, or latent attention's queries."""
    dense = architecture.feed_forward_size or (4 * width if rules.arch in _UNGATED else 0)
    gates = Fraction(1) if rules.arch in _UNGATED else Fraction(3, 2) if rules.arch in _HALVED else Fraction(3)
    parts = [gates * Fraction(dense, width)] if dense else []
    if architecture.experts_per_token and architecture.expert_feed_forward_size:
        used = architecture.experts_per_token
        share = Fraction(used * architecture.expert_feed_forward_size, width)
        parts.append(3 * share + (used if used > 2 * share else 0))
    for group in architecture.groups:
        if isinstance(group, Latent) and group.expanded_heads and group.expanded_k_dim:
            row = group.latent_dim + group.rope_dim
            queries = group.expanded_k_dim + group.rope_dim + group.latent_dim + row
            parts.append(Fraction(group.expanded_heads * queries, width))
    return max(parts, default=None)


def _copies(architecture: Architecture, rules: Rules, run: Run, unit: int) -> Fraction:
    """f16 copies of the layer with the longest rows times cells, beside its queries and its output.

    Of a latent row the part that serves as values is copied again.
    """
    copies, widest = 0, 0
    for group in architecture.groups:
        if isinstance(group, Latent):
            k_dim, elements, cells = group.latent_dim + group.rope_dim, 2 * group.latent_dim + group.rope_dim, run.cells
        elif isinstance(group, Attention | Sliding | Chunked):
            k_dim, elements = group.k_dim, group.kv_heads * (group.k_dim + group.v_dim)
            cells = _window(group, rules, run) if rules.windows and not isinstance(group, Attention) else run.cells
        else:
            continue
        copies, widest = max(copies, 2 * elements * cells * run.streams), max(widest, k_dim)
    return copies + unit * (4 + Fraction(2 * widest * (architecture.attention_heads or 0), architecture.hidden_size or 1))
