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
from fitcheck.sources.stored.gguf import GgufReading
from fitcheck.sources.stored.index import read_index
from fitcheck.sources.stored.safetensors import header_length, parse_header
from tests.fuzz_inputs import CONFIGS, NAMES, NUMBERS, changed, gguf_input, safetensors_input, spoiled

MOST_SECONDS = 2.0
MOST_BYTES = 17 * 1024**2
"""Allocated for an input of some kilobytes. The config reader's buffer is 16 MiB; the others take a tenth of it at most."""
TRACED = 50
"""One input of so many is run with `tracemalloc`, which makes it several times slower; the process's peak bounds the others."""


class TooSlow(Exception):
    """An input took longer than it may."""


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
            began = time.process_time()  # what else the machine does is not the reader's; the alarm above is by the clock
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
                took = time.process_time() - began
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
