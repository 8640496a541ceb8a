"""What servers do wrong, over real connections: each ends in the right bytes or in one clear error."""

import gzip
import socket
import tracemalloc
import zlib

import pytest

from fitcheck.errors import DataError, NetworkError
from fitcheck.sources.body import NEAR_BYTES, Range, read_body
from fitcheck.sources.transport import Transport
from fitcheck.sources.wire import Get
from tests.sources.asking import QUICK, ask, get, head, refusal, writing
from tests.sources.loopback import Blob, Server, answering, ranged, reply

TEXT = bytes(range(256)) * 40


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


def test_a_part_far_into_a_header_is_read_without_ranges_and_nothing_before_it_is_kept():
    """The tensors of a GGUF file with a vocabulary of 256,000 begin 12 MB into it."""
    served = answering(lambda _: reply(200, b"\0" * 12_000_000 + b"tensors" + b"\0" * 1000))
    assert ask(served, part=(12_000_000, 7))[0].body.data == b"tensors"
    pieces = (b"\0" * 65536 for _ in range(200))
    tracemalloc.start()
    try:
        assert read_body(200, {}, pieces, Range(13_000_000, 7), 0, "file", lambda _: None).data == b"\0" * 7
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


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
    assert "a part of a compressed file ('gzip'), which was not asked for" in refusal(handler, part=(0, 8))[0]


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
