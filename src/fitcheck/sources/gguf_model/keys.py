"""Reading single keys of GGUF metadata: as a config's fields are read, with the arrays that llama.cpp has in their place.

llama.cpp build 11549, `llama_model_loader::get_key`, `get_key_or_arr` and `get_arr` (`src/llama-model-loader.cpp`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fitcheck.sources.families.fields import MOST, MOST_LIST, Fields, Unsettled, shown, whole


class Keys(Fields):
    """The keys of one architecture without its prefix (`attention.head_count`, not `llama.attention.head_count`).

    An array that was too long to keep is never taken for an absent one: asking for it is `Unsettled`.
    """

    def __init__(self, arch: str, metadata: Mapping[str, Any], lengths: Mapping[str, int]) -> None:
        self.arch = arch
        start = f"{arch}."
        own = {key.removeprefix(start): value for key, value in metadata.items() if key.startswith(start)}
        super().__init__({key: list(value[: MOST_LIST + 1]) if isinstance(value, tuple) else value for key, value in own.items()})
        self.left_out = {
            key.removeprefix(start): length for key, length in lengths.items() if key.startswith(start) and key not in metadata
        }

    def raw(self, *names: str) -> Any:
        """As for a config. Raises `Unsettled` for an array that is in the file and was not kept."""
        for name in names:
            if name in self.left_out:
                raise Unsettled(f"{name} is an array of {shown(self.left_out[name])} entries")
        return super().raw(*names)

    def rule(self, text: str) -> None:
        """Note a rule of llama.cpp's own that stands for what the file leaves out."""
        if text not in self.assumed:
            self.assumed.append(text)

    def per_block(self, name: str, blocks: int) -> list[int] | None:
        """One number for each block, from an array of exactly so many or from one number for all; None where the key is absent."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, list):
            return [whole(value, name, MOST, 0)] * blocks
        if len(value) != blocks:
            raise Unsettled(f"{name} has {len(value)} entries for {blocks} blocks")
        return [whole(entry, name, MOST, 0) for entry in value]

    def marks(self, name: str, *lengths: int) -> list[bool] | None:
        """A flag for each block, as an array of one of these lengths or one flag for all of the first; None where the key is absent."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, list):
            return [_flag(value, name)] * lengths[0]
        if len(value) not in lengths:
            raise Unsettled(f"{name} has {len(value)} entries for {lengths[0]} blocks")
        return [_flag(entry, name) for entry in value]


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool | int) or value not in (0, 1):
        raise Unsettled(f"{name} holds {shown(value)}, neither true nor false")
    return bool(value)
