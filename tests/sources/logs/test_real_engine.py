"""llama.cpp itself: what it prints when it starts is read, and the prediction is what it printed."""

import json
import os
import platform
import subprocess
import sys

import pytest

from fitcheck.catalogue.hardware import Engine
from fitcheck.catalogue.layers import Stateless
from fitcheck.fit.calibrate import calibrate
from fitcheck.fit.calibration import CalibrationCase
from fitcheck.fit.engines.llamacpp_families import RULES
from fitcheck.fit.report import CitedSource
from fitcheck.sources.logs import read_logs, read_text
from fitcheck.sources.logs.printed import printed_of
from tests.cli.run import inside
from tests.conftest import AS_OF, ROOT
from tests.sources.logs.golden import model

gguf = pytest.importorskip("gguf", reason="pip install gguf")
numpy = pytest.importorskip("numpy")
pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
if platform.system() != "Linux":
    pytest.skip("the engine is asked as libstdc++ lays its structures out", allow_module_level=True)

from tests.fit.engines.llamacpp_tiny_attention import ATTENTION  # noqa: E402 - needs gguf
from tests.fit.engines.llamacpp_tiny_states import STATES  # noqa: E402

TINY = (*ATTENTION, *STATES)
NAMES = [f"{tiny.arch}-{tiny.family}-{number}" for number, tiny in enumerate(TINY)]
SETTINGS = (
    {"n_ctx": 8192, "n_seq_max": 2},
    {"n_ctx": 16384, "n_seq_max": 4, "kv_unified": True},
    {"n_ctx": 65536, "type_k": "q8_0", "type_v": "q8_0"},
    {"n_ctx": 16384, "n_seq_max": 2, "swa_full": True},
    {"n_ctx": 4096, "n_ubatch": 128, "n_rs_seq": 2},
)
WIDTH, LAYERS, HEADS, KV_HEADS, INNER, VOCABULARY = 256, 4, 8, 2, 256, 256


def run(*arguments, stdin=None):
    program = [sys.executable, "-m", "tests.sources.logs.llamacpp_log", *arguments]
    paths = os.pathsep.join(path for path in (str(ROOT / "src"), str(ROOT)) if path)
    return subprocess.run(
        program,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "GGML_NO_BACKTRACE": "1"},
    )


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    asked = []
    for name, tiny in zip(NAMES, TINY, strict=True):
        tiny.write(folder / f"{name}.gguf")
        asked.append([str(folder / f"{name}.gguf"), SETTINGS])
    done = run("contexts", stdin=json.dumps(asked))
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(NAMES, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize(("name", "tiny"), list(zip(NAMES, TINY, strict=True)), ids=NAMES)
def test_every_architecture_is_read_as_it_prints(logs, name, tiny, catalogue):
    assert RULES[tiny.family].arch == tiny.arch
    record = model("meta-llama__Llama-3.1-8B-Instruct").model_copy(update={"architecture": tiny.architecture, "id": "tiny"})
    compared = 0
    for text in logs[name]:
        if text is None:
            continue
        case = CalibrationCase(
            printed_of(read_text(text)), AS_OF, catalogue.get(Engine, "llama.cpp"), CitedSource("file:x", AS_OF, None), record
        )
        rows = {row.term: row for row in calibrate(case).rows}
        for term in ("KV cache, bytes for the tokens printed", "recurrent state"):
            if term in rows and rows[term].printed is not None:
                assert rows[term].because is None
                assert abs(rows[term].predicted - rows[term].printed) <= rows[term].rounding, rows[term]
                compared += 1
    assert compared or all(isinstance(group, Stateless) for group in tiny.groups)


def write_model(path):
    """A dense llama of a few megabytes, weights and all."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(8192)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(VOCABULARY)
    writer.add_file_type(1)
    writer.add_tokenizer_model("none")
    kv_width = KV_HEADS * WIDTH // HEADS
    shapes = {"token_embd": (VOCABULARY, WIDTH), "output": (VOCABULARY, WIDTH), "output_norm": (WIDTH,)}
    for layer in range(LAYERS):
        shapes |= {f"blk.{layer}.{norm}": (WIDTH,) for norm in ("attn_norm", "ffn_norm")}
        shapes |= {f"blk.{layer}.{name}": (WIDTH, WIDTH) for name in ("attn_q", "attn_output")}
        shapes |= {f"blk.{layer}.{name}": (kv_width, WIDTH) for name in ("attn_k", "attn_v")}
        shapes |= {f"blk.{layer}.{name}": (INNER, WIDTH) for name in ("ffn_gate", "ffn_up", "ffn_down")}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", numpy.zeros(shape, dtype=numpy.float16 if len(shape) > 1 else numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    write_model(folder / "tiny.gguf")
    config = {
        "model_type": "llama",
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "intermediate_size": INNER,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": False,
    }
    (folder / "config.json").write_text(json.dumps(config))
    for name, asked in {"two": ("8192", "2", "f16"), "q8": ("4096", "1", "q8_0")}.items():
        done = run("server", str(folder / "tiny.gguf"), *asked)
        (folder / f"{name}.log").write_text(done.stderr)
    return folder


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [
        # 8,192 cells x 4 layers x 2 heads x (32 + 32) x 2 B; q8_0 keeps 34 B for 32 elements.
        ("two", 8192 * 4 * 2 * 64 * 2),
        ("q8", 4096 * 4 * 2 * 2 * 34),
    ],
)
def test_a_servers_log_is_calibrated(started, name, kv_bytes):
    log = started / f"{name}.log"
    printed = printed_of(read_logs([log]))
    assert printed.model.endswith("tiny.gguf")
    assert abs(printed.kv.value - kv_bytes) <= printed.kv.rounding
    ran = inside("calibrate", str(log), "--model", str(started / "config.json"), "--format", "json", "--as-of", "2026-11-30")
    assert ran.code == 0, ran.err
    rows = {row["term"]: row for row in json.loads(ran.out)["result"]["rows"]}
    assert rows["KV cache, bytes for the tokens printed"]["predicted"] == kv_bytes
    # F16 matrices and F32 norms: llama.cpp prints the file's size to 0.01 MiB.
    weights = 2 * (2 * VOCABULARY * WIDTH + LAYERS * (2 * WIDTH * WIDTH + 2 * 64 * WIDTH + 3 * INNER * WIDTH)) + 4 * WIDTH * (
        2 * LAYERS + 1
    )
    assert abs(rows["weights, the whole file"]["printed"] - weights) <= rows["weights, the whole file"]["rounding"]
