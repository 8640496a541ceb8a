"""Lint findings as text for people, lines for tools, JSON, and GitHub annotations. Each function returns a string."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from fitcheck.catalogue.lint import MEANINGS, Finding
from fitcheck.views.document import clean
from fitcheck.views.formats import dump

_STYLES = {"error": "red", "warning": "yellow"}
_PLURAL = {1: ""}


def counts(findings: Sequence[Finding], files: int) -> dict[str, int]:
    """How many errors and warnings in how many files."""
    by_severity = Counter(finding.severity for finding in findings)
    return {"errors": by_severity["error"], "files": files, "warnings": by_severity["warning"]}


def summary(findings: Sequence[Finding], files: int) -> str:
    """One line: `2 errors, 1 warning in 6 files`."""
    found = counts(findings, files)
    errors, warnings = found["errors"], found["warnings"]
    named = [f"{number} {word}{_PLURAL.get(number, 's')}" for word, number in (("error", errors), ("warning", warnings)) if number]
    return f"{', '.join(named) or 'no findings'} in {files} file{_PLURAL.get(files, 's')}"


def as_plain(findings: Sequence[Finding]) -> str:
    """One finding per line: `path:line: FC203 error: message`. Nothing where there is none."""
    return "".join(f"{clean(one.path)}:{one.line}: {one.id} {one.severity}: {clean(one.message)}\n" for one in findings)


def as_json(findings: Sequence[Finding], files: int) -> str:
    """An object of `findings` and `counts`."""
    rows = [
        {
            "id": one.id,
            "severity": one.severity,
            "message": clean(one.message),
            "path": clean(one.path),
            "line": one.line,
            "hint": one.hint,
        }
        for one in findings
    ]
    return dump({"findings": rows, "counts": counts(findings, files)})


def as_github(findings: Sequence[Finding]) -> str:
    """One workflow command per line, so that GitHub shows each finding at its line of a pull request."""
    return "".join(
        f"::{one.severity} file={_property(one.path)},line={one.line},title={_property(one.id)}::{_data(one.message)}%0A{_data(one.hint)}\n"
        for one in findings
    )


def _data(text: str) -> str:
    """A workflow command's message: `%` first, or the other escapes would be escaped again."""
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_text(findings: Sequence[Finding], files: int, *, colour: bool) -> str:
    """For people: findings under their file, then what each id asks for, then the count. Escape codes only with `colour`."""
    from rich.text import Text

    from fitcheck.views.console import console_to

    out = io.StringIO()
    console = console_to(out, colour=colour)

    def line(*pieces: tuple[str, str]) -> None:
        console.print(Text.assemble(*pieces), soft_wrap=True)

    for path, of_file in groupby(findings, key=lambda one: one.path):
        line((clean(path), "bold"))
        for one in of_file:
            line((f"{one.line:>6}  ", "dim"), (f"{one.id} {one.severity:<7}", _STYLES[one.severity]), (f"  {clean(one.message)}", ""))
        line()
    for finding_id in sorted({one.id for one in findings}):
        known = MEANINGS[finding_id]
        line((f"{finding_id}  {known.meaning}: {known.hint}", "dim"))
    line((summary(findings, files), "bold"))
    return out.getvalue()
