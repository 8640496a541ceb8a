"""Benchmark results in every form in which the tools write them."""

import json

import pytest

from fitcheck.errors import DataError
from fitcheck.sources.logs import read_text
from fitcheck.sources.logs.printed import printed_of

# llama.cpp, tools/llama-bench/README.md: the table and the CSV and JSON of one run.
TABLE = """| model                          |       size |     params | backend    | ngl |          test |                  t/s |
| ------------------------------ | ---------: | ---------: | ---------- | --: | ------------: | -------------------: |
| qwen2 7B Q4_K - Medium         |   4.36 GiB |     7.62 B | CUDA       |  99 |         pp512 |      7285.68 ± 100.06 |
| qwen2 7B Q4_K - Medium         |   4.36 GiB |     7.62 B | CUDA       |  99 | tg128 @ d4096 |         119.92 ± 0.43 |
| qwen2 7B Q4_K - Medium         |   4.36 GiB |     7.62 B | CUDA       |  99 |   pp512+tg128 |         800.00 ± 0.43 |

build: 8cf427ff (5163)
"""
COLUMNS = "build_commit,build_number,gpu_info,model_filename,model_type,n_prompt,n_gen,n_depth,test_time,avg_ns,avg_ts,stddev_ts"
RUN = ["8cf427ff", "5163", "NVIDIA GeForce RTX 4080", "models/Qwen2.5-7B-Instruct-Q4_K_M.gguf", "qwen2 7B Q4_K - Medium"]
TESTS = (
    ["512", "0", "0", "2025-04-24T11:57:09Z", "70285660", "7285.676949", "100.064434"],
    ["0", "128", "0", "2025-04-24T11:58:50Z", "1067431600", "119.915244", "0.430617"],
)
CSV = "\n".join([COLUMNS, *(",".join(f'"{cell}"' for cell in [*RUN, *test]) for test in TESTS)]) + "\n"
ROW = {
    "build_commit": "8cf427ff",
    "build_number": 5163,
    "gpu_info": "NVIDIA GeForce RTX 4080",
    "model_filename": "models/Qwen2.5-7B-Instruct-Q4_K_M.gguf",
    "n_prompt": 512,
    "n_gen": 0,
    "n_depth": 0,
    "test_time": "2025-04-24T11:58:50Z",
    "avg_ts": 7100.002165,
    "stddev_ts": 140.341520,
}
# https://github.com/vllm-project/vllm, benchmarks/serve.py: figures of a public run of 300 requests, at most 25 at once, on a DGX Spark.
SERVE = """============ Serving Benchmark Result ============
Successful requests:                     300
Failed requests:                         0
Maximum request concurrency:             25
Request rate configured (RPS):           1.50
Benchmark duration (s):                  1869.43
Total input tokens:                      1202858
Total generated tokens:                  150317
Request throughput (req/s):              0.16
Output token throughput (tok/s):         80.41
Peak output token throughput (tok/s):    61.00
Peak concurrent requests:                28.00
Total token throughput (tok/s):          723.84
---------------Time to First Token----------------
Mean TTFT (ms):                          34710.68
-----Time per Output Token (excl. 1st token)------
Median TPOT (ms):                        250.00
==================================================
"""
# https://github.com/sgl-project/sglang, bench_serving.py: a public run of 1,920 requests without a limit.
SGLANG = """============ Serving Benchmark Result ============
Backend:                                 sglang-oai
Traffic request rate:                    32.0
Max request concurrency:                not set
Successful requests:                     1920
Total input tokens:                      1843657
Total generated tokens:                  157031
Output token throughput (tok/s):         734.77
Concurrency:                             1418.05
==================================================
"""


def speeds(text):
    return [(each.phase, str(each.tok_per_s), each.users, each.per, each.workload) for each in read_text(text).speeds]


def test_the_table():
    reading = read_text(TABLE)
    assert speeds(TABLE) == [
        ("prefill", "7285.68", 1, "total", "pp512"),
        ("decode", "119.92", 1, "total", "tg128 after 4096 tokens"),
    ]
    assert (reading.engine, reading.model, str(reading.speeds[0].spread)) == ("llama.cpp", "qwen2 7B Q4_K - Medium", "100.06")


OLD_TABLE = """| model                          |       size |     params | backend    | ngl | test       |              t/s |
| ------------------------------ | ---------: | ---------: | ---------- | --: | ---------- | ---------------: |
| llama 7B Q4_0                  |   3.56 GiB |     6.74 B | CUDA       |  99 | pp 512     | 4035.47 \u00b1 157.68 |
| llama 7B Q4_0                  |   3.56 GiB |     6.74 B | CUDA       |  99 | tg 128     |    127.43 \u00b1 0.18 |
"""
"""As of January 2024 (github.com/ggml-org/llama.cpp/pull/4812)."""


@pytest.mark.parametrize("before", ["", "    ", "bench-1  | "])
def test_the_table_of_older_builds_indented_or_collected(before):
    text = "".join(before + line + "\n" for line in OLD_TABLE.splitlines())
    assert speeds(text) == [("prefill", "4035.47", 1, "total", "pp512"), ("decode", "127.43", 1, "total", "tg128")]


def test_results_of_several_models_are_speeds_of_none():
    """One table of a comparison: its rows are not the speeds of the first of its models."""
    other = OLD_TABLE.splitlines()[2].replace("Q4_0", "Q8_0")
    several = (OLD_TABLE + other, json.dumps([ROW, {**ROW, "model_filename": "/models/other.gguf"}]))
    for text in several:
        with pytest.raises(DataError, match="of different models"):
            read_text(text)
    assert len(speeds(OLD_TABLE + json.dumps(ROW))) == 3  # one model by its name in the table, and by its file


def test_csv():
    reading = read_text(CSV)
    assert speeds(CSV) == [("prefill", "7285.676949", 1, "total", "pp512"), ("decode", "119.915244", 1, "total", "tg128")]
    assert (reading.version, reading.device, reading.day) == ("5163", "NVIDIA GeForce RTX 4080", "2025-04-24")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([ROW, {**ROW, "n_prompt": 0, "n_gen": 128, "avg_ts": 119.5}], indent=2),
        "ggml_cuda_init: found 1 CUDA devices\n"
        + json.dumps([ROW, {**ROW, "n_prompt": 0, "n_gen": 128, "avg_ts": 119.5}], indent=2)
        + "\n",
        "a line before\n" + json.dumps(ROW) + "\n" + json.dumps({**ROW, "n_prompt": 0, "n_gen": 128, "avg_ts": 119.5}) + "\n",
    ],
    ids=["json", "json after warnings", "json lines"],
)
def test_json_and_json_lines(text):
    assert speeds(text) == [("prefill", "7100.002165", 1, "total", "pp512"), ("decode", "119.5", 1, "total", "tg128")]


def test_a_test_that_reads_and_writes_tells_neither_speed():
    reading = read_text(json.dumps([{**ROW, "n_gen": 128}]))
    assert not reading.speeds
    assert "-pg" in reading.notes[0]


def test_a_served_benchmark_with_a_limit_of_requests():
    assert speeds(SERVE) == [
        ("decode", "80.41", 25, "total", "4009 in, 501 out"),
        ("decode", "4.00", 25, "stream", "4009 in, 501 out, median"),
    ]


def test_a_served_benchmark_without_a_limit_is_of_unknown_users():
    reading = read_text(SGLANG)
    assert reading.engine == "sglang"
    assert [(str(each.tok_per_s), each.users) for each in reading.speeds] == [("734.77", 0)]
    assert "no number of requests at once" in reading.notes[0]


def test_the_json_of_served_benchmarks():
    result = {
        "date": "20260910-101500",
        "backend": "vllm",
        "model_id": "org/model",
        "completed": 10,
        "total_input_tokens": 10240,
        "total_output_tokens": 2560,
        "output_throughput": 152.381,
        "max_concurrency": 4,
        "median_tpot_ms": 20.0,
    }
    reading = read_text(json.dumps(result))
    assert (reading.engine, reading.model, reading.day) == ("vllm", "org/model", "2026-09-10")
    assert speeds(json.dumps(result)) == [
        ("decode", "152.381", 4, "total", "1024 in, 256 out"),
        ("decode", "50.00", 4, "stream", "1024 in, 256 out, median"),
    ]


def test_offline_benchmarks():
    assert speeds("Throughput: 17.61 requests/s, 7283.53 total tokens/s, 3493.28 output tokens/s\n") == [
        ("decode", "3493.28", 0, "total", "all prompts at once")
    ]
    arguments = "Namespace(input_len=128, output_len=128, batch_size=8, n=1)\n"
    assert speeds(arguments + "Avg latency: 2.0 seconds\n") == [("decode", "512.00", 8, "total", "128 in, 128 out, reading included")]
    for result in (
        {"avg_latency": 2.0, "latencies": [2.0]},
        {"elapsed_time": 1.0, "num_requests": 2, "total_num_tokens": 9, "tokens_per_second": 9.0},
    ):
        reading = read_text(json.dumps(result))
        assert not reading.speeds
        assert "no speed follows" in reading.notes[0]


def test_a_benchmark_of_no_engine_needs_its_name():
    text = SERVE
    with pytest.raises(DataError, match="which engine ran"):
        printed_of(read_text(text))
    assert printed_of(read_text(text), "vllm").engine == "vllm"


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-1", "1e999", "1e999999999999999999999", '"x"', "null", "true", "9" * 5000, "[1]", "{}"]
)
def test_figures_that_are_none_are_passed_over(value):
    text = '{"n_prompt": 512, "n_gen": 0, "avg_ts": ' + value + ', "stddev_ts": 1}'
    try:
        reading = read_text(text)
    except DataError:
        return
    assert not reading.speeds


def test_nesting_without_end():
    with pytest.raises(DataError):
        read_text('{"avg_ts": ' + "[" * 100_000)
