"""Benchmark results as speeds: `llama-bench` (table, CSV, JSON, JSON lines), `vllm bench`, `sglang.bench_serving` (printed or JSON).

What a result does not say is not made up: a throughput without the number of users at once is kept with `users` 0 and said to be so.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from fitcheck.sources.logs.reading import BenchSpeed
from fitcheck.sources.logs.text import clean_line, uncollected

MOST_RESULTS = 2_000
MOST_TOK_PER_S = Decimal(10) ** 9
_BENCH_TEST = re.compile(r"(pp|tg) ?(\d{1,9})(?: @ d(\d{1,9}))?")
"""`pp512`, `tg128 @ d4096`; before build 2300 or so `pp 512`."""
_TEST_SPEED = re.compile(r"(\d{1,12}(?:[.,]\d{1,6})?)(?: {1,4}(?:±|\+-) {0,4}(\d{1,12}(?:[.,]\d{1,6})?))?")
_LABEL = re.compile(r"^[#\s]{0,8}([A-Z][\w ()/.'-]{2,60}):\s{1,60}(\S.{0,60})$")
_THROUGHPUT = re.compile(r"Throughput: [\d.]{1,20} requests/s, ([\d.]{1,20}) total tokens/s, ([\d.]{1,20}) output tokens/s")
_LATENCY = re.compile(r"Avg latency: ([\d.]{1,20}) seconds")
_TITLE = "Serving Benchmark Result"
_RULE = re.compile(r"={20,}\s*$")

SERVING = {
    "Successful requests": "completed",
    "Maximum request concurrency": "max_concurrency",
    "Max request concurrency": "max_concurrency",
    "Peak concurrent requests": "peak_concurrency",
    "Total input tokens": "total_input_tokens",
    "Total generated tokens": "total_output_tokens",
    "Output token throughput (tok/s)": "output_throughput",
    "Median TPOT (ms)": "median_tpot_ms",
    "Mean TPOT (ms)": "mean_tpot_ms",
    "Backend": "backend",
}
"""What the printed block calls the fields of the JSON result (vLLM `benchmarks/serve.py`, SGLang `bench_serving.py`)."""


class Bench(NamedTuple):
    """Speeds of a result, the engine and device where it names them, and what it does not say.

    `models` are all that the results of one form in one file name: speeds of several are no speeds of one.
    """

    speeds: tuple[BenchSpeed, ...]
    engine: str | None = None
    model: str | None = None
    device: str | None = None
    version: str | None = None
    day: str | None = None
    notes: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


def read_bench(text: str) -> Bench | None:
    """The benchmark results in a text, or None where there are none."""
    by_form = [list(reader(text)) for reader in (_objects, _csv, _table, _blocks, _offline)]
    found = [result for results in by_form for result in results][:MOST_RESULTS]
    if not found:
        return None

    def first(name: str) -> Any:
        return next((value for result in found if (value := getattr(result, name))), None)

    speeds = tuple(dict.fromkeys(speed for result in found for speed in result.speeds))
    notes = tuple(dict.fromkeys(note for result in found for note in result.notes))
    named = [tuple(dict.fromkeys(result.model for result in results if result.model)) for results in by_form]
    models = max(named, key=len)
    return Bench(speeds, first("engine"), first("model"), first("device"), first("version"), first("day"), notes, models)


def _number(value: Any) -> Decimal | None:
    """A finite, positive number in any of the forms it comes in."""
    if value is None or isinstance(value, bool) or len(str(value)) > 40:
        return None
    try:
        number = Decimal(str(value).strip().replace(",", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() and 0 < number < MOST_TOK_PER_S else None


def _whole(value: Any) -> int:
    number = _number(value)
    return int(number) if number is not None and number == int(number) else 0


def _text(value: Any) -> str | None:
    return clean_line(value)[:200].strip() or None if isinstance(value, str) else None


def _objects(text: str) -> Iterator[Bench]:
    """Results in a JSON document, or in lines of JSON among other lines."""
    for value in _documents(text):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                yield from _object(item)


def _documents(text: str) -> Iterator[Any]:
    stripped = text.lstrip("\ufeff \t\r\n")
    whole = stripped if stripped[:1] in ("{", "[") else _embedded(stripped)
    if whole and (value := _json(whole)) is not None:
        yield value
        return
    lines = (line for line in text.splitlines() if line.lstrip()[:1] == "{" and ("avg_ts" in line or "throughput" in line))
    for _, line in zip(range(MOST_RESULTS), lines, strict=False):
        yield _json(line)


def _embedded(text: str) -> str | None:
    """A JSON list that stands in lines of its own after lines that are none (`llama-bench -o json` with its warnings)."""
    start, end = text.find("\n[\n"), text.rfind("\n]")
    return text[start + 1 : end + 2] if 0 <= start < end else None


def _json(text: str) -> Any:
    """A document, its fractions as text: `_number` is where numbers are judged."""
    try:
        return json.loads(text, parse_float=str, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None


def _object(item: dict[str, Any]) -> Iterator[Bench]:
    if "avg_ts" in item and ("n_prompt" in item or "n_gen" in item):
        yield _llama_bench(item)
    elif "output_throughput" in item:
        yield _serving(item)
    elif "tokens_per_second" in item and "total_num_tokens" in item:
        yield Bench(
            (), "vllm", notes=("vllm bench throughput counts tokens read and written together in its JSON: no speed follows from it",)
        )
    elif "avg_latency" in item and "latencies" in item:
        yield Bench(
            (), "vllm", notes=("vllm bench latency does not say in its JSON how many tokens were written: no speed follows from it",)
        )


def _llama_bench(item: dict[str, Any]) -> Bench:
    prompt, written, depth = (_whole(item.get(name)) for name in ("n_prompt", "n_gen", "n_depth"))
    build = item.get("build_number")
    common: dict[str, Any] = {
        "engine": "llama.cpp",
        "model": _text(item.get("model_filename")) or _text(item.get("model_type")),
        "device": _text(item.get("gpu_info")) or None,
        "version": str(build)[:20] if isinstance(build, int | str) else None,
        "day": (_text(item.get("test_time")) or "")[:10] or None,
    }
    if prompt and written:
        return Bench((), **common, notes=("a llama-bench test that reads and writes in one (-pg) tells neither speed",))
    speed, spread = _number(item.get("avg_ts")), _number(item.get("stddev_ts"))
    if speed is None or not (prompt or written):
        return Bench((), **common)
    return Bench((_bench_speed("pp" if prompt else "tg", prompt or written, depth, speed, spread),), **common)


def _bench_speed(test: str, tokens: int, depth: int, speed: Decimal, spread: Decimal | None) -> BenchSpeed:
    after = f" after {depth} tokens" if depth else ""
    words = f"{test}{tokens}{after}"
    return BenchSpeed("prefill" if test == "pp" else "decode", speed, 1, "total", words, "llama-bench", spread)


def _csv(text: str) -> Iterator[Bench]:
    start = text.find("build_commit,")
    if start < 0 or "avg_ts" not in text[start : start + 4096]:
        return
    lines = text[start:].splitlines()[: MOST_RESULTS + 1]
    try:
        yield from (_llama_bench(row) for row in csv.DictReader(io.StringIO("\n".join(lines))) if row.get("avg_ts"))
    except csv.Error:
        return


def _table(text: str) -> Iterator[Bench]:
    """Rows of llama-bench's Markdown table, whose columns depend on what was varied."""
    names: list[str] = []
    if "t/s" not in text:
        return
    for line in text.splitlines():
        if "|" not in line[:200] or not (row := uncollected(clean_line(line[:2000])).strip()).startswith("|"):
            continue
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if "t/s" in cells and "test" in cells:
            names = cells
        elif names and len(cells) == len(names):
            yield from _table_row(dict(zip(names, cells, strict=True)))


def _table_row(row: dict[str, str]) -> Iterator[Bench]:
    test, speed = _BENCH_TEST.fullmatch(row["test"]), _TEST_SPEED.fullmatch(row["t/s"])
    if test is None or speed is None:
        return
    value, spread = (_number(part.replace(",", ".")) if part else None for part in speed.groups())
    if value is not None:
        yield Bench((_bench_speed(test[1], int(test[2]), int(test[3] or 0), value, spread),), "llama.cpp", row.get("model"))


def _blocks(text: str) -> Iterator[Bench]:
    """The block that `vllm bench serve` and `sglang.bench_serving` print, from its title to the rule that ends it."""
    fields: dict[str, Any] | None = None
    if _TITLE not in text:
        return
    for line in text.splitlines():
        if _TITLE in line:
            if fields:
                yield _serving(fields)
            fields = {}
        elif fields is not None and _RULE.search(line[:200]):
            yield _serving(fields)
            fields = None
        elif fields is not None and (found := _LABEL.match(clean_line(line[:200]))):
            name = SERVING.get(found[1].strip())
            if name:
                fields[name] = found[2].strip()
    if fields:
        yield _serving(fields)


def _serving(item: dict[str, Any]) -> Bench:
    backend = _text(item.get("backend")) or ""
    engine = "sglang" if "sglang" in backend else "vllm" if "vllm" in backend else None
    users = _whole(item.get("max_concurrency")) or _whole(item.get("peak_concurrency"))
    written, asked = _whole(item.get("total_output_tokens")), _whole(item.get("completed"))
    read = _whole(item.get("total_input_tokens"))
    about = f"{read // asked} in, {written // asked} out" if asked else "lengths not printed"
    tool = "sglang.bench_serving" if engine == "sglang" else "vllm bench serve"
    speeds = []
    if (total := _number(item.get("output_throughput"))) is not None:
        speeds.append(BenchSpeed("decode", total, users, "total", about, tool))
    if (step := _number(item.get("median_tpot_ms"))) is not None and users > 1:
        speeds.append(BenchSpeed("decode", (Decimal(1000) / step).quantize(Decimal("0.01")), users, "stream", f"{about}, median", tool))
    notes = () if users else ("the benchmark set no number of requests at once, so its throughput is of nobody knows how many users",)
    return Bench(tuple(speeds), engine, _text(item.get("model_id")), day=_bench_day(item.get("date")), notes=notes)


def _bench_day(value: Any) -> str | None:
    found = re.match(r"(20\d\d)(\d\d)(\d\d)-", value) if isinstance(value, str) else None
    return "-".join(found.groups()) if found else None


def _offline(text: str) -> Iterator[Bench]:
    """`vllm bench throughput` and `latency` as printed."""
    for found in _THROUGHPUT.finditer(text):
        value = _number(found[2])
        if value is not None:
            speed = BenchSpeed("decode", value, 0, "total", "all prompts at once", "vllm bench throughput")
            yield Bench((speed,), "vllm", notes=("vllm bench throughput does not print how many requests ran at once",))
    for found in _LATENCY.finditer(text):
        shape = _latency_shape(text[max(0, found.start() - (1 << 20)) : found.start()])
        seconds = _number(found[1])
        if shape is None or seconds is None:
            yield Bench((), "vllm", notes=("vllm bench latency was read without its arguments: how many tokens were written is not said",))
            continue
        read, written, batch = shape
        rate = (Decimal(written * batch) / seconds).quantize(Decimal("0.01"))
        words = f"{read} in, {written} out, reading included"
        yield Bench((BenchSpeed("decode", rate, batch, "total", words, "vllm bench latency"),), "vllm")


def _latency_shape(before: str) -> tuple[int, int, int] | None:
    found = [re.findall(rf"\b{name}=(\d{{1,7}})\b", before)[-1:] for name in ("input_len", "output_len", "batch_size")]
    if not all(found):
        return None
    read, written, batch = (int(values[0]) for values in found)
    return read, written, batch
