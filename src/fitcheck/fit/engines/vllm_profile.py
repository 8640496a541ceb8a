"""What vLLM's start-up profiling finds at its peak, which it keeps free beside weights and caches.

`determine_available_memory` (v1/worker/gpu_worker.py) runs one batch of `max_num_batched_tokens` and then the sampler over
`max_num_seqs` rows; the higher of the two peaks is set apart. What the two hold is counted here tensor by tensor, in 16 bits unless
said otherwise. Not counted, because no config settles it: workspaces of attention backends, of linear attention, of indexers and of
vision towers, which are profiled with their largest input. So the peak is an estimate from below; what a device was seen to need in all
(`Overhead`) outranks it where that is more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fitcheck.catalogue.models import Architecture
from fitcheck.fit.engines.base import StateTerm
from fitcheck.fit.engines.vllm_graphs import SINCE, graph_terms

HIDDEN_COPIES = 4
"""Rows of the hidden size alive inside a layer: the residual, the layer's input, its normed copy and the output. Printed peaks of
Llama-3.1-8B bear it out: 20,000 tokens took 17.06 - 14.99 = 2.07 GiB and 29,000 took 2.99 GiB (vllm issue 10517), 131,072 took 14.63 GiB
(cmontemuino/amd-mi300x-ml-benchmarks); (3 x 14,336 + 4 x 4,096) x 2 B for each token is 2.21, 3.21 and 14.50 GiB."""

SORTING_BYTES = 38.5
SAMPLING_BYTES = 14
SORTS_BEFORE = (0, 17)
"""Bytes for each logit while sampling with top-k and top-p, as the dummy run does (`_dummy_sampler_run`).

The 16-bit logits (2), their copy in 32 bits (4), probabilities (4) and the random draw (4) are 14 (v1/sample/sampler.py,
`random_sample`). Where the whole vocabulary is sorted (0.16.0 and before: `apply_top_k_top_p`), values (4), indices (8) and the sort's
workspace come instead of the last two: vLLM 0.10.2 and 0.11.0 on an H100, 1,024 rows, printed 5.58, 5.56, 5.64, 4.76 and 7.38 GiB for
vocabularies of 151,936 (three), 128,256 and 201,088: 38.5, 38.4, 38.9, 38.9 and 38.5 B (llm-d-incubation/llm-d-planner,
docs/empirical-vllm-memory-results.md). From 0.17.0 on a Triton kernel takes the sort's place: Qwen3-14B on an H100 printed 5.64 GiB with
0.15.0 and 0.16.0, 2.23 GiB with 0.17.0 and 0.18.0 (llm-d-incubation/llm-d-planner, accuracy/accuracy_report.md).

While the sampler runs, `profile_run` still holds the hidden states of the whole batch, and the workspace manager the buffers of routed
experts, which never shrink (v1/worker/workspace.py; `_allocate_buffers` of fused_moe/modular_kernel.py; 0.20.2). With them the 31 peaks
that 0.19.0 printed of 16 configs on H100s (jgchn/llm-d-planner, accuracy/results/v0.19.0/results_raw.csv) are met from below: 4 to 10 %
under, and 16 % where a vision tower is profiled. The 38.5 B of old versions were measured with all of it."""


class Batch(NamedTuple):
    """What the profiling run is made of."""

    tokens: int
    rows: int
    tp: int
    pp: int
    experts_whole: bool
    sorts: bool
    graphs: bool
    step: int


def profile_terms(architecture: Architecture, batch: Batch) -> tuple[StateTerm, ...]:
    """The peak as one term, nothing where the config settles too little of the widths; and graphs where the share holds them."""
    found = [peak for peak in (_forward(architecture, batch), _sampling(architecture, batch)) if peak is not None]
    if not found:
        return ()
    size, words = max(found)
    layers = -(-architecture.layers // batch.pp) if architecture.layers else None
    graphs = graph_terms(layers, batch.tokens, batch.rows, batch.step) if batch.graphs else ()
    return (StateTerm("profiling peak", "compute", size, words), *graphs)


def _forward(architecture: Architecture, batch: Batch) -> tuple[int, str] | None:
    """The widest layer over the whole batch: gate, up and their product (`SiluAndMul`), or what routed experts hold of every token."""
    hidden = architecture.hidden_size
    if hidden is None:
        return None
    dense = architecture.feed_forward_size
    widths = [(3 * dense // batch.tp, f"3 x {dense:,}" + (f" / {batch.tp}" if batch.tp > 1 else ""))] if dense else []
    routed = _routed(architecture, batch)
    if routed is not None:
        widths.append(routed)
    if not widths:
        return None
    width, words = max(widths)
    return 2 * batch.tokens * (width + HIDDEN_COPIES * hidden), f"{batch.tokens:,} tokens x ({words} + {HIDDEN_COPIES} x {hidden:,}) x 2 B"


def _routed(architecture: Architecture, batch: Batch) -> tuple[int, str] | None:
    """Elements that routed experts hold of a token (`TritonExperts.workspace_shapes`, model_executor/layers/fused_moe).

    For each expert of a token two buffers, one as wide as gate and up or as the hidden size, one as their product or as the hidden size,
    whichever is more.
    """
    expert, each, hidden = architecture.expert_feed_forward_size, architecture.experts_per_token, architecture.hidden_size
    if not expert or not each or not hidden:
        return None
    inner = expert if batch.experts_whole else -(-expert // batch.tp)
    width = each * (max(2 * inner, hidden) + max(inner, hidden))
    return width, f"{each} experts x (max(2 x {inner:,}, {hidden:,}) + max({inner:,}, {hidden:,}))"


def _sampling(architecture: Architecture, batch: Batch) -> tuple[int, str] | None:
    """Logits of every row, gathered whole on the rank that samples, and what is held beside them."""
    if architecture.vocabulary is None:
        return None
    each = SORTING_BYTES if batch.sorts else SAMPLING_BYTES
    rows = min(batch.rows, batch.tokens)
    size, words = int(rows * architecture.vocabulary * each), f"{rows:,} rows x {architecture.vocabulary:,} logits x {each} B"
    held = [(architecture.hidden_size, f"{architecture.hidden_size:,}")] if architecture.hidden_size else []
    routed = _routed(architecture, batch)
    held += [routed] if routed else []
    if batch.sorts or not held:
        return size, words
    width = sum(part for part, _ in held)
    return size + 2 * batch.tokens * width, f"{words} + {batch.tokens:,} tokens x ({' + '.join(part for _, part in held)}) x 2 B"


def sorts_vocabulary(named: dict[str, Any]) -> bool:
    """Whether the named version of vLLM sorts all logits; an unnamed one is taken to be new."""
    return _before(named, SORTS_BEFORE)


def counts_graphs(named: dict[str, Any]) -> bool:
    """Whether the named version of vLLM keeps memory free for graphs inside its share; an unnamed one is taken to be new."""
    return not _before(named, SINCE) and str(named.get("enforce_eager") or "").lower() not in ("true", "1")


def _before(named: dict[str, Any], version: tuple[int, int]) -> bool:
    parts = str(named.get("vllm_version") or "").lstrip("v").split(".")
    return len(parts) > 1 and all(part.isdigit() for part in parts[:2]) and (int(parts[0]), int(parts[1])) < version
