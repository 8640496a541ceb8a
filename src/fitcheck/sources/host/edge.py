"""The thin edge to the machine: files with a cap, tools with a timeout, the NVML module where it is installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

MOST_BYTES = 4 * 1024**2
TOOL_SECONDS = 20
_GRACE_SECONDS = 1
MOST = 2**63
MOST_DIGITS = 24


class Machine(NamedTuple):
    """Everything that the readers ask of a machine: a root of its file system, its environment, its tools and its NVML bindings.

    `run` gives a tool's output, or None where it is not on PATH or fails. `nvml` gives the bindings, or None where they are missing.
    """

    root: Path
    environment: Mapping[str, str]
    system: str
    run: Callable[[Sequence[str]], str | None]
    nvml: Callable[[], Any]

    def text(self, path: str) -> str | None:
        """A file below the root, without the white space around it; None where it cannot be read."""
        try:
            with (self.root / path).open("rb") as file:
                return file.read(MOST_BYTES).decode("utf-8", errors="replace").strip("\0 \t\r\n")
        except (OSError, ValueError):
            return None

    def number(self, path: str, base: int = 10) -> int | None:
        """A file that holds one whole number that a size or an id can be, or None."""
        try:
            value = int((self.text(path) or "")[:MOST_DIGITS], base)
        except ValueError:
            return None
        return value if 0 <= value < MOST else None

    def names(self, pattern: str) -> list[str]:
        """Paths below the root that match a pattern, in the order of their numbers."""
        try:
            found = [path.relative_to(self.root).as_posix() for path in self.root.glob(pattern)]
        except (OSError, ValueError):
            return []
        return sorted(found, key=lambda path: (len(path), path))


def this_machine() -> Machine:
    """The machine that this runs on."""
    system = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
    return Machine(Path("/"), os.environ, system, run_tool, nvml_module)


def run_tool(words: Sequence[str]) -> str | None:
    """The output of a tool found on PATH; None where it is missing, fails, takes too long or prints more than is read of it."""
    path = shutil.which(words[0])
    if path is None:
        return None
    try:
        # the words are this package's own, and nothing of them is read by a shell
        process = subprocess.Popen(  # noqa: S603
            [path, *words[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=os.name == "posix",
        )
    except OSError:
        return None
    watchdog = threading.Timer(TOOL_SECONDS, _end, [process])
    watchdog.daemon = True
    watchdog.start()
    assert process.stdout is not None
    said = None
    with process.stdout as stream, suppress(OSError, subprocess.SubprocessError):
        try:
            output = stream.read(MOST_BYTES + 1)
            if len(output) <= MOST_BYTES and process.wait(_GRACE_SECONDS) == 0:
                said = output.decode("utf-8", errors="replace")
        finally:
            watchdog.cancel()
            if said is None:
                _end(process)
    return said


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a tool with whatever it started itself, which would hold its output open."""
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(subprocess.SubprocessError):
        process.wait(_GRACE_SECONDS)


def nvml_module() -> Any:
    """The bindings of `nvidia-ml-py`, or None where they are not installed."""
    try:
        return import_module("pynvml")
    except ImportError:
        return None
