"""A model in llama.cpp's terms, and what llama.cpp refuses to set up for it.

Sources (build 11549): `llama_model_base::load_hparams` (`src/llama-model.cpp`) and `llama_init_from_model` (`src/llama-context.cpp`).
"""

from __future__ import annotations

from typing import NamedTuple

from fitcheck.catalogue.layers import Attention, Chunked, CompressedWindow, Latent, LayerGroup, Sliding
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.llamacpp_families import Rules
from fitcheck.fit.engines.llamacpp_settings import Run, block_of, row_bytes


class LlamaModel(NamedTuple):
    """Groups that the main context keeps, the rules and the context, and the longest value row of any layer (`n_embd_v_gqa_max`)."""

    family: str
    layers: int
    groups: tuple[LayerGroup, ...]
    rules: Rules
    run: Run
    longest_v: int


def model_of(architecture: Architecture, rules: Rules, run: Run) -> LlamaModel:
    """The model. Raises `UsageError` for a context that llama.cpp refuses, `UnknownFact` where the config lacks what it takes."""
    own = tuple(_as_kept(group, architecture, rules) for group in architecture.groups)
    draft = tuple(_as_kept(group, architecture, rules) for group in architecture.draft_groups)
    rows = [group.kv_heads * group.v_dim for group in own + draft if isinstance(group, Attention | Sliding | Chunked)]
    groups = own + draft if rules.draft_cached else own
    model = LlamaModel(architecture.family, architecture.layers, groups, rules, run, max(rows, default=0))
    _refuse(architecture, model)
    return model


def _as_kept(group: LayerGroup, architecture: Architecture, rules: Rules) -> LayerGroup:
    """A group as llama.cpp keeps it: where it has no MLA (minicpm3.cpp), keys and values of every head, a value of width / heads."""
    if not isinstance(group, Latent) or rules.latent:
        return group
    if group.expanded_heads is None or group.expanded_k_dim is None:
        raise UnknownFact(f"{architecture.family}: the keys of every head are not known, and llama.cpp keeps those")
    v_dim = _width_per_head(architecture)
    return Attention(kind="attention", layers=group.layers, kv_heads=group.expanded_heads, k_dim=group.expanded_k_dim, v_dim=v_dim)


def _width_per_head(architecture: Architecture) -> int:
    """A value's width where the converter writes none (`load_hparams`)."""
    width, heads = architecture.hidden_size, architecture.attention_heads
    if width is None or heads is None:
        raise UnknownFact(f"{architecture.family}: llama.cpp takes width / heads for a value's width, and one of them is not known")
    return width // heads


def _refuse(architecture: Architecture, model: LlamaModel) -> None:
    """What `llama_init_from_model` refuses.

    K and V types that differ where V is a view of K (which it is not in a file from before latents were kept); quantised values without
    flash attention; with it, blocks that do not divide a head.
    """
    run, rules = model.run, model.rules
    keys_only = rules.latent and not any(isinstance(group, Attention) for group in model.groups)
    if keys_only and run.type_k != run.type_v:
        raise UsageError(f"llama.cpp refuses K {run.type_k} with V {run.type_v} for {rules.arch}", hint="the same type_k and type_v")
    if block_of(run.type_v)[0] > 1 and not run.fa:
        raise UsageError(f"llama.cpp refuses a {run.type_v} V cache without flash attention", hint="fa auto or on")
    if not run.fa:
        return
    for group in model.groups:
        widths = _head_widths(group, architecture, rules)
        if widths is not None:
            row_bytes(run.type_k, widths[0])
            row_bytes(run.type_v, widths[1])


def _head_widths(group: LayerGroup, architecture: Architecture, rules: Rules) -> tuple[int, int] | None:
    """`n_embd_head_k` and `n_embd_head_v` of a layer."""
    if isinstance(group, Latent):
        return group.latent_dim + group.rope_dim, _width_per_head(architecture) if rules.head_v_from_width else group.latent_dim
    if isinstance(group, CompressedWindow) and group.row_dim:
        return group.row_dim, group.row_dim
    return (group.k_dim, group.v_dim) if isinstance(group, Attention | Sliding | Chunked) else None
