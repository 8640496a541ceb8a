"""How long a server is waited for and how often it is asked: nothing can hold us, and nobody is pestered."""

import asyncio
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from fitcheck.errors import NetworkError
from fitcheck.sources.transport import Transport
from fitcheck.sources.wire import Patience
from tests.sources.asking import QUICK, ask, get, head, refusal
from tests.sources.loopback import Blob, Server, answering, ranged, reply

TEXT = bytes(range(256)) * 40


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_servers_out_of_order_are_asked_again(status):
    answers = [reply(status), reply(status), reply(200, b"fine")]
    slept = []
    answer, server = ask(answering(lambda _: answers[len(slept)]), sleep=slept.append)
    assert (answer.body.data, len(server.received)) == (b"fine", 3)
    assert 0.005 <= slept[0] <= 0.01 <= slept[1] <= 0.02


def in_seconds(count):
    return format_datetime(datetime.now(UTC) + timedelta(seconds=count), usegmt=True)


@pytest.mark.parametrize(
    ("header", "asked_s"), [({"Retry_After": "7"}, 7), ({"Retry_After": in_seconds}, 600), ({"RateLimit": '"api";r=0;t=9'}, 9)]
)
def test_the_wait_a_server_asks_for_is_kept_up_to_a_bound(header, asked_s):
    patience = Patience(attempts=2, total_s=5000, longest_wait_s=1000, backoff_s=0.01)
    slept = []
    header = {name: value if isinstance(value, str) else value(asked_s) for name, value in header.items()}
    answer, _ = ask(answering(lambda _: reply(200) if slept else reply(429, **header)), patience=patience, sleep=slept.append)
    assert answer.status == 200
    assert asked_s * 0.8 < slept[0] < asked_s + 0.2  # less where a date has come nearer
    slept.clear()
    answer, server = ask(answering(lambda _: reply(429, Retry_After="1001")), patience=patience, sleep=slept.append)
    assert (answer.status, len(server.received), slept) == (429, 1, [])


@pytest.mark.parametrize("after", ["-5", "soon", "1e9", "9" * 50, "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 99 Oct 2015", "0"])
def test_a_wait_that_is_no_number_of_seconds_is_backoff_or_none(after):
    slept = []
    assert ask(answering(lambda _: reply(503, Retry_After=after)), sleep=slept.append)[0].status == 503
    assert all(wait <= 0.02 for wait in slept)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451])
def test_refusals_are_not_asked_again(status):
    answer, server = ask(answering(lambda _: reply(status, b"x" * 100_000, X_Error_Code="Some")))
    assert (answer.status, answer.headers["x-error-code"], len(server.received)) == (status, "Some", 1)
    assert len(answer.body.data) <= 16 * 1024


async def silent(_request, _writer):
    await asyncio.sleep(60)


def dripping(*start):
    async def handle(_, writer):
        for piece in start:
            writer.write(piece)
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    return handle


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (silent, "timed out waiting"),
        (dripping(head(Content_Length=10_000)), "too slow"),
        (dripping(head(Transfer_Encoding="chunked"), b"2710\r\n"), "too slow"),
        (dripping(b"HTTP/1.1 200 OK\r\nX-Header: "), "too slow"),
        (dripping(), "too slow"),
    ],
    ids=["silent", "body", "chunk", "headers", "status line"],
)
def test_a_server_that_drips_cannot_hold_us(handler, says):
    message, _, seconds = refusal(handler, most=10_000)
    assert says in message
    assert seconds < QUICK.total_s + 3.5


def test_a_hanging_request_does_not_spoil_the_next_ones():
    serve = {"handler": dripping()}

    async def handle(request, writer):
        await (serve["handler"] if request.path == "/slow" else answering(lambda _: reply(200, b"fine")))(request, writer)

    with Server(handle) as server, Transport(patience=QUICK) as transport:
        with pytest.raises(NetworkError, match="too slow"):
            transport.get_all([get(server, path="/slow"), get(server, path="/fast")], "x")
        assert [answer.body.data for answer in transport.get_all([get(server, path="/fast")] * 40, "x")] == [b"fine"] * 40


def test_a_hundred_requests_share_their_connections():
    with Server(answering(lambda request: ranged(request, Blob(TEXT, len(TEXT))))) as server, Transport(patience=QUICK) as transport:
        answers = transport.get_all([get(server, part=(index, 5)) for index in range(100)], "x")
        assert [answer.body.data for answer in answers] == [TEXT[index : index + 5] for index in range(100)]
        assert server.connections <= 32


def test_it_works_inside_a_running_event_loop():
    async def inside():
        return ask(answering(lambda _: reply(200, b"fine")))[0].body.data

    assert asyncio.run(inside()) == b"fine"


def test_the_process_ends_although_a_server_hangs():
    script = """
import sys
from fitcheck.errors import NetworkError
from fitcheck.sources.wire import Get, Patience
from fitcheck.sources.transport import Transport
try:
    Transport(patience=Patience(read_s=60, total_s=0.5)).get(Get(sys.argv[1], "x", 10))
except NetworkError as error:
    print(error.message)
"""
    with Server(dripping()) as server:
        began = time.monotonic()
        ran = subprocess.run([sys.executable, "-c", script, server.url], check=True, capture_output=True, text=True, timeout=30)
    assert ran.stdout == "x: the server is too slow: the time for this request is up\n"
    assert time.monotonic() - began < 10
