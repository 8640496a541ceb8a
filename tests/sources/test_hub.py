"""A repository on a hub: what is asked, of whom, how often, and what is said when it does not work."""

import json
import re
import struct
import subprocess
import sys

import pytest

from fitcheck.errors import DataError, NetworkError
from fitcheck.sources.cache import Cache
from fitcheck.sources.hub import HubStore
from fitcheck.sources.hub_names import Access, parse_repository
from fitcheck.sources.store import Span
from fitcheck.sources.wire import Patience
from tests.sources.loopback import COMMIT, Blob, Hub, Server, answering, reply, sharded

SECRET = "hf_secretsecretsecret"
QUICK = Patience(connect_s=1, read_s=1, total_s=3, attempts=2, backoff_s=0.01)


def store_of(hub, name="org/model", *, cache=None, token=None, offline=False, progress=None):
    access = Access(hub.endpoint, token, offline)
    return HubStore(parse_repository(name), access, Cache(cache), patience=QUICK, progress=progress)


def headers_of(store):
    """Every shard's header, in two batches: lengths, then exactly the headers."""
    shards = [file.path for file in store.files() if file.path.endswith(".safetensors")]
    lengths = [struct.unpack("<Q", raw)[0] for raw in store.spans([Span(path, 0, 8) for path in shards])]
    return store.spans([Span(path, 8, length) for path, length in zip(shards, lengths, strict=True)])


@pytest.fixture(scope="module")
def shards():
    return sharded()


def test_a_repository_of_62_shards_costs_its_headers_and_two_requests_a_shard(shards):
    with Hub(shards) as hub, store_of(hub) as store:
        headers = headers_of(store)
        assert [len(json.loads(header)) for header in headers] == [1001] * 62
        wanted = sum(8 + struct.unpack("<Q", blob.head[:8])[0] for name, blob in shards.items() if name.endswith(".safetensors"))
        assert 100_000 < wanted / 62 < 150_000
        assert hub.front.sent_bytes + hub.cdn.sent_bytes <= wanted * 1.1  # status lines and headers of the answers included
        assert len(hub.body("/api/")) == 1
        assert len(hub.cdn.received) == 2 * 62
        assert len(hub.body("/org/model/resolve/")) == 62  # the redirects: one a shard, for later parts go where it led
    assert store.label == "org/model@main"
    assert store.url.endswith(f"/org/model/tree/{COMMIT}")


def test_the_second_host_never_sees_the_token(shards):
    files = dict(list(shards.items())[:4])
    with Hub(files, token=SECRET, gated=True) as hub, store_of(hub, token=SECRET) as store:
        assert len(headers_of(store)) == 3
        assert len(hub.cdn.received) == 6
        for request in hub.cdn.received:
            assert "authorization" not in request.headers
            assert SECRET not in str(request)
        assert {request.headers["authorization"] for request in hub.front.received} == {f"Bearer {SECRET}"}


def test_what_is_sent_of_this_machine_is_the_version_and_nothing_else():
    with Hub({"config.json": Blob(b"{}", 2)}) as hub, store_of(hub) as store:
        assert store.read("config.json", 10) == b"{}"
        names = {"host", "accept", "accept-encoding", "connection", "user-agent"}
        assert all(set(request.headers) == names for request in hub.front.received)
        assert re.fullmatch(r"fitcheck/\d+\.\d+\.\d+", hub.front.received[0].headers["user-agent"])


def test_nothing_is_asked_twice_and_offline_answers_from_the_cache(shards, tmp_path):
    with Hub(shards) as hub:
        with store_of(hub, cache=tmp_path) as store:
            first = headers_of(store)
        asked = len(hub.front.received) + len(hub.cdn.received)
        with store_of(hub, cache=tmp_path) as store:
            assert headers_of(store) == first
        assert len(hub.front.received) + len(hub.cdn.received) == asked + 1  # what main is today
        with store_of(hub, f"org/model@{COMMIT}", cache=tmp_path) as store:
            assert headers_of(store) == first
        assert len(hub.front.received) + len(hub.cdn.received) == asked + 1  # a commit needs no request at all
    with store_of(hub, cache=tmp_path, offline=True) as store:  # the servers are gone
        assert headers_of(store) == first
        assert re.fullmatch(r"org/model@main: offline, so as it was on \d{4}-\d\d-\d\dT[\d:]+Z", store.notes[0])
        with pytest.raises(NetworkError, match="not in the cache"):
            store.read("config.json", 100)


def test_a_listing_that_has_not_changed_is_not_sent_again(tmp_path):
    with Hub({"config.json": Blob(b"{}", 2)}, listing_etag='W/"7"') as hub:
        for _ in range(2):
            with store_of(hub, cache=tmp_path, token=SECRET) as store:
                assert [file.path for file in store.files()] == ["config.json"]
        assert [request.headers.get("if-none-match") for request in hub.front.received] == [None, 'W/"7"']
    with store_of(hub, cache=tmp_path, offline=True) as store:
        assert len(store.files()) == 1


def test_what_is_cached_loads_no_client(tmp_path):
    with Hub({"config.json": Blob(b"{}", 2)}) as hub, store_of(hub, cache=tmp_path) as store:
        store.read("config.json", 10)
    script = """
import sys
from pathlib import Path
from fitcheck.sources.cache import Cache
from fitcheck.sources.hub import HubStore
from fitcheck.sources.hub_names import Access, Repository
store = HubStore(Repository("org/model"), Access(sys.argv[1], None, True), Cache(Path(sys.argv[2])))
print(store.read("config.json", 10), "httpx" in sys.modules)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script, hub.endpoint, str(tmp_path)], check=True, capture_output=True, text=True, timeout=30
    )
    assert ran.stdout == "b'{}' False\n"


def test_offline_without_a_cache_is_one_clear_error(tmp_path):
    hub = type("Nowhere", (), {"endpoint": "https://hub.invalid"})
    with (
        store_of(hub, cache=tmp_path, offline=True) as store,
        pytest.raises(NetworkError, match="org/model@main: not in the cache") as caught,
    ):
        store.files()
    assert "--offline" in caught.value.hint


@pytest.mark.parametrize("kind", ["gated", "private"])
def test_what_a_token_opened_is_not_served_without_it(tmp_path, kind):
    files = {"config.json": Blob(b"{}", 2)}
    with Hub(files, token=SECRET, **{kind: True}) as hub:
        with store_of(hub, cache=tmp_path, token=SECRET) as store:
            assert store.read("config.json", 10) == b"{}"
        for token in (None, "hf_other"):
            with store_of(hub, cache=tmp_path, token=token, offline=True) as store, pytest.raises(NetworkError):
                store.read("config.json", 10)
        with store_of(hub, cache=tmp_path, token=SECRET, offline=True) as store:
            assert store.read("config.json", 10) == b"{}"
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_what_is_public_is_cached_for_everybody(tmp_path):
    with Hub({"config.json": Blob(b"{}", 2)}) as hub, store_of(hub, cache=tmp_path, token=SECRET) as store:
        store.read("config.json", 10)
    with store_of(hub, cache=tmp_path, offline=True) as store:
        assert store.read("config.json", 10) == b"{}"


REFUSALS = [
    ((401, "RepoNotFound"), "/main", None, NetworkError, "no such repository, or a private one", "HF_TOKEN"),
    ((401, ""), "/main", None, NetworkError, "no such repository, or a private one", "HF_TOKEN"),
    ((401, ""), "/main", SECRET, NetworkError, "does not accept the token", "make one"),
    (
        (401, "GatedRepo"),
        "config.json",
        None,
        NetworkError,
        "access is restricted, and no token was sent",
        "/org/model, then give a token in HF_TOKEN",
    ),
    (
        (403, "GatedRepo"),
        "config.json",
        SECRET,
        NetworkError,
        "access is restricted, and the token's account has no access",
        "ask for access at http",
    ),
    ((403, ""), "config.json", SECRET, NetworkError, "refuses access", "lack the right"),
    ((404, "RepoNotFound"), "/main", SECRET, DataError, "no such repository on the hub", "check the name"),
    ((404, "RevisionNotFound"), "/main", None, DataError, "no revision 'main'", "/org/model/tree/main"),
    ((404, "EntryNotFound"), "config.json", None, DataError, "there is no such file", "/org/model/tree/main"),
    ((429, ""), "config.json", None, NetworkError, "too many requests", "HF_TOKEN"),
    ((500, ""), "config.json", None, NetworkError, "is out of order", "later"),
    ((503, ""), "/main", None, NetworkError, "is out of order", "later"),
    ((418, ""), "/main", None, NetworkError, "status 418", None),
]


@pytest.mark.parametrize(("refusal", "where", "token", "kind", "message", "hint"), REFUSALS, ids=lambda value: str(value)[:30])
def test_each_refusal_says_what_to_do(refusal, where, token, kind, message, hint):
    with Hub({"config.json": Blob(b"{}", 2)}, refuse={where: refusal}) as hub, store_of(hub, token=token) as store:
        with pytest.raises(kind, match=re.escape(message)) as caught:
            store.read("config.json", 10)
        assert hint is None or hint in caught.value.hint
        assert SECRET not in str(caught.value) + str(caught.value.hint)
        again = refusal[0] in (429, 500, 503)
        assert len([request for request in hub.front.received if request.path.endswith(where)]) == (2 if again else 1)


@pytest.mark.parametrize(
    ("status", "message"), [(401, "redirects to"), (403, "redirects to"), (404, "redirects to"), (500, "out of order")]
)
def test_what_the_second_host_refuses_is_no_word_about_names_and_tokens(shards, status, message):
    """A proxy or a firewall in front of it answers so: the hub has listed the file, and has let it be read."""
    with Hub(dict(list(shards.items())[:3])) as hub, store_of(hub) as store:
        hub.cdn.handler = answering(lambda _: reply(status, b"<Error>AccessDenied</Error>"))
        with pytest.raises(NetworkError, match=message) as caught:
            store.spans([Span("model-00001-of-00062.safetensors", 0, 8)])
        assert hub.cdn.url.removeprefix("http://") in caught.value.message
        assert "HF_TOKEN" not in caught.value.hint


def test_a_mirror_that_hands_on_to_the_hub_hands_on_its_word():
    """hf-mirror.com redirects what is gated to huggingface.co."""
    with Hub({"config.json": Blob(b"{}", 2)}, refuse={"config.json": (401, "GatedRepo")}) as hub:
        mirror = answering(lambda request: reply(308, Location=hub.front.url + request.target))
        with (
            Server(mirror) as front,
            HubStore(parse_repository("org/model"), Access(front.url, None, False), Cache(None)) as store,
            pytest.raises(NetworkError, match="access is restricted"),
        ):
            store.read("config.json", 10)


def test_a_token_that_is_not_sent_over_http_is_said_to_be_none():
    with Hub({}, private=True) as hub:
        access = Access(hub.endpoint, None, False, withheld=True)
        with HubStore(parse_repository("org/model"), access, Cache(None), patience=QUICK) as store, pytest.raises(NetworkError) as caught:
            store.files()
    assert "https://" in caught.value.hint
    assert "HF_TOKEN" not in caught.value.hint


def test_a_link_that_expired_is_asked_for_again(shards):
    with Hub(dict(list(shards.items())[:3])) as hub, store_of(hub) as store:
        path = "model-00001-of-00062.safetensors"
        first = store.spans([Span(path, 0, 8)])
        hub.signature = "Signature=new"
        assert store.spans([Span(path, 0, 8)]) == first
        assert [request.target.partition("?")[2] for request in hub.cdn.received] == ["Signature=abc", "Signature=abc", "Signature=new"]


def test_a_renamed_repository_is_followed_and_said():
    with Hub({"config.json": Blob(b"{}", 2)}, id="new/name", old_names=("org/model",)) as hub, store_of(hub) as store:
        assert store.read("config.json", 10) == b"{}"
        assert store.notes == ("org/model is called new/name today",)
        assert hub.body("/org/model/resolve") == []


def test_a_mirror_with_a_path_and_a_pull_request_as_revision():
    with Hub({"sub dir/config #1.json": Blob(b"{}", 2)}, prefix="/hf/mirror") as hub, store_of(hub, "org/model@refs/pr/3") as store:
        assert store.read("sub dir/config #1.json", 10) == b"{}"
        assert [request.target for request in hub.front.received] == [
            "/hf/mirror/api/models/org/model/revision/refs%2Fpr%2F3?blobs=true",
            f"/hf/mirror/org/model/resolve/{COMMIT}/sub%20dir/config%20%231.json",
        ]


def test_a_listing_that_may_be_cut_off_is_read_page_by_page(tmp_path):
    files = {f"file{index:05}.json": Blob(b"{}", 2) for index in range(2500)}
    with Hub(files) as hub:
        with store_of(hub, cache=tmp_path) as store:
            assert [file.path for file in store.files()] == sorted(files)
        assert len(hub.body("/api/models/org/model/tree/")) == 3
        with store_of(hub, f"org/model@{COMMIT}", cache=tmp_path) as store:
            assert len(store.files()) == 2500
        assert len(hub.front.received) == 4


@pytest.mark.parametrize("named", ["https://huggingface.co", "http://hub.internal:3000/behind/a/proxy"])
def test_pages_are_asked_of_the_endpoint_whatever_host_their_links_name(named):
    """A mirror passes on the original's links, and a hub behind a proxy names itself as it knows itself."""
    with Hub({f"file{index:05}.json": Blob(b"{}", 2) for index in range(1500)}) as hub, store_of(hub) as store:
        plain = hub.answer
        hub.front.handler = answering(lambda request: plain(request).replace(f"Link: <{hub.endpoint}".encode(), f"Link: <{named}".encode()))
        assert len(store.files()) == 1500
        assert len(hub.body("/api/models/org/model/tree/")) == 2


def test_a_listing_that_goes_on_nowhere_is_not_taken_for_the_whole():
    with Hub({f"file{index:05}.json": Blob(b"{}", 2) for index in range(1500)}) as hub, store_of(hub) as store:
        page = b'[{"type": "file", "path": "a.json", "size": 2}]'
        plain = hub.answer
        lost = reply(200, page, Link='<https://elsewhere.example/>; rel="next"')
        hub.front.handler = answering(lambda request: lost if "/tree/" in request.path else plain(request))
        with pytest.raises(NetworkError, match="goes on at something that is no page of it"):
            store.files()


def test_a_listing_without_end_is_refused():
    with Hub({}) as hub:
        hub.files = {f"f{index}": Blob(b"", 0) for index in range(1200)}
        hub.tree_page = 1
        with store_of(hub) as store, pytest.raises(DataError, match="more than 200 pages"):
            store.files()


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "a//b", "a/./b", "..", "", "a\\b", "a\x1b[2Jb", "x" * 2000])
def test_a_listing_with_paths_that_lead_elsewhere_is_refused(path):
    with Hub({"config.json": Blob(b"{}", 2), path: Blob(b"", 0)}) as hub, store_of(hub) as store:
        with pytest.raises(DataError, match="its listing holds") as caught:
            store.files()
        assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"<html>", b'{"sha": 5}', b'{"sha":"main","siblings":[]}', b"[" * 100_000, b"\xff\xfe"]
)
def test_what_is_no_hub_is_said_to_be_none(body):
    with Hub({}) as hub:
        hub._listed = lambda *_: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        with store_of(hub) as store, pytest.raises(NetworkError, match=r"hub|JSON"):
            store.files()


def test_a_file_larger_than_is_read_is_refused_before_it_is_asked_for():
    with Hub({"config.json": Blob(b"{}", 5_000_000)}) as hub, store_of(hub) as store:
        with pytest.raises(DataError, match="larger than"):
            store.read("config.json", 1000)
        with pytest.raises(DataError, match="it has no file"):
            store.read("other.json", 1000)
        assert len(hub.front.received) == 1


def test_spans_end_where_their_file_does_and_weights_are_never_read():
    with Hub({"a.gguf": Blob(b"GGUF", 6), "big.gguf": Blob(b"GGUF", 1 << 40)}) as hub, store_of(hub) as store:
        assert store.spans([Span("a.gguf", 0, 100), Span("a.gguf", 4, 1), Span("a.gguf", 6, 5), Span("a.gguf", 0, 0)]) == (
            b"GGUF\0\0",
            b"\0",
            b"",
            b"",
        )
        for start, length in ((0, 1 << 33), (-1, 5), (0, -1), (1 << 63, 5)):
            with pytest.raises(DataError, match="no header"):
                store.spans([Span("big.gguf", start, length)])
        assert store.spans([]) == ()


def test_a_file_that_is_not_as_long_as_listed_is_refused():
    with Hub({"config.json": Blob(b"{}", 2), "a.gguf": Blob(b"GGUF", 100)}) as hub, store_of(hub) as store:
        store.files()
        hub.files = {"config.json": Blob(b"{ }", 3), "a.gguf": Blob(b"GGUF", 90)}
        with pytest.raises(NetworkError, match="3 bytes came, and the listing says 2"):
            store.read("config.json", 100)
        with pytest.raises(NetworkError, match="the server says 90 bytes, and the listing 100"):
            store.spans([Span("a.gguf", 0, 4)])


def test_progress_counts_bytes_from_the_calling_thread(shards):
    seen = []
    with Hub(dict(list(shards.items())[:4])) as hub, store_of(hub, progress=lambda *step: seen.append(step)) as store:
        headers = headers_of(store)
    assert seen[-1] == (sum(map(len, headers)), sum(map(len, headers)), "org/model")
