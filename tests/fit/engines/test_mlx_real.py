"""mlx-lm itself, run on the CPU with small models of each family: its caches must take what `allocate` says, byte for byte.

`golden/mlx_real.yaml` holds what the engine held: published configs (or the configuration classes' own values, where none was at hand)
with fewer layers, experts and narrower sizes. Where mlx-lm is installed (`pip install -e '.[mlx]'`), it is asked again.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import Ledger, Settings
from fitcheck.fit.engines.mlx import allocate
from fitcheck.fit.engines.mlx_families import DEFAULT_CACHE, OWN_CACHE
from fitcheck.fit.state import kv_dtype
from fitcheck.sources.config import config_model
from tests.golden import rows

ENTRIES = rows("mlx_real.yaml")
NAMES = [entry["name"] for entry in ENTRIES]
NOT_RUN = {
    "bitnet": "its layers are a Metal kernel",
    "kimi_k25": "its configs name kimi_k2 or deepseek_v3 inside, which have run",
    "muse_spark": "its layers are a Metal kernel",
    "olmo": "needs ai2-olmo",
    "phi-msft": "Phixtral's config names neither its layers nor its heads as the model file does",
}
"""Families that the engine on the CPU cannot be asked about, and why; their entries rest on reading its source."""


def asked(row):
    return {name: value for name, value in row.items() if name not in ("cache", "state", "refused")}


def ours(architecture, row):
    named = asked(row)
    settings = Settings(named.pop("context"), named.pop("users", 1), kv_dtype("auto"), named=named)
    try:
        ledger = Ledger(allocate(architecture, settings))
    except (UsageError, UnknownFact):
        return {"refused": True}
    return {"cache": ledger.kv_bytes, "state": ledger.state_bytes}


def said(row):
    return {"refused": True} if row.get("refused") else {"cache": row["cache"], "state": row["state"]}


@pytest.mark.parametrize("entry", ENTRIES, ids=NAMES)
def test_caches_are_what_the_engine_held(entry):
    architecture = config_model(json.loads(entry["config"]), entry["name"], "shrunk").architecture
    assert architecture is not None
    assert [ours(architecture, row) for row in entry["rows"]] == [said(row) for row in entry["rows"]]


def test_every_family_has_run_or_is_named_as_not_run():
    ran = {config_model(json.loads(entry["config"]), entry["name"], "shrunk").architecture.family for entry in ENTRIES}
    assert (DEFAULT_CACHE | OWN_CACHE) - ran == set(NOT_RUN)


@pytest.mark.parametrize("entry", ENTRIES, ids=NAMES)
def test_the_engine_still_holds_that(entry):
    pytest.importorskip("mlx_lm", reason="pip install -e '.[mlx]'")
    line = json.dumps([json.loads(entry["config"]), [asked(row) for row in entry["rows"]]])
    program = [sys.executable, str(Path(__file__).parent / "mlx_engine.py")]
    done = subprocess.run(program, input=line + "\n", capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [{"refused": True} if "error" in each else each for each in json.loads(done.stdout)]
    assert found == [said(row) for row in entry["rows"]]
