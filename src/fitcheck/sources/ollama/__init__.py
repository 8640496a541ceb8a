"""Models that Ollama has pulled onto this machine."""

from __future__ import annotations

from fitcheck.sources.ollama.names import OllamaName, folders, named, parse_name
from fitcheck.sources.ollama.store import OllamaStore, open_store

__all__ = ["OllamaName", "OllamaStore", "folders", "named", "open_store", "parse_name"]
