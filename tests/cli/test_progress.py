"""Progress of the network: for a person at a terminal, and not a byte of it anywhere else."""

import io
import os
import pty
import subprocess
import sys

import pytest

from fitcheck.cli import progress
from fitcheck.cli.progress import network_progress

SCRIPT = """
import sys, time
from fitcheck.cli import progress
progress.SHOWN_AFTER_S = float(sys.argv[1])
with progress.network_progress() as show:
    if show is not None:
        for done in range(0, 5001, 1000):
            show(done, 5000, "org/model\\x1b[31m@main")
print("answer")
"""


def at_a_terminal(after_s, **environment):
    """What a terminal is sent on standard error, and what standard output is."""
    main, side = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(after_s)],
        stdout=subprocess.PIPE,
        stderr=side,
        env={**os.environ, "TERM": "xterm", **environment},
    )
    out, _ = run.communicate(timeout=30)
    os.close(side)
    os.set_blocking(main, False)
    try:
        seen = os.read(main, 100_000)
    except (BlockingIOError, OSError):
        seen = b""
    os.close(main)
    assert run.returncode == 0
    return seen.decode(), out.decode()


def test_a_person_sees_it_and_it_is_gone_in_the_end():
    seen, out = at_a_terminal(0)
    assert "reading org/model@main" in seen
    assert "4.9/4.9 KiB" in seen  # 5,000 bytes
    assert seen.endswith("\x1b[2K")  # the line is cleared
    assert "\x1b[31m@main" not in seen
    assert out == "answer\n"


def test_without_colour_where_none_is_wanted():
    seen, _ = at_a_terminal(0, NO_COLOR="1")
    assert "reading org/model@main" in seen
    assert "\x1b[3" not in seen


@pytest.mark.parametrize(("after_s", "environment"), [(60, {}), (0, {"TERM": "dumb"})])
def test_what_is_soon_done_or_cannot_be_drawn_shows_nothing(after_s, environment):
    assert at_a_terminal(after_s, **environment) == ("", "answer\n")


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_nothing_in_a_pipe(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 0)
    with network_progress() as show:
        assert show is None
