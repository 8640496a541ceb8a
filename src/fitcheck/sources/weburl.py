"""Web addresses: which origin they belong to, how they may be shown, and where a redirect may lead.

A shown address has no user name, password, query or fragment: signed links carry their secret in the query.
"""

from __future__ import annotations

import base64
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

from fitcheck.errors import NetworkError, UsageError

MOST_CHARACTERS = 8192
_PORTS = {"http": 80, "https": 443}
_SHOWN_CHARACTERS = 200


class Origin(NamedTuple):
    """Scheme, host and port: the same in all three is the same server, and nothing else is."""

    scheme: str
    host: str
    port: int


class WebAddress(NamedTuple):
    """An address as a person gave it: what is asked, without the credentials it held, and those as a header's value."""

    url: str
    authorization: str | None


def origin(url: str) -> Origin:
    """The origin of an address. Raises `ValueError` for one that has no host, or another scheme than http and https."""
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").rstrip(".")
    if scheme not in _PORTS or not host or any(character.isspace() for character in host):
        raise ValueError("not an http or https address")
    return Origin(scheme, host, parts.port or _PORTS[scheme])


def public_url(url: str) -> str:
    """An address as it may be printed and cited: scheme, host, port and path, in printable ASCII."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "an address that cannot be read"
    host = f"[{host}]" if ":" in host else host
    path = quote(parts.path, safe="/%:@!$&'()*+,;=~-._")
    return ascii(urlunsplit((parts.scheme, host + port, path, "", "")))[1:-1]


def shown_url(url: str) -> str:
    """As `public_url`, shortened for a message."""
    text = public_url(url)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def is_loopback(host: str) -> bool:
    """Whether a host's name says that it is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def may_carry_secrets(url: str) -> bool:
    """Whether a token or password may go there: over https, or to this machine itself."""
    where = origin(url)
    return where.scheme == "https" or is_loopback(where.host)


def parse_web_address(text: str) -> WebAddress:
    """An http or https address with its credentials apart. Raises `UsageError`, in which neither credentials nor query appear."""
    if len(text) > MOST_CHARACTERS or not text.isprintable() or " " in text:
        raise UsageError("the address is too long, or holds spaces or control characters", hint="write it as the browser shows it")
    try:
        where = origin(text)
        parts = urlsplit(text)
    except ValueError as error:
        raise UsageError(f"cannot read {shown_url(text)} as an address", hint="write it as https://host/path") from error
    host = f"[{where.host}]" if ":" in where.host else where.host
    plain = urlunsplit((where.scheme, host if where.port == _PORTS[where.scheme] else f"{host}:{where.port}", parts.path, parts.query, ""))
    if parts.username is None and parts.password is None:
        return WebAddress(plain, None)
    if not may_carry_secrets(plain):
        raise UsageError(f"{shown_url(plain)}: a password would go over http in clear text", hint="write it with https://")
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return WebAddress(plain, f"Basic {base64.b64encode(pair.encode()).decode('ascii')}")


def redirect_target(url: str, location: str) -> str:
    """Where a redirect leads, without credentials or fragment.

    Raises `NetworkError` for one that leads to another scheme, from https to http, or nowhere.
    """
    try:
        if len(location) > MOST_CHARACTERS or not location.isprintable():
            raise ValueError("too long, or not printable")  # noqa: TRY301 - one message for whatever is wrong with it
        joined = urljoin(url, location)
        before, after = origin(url), origin(joined)
        parts = urlsplit(joined)
    except ValueError as error:
        raise NetworkError(f"{shown_url(url)}: redirects to something that is no web address") from error
    if before.scheme == "https" and after.scheme == "http":
        raise NetworkError(
            f"{shown_url(url)}: redirects from https to http ({shown_url(joined)})",
            hint="nothing is read over a connection that was made less safe",
        )
    host = f"[{after.host}]" if ":" in after.host else after.host
    netloc = host if after.port == _PORTS[after.scheme] else f"{host}:{after.port}"
    return urlunsplit((after.scheme, netloc, parts.path, parts.query, ""))
