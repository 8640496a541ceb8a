"""Families of architectures: one builder for each `model_type`, from a config's fields to layer groups."""

from __future__ import annotations

from fitcheck.sources.families import compressed, dense, encoders, latent, linear, statespace, windowed
from fitcheck.sources.families.defaults import defaults_of
from fitcheck.sources.families.dense import Build

FAMILIES: dict[str, Build] = {
    **dense.TABLE,
    **windowed.TABLE,
    **latent.TABLE,
    **compressed.TABLE,
    **linear.TABLE,
    **statespace.TABLE,
    **encoders.TABLE,
}
"""Builders by the decoder's `model_type`, without its `_text`."""

SAME_AS = {"deepseek_ref": "deepseek_v4", "minimax_m3_vl": "minimax_m3", "minicpmv4_6": "qwen3_5"}
"""Other names of a family."""

BY_CLASS = {"MiniCPM3ForCausalLM": "minicpm3"}
"""Families of files that name their class and no `model_type`."""

__all__ = ["BY_CLASS", "FAMILIES", "SAME_AS", "Build", "defaults_of"]
