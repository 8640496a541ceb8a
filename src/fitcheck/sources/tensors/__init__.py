"""Weight tensors of each family, and what a format stores for them."""

from __future__ import annotations

from typing import Any

from fitcheck.sources.tensors import compressed, delta, dense, experts, gemma, latent, linear, statespace
from fitcheck.sources.tensors.record import Build

TENSORS: dict[str, Build] = {
    **dense.TABLE,
    **gemma.TABLE,
    **experts.TABLE,
    **latent.TABLE,
    **compressed.TABLE,
    **delta.TABLE,
    **linear.TABLE,
    **statespace.TABLE,
}
"""Builders by the name of the family that the config reader gives (`fitcheck.sources.families`)."""

WEIGHT_DEFAULTS: dict[str, dict[str, Any]] = {
    "gemma2": {"vocab_size": 256000},
    "gemma": {"vocab_size": 256000},
}
"""What classes fix and published files leave out, beyond what the state needs (transformers 5.24.0 `Gemma2Config`)."""

__all__ = ["TENSORS", "WEIGHT_DEFAULTS"]
