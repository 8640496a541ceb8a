"""Tiny models of llama.cpp's architectures: the metadata of a file that the engine reads, and the layer groups of the same model.

A model is `COMMON` and what its own entry says; keys are GGUF's without the architecture's prefix (`gguf-py/gguf/constants.py`).
"""

from typing import Any, NamedTuple

import gguf

from fitcheck.catalogue.layers import (
    Attention,
    Indexer,
    Latent,
    LayerGroup,
    Recurrent,
    Sliding,
)
from fitcheck.catalogue.models import Architecture

COMMON = {
    "context_length": 4096,
    "embedding_length": 256,
    "block_count": 4,
    "feed_forward_length": 512,
    "vocab_size": 128,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.key_length": 64,
    "attention.value_length": 64,
    "attention.layer_norm_epsilon": 1e-5,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.dimension_count": 64,
    "rope.dimension_sections": [8, 8, 8, 8],
    "logit_scale": 1.0,
}
EXPERTS = {
    "expert_count": 4,
    "expert_used_count": 2,
    "expert_feed_forward_length": 128,
    "expert_shared_feed_forward_length": 128,
    "expert_shared_count": 1,
    "expert_gating_func": 2,
    "leading_dense_block_count": 1,
    "expert_weights_scale": 1.0,
}
MLA = {
    "attention.key_length": 96,
    "attention.value_length": 64,
    "attention.key_length_mla": 96,
    "attention.value_length_mla": 64,
    "attention.kv_lora_rank": 64,
    "attention.q_lora_rank": 64,
    "attention.head_count_kv": 1,
    "rope.dimension_count": 32,
    **EXPERTS,
}
INDEXER = {"attention.indexer.head_count": 4, "attention.indexer.key_length": 64, "attention.indexer.top_k": 256}
MAMBA = {"ssm.conv_kernel": 4, "ssm.inner_size": 512, "ssm.state_size": 16, "ssm.time_step_rank": 8, "ssm.group_count": 2}
GDN = {"ssm.conv_kernel": 4, "ssm.inner_size": 256, "ssm.state_size": 64, "ssm.time_step_rank": 4, "ssm.group_count": 2}
KDA = {"ssm.conv_kernel": 4, "kda.head_dim": 32, "kda.safe_gate": True, "kda.gate_lower_bound": -5.0}


class Tiny(NamedTuple):
    """An architecture's name in the file, the family it is asked as, its own metadata and its groups."""

    arch: str
    family: str
    own: dict[str, Any]
    groups: tuple[LayerGroup, ...]
    draft: tuple[LayerGroup, ...] = ()

    @property
    def architecture(self) -> Architecture:
        known = {**COMMON, **self.own}
        return Architecture(
            source="tiny",
            family=self.family,
            max_context_tokens=known["context_length"],
            layers=known["block_count"] - known.get("nextn_predict_layers", 0),
            hidden_size=known["embedding_length"],
            attention_heads=4,
            vocabulary=known["vocab_size"],
            groups=self.groups,
            draft_groups=self.draft,
        )

    def write(self, path: Any) -> None:
        """The file."""
        write(path, self.arch, {**COMMON, **self.own})


def write(path: Any, arch: str, keys: dict[str, Any]) -> None:
    """A file of metadata alone, since the engine makes its own tensors. Keys get the architecture's prefix, but for two sorts."""
    writer = gguf.GGUFWriter(None, arch)
    for key, value in keys.items():
        name = key if key.startswith(("xielu.", "tokenizer.")) else f"{arch}.{key}"
        writer.add_key_value(name, value, *kind(value))
    writer.add_tokenizer_model("none")
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.close()


def kind(value: Any) -> tuple[Any, ...]:
    """GGUF's types of a value, and of its elements; a tuple is an array of 64-bit numbers."""
    types = gguf.GGUFValueType
    if isinstance(value, tuple):
        return types.ARRAY, types.UINT64
    if isinstance(value, list):
        return types.ARRAY, types.get_type(value[0])
    if isinstance(value, bool):
        return (types.BOOL,)
    return (types.UINT32 if isinstance(value, int) else types.FLOAT32,)


def full(layers: int, heads: int = 2, width: int = 64, value: int | None = None) -> Attention:
    return Attention(kind="attention", layers=layers, kv_heads=heads, k_dim=width, v_dim=value or width)


def slides(layers: int, window: int = 300, heads: int = 2, width: int = 64, value: int | None = None) -> Sliding:
    return Sliding(kind="sliding", layers=layers, kv_heads=heads, k_dim=width, v_dim=value or width, window_tokens=window)


def latent(layers: int, rope: int = 32) -> Latent:
    return Latent(kind="latent", layers=layers, latent_dim=64, rope_dim=rope)


def keys(layers: int, pool: int = 1, width: int = 64) -> Indexer:
    return Indexer(kind="indexer", layers=layers, bytes_per_key=width + 4, key_dim=width, pool_tokens=pool)


def state(layers: int, conv: int, elements: int, ngrams: int = 0) -> Recurrent:
    return Recurrent(kind="recurrent", layers=layers, conv_elements=conv, state_elements=elements, ngram_conv_elements=ngrams)


def mamba(layers: int, groups: int) -> Recurrent:
    return state(layers, 3 * (512 + 2 * groups * 16), 16 * 512)


def kda(layers: int) -> Recurrent:
    return state(layers, 3 * 3 * 4 * 32, 32 * 32 * 4)


def window(size: int = 300, pattern: list[bool] | None = None, **more: Any) -> dict[str, Any]:
    listed = {"attention.sliding_window_pattern": pattern} if pattern else {}
    return {"attention.sliding_window": size, **listed, **more}


HYBRID_HEADS = {"attention.head_count_kv": [2, 0, 0, 2]}
HALF = [True, False, True, False]
EVERY_FOURTH = (full(1), slides(3))
