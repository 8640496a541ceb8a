"""Weight files as the libraries write them, and headers written by hand."""

import json
import struct
from math import prod
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file

from fitcheck.sources.stored.folder import local_store
from fitcheck.sources.stored.reading import read_builds
from fitcheck.sources.stored.safetensors import DTYPE_BITS, header_length, parse_header


def safetensors_bytes(tensors, metadata=None, pad=b""):
    """A file with zeros for data, of dtypes that numpy lacks too: `tensors` are name -> (dtype, shape, bytes)."""
    header, end = {} if metadata is None else {"__metadata__": metadata}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode() + pad
    return struct.pack("<Q", len(text)) + text + bytes(end)


def write(path: Path, tensors, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(safetensors_bytes(tensors, **options))


def save(path: Path, tensors, metadata=None):
    """A file by the library: `tensors` are name -> array."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, path, metadata)


def parse(raw: bytes, file="model.safetensors", size=-1):
    """Both steps over a whole file's bytes."""
    size = len(raw) if size == -1 else size
    length = header_length(raw[:8], file, size)
    return parse_header(raw[8 : 8 + length], file, length, size)


def gguf_file(path: Path, tensors, arch="llama", keys=(), **options):
    """A file by gguf's writer: `tensors` are name -> array, or (bytes as uint8, type)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, arch, **options)
    for method, *values in keys:
        getattr(writer, method)(*values)
    for name, value in tensors.items():
        if isinstance(value, tuple):
            writer.add_tensor(name, value[0], raw_dtype=value[1])
        else:
            writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def quantised(kind, *shape):
    """Zeros of a ggml type, outermost dimension first, as the writer takes them."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    return np.zeros((*shape[:-1], shape[-1] // block * size), np.uint8), kind


def of(**tensors):
    """Tensors of dtype and shape with the bytes that they take; `__` in a name stands for a dot."""
    named = {name.replace("__", "."): spec for name, spec in tensors.items()}
    return {name: (dtype, shape, prod(shape) * DTYPE_BITS[dtype] // 8) for name, (dtype, *shape) in named.items()}


def one(folder, tensors, config=None):
    write(folder / "model.safetensors", tensors)
    (found,) = read_builds(local_store(folder), config)
    return found


def sizes(read):
    return {part.kind: part.bytes for part in read.contents.components}


class Counting:
    """A store that remembers what was asked of it."""

    def __init__(self, store):
        self.store, self.rounds, self.reads = store, [], []
        self.label, self.url = store.label, store.url

    def files(self):
        return self.store.files()

    def read(self, path, most_bytes):
        self.reads.append(path)
        return self.store.read(path, most_bytes)

    def spans(self, wanted):
        self.rounds.append(list(wanted))
        return self.store.spans(wanted)
