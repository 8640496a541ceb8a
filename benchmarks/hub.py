"""Reading a 62-shard repository, beside a bare httpx client that only fetches the same, as a ratio of wall times.

    python benchmarks/hub.py [--runs 7] [--latency-ms 0 20 50] [--limit 1.5]

A hub with a second host for large files runs in a process of its own on the loopback interface and waits so long before each answer.
Each run reads listing, lengths and headers with the store (without a cache, with an empty and with a full one), then the whole model as
`fitcheck.read_model` does, which also checks and interprets 62,000 tensors and keeps what it read, and with bare clients: threads over one
`httpx.Client`, and `httpx.AsyncClient` with `gather`. The runs alternate in one go, so what else the machine does touches all. Printed are
the medians, the ratio to the fastest bare client, and what the server counted for one reading by the store.
With `--limit` the exit code is 1 when the ratio of the store without a cache, or of the model with an empty one, is above it.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import httpx
from tests.sources.loopback import COMMIT, Hub, sharded

from fitcheck.sources.cache import Cache
from fitcheck.sources.hub import HubStore
from fitcheck.sources.hub_names import Access, Repository
from fitcheck.sources.store import Span
from fitcheck.sources.store_record import read_store

SHARDS = 62
BARE_THREADS = (16, 32, 62)


def serve(pipe: Connection, latency_s: float) -> None:
    """The server's process: says its address, then counts on request."""
    with Hub(sharded(SHARDS), latency_s=latency_s) as hub:
        pipe.send(hub.endpoint)
        while pipe.recv() == "count":
            received = hub.front.received + hub.cdn.received
            pipe.send((len(hub.front.received), len(hub.cdn.received), hub.front.sent_bytes + hub.cdn.sent_bytes, len(received)))
            for server in (hub.front, hub.cdn):
                server.received.clear()
                server.sent_bytes = 0


def ours(endpoint: str, cache: Path | None) -> int:
    """Bytes of all headers, by the store."""
    with HubStore(Repository("org/model"), Access(endpoint, None, offline=False), Cache(cache)) as store:
        shards = [file.path for file in store.files() if file.path.endswith(".safetensors")]
        lengths = [int(struct.unpack("<Q", raw)[0]) for raw in store.spans([Span(path, 0, 8) for path in shards])]
        return sum(map(len, store.spans([Span(path, 8, length) for path, length in zip(shards, lengths, strict=True)])))


def understood(endpoint: str, cache: Path | None) -> int:
    """Parameters of the model, read as `fitcheck.read_model` reads one."""
    with HubStore(Repository("org/model"), Access(endpoint, None, offline=False), Cache(cache)) as store:
        return read_store(store, date(2026, 12, 1)).model.parameter_count or 0


def urls_of(endpoint: str, listing: httpx.Response) -> list[str]:
    """The addresses of the shards of a listing."""
    names = [file["rfilename"] for file in listing.json()["siblings"] if file["rfilename"].endswith(".safetensors")]
    return [f"{endpoint}/org/model/resolve/{COMMIT}/{name}" for name in names]


def bare_threads(endpoint: str, threads: int) -> int:
    """Bytes of all headers, by threads over one client."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
    with httpx.Client(follow_redirects=True, limits=limits) as client, ThreadPoolExecutor(threads) as pool:
        urls = urls_of(endpoint, client.get(f"{endpoint}/api/models/org/model/revision/main?blobs=true"))

        def part(url: str, first: int, last: int) -> bytes:
            return client.get(url, headers={"Range": f"bytes={first}-{last}"}).content

        lengths = [struct.unpack("<Q", raw)[0] for raw in pool.map(lambda url: part(url, 0, 7), urls)]
        return sum(pool.map(lambda pair: len(part(pair[0], 8, 7 + pair[1])), zip(urls, lengths, strict=True)))


async def bare_async(endpoint: str) -> int:
    """Bytes of all headers, by one asynchronous client that asks for all at once."""
    async with httpx.AsyncClient(follow_redirects=True) as client:
        urls = urls_of(endpoint, await client.get(f"{endpoint}/api/models/org/model/revision/main?blobs=true"))

        async def part(url: str, first: int, last: int) -> bytes:
            return (await client.get(url, headers={"Range": f"bytes={first}-{last}"})).content

        lengths = [struct.unpack("<Q", raw)[0] for raw in await asyncio.gather(*(part(url, 0, 7) for url in urls))]
        parts = await asyncio.gather(*(part(url, 8, 7 + length) for url, length in zip(urls, lengths, strict=True)))
        return sum(map(len, parts))


def timed(read: Callable[[], int]) -> float:
    """Seconds that a reading takes."""
    began = time.perf_counter()
    read()
    return time.perf_counter() - began


def measure(latency_ms: float, runs: int) -> float:
    """Print the medians for one latency; the larger ratio of the store's and the model's to the fastest bare client."""
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    server = context.Process(target=serve, args=(there, latency_ms / 1000), daemon=True)
    server.start()
    endpoint = here.recv()
    with tempfile.TemporaryDirectory() as folder:
        places = iter(range(1, 2 * runs + 2))
        readers: dict[str, Callable[[], int]] = {
            "store": lambda: ours(endpoint, None),
            "store, empty cache": lambda: ours(endpoint, Path(folder) / str(next(places))),
            "store, full cache": lambda: ours(endpoint, Path(folder) / "1"),
            "model, no cache": lambda: understood(endpoint, None),
            "model, empty cache": lambda: understood(endpoint, Path(folder) / str(next(places))),
            **{f"bare, {threads} threads": lambda threads=threads: bare_threads(endpoint, threads) for threads in BARE_THREADS},  # type: ignore[misc]
            "bare, async": lambda: asyncio.run(bare_async(endpoint)),
        }
        readers["model, no cache"]()
        sizes = {name: read() for name, read in readers.items() if "cache" not in name}
        assert len(set(sizes.values())) == 1, sizes
        seconds: dict[str, list[float]] = {name: [] for name in readers}
        for _ in range(runs):
            for name, read in readers.items():
                seconds[name].append(timed(read))
        here.send("count")
        here.recv()
        headers = ours(endpoint, None) + 8 * SHARDS
        here.send("count")
        front, second, sent, total = here.recv()
    here.send("end")
    server.join()
    bare = min((name for name in readers if name.startswith("bare")), key=lambda name: statistics.median(seconds[name]))
    print(f"{latency_ms:g} ms before each answer; medians of {runs} runs:")
    for name, values in seconds.items():
        ratios = sorted(mine / yardstick for mine, yardstick in zip(values, seconds[bare], strict=True))
        spread = f"{statistics.median(ratios):.2f} x ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"  {name:20} {statistics.median(values):.3f} s   {spread} of {bare}")
    print(f"  the store's reading: {total} requests ({front} to the hub, {second} to the second host), {sent:,} bytes sent by the servers")
    print(f"  for {headers:,} bytes of headers: {sent / headers - 1:+.1%}")
    return max(
        statistics.median(mine / yardstick for mine, yardstick in zip(seconds[name], seconds[bare], strict=True))
        for name in ("store", "model, empty cache")
    )


def main() -> int:
    """Measure, print, and judge against the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--latency-ms", type=float, nargs="+", default=[0, 20, 50])
    parser.add_argument("--limit", type=float)
    options = parser.parse_args()
    ratios = [measure(latency_ms, options.runs) for latency_ms in options.latency_ms]
    return 1 if options.limit is not None and max(ratios) > options.limit else 0


if __name__ == "__main__":
    raise SystemExit(main())
