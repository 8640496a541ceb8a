"""ik_llama.cpp: a fork of llama.cpp that kept the one cache of its time, so that it differs where llama.cpp has moved on.

All sequences share one pool of `n_ctx` cells, and sliding-window layers keep every cell of it: their own layout came with
`--swa-compress` (pull requests 2253, 2266, 2310 and 2378, from August 2026 on, for a few families), which is not modelled. Logs of Gemma 3
bear it out (discussion 334, issue 539: 248 and 992 KiB a token and layer count alike for all layers). DeepSeek's latent cache is stored
once, without values, under `-mla 2` and 3 (pull requests 246 and 273). What a recurrent state, an indexer or a
compressed cache takes was not read and is unknown here.
"""

from __future__ import annotations

from fitcheck.catalogue.layers import Attention, Chunked, Latent, Sliding, Stateless
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact
from fitcheck.fit.engines import llamacpp
from fitcheck.fit.engines.base import Settings, StateTerm

_KNOWN = (Attention, Chunked, Latent, Sliding, Stateless)


def allocate(architecture: Architecture, settings: Settings) -> tuple[StateTerm, ...]:
    """Terms of the fullest device, as llama.cpp's with a unified pool and full windows.

    Raises `UnknownFact` for layers whose state was not read, for `mla` 0 (keys and values of every head) and 1 (values besides), and for
    `swa_compress`.
    """
    named = dict(settings.named)
    strange = next((group.kind for group in architecture.groups if not isinstance(group, _KNOWN)), None)
    if strange is not None:
        raise UnknownFact(f"what ik_llama.cpp keeps for {strange} layers is not known here")
    if named.pop("swa_compress", False):
        raise UnknownFact("ik_llama.cpp's compacted windows (--swa-compress) are not modelled")
    if named.pop("mla", 3) not in (2, 3):
        raise UnknownFact("ik_llama.cpp's caches under -mla 0 and 1 are not modelled")
    return llamacpp.allocate(architecture, settings._replace(named={"swa_full": True, "kv_unified": True, **named}))
