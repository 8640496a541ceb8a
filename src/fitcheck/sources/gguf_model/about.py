"""What a GGUF file says about itself: its name, what it was quantised to and by whom, and how many parameters its tensors hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from fitcheck.sources.store import StoredTensor

MOST_TEXT = 120

_FILE_TYPES = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    19: "IQ2_XXS",
    20: "IQ2_XS",
    21: "Q2_K_S",
    22: "IQ3_XS",
    23: "IQ3_XXS",
    24: "IQ1_S",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    28: "IQ2_S",
    29: "IQ2_M",
    30: "IQ4_XS",
    31: "IQ1_M",
    32: "BF16",
    36: "TQ1_0",
    37: "TQ2_0",
    38: "MXFP4_MOE",
    39: "NVFP4",
    40: "Q1_0",
    41: "Q2_0",
}
"""`llama_ftype` of `include/llama.h` (build 11549)."""
_GUESSED = 1024
_BLOCK = re.compile(r"blk\.(\d{1,4})\.")
_NO_PARAMETERS = ("rope_freqs", "rope_factors", "v.", "mm.", "a.")
"""Rope factors, and the towers for images and sound that Ollama's own files hold beside the decoder."""
_SCALES = (".scale", ".input_scale")


def text_of(metadata: Mapping[str, Any], *names: str) -> str | None:
    """The first of these texts that is there and not empty, on one line, cut to a length that can be shown."""
    for name in names:
        value = metadata.get(name)
        if isinstance(value, str):
            kept = "".join(letter if letter.isprintable() else " " for letter in value[: 4 * MOST_TEXT])
            found = " ".join(kept.split())[:MOST_TEXT]
            if found:
                return found
    return None


def file_type(metadata: Mapping[str, Any]) -> str | None:
    """The mix that the file was quantised to (`Q4_K_M`), as `general.file_type` numbers it; None where it is absent or not known."""
    value = metadata.get("general.file_type")
    return _FILE_TYPES.get(value & ~_GUESSED) if type(value) is int and 0 <= value < 2 * _GUESSED else None


def parameters(metadata: Mapping[str, Any], tensors: Sequence[StoredTensor], layers: int | None) -> int | None:
    """Elements of the weights without those of draft blocks, towers, rope factors and scales.

    None without tensors, and where the file is one of several and the others' tensors are not among these.
    """
    wanted = metadata.get("split.tensors.count")
    if not tensors or (type(wanted) is int and wanted > len(tensors)):
        return None
    return sum(prod(tensor.shape) for tensor in tensors if _counts(tensor.name, layers))


def _counts(name: str, layers: int | None) -> bool:
    block = _BLOCK.match(name)
    drafts = layers is not None and block is not None and int(block[1]) >= layers
    stem = name[block.end() :] if block else name
    return not (drafts or stem.startswith(_NO_PARAMETERS) or name.endswith(_SCALES))
