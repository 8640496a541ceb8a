"""What a connection that failed is called, and whether another attempt may fare better."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import NamedTuple

import httpx

from fitcheck.errors import NetworkError
from fitcheck.sources.weburl import origin


class Failure(NamedTuple):
    """The error to raise; `may_pass` says that it may be gone when asked again."""

    error: NetworkError
    may_pass: bool


_CONNECTION = "check the connection, or try again later"
_KINDS: tuple[tuple[type[Exception], str, str | None, bool], ...] = (
    (httpx.ConnectTimeout, "{what}: timed out connecting to {host}", _CONNECTION, True),
    (httpx.TimeoutException, "{what}: timed out waiting for {host}", _CONNECTION, True),
    (httpx.ProxyError, "the proxy does not let {host} through", "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY", False),
    (httpx.ConnectError, "{host}: cannot connect", "check the connection and the address", True),
    (httpx.RemoteProtocolError, "{what}: {host} broke off, or did not answer as an HTTP server", None, True),
    (httpx.LocalProtocolError, "{what}: cannot be asked of {host}", None, False),
    (httpx.UnsupportedProtocol, "{what}: cannot be asked of {host}", None, False),
    (httpx.TransportError, "{what}: the connection to {host} broke", _CONNECTION, True),
)


def named(error: Exception, url: str, what: str) -> Failure:
    """What went wrong in asking an address for `what`, by the innermost cause that says something to a person."""
    host = ascii(origin(url).host)[1:-1]
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            hint = "check the name and the connection, or use --offline for what is cached"
            return Failure(NetworkError(f"{host}: no such host could be found", hint=hint), cause.errno == socket.EAI_AGAIN)
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = ascii(cause.verify_message)[1:-1]
            hint = "for a certificate authority of your own, set SSL_CERT_FILE to its file"
            return Failure(NetworkError(f"{host}: its certificate is not trusted: {reason}", hint=hint), may_pass=False)
        if isinstance(cause, ssl.SSLError):
            reason = ascii(cause.reason or "TLS failed")[1:-1]
            return Failure(
                NetworkError(f"{host}: no secure connection ({reason})", hint="check that the server speaks https"), may_pass=True
            )
    for kind, words, hint_of_kind, may_pass in _KINDS:
        if isinstance(error, kind):
            return Failure(NetworkError(words.format(what=what, host=host), hint=hint_of_kind), may_pass)
    return Failure(NetworkError(f"{what}: cannot be read from {host}"), may_pass=False)


def too_slow(what: str) -> NetworkError:
    """The error for a request whose time is up."""
    return NetworkError(
        f"{what}: the server is too slow: the time for this request is up", hint="try again later, or with a faster connection"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    following: BaseException | None = error
    for _ in range(10):
        if following is None:
            return
        yield following
        following = following.__cause__ or following.__context__
