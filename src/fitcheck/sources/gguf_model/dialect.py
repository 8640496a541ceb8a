"""Files of Ollama's own converter, in llama.cpp's words.

Ollama published models under architecture names and keys of its own, and translates them as it loads them: `llama/compat/README.md` and
`llama-ollama-compat.cpp` of ollama/ollama, whose `handle_*` functions are followed here as far as they change what is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENAMED = {"gptoss": "gpt-oss", "olmo3": "olmo2", "qwen25vl": "qwen2vl", "glm4moelite": "deepseek2"}


def translated(metadata: Mapping[str, Any], lengths: Mapping[str, int]) -> tuple[Mapping[str, Any], Mapping[str, int]]:
    """The metadata as llama.cpp would have it; the same where nothing is Ollama's own."""
    arch = metadata.get("general.architecture")
    name = RENAMED.get(arch) if isinstance(arch, str) else None
    if name is None:
        return metadata, lengths
    found = {**_under(f"{arch}.", f"{name}.", metadata), "general.architecture": name}
    if arch == "gptoss":
        found.setdefault(f"{name}.expert_feed_forward_length", found.get(f"{name}.feed_forward_length"))
    if arch == "glm4moelite":
        found.update(_latent(found, f"{name}."))
    return found, _under(f"{arch}.", f"{name}.", lengths)


def _under(old: str, new: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {new + key.removeprefix(old) if key.startswith(old) else key: value for key, value in values.items()}


def _latent(found: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """GLM-4.7 Flash: `key_length` and `value_length` are a head's there, which llama.cpp has under `_mla`; one latent row is kept."""
    rank, rope = found.get(f"{prefix}attention.kv_lora_rank"), found.get(f"{prefix}rope.dimension_count")
    return {
        f"{prefix}attention.head_count_kv": 1,
        f"{prefix}attention.key_length_mla": found.get(f"{prefix}attention.key_length"),
        f"{prefix}attention.value_length_mla": found.get(f"{prefix}attention.value_length"),
        f"{prefix}attention.key_length": rank + rope if isinstance(rank, int) and isinstance(rope, int) else None,
        f"{prefix}attention.value_length": rank,
    }
