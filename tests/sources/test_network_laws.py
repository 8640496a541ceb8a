"""Whatever a server or a person writes ends in a value or in one clear error that can be printed."""

import asyncio
import json
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from fitcheck.errors import FitcheckError
from fitcheck.sources.address import hub_page
from fitcheck.sources.body import Range, Truncated, read_body
from fitcheck.sources.hub_listing import next_page, parse_listing, parse_page
from fitcheck.sources.hub_names import parse_repository
from fitcheck.sources.transport import Transport
from fitcheck.sources.weburl import origin, parse_web_address, public_url, redirect_target
from fitcheck.sources.wire import Get, Patience
from tests.sources.loopback import COMMIT, Server

TEXTS = some.one_of(some.text(max_size=60), some.text("/:@%.[]?#\\ahtps0-\x1b\n", max_size=60).map(lambda text: f"https://{text}"))
JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=20),
    lambda inner: (
        some.lists(inner, max_size=5) | some.dictionaries(some.sampled_from(["rfilename", "path", "size", "lfs", "type", "x"]), inner)
    ),
    max_leaves=15,
)


def ends_well(function, *arguments):
    """The value of a call, or None where it raised an error made for a person."""
    try:
        return function(*arguments)
    except FitcheckError as error:
        said = error.message + (error.hint or "")
    assert said.isprintable()
    return None


@given(TEXTS)
def test_addresses(text):
    assert public_url(text).isprintable()
    assert public_url(text).isascii()
    address = ends_well(parse_web_address, text)
    if address is not None:
        assert "@" not in urlsplit(address.url).netloc
        assert origin(address.url) == origin(text)


@given(TEXTS)
def test_redirects(text):
    target = ends_well(redirect_target, "https://hub.example/a?b=c", text)
    if target is not None:
        assert origin(target).scheme == "https"
        assert "@" not in urlsplit(target).netloc


@given(some.text(max_size=40) | some.text("ab/-._@", max_size=20))
def test_names(text):
    repository = ends_well(parse_repository, text)
    if repository is not None:
        assert repository.id.count("/") == 1
        assert ".." not in repository.id + repository.revision
        assert repository.revision.isprintable()
    ends_well(hub_page, text, "page")


@given(some.binary(max_size=200) | JSON.map(lambda value: json.dumps({"sha": COMMIT, "siblings": value, "id": value}).encode()))
def test_listings(raw):
    for parse in (parse_listing, parse_page):
        ends_well(parse, raw, "org/model")


@given(JSON)
def test_pages(value):
    ends_well(parse_page, json.dumps(value).encode(), "org/model")


@given(some.text(max_size=100))
def test_links(text):
    for link in (text, f'<{text}>; rel="next"'):
        following = ends_well(next_page, {"link": link}, "https://hub.example/api", "https://hub.example")
        assert following is None or origin(following) == origin("https://hub.example")


@given(
    status=some.sampled_from([200, 206]),
    content_range=some.sampled_from(["bytes 2-9/100", "bytes 2-9/*", "bytes 0-9/10", "", "bytes 2-4/5"]) | some.text(max_size=20),
    length=some.sampled_from(["8", "0", "-1", "9" * 30, ""]),
    encoding=some.sampled_from(["identity", "gzip", "deflate", "br"]),
    pieces=some.lists(some.binary(max_size=12), max_size=5),
    part=some.none() | some.builds(Range, some.integers(0, 9), some.integers(1, 9)),
)
def test_bodies_never_hold_more_than_was_asked(status, content_range, length, encoding, pieces, part):
    headers = {"content-range": content_range, "content-length": length, "content-encoding": encoding}
    try:
        body = read_body(status, headers, iter(pieces), part, 10, "file", lambda _: None)
    except (FitcheckError, Truncated):
        return
    assert len(body.data) <= (part.length if part is not None else 10)
    if status == 206 and part is not None:
        assert content_range.lower().startswith(f"bytes {part.start}-")


LENGTHS = [
    b"Content-Length: 3",
    b"Content-Length: 99",
    b"Transfer-Encoding: chunked",
    b"Content-Range: bytes 0-2/9",
    b"Content-Encoding: gzip",
]
OTHERS = [
    b"Location: /file",
    b"Location: http://[",
    b"Connection: close",
    b"Retry-After: 0",
    b": x",
    b"\0",
    b" folded",
    b"ETag: ",
    b"X: \xff",
]
HEADER_LINES = some.sampled_from([*LENGTHS, *OTHERS])


@pytest.fixture(scope="module")
def wild():
    """A server that writes what it is told to, and closes."""
    told = {"raw": b""}

    async def handle(_, writer):
        writer.write(told["raw"])
        await writer.drain()
        await asyncio.sleep(0)
        writer.close()

    with Server(handle) as server, Transport(patience=Patience(1, 1, 2, attempts=1)) as transport:
        yield told, server, transport


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    some.sampled_from([b"200 OK", b"206 P", b"302 F", b"304 N", b"416 R", b"500 E", b"100 C", b"204 N", b"999", b"-1 x", b"abc"]),
    some.lists(HEADER_LINES, max_size=4),
    some.binary(max_size=30),
    some.booleans(),
)
def test_answers(wild, status, lines, body, ranged):
    told, server, transport = wild
    told["raw"] = b"\r\n".join([b"HTTP/1.1 " + status, *lines, b"", body])
    answer = ends_well(transport.get, Get(f"{server.url}/file", "file", 20, Range(0, 3) if ranged else None))
    assert answer is None or len(answer.body.data) <= (3 if ranged and answer.status in (200, 206) else 16 * 1024)
