"""Reading for lint: every record of a file, with all that is wrong in it, going on after broken ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from fitcheck.catalogue.lint.findings import Finding
from fitcheck.catalogue.lint.shelf import Entry, Where, found, numbers, strings
from fitcheck.catalogue.load import KINDS, aliases_written, line_of, problem_words
from fitcheck.catalogue.provenance import Record
from fitcheck.catalogue.text import Block, YamlProblem, parse, scan_records
from fitcheck.errors import FitcheckError

LARGEST = 10**18
SMALLEST_PART = 10**12
_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]")
_TIMED = {"from", "until", "start", "end", "read", "date", "days", "available_from", "known_until"}
_HOURS = re.compile(r"^[0-2][0-9]:[0-5][0-9]$")
_TRAPS = {"unreadable": "FC001", "duplicate": "FC002", "alias": "FC004"}

Problem = tuple[Where, str, str]
"""Where in a record, the finding's id, and what is wrong."""


@dataclass
class Reading:
    """What a file holds: its records as they stand, those that are sound, and what is wrong with the rest."""

    blocks: list[Block]
    entries: list[Entry[Record]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def read_file(name: str, text: str) -> Reading:
    """Every record of a file. Never raises: what cannot be read becomes a finding."""
    blocks, problems = scan_records(text.removeprefix("\ufeff"), name)
    reading = Reading(blocks, findings=[_of_problem(problem, 1) for problem in problems])
    if not blocks and not problems:
        reading.findings.append(found("FC010", "no records in this file", name, 1))
    for block in blocks:
        _read_record(block, reading)
    return reading


def _of_problem(problem: YamlProblem, default_line: int) -> Finding:
    return found(_TRAPS[problem.trap], problem.reason, problem.path, problem.line or default_line)


def _read_record(block: Block, reading: Reading) -> None:
    unwanted = list(_unwanted_characters(block))
    reading.findings += unwanted
    try:
        value, lines = parse(block.text, block.path, block.line)
    except YamlProblem as problem:
        if problem.line is not None or not unwanted:
            reading.findings.append(_of_problem(problem, block.line))
        return
    body = value.get(block.id) if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(body, dict):
        reading.findings.append(found("FC003", f"{block.id}: must be a mapping of fields", block.path, block.line))
        return
    reading.findings += _hidden_characters(block, body, lines, {finding.line for finding in unwanted})
    kind = block.kind
    if kind is None or kind not in KINDS or body.get("kind") != kind:
        reading.findings.append(_kind_finding(block, body, lines))
        return
    reading.findings += [*_unseen_fields(block, body, lines), *_unseen_aliases(block, body, lines)]
    record, problems = _validate(kind, block.id, body)
    for where, finding_id, message in problems:
        line = line_of((block.id, *where), lines, block.line)
        reading.findings.append(found(finding_id, f"{block.id}: {message}", block.path, line))
    if record is not None and not problems:
        reading.entries.append(Entry(kind, block.id, block, record, lines))


def _unwanted_characters(block: Block) -> Iterator[Finding]:
    for offset, line in enumerate(block.text.splitlines()):
        if match := _UNWANTED.search(line):
            yield found("FC007", f"{block.id}: character U+{ord(match[0]):04X}", block.path, block.line + offset)


def _hidden_characters(block: Block, body: dict[str, Any], lines: dict[Where, int], told: set[int]) -> Iterator[Finding]:
    """Characters that only an escape in double quotes brings in."""
    for where, text in strings(body):
        line = line_of((block.id, *where), lines, block.line)
        if (match := _UNWANTED.search(text)) and line not in told:
            told.add(line)
            yield found("FC007", f"{block.id}: {_path(where)} holds the character U+{ord(match[0]):04X}", block.path, line)


def _kind_finding(block: Block, body: dict[str, Any], lines: dict[Where, int]) -> Finding:
    kind = body.get("kind")
    line = line_of((block.id, "kind"), lines, block.line)
    if kind is None:
        return found("FC005", f"{block.id}: no kind (one of: {', '.join(KINDS)})", block.path, line)
    if str(kind) in KINDS:
        return found("FC005", f"{block.id}: kind {kind} is not written plain and first", block.path, line)
    return found("FC005", f"{block.id}: unknown kind {kind!r} (one of: {', '.join(KINDS)})", block.path, line)


def _unseen_fields(block: Block, body: dict[str, Any], lines: dict[Where, int]) -> Iterator[Finding]:
    """Look-ups find a record's own fields by two spaces and the plain name."""
    written = block.text.splitlines()
    for key in body:
        line = lines[block.id, key]
        if not written[min(line - block.line, len(written) - 1)].startswith(f"  {key}:"):
            yield found("FC009", f"{block.id}: {key} is not indented by two spaces", block.path, line)


def _unseen_aliases(block: Block, body: dict[str, Any], lines: dict[Where, int]) -> Iterator[Finding]:
    aliases = body.get("aliases")
    seen = set(aliases_written(block))
    for index, alias in enumerate(aliases if isinstance(aliases, list) else []):
        name = alias.get("name") if isinstance(alias, dict) else alias
        if isinstance(name, str) and name not in seen:
            line = line_of((block.id, "aliases", index), lines, block.line)
            yield found("FC009", f"{block.id}: look-ups cannot see the alias {name!r} as it is written", block.path, line)


def _validate(kind: str, record_id: str, body: dict[str, Any]) -> tuple[Record | None, list[Problem]]:
    """The typed record, and everything that the schema and we refuse in it."""
    own = list(_mistaken_times(body))
    if "id" in body:
        own.append((("id",), "FC003", "id: stands at the start of the record and nowhere else"))
    try:
        record = KINDS[kind].model_validate({**body, "id": record_id})
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        refused = [_of_schema(detail) for detail in details]
        places = {where for where, _, _ in refused}
        return None, _first_causes(refused + [problem for problem in own if problem[0] not in places])
    except (FitcheckError, ArithmeticError) as error:  # a size or an instant that its reader refused
        where = next((where for where, text in strings(body) if repr(text) in str(error)), ())
        return None, [*own, (where, "FC003", f"{_path(where)}: {error}" if where else str(error))]
    return record, own + [(where, "FC006", f"{_path(where)}: out of range") for where, number in numbers(record) if _absurd(number)]


def _first_causes(problems: list[Problem]) -> list[Problem]:
    """Without what follows from another: a list whose only item is refused is not empty besides."""
    around = {where[:length] for where, _, _ in problems for length in range(len(where))}
    return [problem for problem in problems if problem[0] not in around]


def _mistaken_times(body: dict[str, Any]) -> Iterator[Problem]:
    """Dates and times that the schema would take, but not for what was meant: `start: 9` would be nine seconds past midnight."""
    for where, _ in numbers(body):
        if _TIMED.intersection(where[-2:]):
            yield where, "FC003", f"{_path(where)}: a date or time is written as quoted text"
    for where, text in strings(body):
        if where[-1] in {"start", "end"} and text != where[-1] and not _HOURS.match(text):
            yield where, "FC003", f"{_path(where)}: {text!r} is not a time such as 09:00"


def _of_schema(detail: Any) -> Problem:
    """A refusal of the schema. A figure without a source has an id of its own; everything else shares one."""
    message, where = problem_words(detail)
    sourceless = where[-1:] == ("source",) and detail["type"] in {"missing", "too_short"}
    return where, "FC101" if sourceless else "FC003", message


def _absurd(number: Any) -> bool:
    return bool(number) and (abs(number) > LARGEST or abs(number) * SMALLEST_PART < 1)


def _path(where: Where) -> str:
    return ".".join(str(part) for part in where)
