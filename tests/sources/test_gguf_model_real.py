"""A tiny file of each architecture, read back from its metadata alone, must take in llama.cpp what llama.cpp itself says, byte for byte."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from fitcheck.api import kv_memory
from fitcheck.errors import UsageError
from fitcheck.fit.engines.llamacpp_families import RULES
from fitcheck.sources.gguf_model import read_metadata
from fitcheck.sources.gguf_model.arches import ARCHES

pytest.importorskip("gguf", reason="pip install gguf")
pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
if platform.system() != "Linux":
    pytest.skip("the breakdown is read as libstdc++ lays it out", allow_module_level=True)

from tests.fit.engines import test_llamacpp_real as known
from tests.fit.engines.llamacpp_tiny import COMMON, write
from tests.sources.gguf_plain import plain
from tests.sources.gguf_variants import VARIANTS

TINY = dict(zip(known.NAMES, known.TINY, strict=True))
ASKED = known.SETTINGS


def written(arch, own, path):
    """A file of `COMMON` and these keys, without those that are None."""
    write(path, arch, {name: value for name, value in {**COMMON, **own}.items() if value is not None})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metadata")
    found = {}
    for name, tiny in TINY.items():
        found[name] = folder / f"{name}.gguf"
        tiny.write(found[name])
    for number, (name, (arch, own)) in enumerate(VARIANTS.items()):
        found[name] = folder / f"variant-{number}.gguf"
        written(arch, own, found[name])
    return found


@pytest.fixture(scope="module")
def engine(files):
    program = [sys.executable, str(Path(known.__file__).parent / "llamacpp_engine.py")]
    done = subprocess.run(
        program,
        input=json.dumps([[str(path), ASKED] for path in files.values()]),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "GGML_NO_BACKTRACE": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(files, json.loads(done.stdout), strict=True))


def ours(model, settings):
    try:
        return kv_memory(model, engine="llama.cpp", context=4096, **settings).bytes
    except UsageError:
        return None


@pytest.mark.parametrize("name", [*TINY, *VARIANTS])
def test_the_engine_allocates_what_the_metadata_says(engine, files, name):
    model = read_metadata(*plain(files[name]))
    assert model.unknown == ()
    assert RULES[model.architecture.family].arch in (model.arch, "nemotron_h", "granite")
    assert engine[name] is not None, "the engine does not load it"
    said = {json.dumps(asked): ours(model, asked) for asked in ASKED}
    assert said == {json.dumps(asked): size for asked, size in zip(ASKED, engine[name], strict=True)}


def test_every_architecture_that_the_engine_module_knows_is_read_and_tried():
    known_there = {rules.arch for rules in RULES.values()}
    assert known_there <= set(ARCHES)
    assert set(ARCHES) - known_there == {"nemotron_h_moe"}
    tried = {tiny.arch for tiny in TINY.values()} | {arch for arch, _ in VARIANTS.values()}
    assert set(ARCHES) - tried == set()
