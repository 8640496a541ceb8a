"""The command line as a person runs it: a process of its own, or within this one where that tells as much and is quicker."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest import mock


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def fitcheck(*arguments: str, columns: int | None = 100, **environment: str) -> Ran:
    """Run `fitcheck` with these arguments; without `columns` it finds no width, as in a pipe."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FITCHECK") and name not in ("NO_COLOR", "COLUMNS")}
    if columns is not None:
        kept["COLUMNS"] = str(columns)
    command = [sys.executable, "-m", "fitcheck", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**kept, **environment}, timeout=60)
    return Ran(done.returncode, done.stdout, done.stderr)


def inside(*arguments: str, columns: int = 100) -> Ran:
    """As `fitcheck`, within this process."""
    from fitcheck.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    surroundings = (mock.patch.object(sys, "argv", ["fitcheck", *arguments]), mock.patch.dict(os.environ, {"COLUMNS": str(columns)}))
    with surroundings[0], surroundings[1], redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            return Ran(int(ended.code or 0), out.getvalue(), err.getvalue())
    raise AssertionError("main always ends the process")
