"""Runs, ranks, files, and what comes from outside: told apart, put together, or refused with one clear error."""

import json
import subprocess
import sys
import time

import pytest

from fitcheck.errors import DataError, UsageError
from fitcheck.sources.logs import read_logs, read_text
from fitcheck.sources.logs.printed import printed_of, source_url
from fitcheck.sources.logs.scan import ENGINES
from fitcheck.sources.logs.settings import pairs
from fitcheck.sources.logs.text import LINE_CHARACTERS, clean_line, clean_lines
from fitcheck.units import GIB, MIB

START = "(EngineCore pid=7) INFO [core.py:1] Initializing a V1 LLM engine (v0.20.0) with config: model='org/one', max_seq_len=4096\n"
LOADED = "load_tensors:        CUDA0 model buffer size = {size} MiB\n"


def gguf(path, extra=""):
    return f"llama_model_loader: loaded meta data with 30 key-value pairs and 300 tensors from {path} (version GGUF V3 (latest))\n{extra}"


def context(cells, kv):
    return (
        "llama_context: constructing llama_context\n"
        f"llama_context: n_ctx         = {cells}\n"
        f"llama_kv_cache: size = {kv:7.2f} MiB ( {cells} cells,  32 layers,  1/1 seqs), "
        f"K (f16): {kv / 2:7.2f} MiB, V (f16): {kv / 2:7.2f} MiB\n"
    )


def test_of_two_starts_the_last_is_read():
    log = START + "Available KV cache memory: 1.00 GiB\n" + START.replace("pid=7", "pid=9") + "Available KV cache memory: 2.00 GiB\n"
    reading = read_text(log)
    assert printed_of(reading).kv.value == 2 * GIB
    assert "2 starts" in reading.notes[0]


def test_a_server_and_its_engine_are_one_start():
    log = (
        "INFO 01-15 10:23:45 api_server.py:123] vLLM API server version 0.6.0\n"
        "INFO 01-15 10:23:45 api_server.py:124] args: Namespace(model='org/one', gpu_memory_utilization=0.8, max_model_len=None)\n"
        "INFO 01-15 10:23:46 llm_engine.py:98] Initializing an LLM engine (v0.6.0) with config: model='org/one', max_seq_len=4096\n"
        "INFO 01-15 10:23:52 Loading model weights took 14.25 GB\n"
    )
    printed = printed_of(read_text(log))
    assert (str(printed.utilisation), printed.context_tokens, printed.weights.value) == ("0.8", 4096, int(14.25 * GIB))


def test_ranks_of_one_start_are_one_run():
    log = START + "".join(f"(Worker_TP{rank} pid={rank}) INFO Model loading took {10 + rank}.5 GiB and 1 seconds\n" for rank in range(4))
    log += "".join(f"(Worker_TP{rank} pid={rank}) INFO Available KV cache memory: {9 - rank}.25 GiB\n" for rank in range(4))
    printed = printed_of(read_text(log))
    assert printed.weights.value == int(13.5 * GIB)
    assert printed.kv.value == int(6.25 * GIB)


def test_logs_of_ranks_in_files_of_their_own(tmp_path):
    files = [tmp_path / f"rank{rank}.log" for rank in range(2)]
    for rank, file in enumerate(files):
        file.write_text(
            START + f"INFO Model loading took {10 + rank}.0 GiB and 1 seconds\nINFO Available KV cache memory: {5 - rank}.00 GiB\n"
        )
    printed = printed_of(read_logs(files))
    assert (printed.weights.value, printed.kv.value) == (11 * GIB, 4 * GIB)
    assert printed.weights.at == "rank1.log:2"
    assert printed.files == ("rank0.log", "rank1.log")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (START.replace("v0.20.0", "v0.21.0"), "different versions"),
        (START.replace("org/one", "org/two"), "different models"),
        ("[2026-05-15 08:40:13] KV Cache is allocated. #tokens: 7, K size: 2.23 GB, V size: 2.23 GB\n", "different engines"),
    ],
)
def test_logs_of_different_runs_are_refused(tmp_path, other, words):
    (tmp_path / "a.log").write_text(START + "Available KV cache memory: 1.00 GiB\n")
    (tmp_path / "b.log").write_text(other)
    with pytest.raises(DataError, match=words):
        read_logs([tmp_path / "a.log", tmp_path / "b.log"])


def test_a_trial_without_memory_and_a_drafter_are_not_the_model():
    trial = gguf("main.gguf", "print_info: no_alloc              = 1\n" + LOADED.format(size="0.00") + context(131072, 9999.0))
    main = gguf(
        "main.gguf", "print_info: no_alloc              = 0\n" + LOADED.format(size="1000.00") + context(4096, 512.0) + context(4096, 32.0)
    )
    drafter = gguf("draft.gguf", LOADED.format(size="77.00") + context(4096, 8.0))
    device = "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 4090) - 23000 MiB free\n"
    reading = read_text(device + trial + main + drafter)
    printed = printed_of(reading)
    assert (printed.model, printed.device) == ("main.gguf", "NVIDIA GeForce RTX 4090")
    assert printed.kv.value == 512 * MIB
    assert printed.weights.value == 1000 * MIB
    assert any("second model" in note for note in reading.notes)
    assert any("second context" in note for note in reading.notes)


def test_host_buffers_are_no_device():
    log = gguf(
        "a.gguf",
        "load_tensors:   CPU_Mapped model buffer size =  3000.00 MiB\nload_tensors:    CUDA_Host model buffer size =  2.00 MiB\n"
        + context(512, 4.0),
    )
    printed = printed_of(read_text(log))
    assert printed.weights is None
    assert any("host memory" in note for note in printed.notes)


def test_colours_progress_bars_docker_and_powershell(tmp_path):
    line = "\x1b[1;36m(EngineCore pid=7)\x1b[0;0m INFO \x1b[32mAvailable KV cache memory:\x1b[0m 3.00 GiB"
    plain = START + "10%\r20%\r" + line + "\r\n"
    docker = "\n".join(json.dumps({"log": text + "\n", "stream": "stderr", "time": "2026-09-10T10:00:00Z"}) for text in plain.splitlines())
    for number, (text, encoding) in enumerate([(plain, "utf-8"), (docker, "utf-8"), (plain, "utf-16"), (plain, "utf-8-sig")]):
        file = tmp_path / f"{number}.log"
        file.write_text(text, encoding=encoding)
        printed = printed_of(read_logs([file]))
        assert printed.kv.value == 3 * GIB
        assert "\x1b" not in printed.kv.line


def test_a_pipe_and_standard_input():
    """As in `docker logs server | fitcheck calibrate -` and `fitcheck calibrate <(docker logs server)`."""
    log = START + "(Worker_TP0 pid=8) INFO Available KV cache memory: 3.00 GiB\n"
    command = [sys.executable, "-m", "fitcheck", "calibrate", "--format", "json"]
    for words in (["-"], ["/dev/stdin"]):
        ran = subprocess.run([*command, *words], input=log, capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 0, ran.stderr
        report = json.loads(ran.stdout)["result"]
        assert (report["engine"], report["files"]) == ("vllm", ["stdin"])
    ran = subprocess.run([*command, "-"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 4
    assert "stdin: no line of an engine's start" in ran.stderr


def test_ranks_tell_the_degree_where_the_settings_are_not_in_the_log():
    """The lines that people copy: eight ranks of SGLang, three of which are here."""
    log = "".join(
        f"[2026-02-26 16:41:18 TP{rank}] Load weight end. type=KimiK25ForConditionalGeneration, avail mem=210.08 GB, mem usage=73.58 GB.\n"
        f"[2026-02-26 16:41:18 TP{rank}] KV Cache is allocated. #tokens: 2454421, KV size: 160.63 GB\n"
        for rank in (6, 7, 0)
    )
    printed = printed_of(read_text(log))
    assert (printed.tp, printed.pp, printed.devices) == (8, 1, 8)
    assert any(note.startswith("tp 8 by the names of the ranks") for note in printed.notes)
    stated = printed_of(read_text("[2026-02-26 16:40:00] server_args=ServerArgs(model_path='org/one', tp_size=16)\n" + log))
    assert (stated.tp, stated.devices, len(stated.notes)) == (16, 16, 0)
    split = "(Worker_PP1_TP3 pid=3) INFO Model loading took 9.00 GiB memory and 5.2 seconds\n"
    assert (printed_of(read_text(split)).tp, printed_of(read_text(split)).devices) == (4, 8)
    assert printed_of(read_text("(EngineCore_DP0 pid=2) INFO Available KV cache memory: 8.00 GiB\n")).devices is None


def test_a_version_with_and_without_its_commit_is_one():
    api = "INFO 06-22 02:53:50 [api_server.py:1287] vLLM API server version {}\n"
    start = "INFO 06-22 02:54:20 [core.py:70] Initializing a V1 LLM engine (v0.9.2.dev192+g2c11a73) with config: model='org/one'\n"
    assert read_text(api.format("0.9.2.dev192") + start).version == "0.9.2.dev192+g2c11a73"
    for other in ("0.9.1", "0.9.2.dev192+gfffffff"):
        with pytest.raises(DataError, match="different versions"):
            read_text(api.format(other) + start)


COLLECTED = (
    "2026-09-10 10:00:00,123 ",
    "vllm-server-1  | ",
    "2026-05-28T13:30:53.123456789Z ",
    "2026-05-28T13:30:53.123456789+02:00 stdout F ",
    "Nov 25 10:03:07 sv-ai vllm[174008]: ",
    "server | 2026-05-28T13:30:53Z ",
)


@pytest.mark.parametrize("before", COLLECTED)
def test_what_a_collector_writes_before_each_line_hides_no_process(before):
    """Two data-parallel engines are one start, and of ranks the one with least counts, as in the same log without it."""
    log = "".join(
        f"(EngineCore_DP{rank} pid=7{rank}) INFO [core.py:1] Initializing a V1 LLM engine (v0.20.0) with config: model='org/one', "
        f"max_seq_len=4096\n(EngineCore_DP{rank} pid=7{rank}) INFO Available KV cache memory: {3 - rank}.00 GiB\n"
        for rank in (0, 1)
    )
    plain, collected = read_text(log), read_text("".join(before + line + "\n" for line in log.splitlines()))
    assert [(figure.term, figure.value, figure.where) for figure in collected.figures] == [
        (figure.term, figure.value, figure.where) for figure in plain.figures
    ]
    assert printed_of(collected).kv.value == 2 * GIB
    assert not any("starts" in note for note in collected.notes)


def test_a_log_of_a_million_lines_is_read_in_seconds():
    """Days of serving after the start: most of its lines have none of the words that are looked for."""
    line = "INFO 06-22 02:56:47 [loggers.py:116] Engine 000: Avg prompt throughput: 0.0 tokens/s\n"
    began = time.process_time()
    assert printed_of(read_text(START + "Available KV cache memory: 3.00 GiB\n" + line * 100_000)).kv.value == 3 * GIB
    assert time.process_time() - began < 3  # 0.6 s where 1,000,000 of them took 15


def test_lines_are_counted_as_editors_do():
    assert [number for number, line in clean_lines("a\r\nb\rc\nd") if line] == [1, 2, 2, 3]


def test_long_lines_are_cut_and_control_characters_taken_off():
    assert len(next(clean_lines("x" * 10 * LINE_CHARACTERS))[1]) == LINE_CHARACTERS
    assert clean_line("a\x1b]0;title\x07b\x00c\u202ed") == "ab c d"


@pytest.mark.parametrize("text", ["", "nothing here\n" * 100, "\x00\x01\x02" * 1000, "Initializing a V1 LLM engine\n"])
def test_what_is_no_such_log_is_one_clear_error(tmp_path, text):
    file = tmp_path / "x.log"
    file.write_text(text)
    with pytest.raises(DataError, match=r"x\.log: no line of an engine's start"):
        read_logs([file])


def test_missing_files_and_folders(tmp_path):
    for path, words in (
        (tmp_path, "is a folder"),
        (tmp_path / "none.log", "no such file"),
        (tmp_path / "a\x1b[2Jb", r"a\\x1b\[2Jb: there"),
    ):
        with pytest.raises(DataError, match=words):
            read_logs([path])
    with pytest.raises(DataError, match="0 logs"):
        read_logs([])


def test_a_file_larger_than_the_cap_is_read_to_the_cap(tmp_path, monkeypatch):
    monkeypatch.setattr("fitcheck.sources.logs.text.MOST_BYTES", 4096)
    file = tmp_path / "big.log"
    file.write_text(START + "Available KV cache memory: 1.00 GiB\n" + "x\n" * 4096 + "Available KV cache memory: 2.00 GiB\n")
    reading = read_logs([file])
    assert printed_of(reading).kv.value == GIB
    assert any("64 MiB" in note for note in reading.notes)


def test_numbers_beyond_all_bounds_are_passed_over():
    reading = read_text(START + f"GPU KV cache size: {'9' * 25} tokens\nModel loading took {'9' * 20} GiB and 1 seconds\n")
    assert not reading.all("kv_tokens")
    assert not reading.all("weights")


def test_a_sources_address_is_one_that_the_catalogue_takes(tmp_path):
    assert source_url(None, tmp_path / "my log (1).txt") == "file:my-log-1-.txt"
    assert source_url("https://example.org/log", tmp_path) == "https://example.org/log"
    with pytest.raises(UsageError, match="not an address"):
        source_url("my desk", tmp_path)


def test_another_engine_than_the_logs_is_refused():
    with pytest.raises(DataError, match="the log is of vllm"):
        printed_of(read_text(START + "Available KV cache memory: 1.00 GiB\n"), "sglang")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1, b='x, y', c=None, d=1.50)", {"a": 1, "b": "x, y", "c": None, "d": 1.5}),
        ("'a': {'b': 'it\\'s', 'c': [1, 2]}, 'd': True}", {"a.b": "it's", "d": True}),
        ("x=Config(method='mtp', model='m'), model='top'", {"x": "Config", "x.method": "mtp", "x.model": "m", "model": "top"}),
        ("path='C:\\\\models\\\\a'", {"path": "C:\\models\\a"}),
        ("=, :: }{ ((", {}),
    ],
)
def test_settings_are_read_without_evaluating(text, expected):
    assert {name: float(value) if name == "d" and not isinstance(value, bool) else value for name, value in pairs(text)} == expected


def test_deep_nesting_ends():
    assert list(pairs("a=" + "(" * 10_000)) == []


def test_each_wording_says_where_it_was_seen():
    for engine in ENGINES:
        for row in engine.rows:
            assert row.seen, row.pattern
            assert row.source.startswith("https://"), row.pattern
