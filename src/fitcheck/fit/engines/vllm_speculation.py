"""What vLLM is told of speculative decoding, and what the method keeps besides the model's caches.

Source: vLLM 0.33.0, vllm/config/speculative.py (`SpeculativeConfig.__post_init__`) and `VllmConfig.__post_init__` (vllm/config/vllm.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fitcheck.errors import UnknownFact, UsageError

_OWN_DRAFTS = ("mtp", "dspark")
"""Methods of speculation that run the model's own draft layers (`deepseek_mtp`, `qwen3_5_mtp`, ...)."""

_NO_CACHE = ("ngram", "ngram_gpu", "suffix", "medusa", "mlp_speculator")
"""Methods that keep no keys and values: they look drafts up, or have heads without attention. The state of recurrent layers is kept for
each draft token all the same (`MambaBase.get_kv_cache_spec`: `num_speculative_blocks`)."""

_LOCKSTEP = ("ngram", "suffix", "medusa", "mlp_speculator")
"""Methods that turn asynchronous scheduling off where it was not asked for ("Async scheduling not supported with %s-based speculative
decoding and will be disabled")."""

_BY_MODEL = {"ngram": "ngram", "[ngram]": "ngram"}
"""What is no drafter's name but a method's."""

MOST_CHARACTERS = 1 << 16


class Speculation(NamedTuple):
    """Draft tokens a step, None where nothing was said; `own` is whether the model's own draft layers make them."""

    tokens: int | None
    own: bool
    overlapped: bool


def speculation(named: dict[str, Any]) -> Speculation:
    """What `speculative_config` or `num_speculative_tokens` says.

    Raises `UnknownFact` for a drafter whose cache is not in the model's own config, `UsageError` for a config that is none.
    """
    holder = {**_config(named.get("speculative_config")), **named}
    drafter, method = holder.get("model"), holder.get("method")
    if method is None and drafter is not None:
        method = _BY_MODEL.get(str(drafter))
        if method is None:
            raise UnknownFact("what the drafter of a speculative_config with a model and no method keeps is not in the model's config")
    method = str(method or "mtp").lower()
    if method not in _NO_CACHE and not method.endswith(_OWN_DRAFTS):
        raise UnknownFact(f"what the drafter of the method {ascii(method)[:80]} keeps is not in the model's config")
    tokens = holder.get("num_speculative_tokens", holder.get("num_spec_tokens"))
    if tokens is not None and (isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0):
        raise UsageError(f"num_speculative_tokens is {tokens!r}, and must be 0 or more")
    return Speculation(tokens, method not in _NO_CACHE, method not in _LOCKSTEP)


def _config(given: Any) -> dict[str, Any]:
    """The config as an object, or as the JSON text that the command line takes."""
    if isinstance(given, str):
        import json

        try:
            given = json.loads(given) if len(given) <= MOST_CHARACTERS else None
        except (ValueError, RecursionError):
            given = None
        if given is None:
            raise UsageError("speculative_config is not JSON", hint='such as {"method": "mtp", "num_speculative_tokens": 2}')
    if given is not None and not isinstance(given, dict):
        raise UsageError("speculative_config is not an object", hint='such as {"method": "mtp", "num_speculative_tokens": 2}')
    return dict(given or {})
