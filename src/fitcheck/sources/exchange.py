"""One request over HTTP/1.1: redirects followed by hand, bounded retries, a deadline, and a cap on what is read.

A token goes to the origin it was given for and nowhere else: it is dropped for good as soon as a redirect leaves that origin. Redirects
from https to http are refused. No cookie is kept.
"""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import PackageNotFoundError, version

import httpx

from fitcheck.errors import NetworkError
from fitcheck.sources.body import Body, Truncated, beyond_end, read_body
from fitcheck.sources.failures import named, too_slow
from fitcheck.sources.weburl import may_carry_secrets, origin, redirect_target, shown_url
from fitcheck.sources.wire import Answer, Get, Patience, allowed_s, asked_wait_s

MOST_REDIRECTS = 10
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TRANSIENT = frozenset({429, 500, 502, 503, 504})
_ERROR_BODY_BYTES = 16 * 1024


class _Again(Exception):
    """An attempt that failed in a way that another may not; `wait_s` is what the server asks for."""

    def __init__(self, error: NetworkError, wait_s: float | None = None, answer: Answer | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.wait_s = wait_s
        self.answer = answer


def user_agent() -> str:
    """What every request says of itself: `fitcheck/<version>`, and nothing of the machine or the person."""
    try:
        return f"fitcheck/{version('fitcheck-advisor')}"
    except PackageNotFoundError:
        return "fitcheck"


def new_client(patience: Patience, context: ssl.SSLContext) -> httpx.Client:
    """A client for one thread. Proxies come from the environment as httpx reads it, as do the certificates of its `create_ssl_context`."""
    return httpx.Client(
        headers={"User-Agent": user_agent(), "Accept": "*/*"},
        timeout=httpx.Timeout(patience.read_s, connect=patience.connect_s, pool=None),
        verify=context,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=30.0),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        event_hooks={"response": [_check_redirect]},
    )


def _check_redirect(response: httpx.Response) -> None:
    """Refuse a redirect that leads nowhere before httpx does, which calls an unreadable address a broken server, worth another attempt."""
    if response.status_code in _REDIRECTS and "location" in response.headers:
        redirect_target(str(response.request.url), response.headers["location"])


def exchange(
    client: httpx.Client, get: Get, patience: Patience, tick: Callable[[int], None], sleep: Callable[[float], None] = time.sleep
) -> Answer:
    """The answer to a request, whatever its status, once it is no longer worth asking again.

    Raises `NetworkError` where no usable answer comes.
    """
    deadline = time.monotonic() + allowed_s(get, patience)
    direct = _by_shortcut(client, get, deadline, tick)
    if direct is not None:
        return direct
    for attempt in range(1, patience.attempts + 1):
        try:
            return _follow(client, get, deadline, tick)
        except _Again as again:
            wait_s = _wait_s(again.wait_s, attempt, patience)
            if attempt == patience.attempts or wait_s is None or time.monotonic() + wait_s >= deadline:
                if again.answer is not None:
                    return again.answer
                raise _tried(again.error, attempt) from again
            sleep(wait_s)
    raise AssertionError("a Patience allows one attempt at least")


def _wait_s(asked_s: float | None, attempt: int, patience: Patience) -> float | None:
    """How long to wait before the next attempt; None where the server asks for more than anyone would wait."""
    longest: float = min(patience.backoff_s * 2 ** (attempt - 1), patience.longest_wait_s)
    backoff_s = longest * (0.5 + random.random() / 2)  # noqa: S311 - jitter, no secret
    if asked_s is None:
        return backoff_s
    return asked_s + backoff_s if asked_s <= patience.longest_wait_s else None


def _tried(error: NetworkError, attempts: int) -> NetworkError:
    times = f" (tried {attempts} times)" if attempts > 1 else ""
    return NetworkError(f"{error.message}{times}", hint=error.hint)


def _by_shortcut(client: httpx.Client, get: Get, deadline: float, tick: Callable[[int], None]) -> Answer | None:
    """The answer from where the address led before, if it is one; links to other hosts expire."""
    if get.shortcut is None:
        return None
    try:
        answer = _follow(client, get._replace(url=get.shortcut, authorization=None), deadline, tick)
    except (_Again, NetworkError):
        return None
    return answer if answer.status in (200, 206) else None


def _follow(client: httpx.Client, get: Get, deadline: float, tick: Callable[[int], None]) -> Answer:
    url, authorization = get.url, get.authorization
    if authorization is not None and not may_carry_secrets(url):
        raise NetworkError(f"{shown_url(url)}: a token would go over http in clear text", hint="use an https:// address")
    for _ in range(MOST_REDIRECTS + 1):
        with _open(client, get, url, authorization) as response:
            if response.status_code not in _REDIRECTS or "location" not in response.headers:
                return _answer(response, get, url, deadline, tick)
            target = redirect_target(url, response.headers["location"])
            _drain(response)
        if origin(target) != origin(url):
            authorization = None
        url = target
    raise NetworkError(f"{get.what}: {shown_url(get.url)} redirects more than {MOST_REDIRECTS} times", hint="its redirects lead nowhere")


@contextmanager
def _open(client: httpx.Client, get: Get, url: str, authorization: str | None) -> Iterator[httpx.Response]:
    """A response whose body is not read yet; whatever goes wrong in it becomes `NetworkError` or `_Again`."""
    headers = {"Accept-Encoding": "gzip"}
    if get.part is not None:
        headers = {"Accept-Encoding": "identity", "Range": get.part.header}
    if authorization is not None:
        headers["Authorization"] = authorization
    if get.etag is not None:
        headers["If-None-Match"] = get.etag
    try:
        response = client.send(client.build_request("GET", url, headers=headers), stream=True, follow_redirects=False)
        try:
            yield response
        finally:
            response.close()
    except Truncated as error:
        raise _Again(NetworkError(f"{get.what}: cut off by the server: {error}")) from error
    except (httpx.InvalidURL, UnicodeError) as error:
        raise NetworkError(f"{shown_url(url)}: not an address that can be asked") from error
    except (httpx.HTTPError, httpx.StreamError) as error:
        failure = named(error, url, get.what)
        raise (_Again(failure.error) if failure.may_pass else failure.error) from error


def _drain(response: httpx.Response) -> None:
    """Read the small body of a redirect, so that its connection can be used again; a large one is not worth it."""
    length = response.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and len(length) < 6 and int(length) <= _ERROR_BODY_BYTES:
        for _ in response.iter_raw():
            pass


def _answer(response: httpx.Response, get: Get, url: str, deadline: float, tick: Callable[[int], None]) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    status = response.status_code
    chunks = _until(deadline, response, get.what)
    if status in (200, 206):
        return Answer(status, url, headers, read_body(status, headers, chunks, get.part, get.most_bytes, get.what, tick))
    if status == 416 and (total := beyond_end(headers, get.part)) is not None:
        return Answer(206, url, headers, Body(b"", total, ended=False))
    body = b""
    for chunk in chunks if status >= 400 else ():
        body = (body + chunk)[:_ERROR_BODY_BYTES]
        if len(body) == _ERROR_BODY_BYTES:
            break
    answer = Answer(status, url, headers, Body(body, None, ended=False))
    if status in _TRANSIENT:
        raise _Again(NetworkError(f"{get.what}: the server answers {status}"), asked_wait_s(headers), answer)
    return answer


def _until(deadline: float, response: httpx.Response, what: str) -> Iterator[bytes]:
    """The pieces of a body as they come, until there is no time left."""
    for chunk in response.iter_raw():
        if time.monotonic() > deadline:
            raise too_slow(what)
        yield chunk
