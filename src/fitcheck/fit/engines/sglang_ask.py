"""What SGLang is asked to hold, in its own terms: pages, request slots, ranks, drafts."""

from __future__ import annotations

from typing import Any, NamedTuple

from fitcheck.catalogue.layers import Indexer, LayerGroup
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import Settings, reject_unknown
from fitcheck.fit.engines.sglang_families import PAGE_TOKENS
from fitcheck.fit.state import KvDtype

KNOWN = {
    "attention_backend",
    "block_size",
    "chunked_prefill_size",
    "context_length",
    "decode_attention_backend",
    "disable_hybrid_swa_memory",
    "disable_overlap_schedule",
    "disable_radix_cache",
    "dsa_decode_backend",
    "dsa_prefill_backend",
    "dsv4_attn_backend",
    "enable_dp_attention",
    "enable_hierarchical_cache",
    "mamba_full_memory_ratio",
    "mamba_radix_cache_strategy",
    "mamba_ssm_dtype",
    "max_mamba_cache_size",
    "max_running_requests",
    "max_total_tokens",
    "mem_fraction_static",
    "page_size",
    "prefill_attention_backend",
    "prefill_kv_cache_dequant_dtype",
    "speculative_algorithm",
    "speculative_draft_model_path",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "speculative_num_steps",
    "swa_full_tokens_ratio",
    "swa_prefix_tails",
}
"""SGLang's names. `mem_fraction_static` and `mamba_full_memory_ratio` divide what a card has left; they do not change what a request needs,
so that they are accepted and have no effect here. `block_size` is the word of other engines for `page_size`."""

OWN_DRAFT = {"EAGLE", "NEXTN"}
"""Algorithms that use the model's own draft layers, unless a draft model is named (`arg_groups/speculative_hook.py`)."""
BUNDLED_DSPARK = {"deepseek_v4", "deepseek_v41"}
"""Families whose own draft layers are DSpark stages (`checkpoint_bundles_dspark_draft`)."""
NO_DRAFT_CACHE = {"NGRAM"}


BACKEND_PAGES: dict[Any, tuple[int, ...]] = {
    "flashmla": (64,),
    "trtllm_mla": (32, 64),
    "cutedsl_mla": (32, 64),
    "trtllm_mha": (16, 32, 64, 128),
    "hpc_ops": (64,),
}
"""Pages that an attention backend can read; any other becomes `BACKEND_PAGE`."""
BACKEND_PAGE = 64


class Asked(NamedTuple):
    """A pool's size: `slots` tokens on one rank besides the page that takes the writes of padding; `requests` run at once on a rank."""

    page: int
    slots: int
    context: int
    requests: int
    tp: int
    pp: int
    dcp: int
    dp_attention: int
    dtype: KvDtype
    speculative: bool
    drafting: bool
    draft_tokens: int
    named: dict[str, Any]

    def layers(self, layers: int) -> int:
        """Layers on the fullest pipeline stage (`distributed/utils.py`, `get_pp_indices`)."""
        return -(-layers // self.pp)

    def heads(self, kv_heads: int) -> int:
        """KV heads on a rank, one at least; DCP ranks share heads (`configs/model_config.py`, `ModelConfig.get_num_kv_heads`)."""
        return max(1, -(-kv_heads // max(1, self.tp // self.dcp)))

    def number(self, name: str, default: int | None = None) -> int | None:
        """A named setting that is a whole number of one or more."""
        return count(self.named, name, default)


def count(named: dict[str, Any], name: str, default: int | None = None) -> int | None:
    """A named setting that is a whole number of one or more, or the default."""
    value = named.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{name} is {value!r}, and must be a whole number of 1 or more")
    return value


def ask(architecture: Architecture, settings: Settings) -> Asked:
    """The settings as SGLang resolves them.

    Tokens: every request takes whole pages, and pages are spread over the decode-context ranks (`mem_cache/kv_cache_configurator.py`,
    `_build_token_to_kv_pool_allocator`, `logical_token_capacity`). Requests: `--max-running-requests`, else the users; DP attention
    divides both ranks and requests (`resolve_max_num_reqs`).
    """
    named = settings.named
    reject_unknown(named, KNOWN, "sglang")
    dp_attention = settings.dp if named.get("enable_dp_attention") else 1
    if settings.tp % dp_attention:
        raise UsageError(f"DP attention over {dp_attention} ranks does not divide {settings.tp} tensor-parallel ranks")
    users = -(-settings.users // settings.dp)
    limit = count(named, "max_running_requests")
    context = count(named, "context_length", settings.context) or settings.context
    page = page_tokens(architecture, named)
    whole = page * settings.dcp
    tokens = users * -(-context // whole) * whole
    total = count(named, "max_total_tokens")
    if total is not None:
        tokens = total // whole * whole
    if not tokens:
        raise UsageError(f"max_total_tokens is {total}, less than a page of {whole} tokens")
    algorithm = _algorithm(architecture, named)
    return Asked(
        page=page,
        slots=tokens // settings.dcp,
        context=context,
        requests=max(1, limit // dp_attention) if limit else users,
        tp=settings.tp // dp_attention,
        pp=settings.pp,
        dcp=settings.dcp,
        dp_attention=dp_attention,
        dtype=settings.kv_dtype,
        speculative=algorithm is not None,
        drafting=algorithm is not None and algorithm not in NO_DRAFT_CACHE,
        draft_tokens=(count(named, "speculative_num_draft_tokens") or 0) if algorithm else 0,
        named=named,
    )


def _algorithm(architecture: Architecture, named: dict[str, Any]) -> str | None:
    """The speculative algorithm, where the caches it needs are known: the model's own draft layers, or none at all."""
    value = named.get("speculative_algorithm")
    if value is None:
        return None
    algorithm = str(value).upper()
    if algorithm in NO_DRAFT_CACHE:
        return algorithm
    own = algorithm in OWN_DRAFT or (algorithm == "DSPARK" and architecture.family in BUNDLED_DSPARK)
    if not own or named.get("speculative_draft_model_path"):
        raise UnknownFact(f"the cache of the draft model is not known from this model's config (speculative_algorithm {algorithm})")
    if not architecture.draft_groups:
        raise UnknownFact(f"{architecture.family} has no draft layers of its own for speculative_algorithm {algorithm}")
    return algorithm


def page_tokens(architecture: Architecture, named: dict[str, Any]) -> int:
    """Tokens of a page: what the family fixes, else `--page-size`, else 1, and what the attention backend allows.

    DSA pages hold 64 index keys (`arg_groups/model_overrides/deepseek_v2.py`); the default is `arg_groups/overrides.py`,
    `_page_size_default`, the backends' pages are `_mla_backend_page_constraints`. FA4 takes 128 on SM100 alone, which is not known here.
    """
    if architecture.family in PAGE_TOKENS:
        return PAGE_TOKENS[architecture.family]
    pooled = [group.pool_tokens for group in architecture.groups if isinstance(group, Indexer)]
    if pooled:
        return 64 * pooled[0]
    page = count(named, "page_size", count(named, "block_size", 1)) or 1
    named_backends = (named.get(f"{part}attention_backend") for part in ("", "decode_", "prefill_"))
    allowed = [BACKEND_PAGES[backend] for backend in named_backends if backend in BACKEND_PAGES]
    return page if all(page in pages for pages in allowed) else BACKEND_PAGE


def drawn(architecture: Architecture, asked: Asked) -> tuple[LayerGroup, ...]:
    """The groups that have caches: the model's, and its draft layers' where it drafts with them."""
    return (*architecture.groups, *(architecture.draft_groups if asked.drafting else ()))
