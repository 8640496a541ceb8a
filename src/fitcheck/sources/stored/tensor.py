"""Records of tensors, made fast."""

from __future__ import annotations

from fitcheck.sources.store import StoredTensor


def stored_tensor(name: str, dtype: str, shape: tuple[int, ...], size: int, file: str) -> StoredTensor:
    """A `StoredTensor`. The records' own construction checks its arguments' names, which takes four times as long: 0.19 s for 76,000."""
    tensor = object.__new__(StoredTensor)
    tensor.__dict__.update(name=name, dtype=dtype, shape=shape, bytes=size, file=file)
    return tensor
