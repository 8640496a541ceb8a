"""MLX: the caches that mlx-lm 0.32.2 makes for each request.

Read in PyPI `mlx-lm` 0.32.2: `mlx_lm/models/cache.py` (cache classes, `mlx_growth`), `mlx_lm/models/*.py` (`make_cache`, tables in
`mlx_families`), `mlx_lm/generate.py` (prefill chunks, quantisation). What is counted is the most that the caches of a prompt of the
whole context hold between two calls of the model. Caches grow with the request; the wired limit bounds what the GPU may hold and is no
state. Prompt caches that the server keeps for later requests (`--prompt-cache-size`) are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from fitcheck.catalogue.layers import Attention, Chunked, Indexer, Latent, LayerGroup, Recurrent, Sliding
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import Settings, StateTerm, reject_unknown
from fitcheck.fit.engines.mlx_families import (
    DEFAULT_CACHE,
    EXPANDED,
    LATENT,
    LISTED,
    NEEDS_EXPERTS,
    NOT_BATCHED,
    NOT_QUANTISED,
    OWN_CACHE,
    PIPELINED,
    REFUSED,
    REPEATS_HEADS,
    ROTATING,
    ROTATING_WHERE_LISTED,
    SHARDED,
    STATE_BYTES,
    TWO_WAYS,
    WIDE_STATE,
)
from fitcheck.fit.engines.mlx_growth import Moment, chunked, growing, moments, rotating

KNOWN = {"kv_bits", "kv_group_size", "max_kv_size", "prefill_step_size", "quantized_kv_start"}
DEFAULTS = {"kv_group_size": 64, "prefill_step_size": 2048, "quantized_kv_start": 5000}
"""`generate.py`, `generate_step`; `cli` and `server.py` have the same."""
BITS = (2, 3, 4, 5, 6, 8)
WIDTH = {"bf16": 2, "f16": 2, "f32": 4}


class Asked(NamedTuple):
    """A request and what it is split over."""

    family: str
    context: int
    users: int
    tp: int
    pp: int
    element: int
    named: dict[str, int]
    rotates: bool
    moment: Moment = Moment(0, 0, alone=True)
    quantised: bool = False

    @property
    def chunk(self) -> int:
        """Tokens of a call of the model while it reads the prompt."""
        return self.named["prefill_step_size"]

    @property
    def quantises(self) -> bool:
        """Whether the request becomes long enough for its caches to be quantised (`generate.py`, `maybe_quantize_kv_cache`)."""
        return "kv_bits" in self.named and self.context >= self.named["quantized_kv_start"]

    def moments(self) -> Iterator[Asked]:
        """When most may be held. The first call that reaches `quantized_kv_start` ends with all of its caches unquantised.

        Measured with `mx.get_peak_memory` on mlx 0.32.4: they are not given up layer by layer.
        """
        whole = list(moments(self.context, self.chunk))
        if not self.quantises:
            return (yield from (self._replace(moment=moment) for moment in whole))
        start = max(1, self.named["quantized_kv_start"])
        reached = -(-start // self.chunk) * self.chunk
        calls = [Moment(reached, self.chunk, alone=False), *whole] if reached < self.context else whole
        yield self._replace(moment=next(call for call in calls if call.tokens >= start))
        yield from (self._replace(moment=moment, quantised=moment.tokens >= start) for moment in whole)

    def layers(self, layers: int) -> int:
        """Layers on the fullest rank: an even split, the low ranks take what is left over (`models/pipeline.py`)."""
        return -(-layers // self.pp)


def allocate(architecture: Architecture, settings: Settings) -> tuple[StateTerm, ...]:
    """The caches of all users on the fullest rank. Raises `UnknownFact` for families that mlx-lm has no model file for."""
    asked = _ask(architecture, settings)
    return max((_held(architecture, then) for then in asked.moments()), key=lambda terms: sum(term.bytes for term in terms))


def _held(architecture: Architecture, asked: Asked) -> tuple[StateTerm, ...]:
    return tuple(term for group in architecture.groups for term in _terms(group, architecture, asked))


def _ask(architecture: Architecture, settings: Settings) -> Asked:
    family = architecture.family
    if family in REFUSED:
        raise UnknownFact(f"mlx-lm 0.32.2 cannot run {family}: {REFUSED[family]}")
    if family not in DEFAULT_CACHE | OWN_CACHE:
        raise UnknownFact(f"mlx-lm 0.32.2 has no model file for {family}")
    if family in NEEDS_EXPERTS and not architecture.experts:
        raise UnknownFact(f"mlx-lm 0.32.2 has a model file for {family} with experts alone")
    if settings.dp > 1 or settings.dcp > 1:
        raise UnknownFact("mlx-lm 0.32.2 has neither data parallelism nor decode-context parallelism")
    for size, able, word in ((settings.tp, SHARDED, "tensor"), (settings.pp, PIPELINED, "pipeline")):
        if size > 1 and family not in able:
            raise UnknownFact(f"mlx-lm 0.32.2 has no {word} parallelism for {family}")
    if settings.kv_dtype.k not in WIDTH or settings.kv_dtype.v != settings.kv_dtype.k:
        raise UsageError(f"mlx-lm keeps caches in the model's dtype, not {settings.kv_dtype.name!r}", hint="kv_bits=8 quantises them")
    named = {**DEFAULTS, **_numbers(settings.named)}
    if "max_kv_size" in named and family in TWO_WAYS:
        raise UnknownFact(f"mlx-lm 0.32.2 has max_kv_size for {family} inside mistral3 alone, which the architecture does not tell")
    if settings.users > 1 and family in NOT_BATCHED:
        raise UnknownFact(f"mlx-lm 0.32.2 does not run {settings.users} requests for {family} at once: {NOT_BATCHED[family]}")
    if settings.users > 1 and "kv_bits" in named:
        raise UsageError("with kv_bits mlx-lm 0.32.2 answers requests one after the other", hint="one user, or no kv_bits")
    users, element = settings.users, WIDTH[settings.kv_dtype.k]
    return Asked(family, settings.context, users, settings.tp, settings.pp, element, named, _rotates(architecture))


def _rotates(architecture: Architecture) -> bool:
    """Whether windowed layers have rotating caches. Layers of both sorts are in no config of these families but by `layer_types`."""
    mixed = any(isinstance(group, Attention) for group in architecture.groups)
    return architecture.family in ROTATING or (architecture.family in ROTATING_WHERE_LISTED and mixed)


def _numbers(named: dict[str, Any]) -> dict[str, int]:
    reject_unknown(named, KNOWN, "mlx")
    for name, value in named.items():
        least = 0 if name == "quantized_kv_start" else 1
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise UsageError(f"{name} is {value!r}, and must be a whole number of {least} or more")
    if named.get("kv_bits", 8) not in BITS:
        raise UsageError(f"kv_bits is {named['kv_bits']}, and must be one of {', '.join(map(str, BITS))}")
    return dict(named)


def _terms(group: LayerGroup, architecture: Architecture, asked: Asked) -> Iterator[StateTerm]:
    layers = asked.layers(group.layers)
    if isinstance(group, Attention | Sliding | Chunked):
        yield _heads(group, layers, asked)
    elif isinstance(group, Latent):
        yield _latent(group, layers, asked)
    elif isinstance(group, Indexer):
        yield _index(group, layers, architecture, asked)
    elif isinstance(group, Recurrent):
        yield _state(group, layers, asked)


def _rank_heads(heads: int, asked: Asked) -> int:
    """KV heads on a rank: `n_kv_heads //= N` in each `shard`."""
    if heads % asked.tp == 0:
        return heads // asked.tp
    if asked.family in REPEATS_HEADS and asked.tp % heads == 0:
        return 1
    raise UnknownFact(f"mlx-lm 0.32.2 cannot divide the {heads} KV heads of {asked.family} over {asked.tp} ranks")


def _heads(group: Attention | Sliding | Chunked, layers: int, asked: Asked) -> StateTerm:
    """Keys and values of a rank's heads, in the cache that the family gives such layers."""
    heads = _rank_heads(group.kv_heads, asked)
    dims = (group.k_dim, group.v_dim)
    words = f"{layers} layers x {heads} KV heads"
    if isinstance(group, Sliding) and asked.rotates:
        return _fixed("KV, rotating window", layers * heads, dims, rotating(asked.moment, group.window_tokens, asked.chunk), words, asked)
    if isinstance(group, Chunked):
        return _fixed("KV, chunked attention", layers * heads, dims, chunked(asked.moment, group.chunk_tokens, asked.chunk), words, asked)
    return _growing("KV, all tokens", layers * heads, dims, words, asked)


def _latent(group: Latent, layers: int, asked: Asked) -> StateTerm:
    """One latent, whole on each rank, or the keys and values of every head."""
    if asked.family in LATENT:
        dims = (group.latent_dim, group.rope_dim)
        if asked.quantises and asked.family not in LISTED:
            raise UsageError(f"mlx-lm 0.32.2 cannot run {asked.family} with kv_bits: its attention reads the rope part unquantised")
        return _growing("KV, latent (MLA)", layers, dims, f"{layers} layers", asked)
    if asked.family in EXPANDED and group.expanded_heads and group.expanded_k_dim and group.expanded_v_dim:
        heads = _rank_heads(group.expanded_heads, asked)
        words = f"{layers} layers x {heads} heads"
        return _growing("KV, MLA expanded", layers * heads, (group.expanded_k_dim, group.expanded_v_dim), words, asked)
    raise UnknownFact(f"whether mlx-lm 0.32.2 stores the latents of {asked.family} or its heads")


def _growing(name: str, rows: int, dims: tuple[int, int], words: str, asked: Asked) -> StateTerm:
    """A `KVCache`, or a `RotatingKVCache` with `max_kv_size` where the family leaves the choice to `make_prompt_cache`.

    With `kv_bits` a `QuantizedKVCache` from `quantized_kv_start` on: as many tokens, `kv_bits` for each element and a scale and a bias
    for each group.
    """
    limit = asked.named.get("max_kv_size")
    if limit is not None and asked.family in DEFAULT_CACHE:
        return _fixed("KV, rotating", rows, dims, rotating(asked.moment, limit, asked.chunk), words, asked)
    tokens, width = growing(asked.moment, asked.chunk), f"({dims[0]} + {dims[1]})"
    if not asked.quantised or asked.family in LISTED:
        size = rows * sum(dims) * asked.element * tokens * asked.users
        return StateTerm(name, "cache", size, f"{words} x {width} x {asked.element} B x {tokens:,} tokens{_users(asked)}")
    if asked.family in NOT_QUANTISED:
        raise UsageError(f"mlx-lm 0.32.2 cannot run {asked.family} with kv_bits: its attention reads its caches unquantised")
    group = asked.named["kv_group_size"]
    if any(dim % group for dim in dims):
        raise UsageError(f"kv_group_size {group} does not divide the widths {dims[0]} and {dims[1]}")
    element = Fraction(asked.named["kv_bits"], 8) + Fraction(2 * asked.element, group)
    size = ceil(rows * sum(dims) * element * tokens * asked.users)
    return StateTerm(name, "cache", size, f"{words} x {width} x {float(element):g} B x {tokens:,} tokens{_users(asked)}")


def _fixed(name: str, rows: int, dims: tuple[int, int], tokens: int, words: str, asked: Asked) -> StateTerm:
    """A cache of bounded length; rotating ones cannot be quantised (`RotatingKVCache.to_quantized`), chunked ones are passed over."""
    if asked.quantises and "rotating" in name:
        raise UsageError(f"mlx-lm 0.32.2 cannot quantise the rotating caches of {asked.family}")
    size = rows * sum(dims) * asked.element * tokens * asked.users
    return StateTerm(name, "cache", size, f"{words} x ({dims[0]} + {dims[1]}) x {asked.element} B x {tokens:,} tokens{_users(asked)}")


def _index(group: Indexer, layers: int, architecture: Architecture, asked: Asked) -> StateTerm:
    """Index keys in the model's dtype, and values of zero beside them for DSA (`deepseek_v32.py`, `Indexer`; `minimax_m3_vl.py`)."""
    latents = sum(other.layers for other in architecture.groups if isinstance(other, Latent))
    if group.pool_tokens > 1 or (latents and latents != group.layers) or group.key_dim is None:
        raise UnknownFact(f"mlx-lm 0.32.2 has an unpooled indexer in every layer, and {asked.family} has not")
    values = group.key_dim if latents else 0
    return _growing("index keys", layers, (group.key_dim, values), f"{layers} layers", asked)


def _state(group: Recurrent, layers: int, asked: Asked) -> StateTerm:
    """An `ArraysCache`: the convolution's tail in the model's dtype and the state, both divided where the family shards them."""
    if group.flavour is None or (group.state_elements % asked.tp or group.conv_elements % asked.tp):
        raise UnknownFact(f"how mlx-lm 0.32.2 keeps the recurrent state of {asked.family}")
    state, tail, element = (
        group.state_elements // asked.tp,
        group.conv_elements // asked.tp,
        4 if asked.family in WIDE_STATE else STATE_BYTES[group.flavour],
    )
    size = layers * (state * element + tail * asked.element) * asked.users
    words = f"{layers} layers x ({state:,} x {element} B + {tail:,} x {asked.element} B){_users(asked)}"
    return StateTerm("recurrent state", "state", size, words)


def _users(asked: Asked) -> str:
    return f" x {asked.users} users" if asked.users > 1 else ""
