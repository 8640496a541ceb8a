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


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
HUB = (
    "HF_ENDPOINT",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HF_TOKEN_PATH",
    "HF_HOME",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN",
)
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch, tmp_path_factory):
    for name in ("FITCHECK_OVERLAY", "NO_COLOR", "COLUMNS", "SOURCE_DATE_EPOCH", "FORCE_COLOR", "TERM", *HUB, *PROXIES, *CERTIFICATES):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("FITCHECK_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    assert "FITCHECK_OVERLAY" not in os.environ
