"""What a hub is asked for: names and revisions, and what the environment says of endpoint, token and offline."""

import pytest

from fitcheck.errors import UsageError
from fitcheck.sources.hub_names import access, find_token, parse_repository
from tests.sources.loopback import COMMIT


@pytest.fixture(autouse=True)
def _own_home(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_where_the_token_comes_from(monkeypatch, tmp_path):
    assert find_token() is None
    (tmp_path / ".cache" / "huggingface").mkdir(parents=True)
    (tmp_path / ".cache" / "huggingface" / "token").write_text("hf_home\n")
    assert find_token() == "hf_home"
    for variable, value in (("XDG_CACHE_HOME", "xdg"), ("HF_HOME", "hfhome"), ("HF_TOKEN_PATH", "else/token")):
        place = tmp_path / value / {"XDG_CACHE_HOME": "huggingface/token", "HF_HOME": "token", "HF_TOKEN_PATH": ""}[variable]
        place.parent.mkdir(parents=True)
        place.write_text(f"hf_{variable}\r\n")
        monkeypatch.setenv(variable, f"$HOME/{value}" if variable == "HF_TOKEN_PATH" else str(tmp_path / value))
        assert find_token() == f"hf_{variable}"
    for variable in ("HUGGING_FACE_HUB_TOKEN", "HF_TOKEN"):
        monkeypatch.setenv(variable, f" hf_{variable} ")
        assert find_token() == f"hf_{variable}"
    monkeypatch.setenv("HF_TOKEN", "hf_a\x1b[2J b")
    with pytest.raises(UsageError) as caught:
        find_token()
    assert "hf_a" not in caught.value.message


def test_endpoint_and_offline_of_the_environment(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    assert access() == ("https://huggingface.co", "hf_x", False, False)
    assert access(offline=True).offline
    monkeypatch.setenv("HF_HUB_OFFLINE", "on")
    assert access().offline
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.example/hf/")
    assert access() == ("http://mirror.example/hf", None, True, True)  # a token does not go over http
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/hf/")
    assert access().token == "hf_x"
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
    assert access().token is None
    for wrong in (
        "mirror.example",
        "us3r:pa55@mirror",
        "https://us3r:pa55@mirror.example",
        "https://mirror.example/?pa55",
        "ftp://pa55",
        "https://",
    ):
        monkeypatch.setenv("HF_ENDPOINT", wrong)
        with pytest.raises(UsageError) as caught:
            access()
        assert "pa55" not in caught.value.message or wrong == "ftp://pa55"


@pytest.mark.parametrize(
    "text",
    [
        "org",
        "org/",
        "/name",
        "a/b/c",
        "org/na me",
        "org/..",
        "org/a--b",
        "org/a..b",
        "org/x.git",
        "-org/x",
        "org/x-",
        "org/ñ",
        "org/" + "x" * 97,
    ]
    + [f"org/name@{bad}" for bad in ("", "a b", "../x", "a..b", "/a", "a/", "a//b", "a^", "a:b", "-x", "a\x00", "x.lock", "@{", "r" * 300)],
)
def test_names_that_no_repository_has_are_refused(text):
    with pytest.raises(UsageError):
        parse_repository(text)


@pytest.mark.parametrize(
    ("text", "revision"),
    [
        ("org/name", "main"),
        ("Org-1/na_me.v2", "main"),
        ("org/name@refs/pr/3", "refs/pr/3"),
        ("org/name@v1.0", "v1.0"),
        (f"o/n@{COMMIT}", COMMIT),
    ],
)
def test_names_and_revisions(text, revision):
    assert parse_repository(text).revision == revision
