"""A request and its answer as values, and how much patience there is: what the stores know of HTTP without loading a client."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from fitcheck.frozen import frozen
from fitcheck.sources.body import Body, Range

_RATE_LIMIT_RESET = re.compile(r";\s*t=(\d{1,6})\b")
"""Seconds until a limit is reset, in the hub's `RateLimit: "api";r=0;t=55` (huggingface.co/docs/hub/rate-limits)."""


@frozen
class Patience:
    """How long a server is waited for, in seconds, and how often it is asked again.

    A request with all its redirects and retries has `total_s`, and a second more for each `least_bytes_per_s` that may come.
    """

    connect_s: float = 10.0
    read_s: float = 20.0
    total_s: float = 60.0
    least_bytes_per_s: int = 500_000
    attempts: int = 4
    backoff_s: float = 0.5
    longest_wait_s: float = 30.0


class Get(NamedTuple):
    """What is asked: a whole file up to `most_bytes`, or a part of it. `what` names it in messages and holds no secret.

    `shortcut` is where the address led before: it is asked first, once and without the authorization, and need not answer.
    """

    url: str
    what: str
    most_bytes: int
    part: Range | None = None
    authorization: str | None = None
    etag: str | None = None
    shortcut: str | None = None


class Answer(NamedTuple):
    """What came: a final status that is no redirect, headers with lower-case names, and the body. `url` is the address that answered."""

    status: int
    url: str
    headers: dict[str, str]
    body: Body


Each = Callable[[int, Answer], None]
"""Told of an answer and of the place of its request among those made at once, as answers come."""


def allowed_s(get: Get, patience: Patience) -> float:
    """How long a request may take in all, in seconds."""
    most = get.part.start + get.part.length if get.part is not None else get.most_bytes
    return patience.total_s + most / patience.least_bytes_per_s


def asked_wait_s(headers: dict[str, str]) -> float | None:
    """The seconds after which a server wants to be asked again: Retry-After as seconds or as a date, or the hub's RateLimit."""
    after = headers.get("retry-after", "").strip()
    if after.isascii() and after.isdigit() and len(after) < 8:
        return float(after)
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, (parsedate_to_datetime(after) - datetime.now(UTC)).total_seconds())
    reset = _RATE_LIMIT_RESET.search(headers.get("ratelimit", ""))
    return float(reset[1]) if reset is not None else None
