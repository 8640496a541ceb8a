"""Fuzz the readers of files from outside: safetensors headers, GGUF headers, indexes, configs.

`python -m tests.fuzz_headers --inputs 200000 --seed 1`. Inputs are real headers, mutated as bytes and as structures. Every input must be
answered, or refused with an error of ours whose text is fit for a terminal, within a time and without allocating more than a multiple of
its own size. The exit code is 1 for any that is not; the seed and the input's number bring it back (`--only`).
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from pathlib import Path

from fitcheck.errors import FitcheckError
from fitcheck.sources.config import read_config
from fitcheck.sources.stored import gguf as gguf_module
from fitcheck.sources.stored.contents import Naming, tally
from fitcheck.sources.stored.formats import gguf_format, hints_of, stored_format
from fitcheck.sources.stored.ggml_types import TYPES
from fitcheck.sources.stored.gguf import GgufReading
from fitcheck.sources.stored.index import read_index
from fitcheck.sources.stored.safetensors import DTYPE_BITS, header_length, parse_header
from tests.golden import rows
from tests.sources.test_config import expanded

MOST_SECONDS = 2.0
MOST_BYTES = 17 * 1024**2
"""Allocated for an input of some kilobytes. The config reader's buffer is 16 MiB; the others take a tenth of it at most."""
TRACED = 50
"""One input of so many is run with `tracemalloc`, which makes it several times slower; the process's peak bounds the others."""
NUMBERS = (
    0,
    1,
    -1,
    2,
    7,
    31,
    255,
    256,
    4096,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    (1 << 53) + 1,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
    1 << 70,
)
WORDS = (
    "",
    "x",
    "F32",
    "Q4_K",
    "../x",
    "/etc/passwd",
    "a\\b",
    "\0",
    "\x1b]0;x\x07",
    "\u2028",
    "x" * 300,
    "re:(.*a)*(.*b)*x",
    "*",
    "experts.0.",
    "qweight",
)
NAMES = (
    "model.layers.0.mlp.experts.0.up_proj.weight", "model.layers.0.mlp.up_proj.qweight", "model.layers.0.mlp.up_proj.qzeros",
    "model.layers.0.mlp.up_proj.scales", "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight_scale",
    "model.layers.0.mlp.up_proj.biases", "model.layers.0.mlp.up_proj.weight_packed", "model.layers.0.mlp.x_blocks",
    "model.layers.0.mlp.x_scales",
    "model.layers.0.mlp.up_proj.trellis", "model.layers.0.mlp.up_proj.q_weight", "model.layers.0.mlp.up_proj.q_invperm",
    "layers.0.ffn.experts.0.w1.weight", "layers.0.ffn.experts.0.w1.scale", "model.layers.0.mlp.up_proj.g_idx",
    "model.layers.0.mlp.up_proj.weight.absmax", "lm_head.weight", "mtp.0.x", "__metadata__",
)  # fmt: skip
CONFIGS = [expanded(row["config"]) for name in ("weights.yaml", "configs.yaml") for row in rows(name)]


class TooSlow(Exception):
    """An input took longer than it may."""


def hostile(rng: random.Random, depth: int = 3):
    """Any JSON value, of those that break readers."""
    kind = rng.randrange(9 if depth else 6)
    if kind == 0:
        return rng.choice(NUMBERS)
    if kind == 1:
        return rng.choice(WORDS)
    if kind == 2:
        return rng.choice([None, True, False, 1.5, 1e300, float("nan"), float("inf"), -0.0, 4.0])
    if kind < 6:
        return rng.randrange(300)
    if kind == 6:
        return {rng.choice(NAMES + WORDS): hostile(rng, depth - 1) for _ in range(rng.randrange(4))}
    return [hostile(rng, depth - 1) for _ in range(rng.randrange(5))]


def changed(rng: random.Random, value):
    """A structure with some of its parts replaced, dropped, doubled or moved."""
    for _ in range(rng.randrange(1, 4)):
        parts, found = [value], []
        while parts:
            part = parts.pop()
            inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
            if isinstance(part, dict | list) and part:
                found.append(part)
            parts += [item for item in inner if isinstance(item, dict | list)]
        if not found:
            return hostile(rng)
        part = rng.choice(found)
        place = rng.choice(list(part)) if isinstance(part, dict) else rng.randrange(len(part))
        if rng.random() < 0.15 and isinstance(part, dict):
            part.pop(place)
        elif rng.random() < 0.15:
            part[place] = copy.deepcopy(rng.choice(found)) if len(json.dumps(value, default=str)) < 20_000 else 1
        else:
            part[place] = hostile(rng)
    return value


def spoiled(rng: random.Random, raw: bytes) -> bytes:
    """Bytes with some of them flipped, cut, doubled, or overwritten with numbers that matter."""
    data = bytearray(raw)
    for _ in range(rng.choice((0, 1, 1, 2, 3, 8))):
        if not data:
            break
        at = rng.randrange(len(data))
        kind = rng.randrange(7)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.choice((1, 4, 8, 40, len(data)))]
        elif kind == 2:
            data[at:at] = data[at : at + rng.choice((1, 8, 64))]
        elif kind == 3:
            data[at : at + 8] = struct.pack("<Q", rng.choice(NUMBERS) & ((1 << 64) - 1))
        elif kind == 4:
            data[at : at + 4] = struct.pack("<I", rng.choice(NUMBERS) & ((1 << 32) - 1))
        elif kind == 5:
            data[at:at] = rng.choice(
                (b"[" * 3000, b"{" * 3000, b'{"a":' * 2000, b"NaN", b"1e999", b"-", b'"', b"9" * 5000, b"\xff\xfe", b"\\ud800")
            )
        else:
            data[at] ^= 1 << rng.randrange(8)
    return bytes(data)


def safetensors_input(rng: random.Random) -> tuple[bytes, int]:
    """The start of a file, and the size that its header accounts for."""
    header, end = {}, 0
    for name in rng.sample(NAMES[:-1], rng.randrange(1, 8)):
        dtype, shape = rng.choice(sorted(DTYPE_BITS)), [rng.choice((0, 1, 2, 4, 8, 64)) for _ in range(rng.randrange(4))]
        size = DTYPE_BITS[dtype]
        for number in shape:
            size *= number
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size // 8]}
        end += size // 8
    if rng.random() < 0.4:
        header = changed(rng, header)
    text = json.dumps(header).encode()
    raw = struct.pack("<Q", len(text)) + text
    return (spoiled(rng, raw) if rng.random() < 0.4 else raw), len(raw) + end


def run_safetensors(rng: random.Random) -> None:
    raw, whole = safetensors_input(rng)
    size = whole if rng.random() < 0.8 else rng.choice((None, len(raw), rng.choice(NUMBERS)))
    length = header_length(raw[:8], "\x1bmodel.safetensors", size)
    config = changed(rng, copy.deepcopy(rng.choice(CONFIGS))) if rng.random() < 0.5 else None
    tensors = parse_header(raw[8 : 8 + length], "\x1bmodel.safetensors", length, size).tensors
    config = config if isinstance(config, dict) else None
    contents = tally(tensors, Naming(rng.choice((None, 0, 1, 61))), hints_of(config))
    assert contents.bytes == sum(tensor.bytes for tensor in tensors)
    assert contents.parameters is None or contents.parameters >= 0
    stored_format(config, contents.kinds)


def gguf_input(rng: random.Random) -> bytes:
    """A header of random keys and tensors, well-formed but for the numbers."""

    def text(value: str) -> bytes:
        raw = value.encode("utf-8", "surrogatepass")
        return struct.pack("<Q", rng.choice(NUMBERS) & ((1 << 64) - 1) if rng.random() < 0.004 else len(raw)) + raw

    def value(kind: int, depth: int = 0) -> bytes:
        if kind == 8:
            return text(rng.choice(WORDS))
        if kind == 9:
            inner = rng.randrange(13) if depth < 2 else rng.randrange(8)
            length = rng.choice((0, 1, 2, 5, 300, 5000)) if depth == 0 and inner < 8 else rng.randrange(4)
            said = rng.choice(NUMBERS) & ((1 << 64) - 1) if rng.random() < 0.05 else length
            return struct.pack("<IQ", inner, said) + b"".join(value(inner, depth + 1) for _ in range(length))
        return bytes(rng.randrange(2) for _ in range({0: 1, 1: 1, 2: 2, 3: 2, 7: 1, 10: 8, 11: 8, 12: 8}.get(kind, 4)))

    names = (
        "general.architecture",
        "general.alignment",
        "general.file_type",
        "split.no",
        "split.count",
        "split.tensors.count",
        "a",
        "b",
        "llama.block_count",
    )
    keys = []
    for name in rng.sample(names, rng.randrange(len(names))):
        kind = 4 if name == "general.alignment" and rng.random() < 0.9 else rng.choice((4, 8, 9, rng.randrange(13)))
        keys.append(
            text(name) + struct.pack("<I", kind) + (struct.pack("<I", rng.choice((32, 32, 16, 1, 64))) if kind == 4 else value(kind))
        )
    tensors, offset = [], 0
    for number in range(rng.randrange(6)):
        kind = rng.choice([*TYPES, 12, 0, 1]) if rng.random() < 0.95 else rng.choice(NUMBERS) & 0xFFFFFFFF
        dims = [rng.choice((256, 512, 256)) for _ in range(rng.randrange(1, 5))]
        if rng.random() < 0.05:
            dims = [rng.choice(NUMBERS) & ((1 << 64) - 1) for _ in dims]
        tensors.append(text(f"blk.{number}.ffn_up_exps.weight") + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset))
        offset += rng.choice((1 << 34, 1 << 36, 1 << 38, 32))
    raw = b"GGUF" + struct.pack("<IQQ", rng.choice((2, 3, 3, 3)), len(tensors), len(keys)) + b"".join(keys + tensors) + bytes(64)
    return spoiled(rng, raw) if rng.random() < 0.4 else raw


def run_gguf(rng: random.Random) -> None:
    raw = gguf_input(rng)
    size = rng.choice((None, None, len(raw), 1 << 40))
    gguf_module.FIRST_WINDOW_BYTES = rng.choice((16, 100, 1000, 128 * 1024))
    reading = GgufReading("\x1bx.gguf", size)
    for _ in range(10_000):
        if reading.header is not None:
            break
        start, length = reading.wanted
        assert 0 <= start <= len(raw)
        assert 0 < length <= gguf_module.MOST_WINDOW_BYTES
        reading.feed(raw[start : start + length])
    assert reading.header is not None
    contents = tally(reading.header.tensors, Naming(rng.choice((None, 1))), gguf=True)
    assert contents.bytes == sum(tensor.bytes for tensor in reading.header.tensors)
    gguf_format(reading.header.metadata, contents.kinds)
    assert reading.header.split is None or len(reading.header.split) == 3


class OneFile:
    """A store of one index."""

    label = url = "x"

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def read(self, _path: str, _most_bytes: int) -> bytes:
        return self.raw


def run_index(rng: random.Random) -> None:
    shards = [f"model-{number:05d}-of-00003.safetensors" for number in (1, 2, 3)]
    index = {"metadata": {"total_size": rng.choice(NUMBERS)}, "weight_map": {name: rng.choice(shards) for name in NAMES}}
    if rng.random() < 0.7:
        index = changed(rng, index)
    raw = json.dumps(index).encode()
    found = read_index(OneFile(spoiled(rng, raw) if rng.random() < 0.5 else raw), "sub/model.safetensors.index.json")
    for shard in found.shards:
        assert shard.startswith("sub/")
        assert shard.count("/") == 1
        assert not {"\\", "\0"} & set(shard)
        assert ".." not in shard.split("/")


def run_config(rng: random.Random, path: Path) -> None:
    config = changed(rng, copy.deepcopy(rng.choice(CONFIGS)))
    raw = json.dumps(config).encode("utf-8", "surrogatepass")
    path.write_bytes(spoiled(rng, raw) if rng.random() < 0.3 else raw)
    model = read_config(path)
    assert (model.architecture is None) == bool(model.unknown)
    assert all(reason.isprintable() for reason in model.unknown)


def _alarm(_signal: int, _frame: object) -> None:
    raise TooSlow


def fuzz(inputs: int, seed: int, only: int | None = None) -> dict[str, object]:
    """Run so many inputs; what came of them, with every failure by its number."""
    outcome: Counter[str] = Counter()
    failures: list[str] = []
    slowest, most = 0.0, 0
    earlier = signal.signal(signal.SIGALRM, _alarm)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        runs = {"safetensors": run_safetensors, "gguf": run_gguf, "index": run_index, "config": lambda rng: run_config(rng, path)}
        order = ("safetensors", "gguf", "config", "safetensors", "gguf", "config", "index")
        for number in range(inputs) if only is None else (only,):
            name, rng = order[number % len(order)], random.Random(f"{seed}/{number}")
            traced = number % TRACED == 0
            if traced:
                tracemalloc.start()
            signal.setitimer(signal.ITIMER_REAL, 10 * MOST_SECONDS)
            began = time.perf_counter()
            try:
                runs[name](rng)
                outcome[f"{name} answered"] += 1
            except FitcheckError as error:
                outcome[f"{name} refused"] += 1
                if not error.message.isprintable() or len(error.message) > 500:
                    failures.append(f"{number} ({name}): the message is not fit for a terminal: {ascii(error.message)[:200]}")
            except BaseException as error:
                failures.append(f"{number} ({name}): {type(error).__name__}: {ascii(str(error))[:200]}")
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                took = time.perf_counter() - began
                if traced:
                    most = max(most, tracemalloc.get_traced_memory()[1])
                    tracemalloc.stop()
            if took > MOST_SECONDS:
                failures.append(f"{number} ({name}): took {took:.1f} s")
            slowest = max(slowest, took)
    signal.signal(signal.SIGALRM, earlier)
    if most > MOST_BYTES:
        failures.append(f"an input took {most:,} bytes of memory")
    return {"outcome": outcome, "failures": failures, "slowest_s": slowest, "most_bytes": most}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one input by its number")
    asked = parser.parse_args()
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    found = fuzz(asked.inputs, asked.seed, asked.only)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    for failure in found["failures"][:20]:
        print(failure)
    print(f"{asked.inputs:,} inputs, seed {asked.seed}, {time.perf_counter() - began:.0f} s: {len(found['failures'])} failures")
    print(", ".join(f"{name} {count:,}" for name, count in sorted(found["outcome"].items())))
    print(
        f"slowest input {found['slowest_s'] * 1000:.0f} ms; most traced for one input {found['most_bytes']:,} B; process grew {grown} MiB"
    )
    return bool(found["failures"])


if __name__ == "__main__":
    sys.exit(main())
