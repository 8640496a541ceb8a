"""Servers on the loopback interface that do what a hub and its second host do, and whatever else a server may do wrong.

Each runs an event loop in a thread of its own and writes its bytes by hand, so that an answer can be cut off, dripped or garbled. What was
received and how much was sent is recorded as it was on the wire.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

Handler = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
REASONS = {200: "OK", 206: "Partial Content", 302: "Found", 307: "Temporary Redirect", 404: "Not Found", 416: "Range Not Satisfiable"}


class Request(NamedTuple):
    """What came: the target as it was sent, and headers with lower-case names."""

    target: str
    headers: dict[str, str]
    host: str

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def span(self) -> tuple[int, int] | None:
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", ""))
        return (int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True)
class Blob:
    """A file that is mostly not there: its first bytes, and its size; the rest is zeros."""

    head: bytes
    size: int

    def part(self, first: int, last: int) -> bytes:
        return self.head[first : last + 1].ljust(min(last, self.size - 1) + 1 - first, b"\0")


def reply(status: int, body: bytes = b"", **headers: str | None) -> bytes:
    """An answer as bytes; underscores in header names stand for dashes, and a header that is None is left out."""
    lines = {"Content-Length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
    return f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}\r\n{head}\r\n".encode() + body


def ranged(request: Request, blob: Blob, **headers: str) -> bytes:
    """What a server that knows ranges answers about a file."""
    span = request.span
    if span is None:
        return reply(200, blob.part(0, blob.size - 1), **headers)
    if span[0] >= blob.size:
        return reply(416, Content_Range=f"bytes */{blob.size}")
    last = min(span[1], blob.size - 1)
    return reply(206, blob.part(span[0], last), Content_Range=f"bytes {span[0]}-{last}/{blob.size}", **headers)


class Server:
    """One port. `handler` answers every request; it writes, and may close."""

    def __init__(self, handler: Handler, *, latency_s: float = 0.0, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.handler = handler
        self.latency_s = latency_s
        self.received: list[Request] = []
        self.sent_bytes = 0
        self.connections = 0
        self.port = 0
        self._host = host
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        self._ready.wait(5)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512, ssl=self._tls))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        count = writer.write

        def write(data: bytes) -> None:
            self.sent_bytes += len(data)
            count(data)

        writer.write = write  # type: ignore[method-assign, assignment]
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while not writer.is_closing():
                request = parsed(await reader.readuntil(b"\r\n\r\n"))
                self.received.append(request)
                if self.latency_s:
                    await asyncio.sleep(self.latency_s)
                await self.handler(request, writer)
                await writer.drain()
        writer.close()


def parsed(raw: bytes) -> Request:
    first, *lines = raw.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines if ": " in line)
    lower = {name.lower(): value for name, value in headers.items()}
    return Request(first.split(" ")[1], lower, lower.get("host", ""))


def answering(answer: Callable[[Request], bytes]) -> Handler:
    """A handler that writes what a function makes of the request."""

    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(request))

    return handle


@dataclass
class Hub:
    """A hub with one repository and a second host for its large files, as huggingface.co and its CDN are.

    `refuse` maps a path's ending to a status and an error code; `signature` is what the second host wants to see in a query.
    """

    files: dict[str, Blob]
    id: str = "org/model"
    token: str | None = None
    gated: bool = False
    private: bool = False
    prefix: str = ""
    latency_s: float = 0.0
    signature: str = "Signature=abc"
    refuse: dict[str, tuple[int, str]] = field(default_factory=dict)
    tree_page: int = 1000
    cut_listing: bool = False
    old_names: tuple[str, ...] = ()
    listing_etag: str | None = None

    def __enter__(self) -> Hub:
        self.front = Server(answering(self.answer), latency_s=self.latency_s).__enter__()
        self.cdn = Server(answering(self.answer_cdn), latency_s=self.latency_s, host="localhost").__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.front.__exit__()
        self.cdn.__exit__()

    @property
    def endpoint(self) -> str:
        return self.front.url + self.prefix

    def body(self, start: str) -> list[str]:
        """The targets asked of the hub itself that begin so."""
        return [request.target for request in self.front.received if request.target.startswith(self.prefix + start)]

    def answer(self, request: Request) -> bytes:
        path = unquote(request.path.removeprefix(self.prefix))
        for ending, (status, code) in self.refuse.items():
            if path.endswith(ending):
                return reply(status, b'{"error":"no"}', X_Error_Code=code)
        for old in self.old_names:
            if path.startswith(f"/api/models/{old}/") or path.startswith(f"/{old}/"):
                return reply(
                    307, b"Temporary Redirect", Location=self.prefix + request.target.removeprefix(self.prefix).replace(old, self.id, 1)
                )
        sent = request.headers.get("authorization")
        if (self.private or (self.gated and "/resolve/" in path)) and sent != f"Bearer {self.token}":
            return reply(401 if sent is None else 403, X_Error_Code="GatedRepo" if self.gated else "RepoNotFound")
        return self._listed(path, request) or self._file(path, request)

    def _listed(self, path: str, request: Request) -> bytes | None:
        api = f"/api/models/{self.id}/"
        if path in (f"{api}revision/main", f"{api}revision/{COMMIT}", f"{api}revision/refs/pr/3"):
            if self.listing_etag is not None and request.headers.get("if-none-match") == self.listing_etag:
                return reply(304, ETag=self.listing_etag)
            return reply(200, json.dumps(self.listing()).encode(), Content_Type="application/json", ETag=self.listing_etag)
        if path == f"{api}tree/{COMMIT}":
            found = re.search(r"cursor=(\d+)", request.target)
            start = int(found[1]) if found else 0
            names = sorted(self.files)
            page = [
                {"type": "file", "path": name, "size": self.files[name].size, "oid": "a" * 40}
                for name in names[start : start + self.tree_page]
            ]
            end = start + self.tree_page
            after = f'<{self.endpoint}{api}tree/{COMMIT}?recursive=true&cursor={end}>; rel="next"' if end < len(names) else None
            return reply(200, json.dumps([{"type": "directory", "path": "x", "size": 0}, *page]).encode(), Link=after)
        if path.startswith("/api/models/"):
            missing = "RevisionNotFound" if path.startswith(api) else "RepoNotFound"
            return reply(404, b'{"error":"not found"}', X_Error_Code=missing)
        return None

    def listing(self) -> dict[str, object]:
        siblings = [
            {
                "rfilename": name,
                "size": blob.size,
                "blobId": "b" * 40,
                **({"lfs": {"size": blob.size, "sha256": "c" * 64}} if large(name) else {}),
            }
            for name, blob in sorted(self.files.items())
        ]
        return {
            "id": self.id,
            "sha": COMMIT,
            "private": self.private,
            "gated": "manual" if self.gated else False,
            "siblings": siblings[:3] if self.cut_listing else siblings,
        }

    def _file(self, path: str, request: Request) -> bytes:
        name = path.removeprefix(f"/{self.id}/resolve/{COMMIT}/")
        if name not in self.files:
            return reply(404, X_Error_Code="EntryNotFound")
        if large(name):
            return reply(302, Location=f"{self.cdn.url}/blobs/{name}?{self.signature}", X_Linked_Size=str(self.files[name].size))
        return ranged(request, self.files[name], ETag='"small"')

    def answer_cdn(self, request: Request) -> bytes:
        if not request.target.endswith(self.signature):
            return reply(403, b"<Error>expired</Error>")
        return ranged(request, self.files[unquote(request.path).removeprefix("/blobs/")])


def large(name: str) -> bool:
    """Whether a hub keeps such a file on its second host."""
    return name.endswith((".safetensors", ".gguf"))


def safetensors_blob(tensors: int, shard: int, size: int = 5_000_000_000) -> Blob:
    """The beginning of a shard with a real header: expert tensors with names and shapes as large mixtures have them."""
    each = (size - 1_000_000) // tensors // 2 * 2
    header = {
        f"model.layers.{shard}.mlp.experts.{index // 3}.{('gate_proj', 'up_proj', 'down_proj')[index % 3]}.weight": {
            "dtype": "BF16",
            "shape": [1, each // 2],
            "data_offsets": [index * each, (index + 1) * each],
        }
        for index in range(tensors)
    }
    raw = json.dumps({"__metadata__": {"format": "pt"}, **header}, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    head = struct.pack("<Q", len(raw)) + raw
    return Blob(head, len(head) + each * tensors)


def sharded(shards: int = 62, tensors: int = 1000) -> dict[str, Blob]:
    """The files of a repository of that many shards, with a config and an index."""
    names = [f"model-{index:05}-of-{shards:05}.safetensors" for index in range(1, shards + 1)]
    config = json.dumps({"model_type": "qwen3_moe"}).encode()
    return {"config.json": Blob(config, len(config)), **{name: safetensors_blob(tensors, index) for index, name in enumerate(names)}}
