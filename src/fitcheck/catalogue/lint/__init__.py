"""Lint: what `fitcheck validate` checks in catalogue files."""

from fitcheck.catalogue.lint.engine import lint
from fitcheck.catalogue.lint.findings import MEANINGS, Finding, Meaning, Severity

__all__ = ["MEANINGS", "Finding", "Meaning", "Severity", "lint"]
