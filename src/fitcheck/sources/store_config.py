"""Which of a store's configs tells the architecture of all its builds."""

from __future__ import annotations

from typing import Any

from fitcheck.sources.config import MOST_BYTES, parse_config
from fitcheck.sources.mistral_params import PARAMS
from fitcheck.sources.store import Store

WEIGHT_ENDINGS = (".safetensors", ".gguf")
_MOST_CONFIGS = 8
_OF_A_BUILD = ("quantization_config", "quantization", "compression_config", "torch_dtype", "dtype", "transformers_version", "_name_or_path")
"""Fields in which configs of one model differ that lie in folders of their own with a build each."""


def shared_config(store: Store) -> dict[str, Any] | None:
    """The config at the root, else the one that the (first eight) folders with weights share; of a store of one file, that file.

    Without any, Mistral's `params.json` at the root stands for it; another maker's file of that name does not.

    None where there is none, or where they differ in more than what tells builds apart. Raises what the store and `parse_config` raise.
    """
    files = [file.path for file in store.files()]
    there = [path for path in files if path.rpartition("/")[2] == "config.json"]
    if len(files) == 1 and files[0].endswith(".json"):
        there = files
    if "config.json" in there:
        there = ["config.json"]
    if not there and PARAMS in files:
        raw = parse_config(store.read(PARAMS, MOST_BYTES), PARAMS)
        return raw if "hidden_size" in raw else None
    if len(there) > 1:
        folders = {path.rpartition("/")[0] for path in files if path.lower().endswith(WEIGHT_ENDINGS)}
        there = [path for path in there if path.rpartition("/")[0] in folders][:_MOST_CONFIGS]
    read = [parse_config(store.read(path, MOST_BYTES), path) for path in there]
    plain = [{name: value for name, value in raw.items() if name not in _OF_A_BUILD} for raw in read]
    if len(read) < 2:
        return read[0] if read else None
    return plain[0] if all(one == plain[0] for one in plain) else None
