"""ik_llama.cpp: a fork of llama.cpp that kept the one cache of its time, so that it differs where llama.cpp has moved on.

All sequences share one pool of `n_ctx` cells, and sliding-window layers keep every cell of it: their own layout came with
`--swa-compress` (pull requests 2253, 2266, 2310 and 2378, from August 2026 on, for a few families), which is not modelled. Logs of Gemma
3 bear it out (discussion 334, issue 539: 248 and 992 KiB a token and layer count alike for all layers). What an indexer or a compressed
cache takes was not read and is unknown here, and so are recurrent states but those of gated delta net: one row in f32 for each sequence,
the convolution's tail and the state behind each other (`llama_hparams::n_embd_v_s`, src/llama-hparams.h; `s_l` of `llama_kv_cache_init`).
It has no snapshots of them among its caches.

Latents (`llama_kv_cache_init`, `src/llama.cpp`): under `-mla` 2 and 3 they are stored once, without values, in K's type (pull requests 246
and 273); under 1 without flash attention the transposed latents lie beside them, without the rope part and in V's type (pull request 240);
under 0 keys and values of every head are kept. It has one cache type more, `q6_0` (`ggml/src/ggml-common.h`, `block_q6_0`).
"""

from __future__ import annotations

from collections.abc import Iterator

from fitcheck.catalogue.layers import Attention, Chunked, Latent, LayerGroup, Recurrent, Sliding, Stateless
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines import llamacpp
from fitcheck.fit.engines.base import Settings, StateTerm
from fitcheck.fit.engines.llamacpp_families import rules_for
from fitcheck.fit.engines.llamacpp_settings import BLOCKS, FORK_BLOCKS, block_of, row_bytes, run_of

_KNOWN = (Attention, Chunked, Latent, Sliding, Stateless)
_DELTA_NETS = ("qwen3_next", "qwen3_5", "qwen3_5_moe")
TYPES = {**BLOCKS, **FORK_BLOCKS}


def allocate(architecture: Architecture, settings: Settings) -> tuple[StateTerm, ...]:
    """Terms of the fullest device, as llama.cpp's with a unified pool and full windows.

    Raises `UnknownFact` for layers whose state was not read and for `swa_compress`.
    """
    named = {"swa_full": True, "kv_unified": True, **settings.named}
    strange = next((group.kind for group in architecture.groups if not _known(group, architecture.family)), None)
    if strange is not None:
        raise UnknownFact(f"what ik_llama.cpp keeps for {strange} layers is not known here")
    if named.get("n_rs_seq"):
        raise UsageError("ik_llama.cpp has no n_rs_seq")
    if named.pop("swa_compress", False):
        raise UnknownFact("ik_llama.cpp's compacted windows (--swa-compress) are not modelled")
    mla = named.pop("mla", 3)
    if mla not in (0, 1, 2, 3):
        raise UsageError(f"ik_llama.cpp has no -mla {mla!r}", hint="0, 1, 2 or 3")
    if mla == 0:
        architecture = architecture.model_copy(update={"groups": tuple(_every_head(group, architecture) for group in architecture.groups)})
    asked = settings._replace(named=named)
    lone = all(isinstance(group, Latent | Stateless) for group in architecture.groups)
    terms = _latents(architecture, asked) if lone else llamacpp.allocate(architecture, asked, TYPES)
    return (*terms, *(_transposed(architecture, asked) if mla == 1 else ()))


def _known(group: LayerGroup, family: str) -> bool:
    return isinstance(group, _KNOWN) or (isinstance(group, Recurrent) and family in _DELTA_NETS)


def _every_head(group: LayerGroup, architecture: Architecture) -> LayerGroup:
    if not isinstance(group, Latent):
        return group
    if group.expanded_heads is None or group.expanded_k_dim is None or group.expanded_v_dim is None:
        raise UnknownFact(f"{architecture.family}: the keys and values of every head are not known, and -mla 0 keeps those")
    k_dim, v_dim = group.expanded_k_dim, group.expanded_v_dim
    return Attention(kind="attention", layers=group.layers, kv_heads=group.expanded_heads, k_dim=k_dim, v_dim=v_dim)


def _latents(architecture: Architecture, settings: Settings) -> Iterator[StateTerm]:
    """Latents alone, which have no values: unlike llama.cpp the fork takes any type of V beside them.

    They take the same without flash attention, but its compute buffer is not known, and quantised values are refused there too, even where
    nothing is stored in them (`llama_new_context_with_model`: "V cache quantization requires flash_attn").
    """
    run = run_of(architecture, rules_for(architecture), settings, TYPES)
    if not run.fa and block_of(run.type_v)[0] > 1:
        raise UsageError(f"ik_llama.cpp refuses a {run.type_v} V cache without flash attention", hint="fa on, or type_v f16")
    named = {**settings.named, "type_k": run.type_k, "type_v": run.type_k, "fa": "on"}
    for term in llamacpp.allocate(architecture, settings._replace(named=named), TYPES):
        if run.fa or term.sort != "compute":
            yield term


def _transposed(architecture: Architecture, settings: Settings) -> Iterator[StateTerm]:
    """The latents once more, transposed, where flash attention is off."""
    run = run_of(architecture, rules_for(architecture), settings, TYPES)
    if run.fa:
        return
    for group in architecture.groups:
        if isinstance(group, Latent):
            row = row_bytes(run.type_v, group.latent_dim)
            layers = llamacpp.fullest_layers(group.layers, architecture.layers, settings.pp, run.gpu_layers)
            words = f"{layers} layers x {group.latent_dim} {run.type_v} {row:,} B x {run.cells:,} cells"
            yield StateTerm("KV, latents transposed", "cache", layers * row * run.cells, words)
