"""Engines' start-up logs and benchmark results, read as evidence."""

from __future__ import annotations

from fitcheck.sources.logs.read import read_logs, read_text
from fitcheck.sources.logs.reading import BenchSpeed, Figure, LogReading, Setting

__all__ = ["BenchSpeed", "Figure", "LogReading", "Setting", "read_logs", "read_text"]
