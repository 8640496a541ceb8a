"""What vLLM keeps free for CUDA graphs: from 0.20 on a part of its share of memory, before that taken beside it.

`profile_cudagraph_memory` (v1/worker/gpu_model_runner.py, 0.20.2 and 0.33.0) captures the two largest batches of each mode and keeps free
the larger of the first captures + for each further graph what the second took, at least 1 MiB; VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS is
on by default (0.20.2; the log of 0.20.0 says so too; 0.19 prints the estimate and does not count it).
"""

from __future__ import annotations

from fitcheck.fit.engines.base import StateTerm
from fitcheck.units import GIB, MIB

SINCE = (0, 20)

FIRST_CAPTURE = int(0.37 * GIB)
GRAPH_LAYER = int(0.15 * MIB)
"""What the first capture takes, and each graph for each layer of the device.

No source settles them: they are kernels' workspaces and what a graph's nodes take. One model at three depths tells them apart: of
Llama-3.1-8B on H100s, 0.19.0 estimated 0.84 GiB on one device (32 layers, 102 graphs), 0.54 and 0.49 GiB on the first of two and four
stages of a pipeline (16 and 8 layers; https://github.com/jgchn/llm-d-planner, accuracy/results/v0.19.0): (0.84 - 0.49) GiB / 24 layers
/ 101 graphs = 0.148 MiB, and 0.49 - 8 x 101 x 0.148 MiB = 0.37 GiB. The other estimates of those runs, of 15 more configs, lie between
0.27 GiB less and 0.85 GiB more. Kernels of sparse attention take far more: GLM-5.2 on four GB200, 0.26.0: 4.99 GiB."""

LARGEST = 512


def graph_terms(layers: int | None, tokens: int, rows: int, step: int) -> tuple[StateTerm, ...]:
    """Graphs as one term; nothing where the layers are not known. `step` is the tokens that one sequence takes in a decode."""
    if not layers:
        return ()
    piecewise, full = captures(tokens, rows, step)
    count = piecewise + full
    if not count:
        return ()
    size = FIRST_CAPTURE + (count - 1) * layers * GRAPH_LAYER
    return (StateTerm("CUDA graphs", "compute", size, f"{FIRST_CAPTURE:,} B + {count - 1} graphs x {layers} layers x {GRAPH_LAYER:,} B"),)


def captures(tokens: int, rows: int, step: int = 1) -> tuple[int, int]:
    """How many piecewise and whole graphs are captured by default (`FULL_AND_PIECEWISE`).

    Sizes are 1, 2, 4, every 8 below 256 and every 16 up to twice the rows, at most 512 (`VllmConfig._set_cudagraph_sizes`); whole graphs
    are of decodes, so no larger than all rows. Backends that cannot capture a decode whole have the piecewise ones alone, and from some
    version after 0.26 on data-centre Blackwell goes to 1,024: neither is known here.
    """
    largest = min(2 * rows * step, LARGEST, tokens)
    sizes = [size for size in (1, 2, 4, *range(8, 256, 8), *range(256, LARGEST + 1, 16)) if size <= largest]
    return len(sizes), sum(size <= rows * step for size in sizes)
