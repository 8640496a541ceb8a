"""Many requests at once: daemon threads with a synchronous client each, every request under a deadline that nothing can stretch.

Why threads and not asyncio: httpx's synchronous client took a third of the time of its asynchronous one for the 124 requests of a
62-shard repository (benchmarks/hub.py holds the comparison), and works inside a program that runs an event loop, such as a notebook.
Why a client for each thread: httpx looks at every idle connection of a client before each request, which took a third of the time where all
threads shared one. They share the certificates, which take longest to load.
Why threads of our own: the thread that waits is the watchdog. A request whose time is up is given up with its thread, whatever it hangs in
(a name lookup, a handshake, headers that drip), and daemon threads never keep the process from ending.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from types import TracebackType

import httpx

from fitcheck.errors import NetworkError
from fitcheck.sources.exchange import exchange, new_client
from fitcheck.sources.failures import too_slow
from fitcheck.sources.wire import Answer, Each, Get, Patience, allowed_s

MOST_AT_ONCE = 32
Progress = Callable[[int, int | None, str], None]
"""Told of bytes that came, of how many in all where that is known, and of what is read; only ever from the calling thread."""

_TICK_S = 0.1
_GRACE_S = 1.0


class _Task:
    """A request on its way: what came of it is read once `finished` says so."""

    def __init__(self, place: int, get: Get, finished: SimpleQueue[_Task]) -> None:
        self.place = place
        self.get = get
        self.finished = finished
        self.started_s: float | None = None
        self.received_bytes = 0
        self.cancelled = False
        self.answer: Answer | None = None
        self.error: BaseException | None = None

    def tick(self, count: int) -> None:
        """Count bytes that came; stops a request nobody waits for any longer."""
        self.received_bytes += count
        if self.cancelled:
            raise NetworkError(f"{self.get.what}: given up")


class Transport:
    """Answers requests in parallel. Use it in a `with` statement, or `close` it."""

    def __init__(
        self, *, patience: Patience | None = None, sleep: Callable[[float], None] = time.sleep, progress: Progress | None = None
    ) -> None:
        self.patience = patience or Patience()
        self.progress = progress
        self._sleep = sleep
        self._context: ssl.SSLContext | None = None
        self._waiting: SimpleQueue[_Task | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the threads and the connections. What still runs is not waited for."""
        for _ in self._threads:
            self._waiting.put(None)
        end_s = time.monotonic() + _TICK_S * 2
        for thread in self._threads:
            thread.join(max(0.0, end_s - time.monotonic()))
        self._threads = []

    def get(self, wanted: Get) -> Answer:
        """The answer to one request. Raises `NetworkError` where none comes."""
        return self.get_all((wanted,), wanted.what)[0]

    def get_all(self, wanted: Sequence[Get], what: str, each: Each | None = None) -> tuple[Answer, ...]:
        """The answers to requests made at once, in their order. `what` names them all for the progress.

        `each` is called with a request's place and its answer as they come, so that what is made of one does not wait for the rest. Raises
        the `NetworkError` of the first request that fails, and what `each` raises; the others are then given up.
        """
        finished: SimpleQueue[_Task] = SimpleQueue()
        tasks = [_Task(place, get, finished) for place, get in enumerate(wanted)]
        self._start(len(tasks))
        for task in tasks:
            self._waiting.put(task)
        try:
            self._wait(tasks, finished, what, each)
        finally:
            for task in tasks:
                task.cancelled = True
        return tuple(task.answer for task in tasks if task.answer is not None)

    def _wait(self, tasks: list[_Task], finished: SimpleQueue[_Task], what: str, each: Each | None) -> None:
        left = len(tasks)
        shown_s = 0.0
        total = sum(task.get.part.length for task in tasks if task.get.part is not None) or None
        while left:
            try:
                task = finished.get(timeout=_TICK_S)
            except Empty:
                self._check_time(tasks)
            else:
                left -= 1
                if task.error is not None:
                    raise task.error
                if each is not None and task.answer is not None:
                    each(task.place, task.answer)
            if self.progress is not None and (not left or time.monotonic() - shown_s >= _TICK_S):
                shown_s = time.monotonic()
                self.progress(sum(task.received_bytes for task in tasks), total, what)

    def _check_time(self, tasks: list[_Task]) -> None:
        now = time.monotonic()
        for task in tasks:
            if task.answer is None and task.error is None and task.started_s is not None:
                late_s = now - task.started_s - allowed_s(task.get, self.patience)
                if late_s > _GRACE_S:
                    self._threads.clear()  # any of them may be the one that hangs; those that do not end when they find nothing to do
                    self._waiting, old = SimpleQueue(), self._waiting
                    for _ in range(MOST_AT_ONCE):
                        old.put(None)
                    raise too_slow(task.get.what)

    def _start(self, count: int) -> None:
        """Have a thread for each of so many requests, up to the most at once."""
        with self._lock:
            if self._context is None:
                self._context = httpx.create_ssl_context()
            while len(self._threads) < min(count, MOST_AT_ONCE):
                thread = threading.Thread(target=self._work, args=(self._context, self._waiting), name="fitcheck-http", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _work(self, context: ssl.SSLContext, waiting: SimpleQueue[_Task | None]) -> None:
        with new_client(self.patience, context) as client:
            while (task := waiting.get()) is not None:
                if task.cancelled:
                    continue
                task.started_s = time.monotonic()
                try:
                    task.answer = exchange(client, task.get, self.patience, task.tick, self._sleep)
                except BaseException as error:  # a bug must reach the thread that waits, not vanish in this one
                    task.error = error
                task.finished.put(task)
