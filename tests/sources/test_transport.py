"""What servers do wrong, over real connections: each ends in the right bytes or in one clear error, within its time."""

import asyncio
import gzip
import shutil
import socket
import ssl
import subprocess
import sys
import time
import zlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from fitcheck.errors import DataError, FitcheckError, NetworkError
from fitcheck.sources.body import NEAR_BYTES, Range
from fitcheck.sources.transport import Transport
from fitcheck.sources.wire import Get, Patience
from tests.sources.loopback import Blob, Server, answering, ranged, reply

TEXT = bytes(range(256)) * 40
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


def test_a_part_is_what_was_asked():
    answer, server = ask(answering(lambda request: ranged(request, Blob(TEXT, len(TEXT)))), part=(10, 300))
    assert (answer.status, answer.body.data, answer.body.total_bytes) == (206, TEXT[10:310], len(TEXT))
    assert server.received[0].headers["range"] == "bytes=10-309"
    assert server.received[0].headers["accept-encoding"] == "identity"


def test_a_part_past_the_end_is_shorter_or_empty():
    serve = answering(lambda request: ranged(request, Blob(TEXT, len(TEXT))))
    assert ask(serve, part=(len(TEXT) - 5, 100))[0].body.data == TEXT[-5:]
    assert ask(serve, part=(len(TEXT), 100))[0].body.data == b""
    assert ask(answering(lambda _: reply(416)), part=(0, 8))[0].status == 416


OTHER_PARTS = [f"bytes {part}" for part in ("0-7/100", "11-18/100", "10-16/100", "10-18/100", "10-17/12", "17-10/100", "*/100")]


@pytest.mark.parametrize("content_range", [*OTHER_PARTS, "items 10-17/100", "x", "", "bytes 10-17/" + "9" * 400])
def test_another_part_than_asked_is_refused(content_range):
    message, asked, _ = refusal(writing(head("206 Partial", Content_Range=content_range, Content_Length=8), b"12345678"), part=(10, 8))
    assert "asked" in message
    assert asked == 1


def test_a_part_that_announces_more_than_it_is_is_refused():
    message, _, _ = refusal(writing(head("206 P", Content_Range="bytes 0-7/100", Content_Length=100), b"x" * 100), part=(0, 8))
    assert "announces 100 bytes for a part of 8" in message
    answer, _ = ask(writing(head("206 P", Content_Range="bytes 0-7/100"), b"12345678and much more"), part=(0, 8))
    assert answer.body.data == b"12345678"


def test_without_ranges_the_beginning_is_read_and_the_rest_never():
    async def endless(_, writer):
        writer.write(head("200 OK", Content_Length=10**12))
        while True:
            writer.write(b"\1" * 65536)
            await writer.drain()

    answer, server = ask(endless, part=(100, 5000))
    assert answer.body.data == b"\1" * 5000
    assert answer.body.total_bytes == 10**12
    assert server.sent_bytes < 20_000_000  # what fits into the buffers of a connection, of a terabyte
    message, _, _ = refusal(endless, part=(NEAR_BYTES + 1, 8))
    assert "no byte ranges" in message


def test_a_short_file_without_ranges_ends_where_it_ends():
    assert ask(answering(lambda _: reply(200, b"abc")), part=(1, 100))[0].body.data == b"bc"


@pytest.mark.parametrize("part", [None, (0, 100)])
def test_a_body_that_is_cut_off_is_asked_for_again_and_then_refused(part):
    answer = head("206 P", Content_Range="bytes 0-99/200", Content_Length=100) if part else head(Content_Length=100)
    message, asked, _ = refusal(writing(answer, b"x" * 50), part=part)
    assert asked == QUICK.attempts
    assert "broke off" in message
    assert "tried 3 times" in message


def test_a_part_cut_off_without_a_length_is_noticed():
    message, asked, _ = refusal(writing(head("206 P", Content_Range="bytes 0-99/200"), b"x" * 50), part=(0, 100))
    assert asked == QUICK.attempts
    assert "50 of 100 bytes" in message


def test_a_body_that_is_cut_off_once_is_read_the_second_time():
    answers = [head(Content_Length=5) + b"wh", reply(200, b"whole")]

    async def first_half(_, writer):
        writer.write(answers.pop(0))
        writer.close()

    assert ask(first_half)[0].body.data == b"whole"


def test_a_file_over_the_cap_is_refused_by_what_comes_not_by_what_is_announced():
    for handler in (
        answering(lambda _: reply(200, b"x" * 1001)),
        writing(head(Content_Length=10**15), b"x" * 10),
        writing(head(Transfer_Encoding="chunked"), b"400\r\n" + b"x" * 1024 + b"\r\n", b"0\r\n\r\n"),
        writing(head(), b"x" * 5000),
        answering(lambda _: reply(200, gzip.compress(b"x" * 1001), Content_Encoding="gzip")),
    ):
        message, asked, _ = refusal(handler, DataError, most=1000)
        assert asked == 1
        assert "1,000" in message
    assert len(ask(writing(head(), b"x" * 1000), most=1000)[0].body.data) == 1000


@pytest.mark.parametrize(
    ("encoding", "packed"), [("gzip", gzip.compress(TEXT)), ("deflate", zlib.compress(TEXT)), ("x-gzip", gzip.compress(TEXT))]
)
def test_compressed_files_are_read(encoding, packed):
    answer, server = ask(answering(lambda _: reply(200, packed, Content_Encoding=encoding)))
    assert answer.body.data == TEXT
    assert server.received[0].headers["accept-encoding"] == "gzip"
    assert ask(answering(lambda _: reply(200, packed, Content_Encoding=encoding)), part=(10, 20))[0].body.data == TEXT[10:30]


def test_a_compression_bomb_costs_no_more_than_the_cap():
    import tracemalloc

    bomb = gzip.compress(b"\0" * 200_000_000, 9)
    tracemalloc.start()
    try:
        message, _, _ = refusal(answering(lambda _: reply(200, bomb, Content_Encoding="gzip")), DataError, most=1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert "1,000,000" in message


@pytest.mark.parametrize(
    ("encoding", "body", "says"),
    [
        ("gzip", b"not gzip at all", "sent as gzip, which it is not"),
        ("br", b"x", "encoding nobody asked for"),
        ("gzip", gzip.compress(TEXT)[:-20], "compressed stream ended early"),
        ("x\x80y", b"x", "encoding nobody asked for"),
    ],
)
def test_bodies_that_cannot_be_decoded_are_refused(encoding, body, says):
    message, _, _ = refusal(answering(lambda _: reply(200, body, Content_Encoding=encoding)))
    assert says in message


def test_a_compressed_part_is_refused():
    handler = writing(head("206 P", Content_Range="bytes 0-7/100", Content_Length=8, Content_Encoding="gzip"), b"12345678")
    assert "not the part" in refusal(handler, part=(0, 8))[0]


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
    ("header", "asked_s"), [({"Retry_After": "7"}, 7), ({"Retry_After": in_seconds(600)}, 600), ({"RateLimit": '"api";r=0;t=9'}, 9)]
)
def test_the_wait_a_server_asks_for_is_kept_up_to_a_bound(header, asked_s):
    patience = Patience(attempts=2, total_s=5000, longest_wait_s=1000, backoff_s=0.01)
    slept = []
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


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(status):
    serve = answering(lambda request: reply(200, b"there") if request.path == "/there" else reply(status, b"go", Location="/there"))
    answer, server = ask(serve)
    assert (answer.body.data, answer.url) == (b"there", f"{server.url}/there")
    assert server.connections == 1


def test_too_many_redirects_and_loops_end():
    message, asked, _ = refusal(answering(lambda _: reply(302, Location="/file")))
    assert (asked, "more than 10 times" in message) == (11, True)
    message, asked, _ = refusal(answering(lambda request: reply(302, Location=request.target + "x")))
    assert asked == 11


@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "ftp://host/x", "gopher://x", "http://[::1", "http://h:99999/", "javascript:1", "http://h h/", "\x80\xff://"],
)
def test_redirects_to_what_is_no_web_address_are_refused(location):
    message, asked, _ = refusal(answering(lambda _: reply(302, Location=location)))
    assert asked <= QUICK.attempts
    assert any(says in message for says in ("no web address", "not an address", "did not answer as an HTTP server"))


def test_the_token_stays_with_its_origin():
    """Another port, another name of the same machine, and back again: it is never sent once the first origin was left."""
    with Server(answering(lambda _: reply(200, b"fine"))) as other, Transport(patience=QUICK) as transport:
        back = answering(lambda request: reply(302, Location=f"{other.url}/end") if request.path != "/back" else reply(200, b"back"))
        with Server(back) as first:
            for target in (f"{other.url}/a", f"http://localhost:{first.port}/back"):
                first.handler = answering(
                    lambda request, to=target: reply(200, b"x") if request.path == "/back" else reply(302, Location=to)
                )
                transport.get(get(first, authorization="Bearer hf_secret"))
            round_trip = f"http://localhost:{first.port}/away"
            first.handler = answering(
                lambda request: (
                    reply(200, b"x")
                    if request.path == "/end"
                    else reply(302, Location=f"{first.url}/end" if request.path == "/away" else round_trip)
                )
            )
            transport.get(get(first, authorization="Bearer hf_secret"))
            mine = [request for request in first.received if request.path == "/file"]
            rest = [request for request in first.received if request.path != "/file"] + other.received
    assert [request.headers["authorization"] for request in mine] == ["Bearer hf_secret"] * 3
    assert len(rest) == 4
    assert not any("authorization" in request.headers or "hf_secret" in str(request) for request in rest)


def test_the_token_follows_a_redirect_on_its_own_origin():
    serve = answering(lambda request: reply(200) if request.path == "/new" else reply(307, Location="/new"))
    _, server = ask(serve, authorization="Bearer hf_secret")
    assert [request.headers.get("authorization") for request in server.received] == ["Bearer hf_secret"] * 2


def test_credentials_in_a_redirect_are_dropped_and_cookies_never_kept():
    with Server(answering(lambda _: reply(200, b"fine"))) as server:
        location = f"http://user:pass@127.0.0.1:{server.port}/x"
        with Server(answering(lambda _: reply(302, Location=location, Set_Cookie="id=1"))) as first, Transport(patience=QUICK) as transport:
            transport.get(get(first))
            transport.get(get(first))
        assert all(not {"authorization", "cookie"} & set(request.headers) for request in server.received + first.received)


def test_a_token_goes_over_http_to_this_machine_only():
    with Transport(patience=QUICK) as transport, pytest.raises(NetworkError, match="clear text") as caught:
        transport.get(Get("http://hub.example/x", "x", 10, authorization="Bearer hf_secret"))
    assert "hf_secret" not in str(caught.value)


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


GARBAGE = [b"garbage\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\0\0\0\0", b"SSH-2.0-OpenSSH_9.6\r\n", b""]
GARBLED = [
    b"no colon\r\n\r\n",
    b"Content-Length: -5\r\n\r\n",
    b"X: " + b"y" * 300_000,
    b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    b"Transfer-Encoding: chunked\r\n\r\nZZ\r\nx",
]


@pytest.mark.parametrize("raw", [*GARBAGE, *(b"HTTP/1.1 200 OK\r\n" + rest for rest in GARBLED)], ids=lambda raw: ascii(raw[:40]))
def test_garbage_is_no_answer(raw):
    message, asked, _ = refusal(writing(raw))
    assert "did not answer as an HTTP server" in message or "the connection to 127.0.0.1 broke" in message
    assert 1 <= asked <= QUICK.attempts


def test_bytes_after_the_announced_end_do_not_spoil_the_next_answer():
    with Server(writing(head(Content_Length=2) + b"{}surplus", close=False)) as server, Transport(patience=QUICK) as transport:
        assert [transport.get(get(server)).body.data for _ in range(3)] == [b"{}"] * 3


def test_hosts_that_do_not_exist_or_listen():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}/x"
        for url, says in ((closed, "cannot connect"), ("http://no-such-host.invalid/x", "no such host")):
            with Transport(patience=QUICK) as transport, pytest.raises(NetworkError, match=says):
                transport.get(Get(url, "x", 10))


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("makes its certificate with openssl")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run([*command, "subjectAltName=DNS:localhost", *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context, tmp_path / "cert.pem"


def test_certificates_are_checked_and_ones_own_authority_is_taken(certificate, monkeypatch):
    context, file = certificate
    with Server(answering(lambda _: reply(200, b"fine")), tls=context, host="localhost") as server:
        with Transport(patience=QUICK) as transport, pytest.raises(NetworkError, match="not trusted") as caught:
            transport.get(get(server))
        assert "SSL_CERT_FILE" in caught.value.hint
        assert server.received == []
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with Transport(patience=QUICK) as transport:
            assert transport.get(get(server)).body.data == b"fine"


def test_https_to_http_is_refused_and_nothing_is_sent_there(certificate, monkeypatch):
    context, file = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with Server(answering(lambda _: reply(200))) as plain:
        redirect = answering(lambda _: reply(302, Location=f"{plain.url}/x?secret=1"))
        with (
            Server(redirect, tls=context, host="localhost") as server,
            Transport(patience=QUICK) as transport,
            pytest.raises(NetworkError, match="from https to http") as caught,
        ):
            transport.get(get(server, authorization="Bearer hf_secret"))
    assert plain.connections == 0
    assert "secret" not in str(caught.value)


def test_http_where_https_was_asked():
    async def refuse(_, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def serve():
        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
            with Transport(patience=QUICK) as transport:
                await asyncio.to_thread(transport.get, Get(url, "x", 10))

    with pytest.raises(NetworkError, match=r"no secure connection|broke"):
        asyncio.run(serve())


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    with Server(answering(lambda _: reply(200, b"by proxy"))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "")
        with Transport(patience=QUICK) as transport:
            assert transport.get(Get("http://hub.invalid/x", "x", 10)).body.data == b"by proxy"
        assert proxy.received[0].target == "http://hub.invalid/x"


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
