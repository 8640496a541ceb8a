"""The command line as a person runs it: a process of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass


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
