"""What vLLM's start-up profiling finds at its peak, which it keeps free beside weights and caches.

`determine_available_memory` (v1/worker/gpu_worker.py) runs one batch of `max_num_batched_tokens` and then the sampler over
`max_num_seqs` rows; the higher of the two peaks is set apart. What the two hold is counted here tensor by tensor, in 16 bits unless
said otherwise. Not counted, because no config settles it: workspaces of attention backends, of indexers and of vision towers, and
CUDA graphs. So the peak is an estimate from below; what a device was seen to need in all (`Overhead`) outranks it where that is more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fitcheck.catalogue.models import Architecture
from fitcheck.fit.engines.base import StateTerm

HIDDEN_COPIES = 4
"""Rows of the hidden size alive inside a layer: the residual, the layer's input, its normed copy and the output. Printed peaks of
Llama-3.1-8B bear it out: 20,000 tokens took 17.06 - 14.99 = 2.07 GiB and 29,000 took 2.99 GiB (vllm issue 10517), 131,072 took 14.63 GiB
(cmontemuino/amd-mi300x-ml-benchmarks); (3 x 14,336 + 4 x 4,096) x 2 B for each token is 2.21, 3.21 and 14.50 GiB."""

SORTING_BYTES = 38.5
SAMPLING_BYTES = 14
SORTS_BEFORE = (0, 20)
"""Bytes for each logit while sampling with top-k and top-p, as the dummy run does (`_dummy_sampler_run`).

The 16-bit logits (2), their copy in 32 bits (4), probabilities (4) and the random draw (4) are 14 (v1/sample/sampler.py,
`random_sample`). Where the whole vocabulary is sorted (0.16.0 and before: `apply_top_k_top_p`), values (4), indices (8) and the sort's
workspace come instead of the last two: vLLM 0.10.2 and 0.11.0 on an H100, 1,024 rows, printed 5.58, 5.56, 5.64, 4.76 and 7.38 GiB for
vocabularies of 151,936 (three), 128,256 and 201,088: 38.5, 38.4, 38.9, 38.9 and 38.5 B (llm-d-incubation/llm-d-planner,
docs/empirical-vllm-memory-results.md). From 0.20.2 on, a Triton kernel takes the sort's place; what lies between was not read."""


class Batch(NamedTuple):
    """What the profiling run is made of."""

    tokens: int
    rows: int
    tp: int
    experts_whole: bool
    sorts: bool


def profile_terms(architecture: Architecture, batch: Batch) -> tuple[StateTerm, ...]:
    """The peak as one term; nothing where the config settles too little of the widths."""
    found = [peak for peak in (_forward(architecture, batch), _sampling(architecture, batch)) if peak is not None]
    if not found:
        return ()
    size, words = max(found)
    return (StateTerm("profiling peak", "compute", size, words),)


def _forward(architecture: Architecture, batch: Batch) -> tuple[int, str] | None:
    """The widest layer over the whole batch: gate, up and their product (`SiluAndMul`), or what routed experts hold of every token.

    Routed experts (`TritonExperts.workspace_shapes`, model_executor/layers/fused_moe): for each expert of a token two buffers, one as wide
    as gate and up or as the hidden size, one as their product or as the hidden size, whichever is more.
    """
    hidden = architecture.hidden_size
    if hidden is None:
        return None
    dense = architecture.feed_forward_size
    widths = [(3 * dense // batch.tp, f"3 x {dense:,}" + (f" / {batch.tp}" if batch.tp > 1 else ""))] if dense else []
    expert, each = architecture.expert_feed_forward_size, architecture.experts_per_token
    if expert and each:
        inner = expert if batch.experts_whole else -(-expert // batch.tp)
        routed = each * (max(2 * inner, hidden) + max(inner, hidden))
        widths.append((routed, f"{each} experts x (max(2 x {inner:,}, {hidden:,}) + max({inner:,}, {hidden:,}))"))
    if not widths:
        return None
    width, words = max(widths)
    return 2 * batch.tokens * (width + HIDDEN_COPIES * hidden), f"{batch.tokens:,} tokens x ({words} + {HIDDEN_COPIES} x {hidden:,}) x 2 B"


def _sampling(architecture: Architecture, batch: Batch) -> tuple[int, str] | None:
    """Logits of every row, which are gathered whole on the rank that samples."""
    if architecture.vocabulary is None:
        return None
    each = SORTING_BYTES if batch.sorts else SAMPLING_BYTES
    rows = min(batch.rows, batch.tokens)
    return int(rows * architecture.vocabulary * each), f"{rows:,} rows x {architecture.vocabulary:,} logits x {each} B"


def sorts_vocabulary(named: dict[str, Any]) -> bool:
    """Whether the named version of vLLM sorts all logits; an unnamed one is taken to be new."""
    text = str(named.get("vllm_version") or "").lstrip("v")
    parts = text.split(".")
    return len(parts) > 1 and all(part.isdigit() for part in parts[:2]) and (int(parts[0]), int(parts[1])) < SORTS_BEFORE
