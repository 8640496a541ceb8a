"""The catalogue's hand-written groups against the published configs of the same models (tests/data/configs, cut to figures)."""

from pathlib import Path

import pytest

from fitcheck.catalogue.models import Model
from fitcheck.errors import FitcheckError
from fitcheck.fit.state import Share, kv_dtype, sequence_state
from fitcheck.sources.config import load_config, read_config
from fitcheck.sources.tensors.record import Part
from fitcheck.sources.weights import derive_tensors

FILES = sorted((Path(__file__).parent.parent / "data" / "configs").glob("*.json"))
SIZES = (
    "family",
    "layers",
    "max_context_tokens",
    "hidden_size",
    "attention_heads",
    "vocabulary",
    "feed_forward_size",
    "expert_feed_forward_size",
    "experts",
    "experts_per_token",
)


def state(architecture, tokens, dtype):
    """Bytes by part; the compressors' FP32 state, which the catalogue leaves out, is not compared."""
    found = {}
    for part in sequence_state(architecture, tokens, kv_dtype(dtype), Share()):
        if part.name != "compressor state":
            found[part.name] = found.get(part.name, 0) + part.bytes
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_the_catalogue_says_what_the_config_says(catalogue, file, dtype):
    mine, theirs = catalogue.get(Model, file.stem).architecture, read_config(file).architecture
    for tokens in (1, 1000, 32_768, 131_072):
        assert state(mine, tokens, dtype) == state(theirs, tokens, dtype)
    for name in SIZES:
        value = getattr(mine, name)
        assert value is None or value == getattr(theirs, name), name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_layers_with_routed_experts_are_those_of_the_config(catalogue, file):
    mine = catalogue.get(Model, file.stem).architecture.expert_layers
    try:
        routed = [tensor.layers for tensor in derive_tensors(load_config(file)) if tensor.part is Part.EXPERTS]
    except FitcheckError:
        return
    assert mine == (len({layer for layers in routed for layer in layers}) or None)
