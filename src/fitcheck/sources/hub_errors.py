"""What a hub's refusal means for the person who asked, and what to do about it.

Status and `X-Error-Code` are read as `huggingface_hub` reads them (utils/_http.py, hf_raise_for_status): a hub answers 401 both for what
needs a token and, without one, for what does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

from fitcheck.errors import DataError, FitcheckError, NetworkError
from fitcheck.sources.hub_names import Repository
from fitcheck.sources.weburl import Origin, origin, public_url
from fitcheck.sources.wire import Answer, asked_wait_s

_DISABLED = "Access to this resource is disabled."
_BAD_TOKEN = "Invalid credentials in Authorization header"  # noqa: S105 - what the hub says, no token


class Asked(NamedTuple):
    """What was asked of the hub: the listing of a repository, or one of its files.

    `hub` is the hub's own origin: what another host refuses of a file, without an error code as hubs have them, is no word about names and
    tokens.
    `withheld` says that there is a token that was not sent, as the hub is asked over http.
    """

    repository: Repository
    page: str
    file: str | None
    with_token: bool
    hub: Origin | None = None
    withheld: bool = False

    @property
    def name(self) -> str:
        """The file or repository as messages name it."""
        file = f": {ascii(self.file)[1:-1]}" if self.file is not None else ""
        return f"{self.repository}{file}"


def check(answer: Answer, asked: Asked) -> None:
    """Raise what a status means, unless it is that of an answer."""
    if answer.status in (200, 206):
        return
    code = answer.headers.get("x-error-code", "")
    if asked.file is not None and not code and asked.hub is not None and origin(answer.url) != asked.hub:
        raise _elsewhere(asked, answer)
    if answer.headers.get("x-error-message") == _DISABLED:
        raise NetworkError(f"{asked.repository.id}: the hub has disabled this repository")
    known = _BY_CODE.get(code) or _BY_STATUS.get(answer.status)
    if known is not None:
        raise known(asked, answer)
    doing = "is out of order" if answer.status >= 500 else "does not answer this"
    raise NetworkError(
        f"{asked.name}: {_host(answer)} {doing} (status {answer.status})", hint="try again later" if answer.status >= 500 else None
    )


def _elsewhere(asked: Asked, answer: Answer) -> FitcheckError:
    """What the host refuses that keeps the hub's large files."""
    if answer.status == 429:
        return _too_many(asked, answer)
    if answer.status >= 500:
        return NetworkError(f"{asked.name}: {_host(answer)} is out of order (status {answer.status})", hint="try again later")
    return NetworkError(
        f"{asked.name}: the hub redirects to {_host(answer)}, which refuses the file (status {answer.status})",
        hint="a proxy or firewall may be in the way, or the link has expired: try again",
    )


def _host(answer: Answer) -> str:
    return public_url(answer.url).split("/", 3)[2]


def _gated(asked: Asked, answer: Answer) -> FitcheckError:
    hint = f"ask for access at {asked.page}"
    if not asked.with_token:
        return NetworkError(f"{asked.name}: access is restricted, and no token was sent", hint=f"{hint}, then {_give_token(asked)}")
    who = "the token is not valid" if answer.status == 401 else "the token's account has no access to it, or not yet"
    return NetworkError(
        f"{asked.name}: access is restricted, and {who}", hint=f"{hint}; the token may also lack the right to read gated repositories"
    )


def _give_token(asked: Asked) -> str:
    """How a token gets to the hub."""
    if asked.withheld:
        return "write HF_ENDPOINT with https://: the token there is goes to no other machine over http"
    return "give a token in HF_TOKEN, or log in with `hf auth login`"


def _unauthorized(asked: Asked, answer: Answer) -> FitcheckError:
    if not asked.with_token:
        return NetworkError(
            f"{asked.repository.id}: no such repository, or a private one", hint=f"check the name; for a private one, {_give_token(asked)}"
        )
    unknown = "" if _bad_token(answer) else ", or knows no such repository"
    return NetworkError(
        f"{asked.name}: the hub does not accept the token{unknown}", hint="the token may have expired: make one in the hub's settings"
    )


def _bad_token(answer: Answer) -> bool:
    return answer.headers.get("x-error-message") == _BAD_TOKEN


def _forbidden(asked: Asked, answer: Answer) -> FitcheckError:  # noqa: ARG001 - one signature for all of the table
    hint = "the token may lack the right to read it" if asked.with_token else _give_token(asked)
    return NetworkError(f"{asked.name}: the server refuses access (status 403)", hint=hint)


def _no_repository(asked: Asked, answer: Answer) -> FitcheckError:
    if answer.status == 401 and (not asked.with_token or _bad_token(answer)):
        return _unauthorized(asked, answer)
    private = "a private one needs a token that may read it" if asked.with_token else f"for a private one, {_give_token(asked)}"
    return DataError(f"{asked.repository.id}: no such repository on the hub", hint=f"check the name; {private}")


def _no_revision(asked: Asked, answer: Answer) -> FitcheckError:  # noqa: ARG001 - as above
    revision = asked.repository.revision
    return DataError(
        f"{asked.repository.id}: no revision {revision!a}", hint=f"branches, tags and commits are listed at {asked.page}/tree/main"
    )


def _no_file(asked: Asked, answer: Answer) -> FitcheckError:
    if asked.file is None:
        return _no_repository(asked, answer)
    return DataError(
        f"{asked.name}: there is no such file",
        hint=f"its files are listed at {asked.page}/tree/{quote(asked.repository.revision, safe='')}",
    )


def _too_many(asked: Asked, answer: Answer) -> FitcheckError:
    wait_s = asked_wait_s(answer.headers)
    wait = f"wait {wait_s:,.0f} s" if wait_s is not None else "wait a few minutes"
    more = "" if asked.with_token else "; with a token (HF_TOKEN) the hub allows more"
    return NetworkError(f"{asked.name}: {_host(answer)} has had too many requests (status 429)", hint=f"{wait}{more}")


_Refusal = Callable[[Asked, Answer], FitcheckError]
_BY_CODE: dict[str, _Refusal] = {
    "GatedRepo": _gated,
    "RepoNotFound": _no_repository,
    "RevisionNotFound": _no_revision,
    "EntryNotFound": _no_file,
}
_BY_STATUS: dict[int, _Refusal] = {401: _unauthorized, 403: _forbidden, 404: _no_file, 410: _no_file, 429: _too_many}
