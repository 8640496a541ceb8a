"""llama.cpp itself, asked about a tiny model of each architecture, must take what `allocate` says, byte for byte."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from fitcheck.errors import UsageError
from fitcheck.fit.engines.base import Ledger, Settings
from fitcheck.fit.engines.llamacpp import allocate
from fitcheck.fit.engines.llamacpp_families import RULES
from fitcheck.fit.state import kv_dtype

pytest.importorskip("gguf", reason="pip install gguf")
pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
if platform.system() != "Linux":
    pytest.skip("the breakdown is read as libstdc++ lays it out", allow_module_level=True)

from tests.fit.engines.llamacpp_tiny_attention import ATTENTION
from tests.fit.engines.llamacpp_tiny_states import STATES

TINY = (*ATTENTION, *STATES)

SETTINGS = (
    {"n_ctx": 4096},
    {"n_ctx": 0},
    {"n_ctx": 5000, "n_seq_max": 3},
    {"n_ctx": 8192, "n_seq_max": 4, "kv_unified": True},
    {"n_ctx": 4096, "type_k": "q8_0", "type_v": "q8_0"},
    {"n_ctx": 4096, "type_k": "q5_1", "type_v": "iq4_nl"},
    {"n_ctx": 4096, "type_k": "q4_1", "type_v": "q5_0", "fa": "on"},
    {"n_ctx": 4096, "type_k": "q8_0", "fa": "off"},
    {"n_ctx": 4096, "type_v": "q8_0", "fa": "off"},
    {"n_ctx": 4096, "n_seq_max": 2, "fa": "off"},
    {"n_ctx": 8192, "n_seq_max": 2, "swa_full": True},
    {"n_ctx": 4096, "n_seq_max": 2, "n_rs_seq": 2},
    {"n_ctx": 2048, "n_ubatch": 128, "type_k": "bf16", "type_v": "bf16"},
    {"n_ctx": 1000, "n_batch": 100, "type_k": "f32", "type_v": "f32"},
)
NAMES = [f"{tiny.arch}-{tiny.family}-{number}" for number, tiny in enumerate(TINY)]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    asked = []
    for name, tiny in zip(NAMES, TINY, strict=True):
        tiny.write(folder / f"{name}.gguf")
        asked.append([str(folder / f"{name}.gguf"), SETTINGS])
    program = [sys.executable, str(Path(__file__).parent / "llamacpp_engine.py")]
    done = subprocess.run(
        program,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "GGML_NO_BACKTRACE": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(NAMES, json.loads(done.stdout), strict=True))


def ours(architecture, settings):
    try:
        return Ledger(allocate(architecture, Settings(4096, 1, kv_dtype("auto"), named=settings))).bytes
    except UsageError:
        return None


@pytest.mark.parametrize(("name", "tiny"), list(zip(NAMES, TINY, strict=True)), ids=NAMES)
def test_engine_allocates_what_we_say(engine, name, tiny):
    assert RULES[tiny.family].arch == tiny.arch
    assert engine[name] is not None, "the engine does not load it"
    assert engine[name][0] is not None, "the engine refuses the plainest context"
    said = {json.dumps(asked): ours(tiny.architecture, asked) for asked in SETTINGS}
    assert said == {json.dumps(asked): size for asked, size in zip(SETTINGS, engine[name], strict=True)}
