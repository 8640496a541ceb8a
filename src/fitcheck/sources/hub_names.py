"""What a hub is asked for: repository and revision as people write them, the endpoint and the token of the environment.

The rules for names are those of `huggingface_hub` (utils/_validators.py), the variables those of its constants.py and utils/_auth.py.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from fitcheck.errors import DataError, UsageError
from fitcheck.sources.weburl import may_carry_secrets, parse_web_address, public_url

DEFAULT_ENDPOINT = "https://huggingface.co"
DEFAULT_REVISION = "main"
MOST_NAME = 96
MOST_REVISION = 255
MOST_PATH = 1024
_PART = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_])?")
_BAD_REVISION = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|^[/.\-]|/\.|[/.]$|\.lock(?:/|$)")
"""What git allows in no name of a branch or tag (git-check-ref-format), and a leading dash."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})
_MOST_TOKEN_FILE = 8192


class Repository(NamedTuple):
    """A model repository at a revision: a branch, a tag, a commit, or a reference such as `refs/pr/3`."""

    id: str
    revision: str = DEFAULT_REVISION

    @property
    def fixed(self) -> bool:
        """Whether the revision is a commit, whose content never changes."""
        return is_commit(self.revision)

    def __str__(self) -> str:
        return f"{self.id}@{self.revision}"


class Access(NamedTuple):
    """Where the hub is and who asks: `token` is None for nobody in particular.

    `withheld` says that there is a token, which goes to no other machine over http.
    """

    endpoint: str
    token: str | None
    offline: bool
    withheld: bool = False


def is_commit(revision: object) -> bool:
    """Whether a revision is a whole commit hash."""
    return isinstance(revision, str) and _COMMIT.fullmatch(revision) is not None


def looks_like_repository(text: str) -> bool:
    """Whether a text has the form `org/name` or `org/name@revision`, valid or not."""
    return text.partition("@")[0].count("/") == 1 and "://" not in text and not text.startswith((".", "/", "~")) and "\\" not in text


def parse_repository(text: str) -> Repository:
    """A repository in `org/name` or `org/name@revision`. Raises `UsageError`."""
    name, at, revision = text.partition("@")
    shown = ascii(text[:120])
    if name.count("/") != 1:
        raise UsageError(f"{shown} is not a repository", hint="write it as org/name or org/name@revision")
    for part in name.split("/"):
        if not _PART.fullmatch(part) or len(part) > MOST_NAME or "--" in part or ".." in part or part.endswith(".git"):
            raise UsageError(
                f"{shown} is not the name of a repository",
                hint=f"a name has letters, digits, - _ and . (not at its ends, no -- and no ..), at most {MOST_NAME} characters",
            )
    if at and (not revision or len(revision) > MOST_REVISION or _BAD_REVISION.search(revision)):
        raise UsageError(f"{shown}: not a revision", hint="a branch, a tag, a commit, or refs/pr/3")
    return Repository(name, revision if at else DEFAULT_REVISION)


def check_path(path: object, where: str) -> str:
    """A path of a listing, if it is one that stays inside its repository. Raises `DataError`."""
    if not isinstance(path, str) or not path or len(path) > MOST_PATH:
        raise DataError(f"{where}: its listing holds something that is no path")
    if any(part in ("", ".", "..") for part in path.split("/")) or not path.isprintable() or "\\" in path:
        raise DataError(f"{where}: its listing holds a path that leads elsewhere: {path[:80]!a}")
    return path


def quoted(path: str) -> str:
    """A path within an address, its slashes kept."""
    return quote(path, safe="/")


def access(*, offline: bool = False) -> Access:
    """Endpoint, token and offline as the environment says. Raises `UsageError` for an endpoint that cannot be one."""
    endpoint = parse_endpoint(os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT)
    silent = _true("HF_HUB_DISABLE_IMPLICIT_TOKEN")
    token = None if silent else find_token()
    safe = may_carry_secrets(endpoint)
    return Access(
        endpoint,
        token if safe else None,
        offline or _true("HF_HUB_OFFLINE") or _true("TRANSFORMERS_OFFLINE"),
        withheld=token is not None and not safe,
    )


def parse_endpoint(text: str) -> str:
    """A hub's address, which may have a path before its repositories, without a slash at its end. Raises `UsageError`."""
    hint = f"such as HF_ENDPOINT={DEFAULT_ENDPOINT}"
    if "://" not in text:
        raise UsageError("HF_ENDPOINT is not an address", hint=hint)
    address = parse_web_address(text.strip())
    if address.authorization is not None or urlsplit(address.url).query:
        raise UsageError(f"HF_ENDPOINT {public_url(text)} may hold neither a password nor a query", hint="give the token in HF_TOKEN")
    return address.url.rstrip("/")


def find_token() -> str | None:
    """The token of HF_TOKEN, HUGGING_FACE_HUB_TOKEN, or the file that `hf auth login` writes; None where there is none.

    Raises `UsageError` for one that no header can hold; the token itself is in no message.
    """
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        token = os.environ.get(name, "").replace("\r", "").replace("\n", "").strip()
        if token:
            return _checked(token, name)
    path = _token_path()
    try:
        with path.open("rb") as stream:
            raw = stream.read(_MOST_TOKEN_FILE)
    except OSError:
        return None
    token = raw.decode("utf-8", errors="replace").replace("\r", "").replace("\n", "").strip()
    return _checked(token, ascii(str(path))[1:-1]) if token else None


def _token_path() -> Path:
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")  # noqa: PTH118 - not expanded yet
    given = os.environ.get("HF_TOKEN_PATH") or os.path.join(home, "token")  # noqa: PTH118 - as above
    return Path(os.path.expandvars(given)).expanduser()


def _checked(token: str, where: str) -> str:
    if not _TOKEN.fullmatch(token):
        raise UsageError(f"the token in {where} holds characters that no token has", hint="copy it again from the hub's settings")
    return token


def _true(name: str) -> bool:
    return os.environ.get(name, "").upper() in _TRUE
