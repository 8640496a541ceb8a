"""The lint itself: reads every record of every file, then runs the rules over those that are sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fitcheck.catalogue.hardware import Device
from fitcheck.catalogue.lint import dates, hardware, models, names, prices, recipes, references, sizes
from fitcheck.catalogue.lint.findings import Finding
from fitcheck.catalogue.lint.shelf import R, Rule, Shelf
from fitcheck.catalogue.lint.texts import Reading, read_file
from fitcheck.catalogue.models import Model
from fitcheck.catalogue.provenance import Record
from fitcheck.catalogue.ratecards import Calendar, Rate, Schedule
from fitcheck.catalogue.recipes import Recipe

_EVERY_RECORD = (
    *references.EVERY_RECORD,
    *sizes.EVERY_RECORD,
    *models.EVERY_RECORD,
    *dates.EVERY_RECORD,
    *prices.EVERY_RECORD,
    *hardware.EVERY_RECORD,
)


def lint(texts: Iterable[tuple[str, str]], base: Iterable[tuple[str, str]] = ()) -> list[Finding]:
    """Every finding in some catalogue files, each a name and a text, in the order of the files and their lines.

    `base` holds files that lie beneath: their records answer references, a record of the same kind and id replaces theirs, and
    nothing is reported about them. Names must differ. Never raises, whatever the texts hold.
    """
    given = {name: read_file(name, text) for name, text in texts}
    beneath = [read_file(name, text) for name, text in base]
    shelf = _shelf(beneath, list(given.values()))
    findings = [finding for reading in given.values() for finding in reading.findings]
    findings += names.repeated_record([block for reading in given.values() for block in reading.blocks])
    findings += [finding for finding in _rule_findings(shelf, given.keys()) if finding.path in given]
    order = {name: index for index, name in enumerate(given)}
    return sorted(dict.fromkeys(findings), key=lambda finding: (order[finding.path], finding.line, finding.id, finding.message))


def _shelf(beneath: Sequence[Reading], given: Sequence[Reading]) -> Shelf:
    """Of two given records of one kind and id, which is a finding of its own, the first counts; both hide one that lies beneath."""
    replaced = {(block.kind, block.id) for reading in given for block in reading.blocks}
    entries = {(entry.kind, entry.id): entry for reading in beneath for entry in reading.entries}
    entries = {key: entry for key, entry in entries.items() if key not in replaced}
    for reading in given:
        for entry in reading.entries:
            entries.setdefault((entry.kind, entry.id), entry)
    ids: dict[str, set[str]] = {}
    for reading in (*beneath, *given):
        for block in reading.blocks:
            ids.setdefault(block.kind or "", set()).add(block.id)
    last_days = dates.last_days({block.path for reading in given for block in reading.blocks})
    return Shelf(tuple(entries.values()), {kind: frozenset(known) for kind, known in ids.items()}, last_days)


def _rule_findings(shelf: Shelf, shown: Iterable[str]) -> Iterator[Finding]:
    paths = set(shown)
    yield from _run(Record, _EVERY_RECORD, shelf, paths)
    yield from _run(Model, models.MODEL_RULES, shelf, paths)
    yield from _run(Device, hardware.DEVICE_RULES, shelf, paths)
    yield from _run(Recipe, recipes.RULES, shelf, paths)
    yield from _run(Rate, prices.RATE_RULES, shelf, paths)
    yield from _run(Schedule, prices.SCHEDULE_RULES, shelf, paths)
    yield from _run(Calendar, prices.CALENDAR_RULES, shelf, paths)
    for rule in (*names.SHELF_RULES, *hardware.SHELF_RULES):
        yield from rule(shelf)


def _run(record_type: type[R], rules: Iterable[Rule[R]], shelf: Shelf, paths: set[str]) -> Iterator[Finding]:
    entries = [entry for entry in shelf.of(record_type) if entry.block.path in paths]
    for rule in rules:
        for entry in entries:
            yield from rule(entry, shelf)
