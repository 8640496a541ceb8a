"""SGLang: how many tokens the pool of windowed layers has."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from fitcheck.catalogue.layers import Attention, Chunked, Sliding
from fitcheck.errors import UsageError
from fitcheck.fit.engines.sglang_ask import Asked
from fitcheck.fit.engines.sglang_families import SWA_RATIO

EVICTION_INTERVAL = 128
"""`environ.py`, `SGLANG_SWA_EVICTION_INTERVAL`."""
CHUNK_TOKENS = 8192
"""`chunked_prefill_size` of cards of 60 to 160 GB (`arg_groups/memory_hook.py`); smaller cards take 2,048 or 4,096, larger ones 16,384."""


def by_ratio(asked: Asked, window: int, default: float) -> tuple[int, int]:
    """Tokens of the full and of the windowed pool, which is a share of it (`HybridSWAPoolConfigurator._solve_pool_sizes`).

    A windowed pool that cannot hold a window and a page is refused (`validate_swa_pool_size`), and a request takes as much of it to be
    admitted; the full pool is as large as that demands at least.
    """
    named = asked.named.get("swa_full_tokens_ratio", default)
    if isinstance(named, bool) or not isinstance(named, int | float) or not 0 < named <= 1:
        raise UsageError(f"swa_full_tokens_ratio is {named!r}, and must be above 0 and at most 1")
    ratio, page = Fraction(str(named)), asked.page
    needed = max(window + page + 1, asked.requests * (min(asked.context, window) + page))
    least = -(-needed // page) * page
    full = max(asked.slots, -(-ceil(least / ratio) // page) * page)
    return full, floor(full * ratio) // page * page


def chunk_tokens(asked: Asked) -> int | None:
    """Tokens of a prefill chunk, None where `--chunked-prefill-size` is not above 0, which takes prompts whole."""
    given = asked.named.get("chunked_prefill_size", CHUNK_TOKENS)
    return (
        None
        if isinstance(given, int) and not isinstance(given, bool) and given <= 0
        else asked.number("chunked_prefill_size", CHUNK_TOKENS)
    )


def request_cap(asked: Asked, window: int, chunk: int, tails: int = 0) -> int:
    """Tokens that the requests can hold at most (`pool_configurator.py`, `compute_swa_request_cap`).

    A chunk is in flight, two with the overlap schedule; a step of speculation takes `get_alloc_len_per_decode` twice
    (`mem_cache/allocation_sizing.py`). `tails` are windows that are kept for reuse besides
    (`DSV4PoolConfigurator._resolve_swa_cap_tokens`).
    """
    page, drafts = asked.page, max(1, asked.draft_tokens)
    branches = (asked.number("speculative_num_steps", 1) or 1) * (asked.number("speculative_eagle_topk", 1) or 1)
    decode = 2 * max(drafts, branches) if asked.draft_tokens else page
    per_request = window + EVICTION_INTERVAL * drafts + page + decode
    chunks = 1 if asked.named.get("disable_overlap_schedule") else 2
    cap = per_request * asked.requests + chunks * chunk + page + tails * (window + page)
    return -(-cap // page) * page


def pool_sizes(asked: Asked, full: list[Attention], windowed: list[Sliding | Chunked]) -> tuple[int, int]:
    """Tokens of the pool of full attention and of the windowed one, which takes the place of the former where there is none.

    With the radix cache off and `--max-running-requests` given, the windowed pool holds what the requests can at most
    (`SWARequestCapPoolConfigurator`), unless prompts are prefilled whole.
    """
    if not full:
        return 0, asked.slots
    window = max(group.window_tokens if isinstance(group, Sliding) else group.chunk_tokens for group in windowed)
    chunk = chunk_tokens(asked)
    if chunk and asked.named.get("disable_radix_cache") and asked.named.get("max_running_requests"):
        return asked.slots, request_cap(asked, window, chunk)
    return by_ratio(asked, window, SWA_RATIO)
