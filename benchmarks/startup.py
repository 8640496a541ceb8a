"""Whole-process CPU of `fitcheck fit` beside that of a two-command hello-world typer app, as a ratio.

    python benchmarks/startup.py [--pairs 15] [--limit 2.0]

Both run alternately in one go, so what else the machine does touches both; the median ratio of the pairs is printed. With `--limit` the
exit code is 1 when the median is above it.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HELLO = """
import typer

app = typer.Typer()


@app.command()
def hello(name: str) -> None:
    print(f"Hello {name}")


@app.command()
def bye(name: str) -> None:
    print(f"Bye {name}")


app()
"""
FIT = ["-m", "fitcheck", "fit", "glm-5.3-flash", "--cluster", "2xspark", "--as-of", "2026-11-30"]


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of one run of this Python with these arguments."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # both keep their bytecode, as installed programs do
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {"COLUMNS": "100"}
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def main() -> int:
    """Measure, print, and judge against the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--limit", type=float)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        hello = Path(folder) / "hello.py"
        hello.write_text(HELLO, encoding="utf-8")
        for arguments in ([str(hello), "hello", "you"], FIT):
            cpu_seconds(arguments)  # the first run compiles bytecode
        pairs = [(cpu_seconds([str(hello), "hello", "you"]), cpu_seconds(FIT)) for _ in range(options.pairs)]
    ratio = statistics.median(ours / theirs for theirs, ours in pairs)
    theirs, ours = (statistics.median(values) for values in zip(*pairs, strict=True))
    print(f"hello-world typer app {theirs:.3f} s, fitcheck fit {ours:.3f} s of CPU (medians of {options.pairs} pairs): ratio {ratio:.2f}")
    return 1 if options.limit is not None and ratio > options.limit else 0


if __name__ == "__main__":
    raise SystemExit(main())
