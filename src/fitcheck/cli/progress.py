"""How far reading over the network is, on standard error, for a person who watches; nothing where nobody does."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SHOWN_AFTER_S = 0.5
"""What is done sooner needs no bar: it would only flicker."""


@contextmanager
def network_progress() -> Iterator[Callable[[int, int | None, str], None] | None]:
    """A function to tell of bytes read, of how many in all where that is known, and of what; or None where no person watches.

    The bar appears once something takes longer than `SHOWN_AFTER_S`, and is gone when the `with` statement ends, however it ends.
    """
    if not _is_watched():
        yield None
        return
    bar = _Bar()
    try:
        yield bar.show
    finally:
        bar.close()


def _is_watched() -> bool:
    try:
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # no standard error, or a closed one
        return False


class _Bar:
    """A bar of rich's, made once it is needed and drawn only when there is news: no thread of its own."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def show(self, done_bytes: int, total_bytes: int | None, what: str) -> None:
        """Draw how far it is, if it has taken long enough to be worth it."""
        if self._progress is None and time.monotonic() - self._began_s < SHOWN_AFTER_S:
            return
        from fitcheck.views.document import clean

        progress = self._progress = self._progress or _new_progress()
        if self._task is None:
            self._task = progress.add_task("", total=total_bytes)
            progress.start()
        progress.update(self._task, completed=done_bytes, total=total_bytes, description=clean(f"reading {what}"))
        progress.refresh()

    def close(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()


def _new_progress() -> Progress:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from fitcheck.views.console import console_to
    from fitcheck.views.terminal import wants_colour

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        DownloadColumn(binary_units=True),
        console=console_to(sys.stderr, colour=wants_colour(is_terminal=True), redrawn=True),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
