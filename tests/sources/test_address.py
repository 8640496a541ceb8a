"""Addresses of the web: what they stand for, what belongs to them, and that no secret in them is ever shown or kept."""

import base64

import pytest

from fitcheck.errors import DataError, NetworkError, UsageError
from fitcheck.sources.address import hub_page, open_address
from fitcheck.sources.cache import Cache, default_directory
from fitcheck.sources.hub import HubStore
from fitcheck.sources.store import Span
from fitcheck.sources.web import AddressStore
from fitcheck.sources.weburl import parse_web_address, public_url
from fitcheck.sources.wire import Patience
from tests.sources.loopback import COMMIT, Blob, Hub, Server, answering, ranged, reply

GGUF = Blob(b"GGUF\x03\0\0\0", 4_000_000_000)


@pytest.fixture(autouse=True)
def _own_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FITCHECK_CACHE", str(tmp_path / "cache"))


def shelf(files, **headers):
    """A handler that serves files by path, with ranges."""

    def answer(request):
        blob = files.get(request.path)
        return ranged(request, blob, **headers) if blob is not None else reply(404)

    return answering(answer)


def test_one_file_with_a_signed_link():
    with Server(shelf({"/models/tiny-Q4_K_M.gguf": GGUF})) as server:
        with open_address(f"{server.url}/models/tiny-Q4_K_M.gguf?Signature=s3cret&x=1#part") as store:
            assert [(file.path, file.bytes) for file in store.files()] == [("tiny-Q4_K_M.gguf", 4_000_000_000)]
            assert store.spans([Span("tiny-Q4_K_M.gguf", 0, 8), Span("tiny-Q4_K_M.gguf", 4, 4)]) == (b"GGUF\x03\0\0\0", b"\x03\0\0\0")
            assert store.label == f"127.0.0.1:{server.port}/models/tiny-Q4_K_M.gguf"
            assert store.url == f"http://127.0.0.1:{server.port}/models/tiny-Q4_K_M.gguf"
            assert store.notes == ()
        assert server.received[0].target == "/models/tiny-Q4_K_M.gguf?Signature=s3cret&x=1"
        assert server.sent_bytes < 2000


@pytest.mark.parametrize("status", [403, 404, 429, 500, 418])
def test_secrets_of_an_address_are_in_no_message_and_no_file(tmp_path, status):
    def opened(text):
        return AddressStore(parse_web_address(text), Cache(default_directory()), offline=False, patience=Patience(attempts=1))

    with Server(answering(lambda request: reply(status) if request.path == "/no.gguf" else ranged(request, GGUF, ETag='"1"'))) as server:
        base = f"http://us3r:pa55w0rd@127.0.0.1:{server.port}"
        with opened(f"{base}/yes.gguf?Signature=s3cret") as store:
            store.files()
        with opened(f"{base}/no.gguf?Signature=s3cret") as store, pytest.raises((DataError, NetworkError)) as caught:
            store.files()
        basic = base64.b64encode(b"us3r:pa55w0rd").decode()
        assert server.received[0].headers["authorization"] == f"Basic {basic}"
    written = b"".join(path.read_bytes() + path.name.encode() for path in tmp_path.rglob("*") if path.is_file())
    said = " ".join([caught.value.message, str(caught.value.hint), store.label, store.url, *store.notes])
    assert written
    for secret in ("us3r", "pa55w0rd", "s3cret", basic):
        assert secret not in said
        assert secret.encode() not in written


def test_a_split_model_is_found_by_its_names():
    files = {f"/q/big-{part:05}-of-00003.gguf": GGUF for part in (1, 2, 3)}
    with Server(shelf(files)) as server:
        for part in (1, 3):
            with open_address(f"{server.url}/q/big-{part:05}-of-00003.gguf") as store:
                assert [file.path for file in store.files()] == [path[3:] for path in files]
        del files["/q/big-00002-of-00003.gguf"]
        with (
            open_address(f"{server.url}/q/big-00001-of-00003.gguf", offline=False) as store,
            pytest.raises(DataError, match="big-00002-of-00003"),
        ):
            store.files()
    for name in ("big-00004-of-00003.gguf", "big-00001-of-99999.gguf", "big-00000-of-00003.gguf"):
        with pytest.raises(DataError, match="no part of a split model"):
            open_address(f"http://127.0.0.1:9/{name}").files()


@pytest.mark.parametrize("part", [0, 1, 2])
def test_shards_that_are_counted_from_0_to_their_count_are_all_found(part):
    """As those of gpt-oss-20b: 00000, 00001 and 00002 of 00002."""
    shard = Blob(b"\x08" + b"\0" * 7 + b"{}      ", 1000)
    files = {f"/m/model-{number:05}-of-00002.safetensors": shard for number in (0, 1, 2)}
    with Server(shelf(files)) as server, open_address(f"{server.url}/m/model-{part:05}-of-00002.safetensors") as store:
        assert [file.path for file in store.files()] == [path[3:] for path in files]


@pytest.mark.parametrize(("status", "kind"), [(403, None), (401, None), (404, None), (500, NetworkError), (429, NetworkError)])
def test_a_config_that_cannot_be_asked_for_is_not_taken_to_be_missing(status, kind):
    shard = Blob(b"\x08" + b"\0" * 7 + b"{}      ", 1000)
    serve = answering(lambda request: ranged(request, shard) if request.path.endswith(".safetensors") else reply(status))
    patience = Patience(connect_s=1, read_s=1, total_s=3, attempts=2, backoff_s=0.01)
    with Server(serve) as server:
        address = parse_web_address(f"{server.url}/m/model.safetensors")
        with AddressStore(address, Cache(None), offline=False, patience=patience) as store:
            if kind is None:
                assert [file.path for file in store.files()] == ["model.safetensors"]
                return
            with pytest.raises(kind, match=f"config.json.*status {status}"):
                store.files()


@pytest.mark.parametrize(
    ("config", "found"), [(Blob(b'\xef\xbb\xbf {"model_type": "x"}', 23), True), (Blob(b"<html>", 6), False), (None, False)]
)
def test_the_config_beside_safetensors(config, found):
    files = {"/m/model.safetensors": Blob(b"\x08" + b"\0" * 7 + b"{}      ", 1000)} | ({"/m/config.json": config} if config else {})
    with Server(shelf(files)) as server, open_address(f"{server.url}/m/model.safetensors") as store:
        assert [file.path for file in store.files()] == (["config.json"] if found else []) + ["model.safetensors"]
        if found:
            assert store.read("config.json", 100) == config.head
            with pytest.raises(DataError, match="larger than"):
                store.read("config.json", 10)
        with pytest.raises(DataError, match="does not belong"):
            store.read("other.json", 100)


def test_a_config_alone_and_a_server_without_ranges():
    with Server(answering(lambda _: reply(200, b'{"model_type": "x"}'))) as server, open_address(f"{server.url}/config.json") as store:
        assert [(file.path, file.bytes) for file in store.files()] == [("config.json", 19)]
        assert store.read("config.json", 100) == b'{"model_type": "x"}'


def test_it_is_asked_again_with_its_etag_and_offline_answers_with_its_day():
    def answer(request):
        return reply(304, ETag='"1"') if request.headers.get("if-none-match") == '"1"' else ranged(request, GGUF, ETag='"1"')

    with Server(answering(answer)) as server:
        address = f"{server.url}/a.gguf"
        for _ in range(2):
            with open_address(address) as store:
                assert store.spans([Span("a.gguf", 0, 8)]) == (GGUF.head,)
        assert [request.headers.get("if-none-match") for request in server.received] == [None, None, '"1"', '"1"']
    with open_address(address, offline=True) as store:
        assert store.spans([Span("a.gguf", 0, 8)]) == (GGUF.head,)
        assert "offline, so as it was on" in store.notes[0]
        with pytest.raises(NetworkError, match="not in the cache"):
            store.spans([Span("a.gguf", 0, 9)])


def test_a_file_that_changes_while_it_is_read():
    tags = iter(['"1"', '"2"', '"3"'])
    with Server(answering(lambda request: ranged(request, GGUF, ETag=next(tags)))) as server, open_address(f"{server.url}/a.gguf") as store:
        store.files()
        with pytest.raises(NetworkError, match="changed while it was read"):
            store.spans([Span("a.gguf", 0, 8)])


def test_http_beyond_this_machine_is_read_and_said():
    assert "read over http" in open_address("http://nas.example/a.gguf").notes[0]
    assert open_address("https://nas.example/a.gguf").notes == ()
    with pytest.raises(UsageError, match="clear text") as caught:
        open_address("http://me:s3cret@nas.example/a.gguf")
    assert "s3cret" not in str(caught.value) + str(caught.value.hint)


NO_FILES = [
    "file:///etc/passwd",
    "ftp://host/a.gguf",
    "https://",
    "https://host",
    "https://host/",
    "https://host/a.bin",
    "http://[::1/a.gguf",
]
BAD_PATHS = [
    "https://host:99999/a.gguf",
    "https://host/a b.gguf",
    "https://host/\x1b[2J.gguf",
    f"https://host/{'a' * 9000}.gguf",
    "https://h/..%2F.gguf",
]
HUB = "https://huggingface.co"
NO_PAGES = [
    f"{HUB}/",
    f"{HUB}/datasets/org/name",
    f"{HUB}/org/name/discussions/3",
    f"{HUB}/org/name/blob/main",
    "https://tok:en@huggingface.co/org/name",
]


@pytest.mark.parametrize("text", [*NO_FILES, *BAD_PATHS, *NO_PAGES], ids=lambda text: ascii(text[:60]))
def test_what_names_no_model_is_refused_with_a_hint(text):
    with pytest.raises((UsageError, DataError)) as caught:
        open_address(text)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 400


PAGES = [
    ("/org/name", "org/name@main", None, None),
    ("/org/name/", "org/name@main", None, None),
    ("/org/name/tree/v2", "org/name@v2", None, None),
    ("/org/name/tree/refs%2Fpr%2F3", "org/name@refs/pr/3", None, None),
    ("/org/name/tree/refs/pr/3/sub", "org/name@refs/pr/3", None, "sub"),
    ("/org/name/tree/main/BF16", "org/name@main", None, "BF16"),
    ("/org/name/blob/main/a%20b/model.gguf", "org/name@main", "a b/model.gguf", None),
    (f"/org/name/resolve/{COMMIT}/model.gguf", f"org/name@{COMMIT}", "model.gguf", None),
]


@pytest.mark.parametrize(("path", "repository", "file", "folder"), PAGES)
def test_pages_of_a_hub(path, repository, file, folder):
    found = hub_page(path, "https://huggingface.co")
    assert (str(found[0]), *found[1:]) == (repository, file, folder)


def test_a_page_of_the_hub_is_its_repository_from_the_endpoint(monkeypatch):
    json, names = Blob(b"{}", 2), ("UD/m-00001-of-00002.gguf", "UD/m-00002-of-00002.gguf", "UD/other.gguf", "m-00001-of-00002.gguf")
    with Hub(dict.fromkeys(names, GGUF) | {"config.json": json, "UD/config.json": json}, prefix="/mirror") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint + "/")
        for page in ("https://huggingface.co/org/model", f"{hub.endpoint}/org/model/tree/main"):
            with open_address(page) as store:
                assert isinstance(store, HubStore)
                assert len(store.files()) == 6
        with open_address("https://huggingface.co/org/model/blob/main/UD/m-00002-of-00002.gguf?download=true") as store:
            assert [file.path for file in store.files()] == ["UD/config.json", *names[:2]]
            assert store.spans([Span(names[0], 0, 4)]) == (b"GGUF",)
            assert store.label == "org/model@main/UD/m-00002-of-00002.gguf"
            assert store.url == f"{hub.endpoint}/org/model/blob/{COMMIT}/UD/m-00002-of-00002.gguf"
            with pytest.raises(DataError, match="does not belong"):
                store.read("config.json", 10)
        with open_address("https://huggingface.co/org/model/tree/main/UD") as store:
            assert [file.path for file in store.files()] == ["UD/config.json", *names[:3]]
        for page in ("blob/main/no.gguf", "tree/main/no"):
            with open_address(f"https://huggingface.co/org/model/{page}") as store, pytest.raises(DataError, match="it has no"):
                store.files()
        assert isinstance(open_address(f"{hub.front.url}/elsewhere/a.gguf"), AddressStore)


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://u:p@host:8443/a%20b/c.gguf?x=1#y", "https://host:8443/a%20b/c.gguf"),
        ("https://[::1]:8/ä\x1b/c", "https://[::1]:8/%C3%A4%1B/c"),
        ("https://[bad", "an address that cannot be read"),
    ],
)
def test_what_is_shown_of_an_address(url, public):
    assert public_url(url) == public


def test_an_address_keeps_its_query_and_loses_its_credentials():
    address = parse_web_address("HTTPS://us%40er:p%3Ass@Host.Example:443/a?b=c#d")
    assert address.url == "https://host.example/a?b=c"
    assert address.authorization == "Basic " + base64.b64encode(b"us@er:p:ss").decode()
