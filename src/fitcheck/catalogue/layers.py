"""Layer groups: layers of one kind that keep the same state.

A group says what the architecture keeps, in elements; `fitcheck.fit.state` turns that into bytes. What a config does not settle is
left out, never guessed.
"""

# Annotations are evaluated as they stand (no `from __future__ import annotations`): pydantic would compile each text again at start-up.

from typing import Annotated, Literal

from pydantic import Field

from fitcheck.catalogue.provenance import Record

Positive = Annotated[int, Field(gt=0)]


class Attention(Record):
    """Full attention (MHA, GQA, MQA): every token keeps a key and a value per KV head, in every layer."""

    kind: Literal["attention"]
    layers: Positive
    kv_heads: Positive
    k_dim: Positive
    v_dim: Positive


class Sliding(Record):
    """Sliding-window attention: as `attention`, but only the last `window_tokens` are kept."""

    kind: Literal["sliding"]
    layers: Positive
    kv_heads: Positive
    k_dim: Positive
    v_dim: Positive
    window_tokens: Positive


class Chunked(Record):
    """Chunked attention (Llama 4): tokens attend within their chunk, so at most `chunk_tokens` are kept."""

    kind: Literal["chunked"]
    layers: Positive
    kv_heads: Positive
    k_dim: Positive
    v_dim: Positive
    chunk_tokens: Positive


class Cross(Record):
    """Cross-attention of a decoder to an encoder: keys and values of the encoder's `positions`, whatever the context.

    `positions` is absent where it depends on the input (images), so that the size is not known from the config.
    """

    kind: Literal["cross"]
    layers: Positive
    kv_heads: Positive
    k_dim: Positive
    v_dim: Positive
    positions: Positive | None = None


class Latent(Record):
    """Latent attention (MLA): one compressed vector per token and layer, shared by all heads, whole on every tensor-parallel rank.

    Engines without MLA support store the keys and values of every head instead; `expanded_*` are those, where the config has them.
    """

    kind: Literal["latent"]
    layers: Positive
    latent_dim: Positive
    rope_dim: Annotated[int, Field(ge=0)]
    expanded_heads: Positive | None = None
    expanded_k_dim: Positive | None = None
    expanded_v_dim: Positive | None = None


class Indexer(Record):
    """Index keys of sparse attention (DSA): one key for every `pool_tokens` tokens.

    `bytes_per_key` is what engines store whatever the KV dtype: 128 FP8 elements and one FP32 scale are 132. `fp4_bytes_per_key` takes
    its place where the cache is in a 4-bit dtype and the engine then keeps 4-bit keys (64 + 4 bytes).
    """

    kind: Literal["indexer"]
    layers: Positive
    bytes_per_key: Positive
    fp4_bytes_per_key: Positive | None = None
    pool_tokens: Positive = 1
    key_dim: Positive | None = None
    """Elements of a key, for engines that keep it in the cache's own dtype."""


class Compressed(Record):
    """Compressed attention (DeepSeek V4, V4.1): one record for every `ratio` tokens in each layer that owns a cache.

    `layers` counts the layers that write a cache; layers that read another's cache keep nothing. Records have a layout of their own,
    so the size depends on the KV dtype by name: `record_bytes` maps `fp8` or `fp4` to bytes.
    """

    kind: Literal["compressed"]
    layers: Positive
    ratio: Positive
    record_bytes: dict[str, Positive]
    row_dim: Positive | None = None
    """Elements of a record, for engines that keep it in the cache's own dtype."""


class CompressedWindow(Record):
    """The window of recent uncompressed records that every compressed-attention layer keeps beside its compressed cache."""

    kind: Literal["compressed_window"]
    layers: Positive
    window_tokens: Positive
    record_bytes: dict[str, Positive]
    row_dim: Positive | None = None
    """Elements of a record, for engines that keep it in the cache's own dtype."""


class Compressor(Record):
    """What the compressors of compressed attention keep in FP32: `bytes_per_token` of the last `window_tokens`, in each layer."""

    kind: Literal["compressor"]
    layers: Positive
    window_tokens: Positive
    bytes_per_token: Positive
    index_bytes_per_token: Annotated[int, Field(ge=0)] = 0


Flavour = Literal["mamba1", "mamba2", "gdn", "kda", "lightning", "shortconv", "rwkv"]


class Recurrent(Record):
    """Layers with a state of fixed size per sequence: state-space, linear attention, short convolution, RWKV.

    `state_elements` are kept in `state_dtype_bytes` each (engines keep the recurrent state in FP32 unless told otherwise),
    `conv_elements`, the convolution's tail of `conv_kernel` - 1 steps, in the model's 16-bit dtype. Both are per layer and are divided
    by tensor parallelism. `groups` and `group_elements` tell what part of a convolution step belongs to groups that tensor
    parallelism replicates once there are fewer groups than ranks (Mamba-2: B and C of `groups` x state size each).
    `named_dtype_bytes` is the state's dtype where the config itself names one (`mamba_ssm_dtype: float32`); where it is absent the
    choice is the engine's. `ngram_conv_elements` are the tail of a convolution behind an n-gram embedding, kept 16 bits wide by one of
    these layers alone, and whole by every rank (Qwen4-Exp); `ngram_conv_steps` is how many steps it reaches back. `chunk_tokens` are
    those of a chunk of Mamba-2's prefill kernels.
    """

    kind: Literal["recurrent"]
    layers: Positive
    state_elements: Annotated[int, Field(ge=0)]
    state_dtype_bytes: Positive = 4
    conv_elements: Annotated[int, Field(ge=0)] = 0
    conv_dtype_bytes: Positive = 2
    flavour: Flavour | None = None
    conv_kernel: Positive | None = None
    heads: Positive | None = None
    groups: Positive | None = None
    group_elements: Positive | None = None
    named_dtype_bytes: Positive | None = None
    ngram_conv_elements: Annotated[int, Field(ge=0)] = 0
    ngram_conv_steps: Positive | None = None
    chunk_tokens: Positive | None = None


class Stateless(Record):
    """Layers that keep nothing between tokens: feed-forward only, or readers of another layer's cache."""

    kind: Literal["none"]
    layers: Positive


LayerGroup = Annotated[
    Attention | Sliding | Chunked | Cross | Latent | Indexer | Compressed | CompressedWindow | Compressor | Recurrent | Stateless,
    Field(discriminator="kind"),
]
