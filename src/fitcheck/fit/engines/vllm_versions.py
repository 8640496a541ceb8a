"""What vLLM does with caches where its versions differ.

Sources (sdists from PyPI): vLLM 0.20.2 and 0.21.0 to 0.33.0; those from 0.23 on were asked, too (`scripts/ask_vllm.py`).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from fitcheck.errors import UsageError

Packing = Literal["tuples", "slots", "dense"]


class Rules(NamedTuple):
    """What a version of vLLM does where versions differ.

    `batches` are the batches in flight that a window must outlive (`VllmConfig.max_in_flight_tokens`, from 0.26 on: two with
    asynchronous scheduling, which is the default). `cached`: flavours of recurrent state that take part in prefix caching unless told
    otherwise (`EngineArgs._set_default_chunked_prefill_and_prefix_caching_args`: no hybrid up to 0.27, where 0.26 and 0.27 support it
    and say "keep it opt-in for now"; all from 0.28 on, pull request 50991). `cached_whole`: those that keep a state for every block,
    not two, where it is on (`MambaModelConfig.verify_and_update_config` up to 0.27: "all if supports_mamba_prefix_caching else
    align"). `checkpoints`: flavours and families with one block more for a checkpoint inside a prefill
    (`MambaSpec.num_prefill_checkpoint_blocks`, which layer classes set: `MambaMixer2`, `QwenGatedDeltaNetAttention`, and the KDA of
    Kimi K3 and GLM-5.3-Flash, while that of Kimi Linear and of Ling 3 does not). `balanced`: whether only layers with as many pages of
    each size fix a group's number of layers (`_get_packed_kv_cache_groups`, `_get_kv_cache_groups_uniform_groups` before; 0.29 and 0.30
    have the first too, which makes the same groups of V4, while V4.1's forks named so have the older ones). `packing`: how V4's unlike
    pages share a block (`vllm_groups`). `whole`: flavours that can keep a state for every block beside attention (the classes that
    are `SupportsMambaPrefixCaching`); others fall back to two. `chunked`: whether blocks are then multiples of the prefill kernels'
    chunk. `latent_unit`: what the block of a hybrid with MLA is a multiple of, since its decode kernels want 128 / kernel block blocks
    together (both `Platform._align_hybrid_block_size`). `untold`: families whose layers are not handed the cache's settings and keep the
    model's dtype whatever is asked (`mimo_v2.py` up to 0.31).
    """

    batches: int
    cached: tuple[str, ...]
    cached_whole: tuple[str, ...]
    checkpoints: tuple[str, ...]
    balanced: bool
    packing: Packing
    whole: tuple[str, ...] = ("mamba1", "mamba2")
    chunked: bool = True
    latent_unit: int = 128
    untold: tuple[str, ...] = ()


PURE = _MAMBA = ("mamba1", "mamba2")
"""The flavours that keep a state for every block in models of nothing else, in every version."""
_DELTA = ("gdn", "kda", "lightning", "shortconv", "")
_ALL = (*_MAMBA, *_DELTA)
_MIMO = ("mimo_v2", "mimo_v2_flash")
_QWEN = ("qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp")

VERSIONS: tuple[tuple[tuple[int, int], Rules], ...] = (
    ((0, 33), Rules(2, _ALL, (), ("mamba2", "kimi_k3", "glm5_next", *_QWEN), True, "dense", whole=(), chunked=False)),
    ((0, 32), Rules(2, _ALL, (), ("mamba2", "kimi_k3", "glm5_next"), True, "dense", chunked=False)),
    ((0, 31), Rules(2, _ALL, (), ("kimi_k3",), True, "dense", untold=_MIMO)),
    ((0, 28), Rules(2, _ALL, (), (), False, "dense", untold=_MIMO)),
    ((0, 27), Rules(2, (), _MAMBA, (), False, "dense", untold=_MIMO)),
    ((0, 26), Rules(2, (), _MAMBA, (), False, "slots", latent_unit=1, untold=_MIMO)),
    ((0, 23), Rules(1, (), _MAMBA, (), False, "slots", latent_unit=1, untold=_MIMO)),
    ((0, 0), Rules(1, (), _MAMBA, (), False, "tuples", latent_unit=1, untold=_MIMO)),
)
"""The rules from a version on (`vllm_version`), newest first."""

UNNAMED = Rules(2, _DELTA, (), (), True, "dense", untold=_MIMO)
"""The rules where no version is named: those of 0.31, the newest whose logs are at hand, but that Mamba-1 and -2 are taken not to cache
prefixes: no log of theirs does, and versions disagree on what it takes. The other flavours take the same in all, and half of the logs."""


def rules_of(named: dict[str, Any]) -> Rules:
    """The rules of the `vllm_version` that is named. Raises `UsageError` where that is no version."""
    if named.get("vllm_version") is None:
        return UNNAMED
    text = str(named["vllm_version"]).lstrip("v")
    parts = text.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        raise UsageError(f"vllm_version {text!r} is not a version", hint="such as 0.33")
    version = (int(parts[0]), int(parts[1]))
    return next(rules for since, rules in VERSIONS if version >= since)
