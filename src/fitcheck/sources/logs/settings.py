"""Settings as engines print them: Python's `name=value` and `'name': value`, nested, on one line. Read token by token, never evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from fitcheck.sources.logs.reading import Setting

_TOKENS = re.compile(r"""'(?:[^'\\]|\\.){0,4096}'|"(?:[^"\\]|\\.){0,4096}"|[=:]|[({\[]|[)}\]]|,|[^\s=:,(){}\[\]'"<>]{1,400}""")
MOST_DEPTH = 20
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,18})?")
_WORDS: dict[str, bool | None] = {"True": True, "False": False, "true": True, "false": False, "None": None, "null": None}

Value = str | int | Decimal | bool | None


def read_settings(text: str, names: Mapping[str, str], file: str, number: int) -> Iterator[Setting]:
    """The settings that `names` knows, in the order printed. A nested one is known by its holder: `speculative_config.method`."""
    for path, value in pairs(text):
        name = names.get(path)
        if name is not None:
            yield Setting(name, value, file, number)


def pairs(text: str) -> Iterator[tuple[str, Value]]:
    """Names with their values, the names of what holds them before: `a.b`. Values that are lists, calls or mappings are walked, not given.

    What is nested more than 20 deep is passed over.
    """
    holders: list[str] = []
    name: str | None = None
    last: str | None = None
    called: str | None = None
    for found in _TOKENS.finditer(text):
        part = found[0]
        if part in "=:":
            name, last = last, None
        elif part in "({[":
            if len(holders) >= MOST_DEPTH:
                return
            holders.append(name or called or "")
            name = last = None
        elif part in ")}]":
            if not holders:
                return
            holders.pop()
            name = last = None
        elif part == ",":
            name = last = None
        elif name is not None:
            yield ".".join([*(holder for holder in holders if holder), name]), _value(part)
            called, name = name, None
            continue
        else:
            last = _unquoted(part)
        called = None


def _unquoted(token: str) -> str:
    quoted = token[:1] in "'\"" and len(token) > 1
    return token[1:-1].replace("\\\\", "\\").replace("\\'", "'") if quoted else token


def _value(token: str) -> Value:
    if token[:1] in "'\"":
        return _unquoted(token)
    if token in _WORDS:
        return _WORDS[token]
    if _NUMBER.fullmatch(token):
        return Decimal(token) if "." in token else int(token)
    return token
