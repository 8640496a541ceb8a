"""Inputs for `tests.fuzz_headers`: headers as libraries write them, and what breaks readers."""

from __future__ import annotations

import copy
import json
import random
import struct

from fitcheck.sources.stored.ggml_types import TYPES
from fitcheck.sources.stored.safetensors import DTYPE_BITS
from tests.golden import rows
from tests.sources.test_config import expanded

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
