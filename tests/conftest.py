import os
from datetime import date
from pathlib import Path

import pytest

from fitcheck.catalogue.load import Catalogue, load_catalogue

ROOT = Path(__file__).parent.parent
AS_OF = date(2026, 11, 30)


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    for name in ("FITCHECK_OVERLAY", "NO_COLOR", "COLUMNS", "SOURCE_DATE_EPOCH", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert "FITCHECK_OVERLAY" not in os.environ
