"""Weight tensors as records, and the sheet on which a family writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from math import prod
from typing import NamedTuple

from fitcheck.catalogue.models import ComponentKind
from fitcheck.frozen import frozen
from fitcheck.sources.families.fields import Fields


class Part(StrEnum):
    """What a tensor is of; routed experts, n-gram tables, drafters and vision towers are placed apart from the rest."""

    EMBEDDING = "embedding"
    LAYER_EMBEDDING = "layer_embedding"
    HEAD = "head"
    ATTENTION = "attention"
    LATENT = "latent"
    """What all heads or experts share, of which no rank of tensor parallelism holds a part: MLA's projections down to the latent, DeepSeek
    V4's keys and compressors, an index, hyper-connections, the projections around experts in a narrower space."""
    FFN = "ffn"
    EXPERTS = "experts"
    ROUTER = "router"
    NORM = "norm"
    NGRAM = "ngram"
    DRAFTER = "drafter"
    VISION = "vision"

    @property
    def component(self) -> ComponentKind:
        """The component of a checkpoint that holds it."""
        return _COMPONENTS.get(self, ComponentKind.WEIGHTS)

    @property
    def whole(self) -> bool:
        """Whether every rank of tensor parallelism holds all of it: vLLM 0.33's `ReplicatedLinear`, `GateLinear` and norms."""
        return self in (Part.NORM, Part.ROUTER, Part.LATENT)


TABLES = (Part.EMBEDDING, Part.LAYER_EMBEDDING)
"""Of which a token reads its own rows alone."""


def gguf_component(part: Part, *, tied: bool) -> ComponentKind:
    """The component in a GGUF build, which llama.cpp divides: tables apart, but for one that it loads once more as the head (`tied`).

    `llama_model::load_tensors`: where `output.weight` is absent it is made of `token_embd.weight` (`TENSOR_DUPLICATED`).
    """
    table = part is Part.LAYER_EMBEDDING or (part is Part.EMBEDDING and not tied)
    return ComponentKind.EMBEDDING if table else part.component


_COMPONENTS = {
    Part.EXPERTS: ComponentKind.EXPERTS,
    Part.NGRAM: ComponentKind.NGRAM,
    Part.DRAFTER: ComponentKind.DRAFTER,
    Part.VISION: ComponentKind.VISION,
}


_LATENT = re.compile(r"attn_(?:q_a|kv|kv_a_mqa|compressor_\w+)$|indexer\.(?!q_proj)|hc_|ffn_latent_")
"""MiniMax M3's index has queries for each group of KV heads, which its ranks divide; its one key is whole (vLLM `minimax_m3`)."""


@frozen
class Tensor:
    """A weight tensor, alike in all `layers` that have it.

    `name` is GGUF's (`attn_q`, `ffn_down_exps`: gguf-py `constants.py`, `MODEL_TENSOR`), without the block's number; tensors that GGUF
    splits otherwise than Hugging Face (the MLA's `kv_b_proj`) are as in GGUF. `module` is the Hugging Face module, within its layer.
    `shape` is outputs x inputs (the rows that are quantised come last). `each` is how many of them a layer has (experts, heads).
    Without `layers` it belongs to the model as a whole. `wide` tensors are kept in 32 bits by the checkpoints.
    """

    name: str
    part: Part
    shape: tuple[int, ...]
    module: str = ""
    each: int = 1
    layers: tuple[int, ...] | None = None
    suffix: str = ".weight"
    wide: bool = False

    @property
    def kept(self) -> Part:
        """What it is of where ranks divide a layer."""
        return Part.LATENT if self.part in (Part.ATTENTION, Part.FFN) and _LATENT.match(self.name) else self.part

    @property
    def rows(self) -> int:
        """Rows of one of them."""
        return prod(self.shape[:-1])

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return self.shape[-1]

    @property
    def count(self) -> int:
        """How many of them there are in all."""
        return self.each * (1 if self.layers is None else len(self.layers))

    @property
    def elements(self) -> int:
        """Parameters of all of them."""
        return prod(self.shape) * self.count

    @property
    def matrix(self) -> bool:
        """Whether it is a matrix, which is what quantisers take; norms, biases and scales are not."""
        return len(self.shape) > 1


class Piece(NamedTuple):
    """What a tensor takes in a format: its elements, the name of what stores them, and bytes with scales.

    All layers together; of one `layer` where the format stores layers differently.
    """

    part: Part
    kind: str
    elements: int
    bytes: int
    layer: int | None = None


class Sheet:
    """The tensors that a family's builder has written down."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.hidden = fields.count("hidden_size", "n_embd", "d_model")
        self.tensors: list[Tensor] = []

    def add(self, name: str, part: Part, *shape: int, module: str = "", suffix: str = ".weight") -> None:
        """A tensor of the model as a whole."""
        self.tensors.append(Tensor(name, part, shape, module, suffix=suffix))

    def block(self, layers: Iterable[int], *, draft: bool = False) -> Block:
        """Layers that are alike; those of a drafter belong to it whatever they are."""
        return Block(self, tuple(layers), draft)


class Block:
    """Layers that are alike, to which tensors are added one by one."""

    def __init__(self, sheet: Sheet, layers: tuple[int, ...], draft: bool) -> None:
        self.sheet, self.layers, self.draft = sheet, layers, draft
        self.hidden = sheet.hidden

    def add(self, name: str, part: Part, *shape: int, each: int = 1, module: str = "", suffix: str = ".weight", wide: bool = False) -> None:
        """A tensor in each of the layers; nothing where there are no layers or no elements."""
        if self.layers and each and prod(shape):
            kept = Part.DRAFTER if self.draft else part
            named = module or MODULES.get(name, name)
            self.sheet.tensors.append(Tensor(name, kept, shape, named, each, self.layers, suffix, wide))

    def linear(self, name: str, part: Part, outputs: int, inputs: int, *, bias: bool = False, each: int = 1, module: str = "") -> None:
        """A matrix, and its bias where it has one."""
        self.add(name, part, outputs, inputs, each=each, module=module)
        if bias:
            self.add(name, part, outputs, each=each, module=module, suffix=".bias")

    def norms(self, *names: str, width: int = 0, bias: bool = False) -> None:
        """Norms of the hidden size, or of another width."""
        for name in names:
            self.add(name, Part.NORM, width or self.hidden)
            if bias:
                self.add(name, Part.NORM, width or self.hidden, suffix=".bias")


Build = Callable[[Sheet], None]
"""Writes a family's tensors on a sheet, or raises `Unsettled`."""

MODULES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_a": "self_attn.q_a_proj",
    "attn_q_b": "self_attn.q_b_proj",
    "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
    "attn_k_b": "self_attn.kv_b_proj",
    "attn_v_b": "self_attn.kv_b_proj",
    "indexer.attn_q_b": "self_attn.indexer.wq_b",
    "indexer.attn_k": "self_attn.indexer.wk",
    "indexer.proj": "self_attn.indexer.weights_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_exps": "mlp.experts.0.gate_proj",
    "ffn_up_exps": "mlp.experts.0.up_proj",
    "ffn_down_exps": "mlp.experts.0.down_proj",
    "ffn_gate_shexp": "mlp.shared_experts.gate_proj",
    "ffn_up_shexp": "mlp.shared_experts.up_proj",
    "ffn_down_shexp": "mlp.shared_experts.down_proj",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    "nextn.eh_proj": "eh_proj",
    "nextn.embed_tokens": "embed_tokens",
    "nextn.shared_head_head": "shared_head.head",
}
"""The Hugging Face module of a tensor where most families agree on it."""
