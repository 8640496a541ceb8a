"""YAML text to plain values, without YAML's traps.

A catalogue file is a mapping of ids to records, in block style. `split_records` finds each record's lines by its top-level key alone,
so a command parses only the records it needs. Parsing refuses duplicate keys and aliases, keeps dates and times as text (`12:30` is
never 45,000 seconds, `no` is never false) and reads decimal numbers as `Decimal`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Literal, NamedTuple, NoReturn

import yaml

from fitcheck.errors import DataError

MAX_DEPTH = 60
MAX_DIGITS = 40
_TOP_LEVEL_KEY = re.compile(r"^(?P<quote>[\"']?)(?P<key>[^\s#\"'{}\[\]:,?&*!|>%@`\-][^\"'{}\[\]:#]*)(?P=quote):(?=\s|$)")
_KIND = re.compile(r"^ +kind: *([a-z_]+) *(?:#.*)?$", re.MULTILINE)
_MARKER = re.compile(r"^(?:---|\.\.\.)\s*(?:#.*)?$")

_OTHER_LINE_BREAKS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""What `str.splitlines` breaks at beside the line feed."""

_NO_ALIASES = "YAML aliases (*name) are not allowed: write the value out"

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Only its parser is used: what a plain text means is settled here, not by PyYAML's resolver."""

_STANDARD = "tag:yaml.org,2002:"
_FORMS: dict[str, re.Pattern[str]] = {
    "bool": re.compile(r"true|false"),
    "null": re.compile(r"null|~|"),
    "int": re.compile(r"-?(?:0|[1-9][0-9]*)"),
    "float": re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+]?[0-9]+)?"),
}
"""How plain text must look to be something other than text."""

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_NUMERIC = frozenset("-0123456789")

Trap = Literal["unreadable", "duplicate", "alias"]
"""What sort of problem a YAML text has, for those who tell them apart."""


class Block(NamedTuple):
    """The text of one record: its id, its kind as written (None if it has none), and the line its key stands on (from 1)."""

    id: str
    kind: str | None
    path: str
    line: int
    text: str


class YamlProblem(DataError):
    """A YAML text that cannot be read, with the file and line of the reason."""

    def __init__(self, reason: str, path: str, line: int | None, trap: Trap = "unreadable") -> None:
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {reason}", hint="mend the file, or run 'fitcheck validate' on it for every finding")
        self.reason = reason
        self.path = path
        self.line = line
        self.trap = trap


def split_records(text: str, path: str) -> list[Block]:
    """The records of a file, in order, found by the keys that stand in column 0.

    Sound for block-style YAML, where everything that belongs to a record is indented. Raises `YamlProblem` where column 0 holds
    anything else than a key, a comment or a document marker, and where a key comes twice.
    """
    clean = _split_clean(text, path)
    if clean is not None:
        return clean
    blocks, problems = scan_records(text, path)
    if problems:
        raise problems[0]
    return blocks


def _split_clean(text: str, path: str) -> list[Block] | None:
    """The records of a file with nothing wrong in column 0, or None where `scan_records` has to look closer.

    This is what start-up pays for each file: walking the lines one by one took ten times as long.
    """
    if any(other in text for other in _OTHER_LINE_BREAKS):
        return None
    lines = text.split("\n")
    starts: list[tuple[int, str]] = []
    for number in [number for number, line in enumerate(lines) if line and line[0] not in " #"]:
        match = _TOP_LEVEL_KEY.match(lines[number])
        if match is None:
            return None
        starts.append((number, match["key"].strip()))
    preamble = lines[: starts[0][0]] if starts else lines
    if len({key for _, key in starts}) < len(starts) or any(line.strip() and not line.lstrip().startswith("#") for line in preamble):
        return None
    blocks = []
    for (number, key), end in _spans(starts, len(lines)):
        body = "\n".join(lines[number:end]) + ("\n" if end < len(lines) else "")
        kind = _KIND.search(body)
        blocks.append(Block(id=key, kind=kind[1] if kind else None, path=path, line=number + 1, text=body))
    return blocks


def scan_records(text: str, path: str) -> tuple[list[Block], list[YamlProblem]]:
    """The records of a file and everything that keeps it from being split cleanly; never raises.

    A line that cannot stand in column 0, or before the first record, is left out (blank, so that later lines keep their numbers).
    Of two records with one id both are given.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").splitlines(keepends=True)
    starts: list[tuple[int, str]] = []
    problems: list[YamlProblem] = []
    for number, line in enumerate(lines):
        outside = not starts and line[0] in " \t" and line.strip() != "" and not line.lstrip().startswith("#")
        if not outside and (line[0] in " #\n\t" or _MARKER.match(line)):
            continue
        match = _TOP_LEVEL_KEY.match(line)
        if match is None:
            problems.append(YamlProblem("expected a record's id at the start of the line, or an indented line", path, number + 1))
            lines[number] = "\n"
        else:
            starts.append((number, match["key"].strip()))
    blocks = [_block(lines, start, end, path) for start, end in _spans(starts, len(lines))]
    seen: dict[str, int] = {}
    for block in blocks:
        if block.id in seen:
            problems.append(YamlProblem(f"duplicate key {block.id!r} (first on line {seen[block.id]})", path, block.line, "duplicate"))
        seen.setdefault(block.id, block.line)
    return blocks, problems


def _spans(starts: list[tuple[int, str]], end: int) -> Iterator[tuple[tuple[int, str], int]]:
    for index, start in enumerate(starts):
        yield start, starts[index + 1][0] if index + 1 < len(starts) else end


def _block(lines: list[str], start: tuple[int, str], end: int, path: str) -> Block:
    number, key = start
    text = "".join(lines[number:end])
    kind = _KIND.search(text)
    return Block(id=key, kind=kind[1] if kind else None, path=path, line=number + 1, text=text)


def parse(text: str, path: str, first_line: int = 1) -> tuple[Any, dict[tuple[str | int, ...], int]]:
    """The value of a YAML text, and the line of each part by its path of keys.

    Raises `YamlProblem` for malformed YAML, duplicate keys, aliases, tags of other types, and nesting past `MAX_DEPTH`.
    """
    reader = _Reader(path, first_line, {})
    return reader.read(text), reader.lines or {}


def parse_value(text: str, path: str, first_line: int = 1) -> Any:
    """As `parse`, without the lines: half the work, for text that is expected to be sound."""
    return _Reader(path, first_line, None).read(text)


class _Frame:
    """A mapping or sequence being filled; `key` is the mapping's key that waits for its value."""

    __slots__ = ("at", "key", "value")

    def __init__(self, value: Any, at: tuple[str | int, ...]) -> None:
        self.value = value
        self.at = at
        self.key: str | None = None


class _Reader:
    """Builds a value from the parser's events, one at a time: no recursion, so nesting cannot exhaust the stack."""

    def __init__(self, path: str, first_line: int, lines: dict[tuple[str | int, ...], int] | None) -> None:
        self.path = path
        self.first_line = first_line
        self.lines = lines
        self.stack: list[_Frame] = []
        self.root: Any = None
        self.documents = 0

    def read(self, text: str) -> Any:
        """The value of the text's only document; None where there is none."""
        try:
            for event in yaml.parse(text, Loader=_Loader):
                self._take(event)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            raise YamlProblem(str(error.problem), self.path, mark.line + self.first_line if mark else None) from error
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise YamlProblem(f"not readable as YAML: {type(error).__name__}", self.path, None) from error
        return self.root

    def _take(self, event: Any) -> None:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            frame = self.stack[-1] if self.stack else None
            if frame is not None and frame.key is None and type(frame.value) is dict:
                self._begin(frame, event.value, self._line(event))
            else:
                self._place(self._scalar(event), event)
        elif kind is yaml.MappingStartEvent:
            self._open({}, "map", event)
        elif kind is yaml.SequenceStartEvent:
            self._open([], "seq", event)
        elif kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
            self.stack.pop()
        elif kind is yaml.AliasEvent:
            raise YamlProblem(_NO_ALIASES, self.path, self._line(event), "alias")
        elif kind is yaml.DocumentStartEvent:
            self.documents += 1
            if self.documents > 1:
                raise YamlProblem("expected a single document in the stream", self.path, self._line(event))

    def _line(self, event: Any) -> int:
        line: int = event.start_mark.line
        return line + self.first_line

    def _begin(self, frame: _Frame, key: str, line: int) -> None:
        """Take a scalar as the next key of a mapping."""
        if key in frame.value:
            first = f" (first on line {self.lines[(*frame.at, key)]})" if self.lines is not None else ""
            raise YamlProblem(f"duplicate key {key!r}{first}", self.path, line, "duplicate")
        frame.key = key
        if self.lines is not None:
            self.lines[(*frame.at, key)] = line

    def _open(self, value: dict[str, Any] | list[Any], tag: str, event: Any) -> None:
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.key is None and type(frame.value) is dict:
            raise YamlProblem("a key must be plain text", self.path, self._line(event))
        if len(self.stack) >= MAX_DEPTH:
            raise YamlProblem(f"nested deeper than {MAX_DEPTH} levels", self.path, self._line(event))
        if event.tag not in (None, _STANDARD + tag):
            raise self._bad_tag(event)
        self.stack.append(_Frame(value, self._place(value, event)))

    def _place(self, value: Any, event: Any) -> tuple[str | int, ...]:
        """Put a value where it belongs; the path of keys to it."""
        if not self.stack:
            self.root = value
            if self.lines is not None:
                self.lines[()] = self._line(event)
            return ()
        frame = self.stack[-1]
        if type(frame.value) is list:
            frame.value.append(value)
            at = (*frame.at, len(frame.value) - 1)
            if self.lines is not None:
                self.lines[at] = self._line(event)
            return at
        key, frame.key = frame.key or "", None
        frame.value[key] = value
        return (*frame.at, key)

    def _scalar(self, event: Any) -> Any:
        value: str = event.value
        if event.tag is None:
            return self._plain(value, event) if event.implicit[0] else value
        kind, _, tag = event.tag.rpartition(":")
        if f"{kind}:" != _STANDARD or tag not in ("str", *_FORMS):
            raise self._bad_tag(event)
        if tag in _FORMS and not _FORMS[tag].fullmatch(value):
            raise YamlProblem(f"{value!r} is not a YAML {tag}", self.path, self._line(event))
        return value if tag == "str" else self._plain(value, event)

    def _plain(self, value: str, event: Any) -> Any:
        """What plain text means: a number, true, false, null, or itself."""
        if value in _WORDS:
            return _WORDS[value]
        if value[0] in _NUMERIC:
            if _FORMS["int"].fullmatch(value):
                return int(value) if len(value) < MAX_DIGITS else self._too_long(event)
            if _FORMS["float"].fullmatch(value):
                return self._decimal(value, event)
        return value

    def _decimal(self, value: str, event: Any) -> Decimal:
        try:
            number = Decimal(value)
        except ArithmeticError:  # an exponent past what a Decimal can hold
            self._too_long(event)
        return number if abs(number.adjusted()) < MAX_DIGITS else self._too_long(event)

    def _too_long(self, event: Any) -> NoReturn:
        raise YamlProblem(f"a number of {MAX_DIGITS} digits or more", self.path, self._line(event))

    def _bad_tag(self, event: Any) -> YamlProblem:
        return YamlProblem(f"YAML tags such as {event.tag!r} are not allowed", self.path, self._line(event))
