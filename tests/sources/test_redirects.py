"""Where a request goes and what goes with it: redirects, the token, certificates, proxies."""

import asyncio
import shutil
import ssl
import subprocess

import pytest

from fitcheck.errors import NetworkError
from fitcheck.sources.transport import Transport
from fitcheck.sources.wire import Get
from tests.sources.asking import QUICK, ask, get, refusal
from tests.sources.loopback import Server, answering, reply


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
    assert asked == 1
    assert "redirects to something that is no web address" in message


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
