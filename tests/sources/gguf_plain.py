"""A GGUF file read by the `gguf` library into the plain shapes that `read_metadata` takes."""

from pathlib import Path
from typing import Any

import gguf

from fitcheck.sources.store import StoredTensor

MOST_KEPT = 4096


def plain(path: Path) -> tuple[dict[str, Any], dict[str, int], tuple[StoredTensor, ...]]:
    """Metadata, lengths of arrays, and tensors with the outermost dimension first."""
    reader = gguf.GGUFReader(path)
    metadata, lengths = {}, {}
    for name, field in reader.fields.items():
        value = field.contents()
        if isinstance(value, list):
            lengths[name] = len(value)
            if len(value) > MOST_KEPT:
                continue
        metadata[name] = tuple(value) if isinstance(value, list) else value
    tensors = tuple(
        StoredTensor(
            tensor.name, tensor.tensor_type.name, tuple(int(side) for side in reversed(tensor.shape)), int(tensor.n_bytes), path.name
        )
        for tensor in reader.tensors
    )
    return metadata, lengths, tensors
