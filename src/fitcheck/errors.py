"""One error tree and one table of exit codes.

Every error a person can cause or meet is a `FitcheckError`: it says what is wrong, where, and what to type instead. Anything else
that escapes is our bug (exit 1).
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process returns. Verdicts start at 10 so they never collide with usage errors."""

    ANSWERED = 0
    BUG = 1
    USAGE = 2
    UNKNOWN_ID = 3
    DATA = 4
    NETWORK = 5
    DOES_NOT_FIT = 10
    TIGHT = 11
    UNKNOWN = 12
    CATALOGUE_ERRORS = 20


class FitcheckError(Exception):
    """What went wrong, with a hint that says what to do about it.

    `nearest` holds up to three ids that look like what was typed.
    """

    code: ExitCode = ExitCode.BUG

    def __init__(self, message: str, *, hint: str | None = None, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.nearest = nearest


class UsageError(FitcheckError):
    """The command's words are off: a malformed cluster, a negative context, an impossible date."""

    code = ExitCode.USAGE


class UnknownId(FitcheckError):
    """No record of that kind has this id or alias."""

    code = ExitCode.UNKNOWN_ID


class DataError(FitcheckError):
    """A catalogue file is missing or malformed, or says something no record may say."""

    code = ExitCode.DATA


class UnknownFact(FitcheckError):
    """The answer needs a figure nobody has published (or that the catalogue does not hold)."""

    code = ExitCode.DATA


class NetworkError(FitcheckError):
    """A server could not be reached, refused, or did not send what it promised."""

    code = ExitCode.NETWORK
