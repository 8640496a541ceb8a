"""One request to one server, and what came of it."""

import asyncio
import time

import pytest

from fitcheck.errors import FitcheckError, NetworkError
from fitcheck.sources.body import Range
from fitcheck.sources.transport import Transport
from fitcheck.sources.wire import Get, Patience
from tests.sources.loopback import Server

QUICK = Patience(connect_s=1, read_s=0.5, total_s=1.5, attempts=3, backoff_s=0.01, longest_wait_s=1)


def get(server, *, part=None, most=100_000, path="/file", **more):
    return Get(f"{server.url}{path}", "org/model: file", most, Range(*part) if part else None, **more)


def ask(handler, *, patience=QUICK, sleep=time.sleep, **more):
    """One request to one server that answers so: the answer, and the server with what it received."""
    with Server(handler) as server, Transport(patience=patience, sleep=sleep) as transport:
        return transport.get(get(server, **more)), server


def refusal(handler, kind=NetworkError, **more):
    """The error of one request, how often it was asked, and how long that took in seconds."""
    began = time.monotonic()
    with Server(handler) as server, Transport(patience=QUICK) as transport, pytest.raises(kind) as caught:
        transport.get(get(server, **more))
    assert isinstance(caught.value, FitcheckError)
    assert caught.value.message.isprintable()
    return caught.value.message, len(server.received), time.monotonic() - began


def writing(*pieces, pause_s=0.0, close=True):
    """A handler that writes these pieces one by one, whatever was asked."""

    async def handle(_, writer):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause_s)
        if close:
            writer.close()

    return handle


def head(status="200 OK", **headers):
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode()
