"""mlx-lm 0.32.2: how many tokens each kind of cache has room for, at each moment of a request.

Read in PyPI `mlx-lm` 0.32.2, `mlx_lm/models/cache.py` and `mlx_lm/generate.py` (`generate_step`; the server's `BatchGenerator` calls the
model in the same steps): the prompt less its last token goes through the model in calls of `prefill_step_size`, then one token at a time.
Checked to the byte against mlx-lm 0.32.2 on mlx 0.32.4 (`tests/fit/engines/test_mlx_real.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

STEP = 256
"""`KVCache.step`."""


class Moment(NamedTuple):
    """The caches between two calls: `prefilled` tokens in chunks, the last of `call` tokens, and the first token by itself or not yet."""

    prefilled: int
    call: int
    alone: bool

    @property
    def tokens(self) -> int:
        """Tokens in the caches."""
        return self.prefilled + self.alone


def moments(context: int, chunk: int) -> Iterator[Moment]:
    """The moments at which a prompt of `context` tokens may hold most: after its last whole chunk, after the rest, after its last token."""
    prompt = context - 1
    rest = prompt % chunk
    if prompt >= chunk:
        yield Moment(prompt - rest, chunk, alone=False)
    if rest:
        yield Moment(prompt, rest, alone=False)
    yield Moment(prompt, rest or min(prompt, chunk), alone=True)


def growing(moment: Moment, chunk: int) -> int:
    """`KVCache`: grown by the call in whole steps, from the tokens that it holds.

    What is left of the last step is cut off before it grows, unless the tokens fill whole steps.
    """
    size = _filled(moment.prefilled, chunk)
    return size + STEP if moment.tokens > size else size


def _filled(tokens: int, chunk: int) -> int:
    if chunk % STEP == 0 or STEP % chunk == 0:
        return steps(tokens)
    size = 0
    while (held := size // chunk * chunk) < tokens and (call := min(chunk, tokens - held)) + held > size:
        size = (held if held % STEP else size) + steps(call)
    return size


def rotating(moment: Moment, most: int, chunk: int) -> int:
    """`RotatingKVCache`: a chunk is appended whole to the window less one token, a single token goes into steps of 256.

    The first call makes a cache of just its length (`_update_concat`), and one token by itself cuts the cache back to its window
    (`_update_in_place`).
    """
    before = moment.prefilled - moment.call
    if moment.alone or moment.call == 1:
        if moment.tokens > most:
            return most
        singly = chunk == 1 or moment.prefilled == 0
        whole = 0 if singly else moment.prefilled - (moment.call == 1)
        return min(most, whole + steps(moment.tokens - whole))
    return most - 1 + moment.call if before >= most else moment.prefilled


def chunked(moment: Moment, most: int, chunk: int) -> int:
    """`ChunkedKVCache`: cut to its size before each call once it holds more (`maybe_trim_front`), then grown as `KVCache` is."""
    call = 1 if moment.alone else moment.call
    return most + steps(call) if moment.tokens - call > most else growing(moment, chunk)


def steps(tokens: int) -> int:
    """Tokens in whole steps of 256."""
    return -(-tokens // STEP) * STEP
