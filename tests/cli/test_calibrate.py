"""`fitcheck calibrate`, what it writes for others, and `fit --calibrated`, which takes it."""

import json

import jsonschema
import pytest
import yaml

import fitcheck
from fitcheck.errors import DataError, UsageError
from fitcheck.views.schema import schemas
from tests.cli.run import inside
from tests.conftest import AS_OF

DAY = ("--as-of", AS_OF.isoformat())
GIB = 1024**3
CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "max_position_embeddings": 262144,
    "torch_dtype": "bfloat16",
}
# The words of vLLM 0.33 with round figures: what is printed is not in question here, but what becomes of it.
LOG = """2026-09-10 10:00:00 (APIServer pid=1) INFO non-default args: {'model': 'RedHatAI/GLM-5.3-Flash-NVFP4', 'max_model_len': 262144}
(EngineCore pid=2) INFO Initializing a V1 LLM engine (v0.33.0) with config: model='RedHatAI/GLM-5.3-Flash-NVFP4', tensor_parallel_size=2
(Worker_TP0 pid=3) INFO Model loading took 92.00 GiB memory and 5.2 seconds
(Worker_TP1 pid=4) INFO Model loading took 92.00 GiB memory and 5.2 seconds
(Worker_TP0 pid=3) INFO Available KV cache memory: 8.00 GiB
(EngineCore pid=2) INFO GPU KV cache size: 597,088 tokens
(EngineCore pid=2) INFO Maximum concurrency for 262,144 tokens per request: 2.28x
(Worker_TP0 pid=3) INFO Free memory on device (118.00/120.00 GiB) on startup. Desired GPU memory utilization is (0.9, 108.0 GiB).
"""
BENCH = {
    "backend": "vllm",
    "completed": 4,
    "total_input_tokens": 4000,
    "total_output_tokens": 1000,
    "output_throughput": 61.5,
    "max_concurrency": 4,
}


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "server.log"
    file.write_text(LOG)
    return str(file)


@pytest.fixture
def bench(tmp_path):
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(BENCH))
    return str(file)


@pytest.fixture
def recipe(log, bench, tmp_path):
    ran = inside("calibrate", log, bench, "--cluster", "2xspark", "--yaml", *DAY)
    assert ran.code == 0, ran.err
    file = tmp_path / "mine.yaml"
    file.write_text(ran.out)
    return file


def test_prediction_stands_beside_print(log):
    out = inside("calibrate", log, "--cluster", "2xspark", *DAY, columns=140).out
    for words in (
        "GLM 5.3 Flash under vLLM 0.33.0",
        "redhat-nvfp4",
        "92.00 GiB",
        "92.12 GiB",
        "+0.13",
        "KV cache, bytes for the tokens printed",
        "8.00 GiB measured",
    ):
        assert words in out, words
    assert "None" not in out


def test_json_keeps_its_schema_and_is_the_same_every_time(log):
    first, second = (inside("calibrate", log, "--cluster", "2xspark", "--format", "json", *DAY).out for _ in range(2))
    assert first == second
    answer = json.loads(first)
    jsonschema.Draft202012Validator(json.loads(schemas()["calibrate"])).validate(answer)
    rows = {row["term"]: row for row in answer["result"]["rows"]}
    weights = rows["weights, fullest device"]
    # 197,822,818,044 B of the build over two ranks, against 92 GiB printed.
    assert (weights["printed"], weights["predicted"]) == (92 * GIB, 98911409022)
    assert weights["error"] == pytest.approx(98911409022 / (92 * GIB) - 1, abs=1e-6)
    # 0.9 x 120 - 92 - 8 GiB.
    assert answer["result"]["measured"]["overhead_bytes"] == 8 * GIB
    assert answer["inputs"]["cluster"] == {"device": "dgx-spark", "count": 2}


@pytest.mark.parametrize("form", ["table", "plain", "csv", "md"])
def test_every_format_says_what_is_not_compared(log, form):
    ran = inside("calibrate", log, "--format", form, *DAY)
    assert ran.code == 0
    assert "--cluster" in ran.out


def test_a_model_that_the_catalogue_lacks_is_said_and_can_be_given(tmp_path):
    other = tmp_path / "other.log"
    other.write_text(LOG.replace("RedHatAI/GLM-5.3-Flash-NVFP4", "/models/mine"))
    out = inside("calibrate", str(other), "--cluster", "2xspark", *DAY, columns=140).out
    assert "the catalogue does not know /models/mine: --model says which it is" in out
    given = inside("calibrate", str(other), "--model", "glm-5.3-flash", "--checkpoint", "redhat-nvfp4", "--cluster", "2xspark", *DAY).out
    assert "does not know" not in given
    assert inside("calibrate", str(other), "--model", "glm-6", *DAY).code == 3
    assert "write --model beside it" in inside("calibrate", str(other), "--checkpoint", "redhat-nvfp4", *DAY).err


def test_a_log_of_another_model_is_said_and_is_no_entry(log):
    words = "the log names RedHatAI/GLM-5.3-Flash-NVFP4, which is glm-5.3-flash in the catalogue, and it is held against qwen3-8b"
    answer = json.loads(inside("calibrate", log, "--model", "qwen3-8b", "--format", "json", *DAY).out)
    assert words in answer["warnings"]
    ran = inside("calibrate", log, "--model", "qwen3-8b", "--cluster", "2xspark", "--yaml", *DAY)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "which is" not in inside("calibrate", log, "--model", "glm-5.3-flash", *DAY).out


def test_a_device_that_the_catalogue_lacks_is_named(tmp_path):
    file = tmp_path / "llama.log"
    file.write_text(
        "  Device 0: NVIDIA Imaginary 9000, compute capability 8.9, VMM: yes\nllama_context: n_ctx = 4096\n"
        "load_tensors:        CUDA0 model buffer size = 1000.00 MiB\nllama_context:      CUDA0 compute buffer size =   300.75 MiB\n"
    )
    assert "the catalogue does not know NVIDIA Imaginary 9000: --cluster says" in inside("calibrate", str(file), *DAY, columns=200).out


def test_the_entry_is_accepted_as_it_is(recipe):
    assert inside("validate", str(recipe)).out.startswith("no findings")
    entries = yaml.safe_load(recipe.read_text())
    [(name, entry)] = [(name, entry) for name, entry in entries.items() if entry["kind"] == "recipe"]
    assert name == "glm-5.3-flash-2x-dgx-spark-vllm-redhat-nvfp4-2026-09-10"
    assert entry["setup"]["weights_bytes_per_device"] == 92 * GIB
    assert entry["setup"]["overhead_bytes_per_device"] == 8 * GIB
    assert entry["setup"]["visible_bytes_per_device"] == 120 * GIB
    assert entry["speeds"] == [
        {"phase": "decode", "users": 4, "per": "total", "low_tok_per_s": "61.5", "high_tok_per_s": "61.5", "workload": "1000 in, 250 out"}
    ]
    assert entry["sources"]["log"]["url"] == "file:server.log"
    [spark] = [entry for entry in entries.values() if entry["kind"] == "device"]
    assert [row["value"] for row in spark["overhead"] if row["engine"] == "vllm"] == [8 * GIB]
    assert {row["engine"] for row in spark["overhead"]} > {"vllm"}


@pytest.mark.parametrize("path", ["/home/me/models/GLM.gguf", "C:\\\\me\\\\GLM.gguf", "~/GLM.gguf", "a/b/GLM.gguf"])
def test_paths_of_a_machine_stay_there(tmp_path, path):
    mine = tmp_path / "mine.log"
    mine.write_text(LOG.replace("RedHatAI/GLM-5.3-Flash-NVFP4", path))
    out = inside("calibrate", str(mine), "--model", "glm-5.3-flash", "--cluster", "2xspark", "--yaml", *DAY).out
    assert "checkpoint_as_named: GLM.gguf" in out
    assert "me" + path[5:6] + "models" not in out


def test_the_source_can_be_named(log):
    out = inside("calibrate", log, "--cluster", "2xspark", "--yaml", "--source", "https://example.org/log", *DAY).out
    assert out.count("https://example.org/log") == 2


def test_an_entry_needs_a_device_and_a_model_of_the_catalogue(log, tmp_path):
    assert "--cluster" in inside("calibrate", log, "--yaml", *DAY).err
    described = inside("calibrate", log, "--cluster", "2x120GiB", "--yaml", *DAY)
    assert (described.code, "120GiB is none" in described.err) == (2, True)
    other = tmp_path / "other.log"
    other.write_text(LOG.replace("RedHatAI/GLM-5.3-Flash-NVFP4", "mine"))
    ran = inside("calibrate", str(other), "--cluster", "2xspark", "--yaml", *DAY)
    assert (ran.code, ran.out) == (2, "")
    assert "--model" in ran.err


def test_a_model_from_outside_comes_with_its_own_entry(tmp_path):
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    log = tmp_path / "own.log"
    log.write_text(LOG.replace("RedHatAI/GLM-5.3-Flash-NVFP4", "/models/my-model"))
    ran = inside("calibrate", str(log), "--cluster", "2xspark", "--model", str(folder), "--checkpoint", "bf16", "--yaml", *DAY)
    assert ran.code == 0, ran.err
    file = tmp_path / "mine.yaml"
    file.write_text(ran.out)
    assert inside("validate", str(file)).out.startswith("no findings")
    entries = yaml.safe_load(ran.out)
    assert entries["my-model"]["kind"] == "model"
    assert [entry["model"] for entry in entries.values() if entry["kind"] == "recipe"] == ["my-model"]
    fit = inside("fit", "my-model", "--checkpoint", "bf16", "--cluster", "2xspark", "--overlay", str(file), *DAY)
    assert (fit.code, "recipe (1)" in fit.out) == (0, True), fit.err


def test_a_model_from_outside_under_a_name_of_the_catalogue_is_refused(log, tmp_path):
    folder = tmp_path / "glm-5.3-flash"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    ran = inside("calibrate", log, "--cluster", "2xspark", "--model", str(folder), "--checkpoint", "bf16", "--yaml", *DAY)
    assert (ran.code, ran.out) == (2, "")
    assert "another model called glm-5.3-flash" in ran.err


def test_text_of_a_log_cannot_break_out_of_an_entry(tmp_path):
    hostile = tmp_path / "x.log"
    name = "evil: {a: [b]} # \\u202e\\nkind: recipe"
    hostile.write_text(LOG.replace("'RedHatAI/GLM-5.3-Flash-NVFP4'", repr(name)).replace("v0.33.0", "0.33.0+evil"))
    ran = inside("calibrate", str(hostile), "--model", "glm-5.3-flash", "--cluster", "2xspark", "--yaml", *DAY)
    assert ran.code == 0, ran.err
    file = tmp_path / "x.yaml"
    file.write_text(ran.out)
    assert "error" not in inside("validate", str(file)).out


@pytest.mark.parametrize("what", ["yaml", "log"])
def test_fit_takes_the_measured_overhead(what, recipe, log):
    file = str(recipe) if what == "yaml" else log
    asked = ("fit", "glm-5.3-flash", "--cluster", "2xspark", "--checkpoint", "redhat-nvfp4", "--calibrated", file, *DAY)
    answer = json.loads(inside(*asked, "--format", "json").out)["result"]
    [device] = answer["devices"]
    terms = {term["name"]: term for term in device["terms"]}
    overhead = terms["engine overhead"]
    assert (overhead["bytes"], overhead["grade"], overhead["sources"][0]["url"]) == (8 * GIB, "measured", "file:server.log")
    assert (terms["weights"]["bytes"], terms["weights"]["grade"]) == (92 * GIB, "measured")
    assert device["usable_formula"].startswith(f"{120 * GIB:,} B visible")
    assert any(row["option"] == "--calibrated" for row in answer["assumptions"])


def test_weights_of_another_build_are_not_those_measured(log):
    asked = ("fit", "glm-5.3-flash", "--cluster", "2xspark", "--checkpoint", "exl3-4bpw", "--calibrated", log, "--format", "json", *DAY)
    [device] = json.loads(inside(*asked).out)["result"]["devices"]
    terms = {term["name"]: term["bytes"] for term in device["terms"]}
    assert terms["engine overhead"] == 8 * GIB
    assert terms["weights"] != 92 * GIB


def test_a_measurement_of_another_device_or_engine_is_refused(recipe):
    wrong_device = inside("fit", "glm-5.3-flash", "--cluster", "2x rtx-4090", "--calibrated", str(recipe), *DAY)
    assert (wrong_device.code, wrong_device.out) == (2, "")
    assert "measured on dgx-spark, and rtx-4090 was asked" in wrong_device.err
    wrong_engine = inside("fit", "glm-5.3-flash", "--cluster", "2xspark", "--engine", "sglang", "--calibrated", str(recipe), *DAY)
    assert wrong_engine.code == 2
    assert "measured with vllm, and sglang was asked" in wrong_engine.err


def test_a_file_that_measures_nothing_is_refused(tmp_path):
    (tmp_path / "some.yaml").write_text("x:\n  kind: engine\n  name: x\n  chips: [nvidia]\n  preference: 9\n  sources: {}\n")
    (tmp_path / "half.log").write_text("INFO Available KV cache memory: 8.00 GiB\n")
    for name, words in {
        "some.yaml": "0 recipes in it state a measured overhead",
        "half.log": "does not print",
        "none.log": "no such file",
    }.items():
        ran = inside("fit", "glm-5.3-flash", "--cluster", "2xspark", "--calibrated", str(tmp_path / name), *DAY)
        assert (ran.code, ran.out) == (4, "")
        assert words in ran.err, ran.err


def test_the_python_api_has_the_same_verb(log):
    report = fitcheck.calibrate(log, cluster="2xspark", as_of=AS_OF)
    assert report.measured.overhead_bytes == 8 * GIB
    assert fitcheck.fit("glm-5.3-flash", cluster="2xspark", calibrated=log, as_of=AS_OF).engine == "vllm"
    with pytest.raises(DataError, match="no such file"):
        fitcheck.calibrate("none.log")
    with pytest.raises(UsageError, match="not an address"):
        fitcheck.calibrate(log, source="my desk")


LOADED = """\
load_tensors:        CUDA0 model buffer size = {gpu} MiB
load_tensors:   CPU_Mapped model buffer size = {host} MiB
"""
RUN = """\
llama_context: n_ctx         = 8192
llama_kv_cache: size = 1024.00 MiB (8192 cells,  32 layers,  1/1 seqs), K (f16): 512.00 MiB, V (f16): 512.00 MiB
llama_context: {place} compute buffer size = 300.00 MiB
"""
LLAMA = ("--model", "llama-3.1-8b", "--checkpoint", "gguf-q4-k-m")


def calibrated(tmp_path, text, cluster):
    file = tmp_path / "llama.log"
    file.write_text(text)
    answer = json.loads(inside("calibrate", str(file), *LLAMA, "--cluster", cluster, "--format", "json", *DAY).out)
    return {row["term"]: row for row in answer["result"]["rows"]}, answer


def test_what_llama_cpp_put_on_its_only_gpu_is_compared(tmp_path):
    # Llama 3.1 8B in Q4_K_M: 4,403.49 MiB on the GPU and the input embedding of 281.81 MiB beside it; the file, metadata and tokenizer
    # within, is 4,920,739,232 B = 4,692.78 MiB
    rows, _ = calibrated(tmp_path, LOADED.format(gpu="4403.49", host="281.81") + RUN.format(place="CUDA0"), "rtx-4090")
    weights = rows["weights, fullest device"]
    assert weights["predicted"] == 4_920_739_232 - 128_256 * 4096 * 144 // 256
    assert weights["error"] == pytest.approx((4692.78 - 281.81) / 4403.49 - 1, abs=1e-4)
    rows, _ = calibrated(tmp_path, LOADED.format(gpu="2403.49", host="2281.81") + RUN.format(place="CUDA0"), "rtx-4090")
    assert rows["weights, fullest device"]["because"] == "more of the model lies in host memory than llama.cpp puts there by itself"


def test_a_run_on_the_processor_is_one_device_with_a_buffer_of_its_own(tmp_path):
    text = LOADED.splitlines()[1].format(host="4685.30") + "\n" + RUN.format(place="CPU")
    rows, answer = calibrated(tmp_path, text, "64GiB@80GB/s:cpu")
    weights = rows["weights, fullest device"]
    assert weights["predicted"] == 4_920_739_232
    assert weights["error"] == pytest.approx(4692.78 / 4685.30 - 1, abs=1e-4)
    assert answer["result"]["measured"]["overhead_bytes"] == 300 * 1024**2
    assert rows["compute buffer"]["predicted"] is None  # the formula is of a GPU
    fit = json.loads(
        inside(
            "fit", *LLAMA[1:], "--cluster", "64GiB@80GB/s:cpu", "--calibrated", str(tmp_path / "llama.log"), "--format", "json", *DAY
        ).out
    )
    terms = {term["name"]: term for term in fit["result"]["devices"][0]["terms"]}
    assert (terms["engine overhead"]["bytes"], terms["engine overhead"]["grade"]) == (300 * 1024**2, "measured")
