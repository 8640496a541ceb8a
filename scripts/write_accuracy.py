"""Write docs/accuracy.md: what fitcheck predicts beside what engines printed.

    python scripts/write_accuracy.py [--check]

With `--check` nothing is written, and the exit code is 1 where the committed page differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from accuracy_figures import (
    HIGH,
    LOW,
    MISS,
    Answer,
    Measures,
    Whole,
    answers,
    exact_rows,
    notes,
    whole_logs,
    whole_recipes,
)

from fitcheck import load_catalogue
from fitcheck.units import GIB

PAGE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"
NOT_KNOWN = "address not known"

INTRO = """# Accuracy

Written by `python scripts/write_accuracy.py` from the figures in `tests/data/accuracy/`; with `--check` (in the test suite) it tells
whether this page is current. Nothing here is typed by hand but the causes (`notes.yaml` there).

## What is measured

- **KV cache and state.** Public start-up logs print the bytes that an engine set aside and the tokens that they hold, or the
  bytes that one request needs. `fitcheck.kv_memory` is asked with the model's config, the context, the KV dtype, the parallel degrees
  and, where the log prints it, the block size. Nothing else that the log may say is passed. Errors are signed; negative is too little,
  the unsafe side. A row that fitcheck declines is *unknown* and counts against every share.
- **With the record's settings**: the same rows, where those explained below are asked with the settings that their sources state besides.
- **Plain formula**: 2 x layers x KV heads x head dim x bytes x context, the heads divided by tensor parallelism, on the same rows.
- **llama.cpp's own counts**: the engine run without allocating, over real configs; equal to the byte or wrong.
- **Whole device**: weights + cache + overhead against utilisation x memory.
"""

SCORES = """
The 90th percentile is taken as the scorer of these records takes it: the error below which nine of ten answered rows lie. Aimed at are a
median of at most 0.5 %, a 90th percentile of at most 3 %, no row under by more than 3 %, and at most 5 % unknown.
"""

OFF = f"""
## Rows off by more than {MISS * 100:.0f} %, and unknown ones

Every one, with its error as asked, with the record's settings, and by the plain formula. The causes follow by number.
"""

DOUBTED = """
## Records we doubt
"""

WHOLE = """
## Whole device

Rows that print weights, cache and utilisation. Predicted are the weights as printed (recipes: as the catalogue has them for
that many devices) + the cache of our engine module for the printed tokens or concurrency + the overhead that the catalogue has for the
device, the number of them and the engine's version, or the profiling peak of our vLLM module with what comes beside it where that is
more. Compared is utilisation x memory, which the engine fills. Beside what the logs state, vLLM's own defaults of
`max_num_batched_tokens` and `max_num_seqs` for the device are passed.

What this cannot show: the catalogue's overheads are medians of public logs, many of them these very rows. So it tells how far
one figure per device, number of devices and old version carries, not how an unseen build would fare; and where overheads of 1, 2 and
4 GiB are seen on one card, no single figure is right. `fit` answers for new versions and never takes the figure of an old one; few of these
logs are of versions that count CUDA graphs inside the share (0.21 and later). And of the recipes of forks and own images below, which
DGX Spark owners follow, every one comes out too low: their overheads are larger than what stock versions show.
"""

FORKS = """
Recipes of forks and own images say neither batch nor block sizes: their settings are incomplete. They are shown, not counted:
"""


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    text = page()
    if not parser.parse_args().check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write("stale: docs/accuracy.md; run python scripts/write_accuracy.py\n")
    return 1


def page() -> str:
    """The whole page."""
    found = answers()
    parts = (INTRO, *_scoreboard(found), *_families(found), OFF, *_misses(found), DOUBTED, *_doubted(), WHOLE, *_whole())
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; columns whose name ends in `>` are figures."""
    names = head.split("|")
    rule = "|".join("---:" if name.endswith(">") else "---" for name in names)
    lines = ["|".join(name.rstrip(">") for name in names), rule, *("|".join(cell.replace("|", "/") for cell in row) for row in rows)]
    return "\n".join(f"|{line}|" for line in lines)


def signed(error: float | None) -> str:
    """An error as people read it."""
    if error is None:
        return "unknown"
    percent = 100 * error
    text = f"{percent:+,.0f}" if abs(percent) >= 100 else f"{percent:+.1f}" if abs(percent) >= 1 else f"{percent:+.2f}"
    return ("0" if float(text.replace(",", "")) == 0 else text.replace("-", "\N{MINUS SIGN}")) + " %"


def share(value: float | None) -> str:
    """A share without a sign."""
    if value is None:
        return "unknown"
    if round(value, 5) == 0:
        return "0 %"
    return f"{100 * value:,.{0 if value >= 1 else 1 if value >= 0.01 else 3}f} %"


def _link(name: str, source: str) -> str:
    return f"[{name}]({source})" if source.startswith("https://") else f"{name} ({NOT_KNOWN})"


def _scoreboard(found: list[Answer]) -> list[str]:
    kinds = {
        "fitcheck, as asked": Measures.of(answer.error for answer in found),
        "fitcheck, with the record's settings": Measures.of(answer.told for answer in found),
        "plain formula": Measures.of(answer.plain for answer in found),
    }
    rows = [
        (name, str(kind.rows), str(kind.unknown), *map(share, (kind.median, kind.p90, kind.within_1, kind.within_3)), str(kind.under))
        for name, kind in kinds.items()
    ]
    counts = exact_rows()
    equal = sum(same for _, same in counts)
    families = sorted({row["family"] for row, _ in counts})
    configs = len({row["config"] for row, _ in counts})
    words = (
        f"llama.cpp's own counts: **{equal} of {len(counts)}** equal to the byte, over {configs} configs of {len(families)} architectures "
        f"({', '.join(families)}), with 1 to 8 sequences, unified or not, f16, q8_0 and q4_0 caches, full or windowed sliding layers."
    )
    head = "prediction|rows>|unknown>|median error>|90th percentile>|within 1 %>|within 3 %>|under by more than 3 %>"
    return ["## Scoreboard", table(head, rows), SCORES, _missed_words(kinds), words]


def _missed_words(kinds: dict[str, Measures]) -> str:
    asked, told = (_missed(kinds[name]) for name in list(kinds)[:2])
    return f"Aims missed as asked: {asked}; with the record's settings: {told}. The rows behind them are explained below."


def _missed(kind: Measures) -> str:
    found = {
        "the median": kind.median is None or kind.median > 0.005,
        "the 90th percentile": kind.p90 is None or kind.p90 > MISS,
        "rows that are under": kind.under > 0,
        "rows that are unknown": kind.unknown > 0.05 * kind.rows,
    }
    return ", ".join(name for name, bad in found.items() if bad) or "none"


def _families(found: list[Answer]) -> list[str]:
    groups: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for answer in found:
        groups[answer.row["engine"], answer.row["family"]].append(answer)
    rows = [_family(engine, family, groups[engine, family]) for engine, family in sorted(groups)]
    head = "engine|family|rows>|unknown>|median>|worst>|within 3 %>|median with settings>|plain: median>|plain: within 3 %>"
    return ["## By engine and family", table(head, rows)]


def _family(engine: str, family: str, group: list[Answer]) -> tuple[str, ...]:
    asked, told = Measures.of(answer.error for answer in group), Measures.of(answer.told for answer in group)
    plain = Measures.of(answer.plain for answer in group)
    worst = max((answer.error for answer in group if answer.error is not None), key=abs, default=None)
    figures = (
        share(asked.median),
        signed(worst),
        share(asked.within_3),
        share(told.median),
        share(plain.median),
        share(plain.within_3),
    )
    return (engine, family, str(asked.rows), str(asked.unknown), *figures)


def misses(found: list[Answer]) -> list[Answer]:
    """Rows that are unknown, or off by more than 3 % as asked."""
    return [answer for answer in found if answer.error is None or abs(answer.error) > MISS]


def _misses(found: list[Answer]) -> list[str]:
    off = misses(found)
    causes = {name: number for number, miss in enumerate(notes()["misses"], 1) for name in miss["rows"]}
    rows = [
        (
            _link(answer.row["id"], answer.row["source"]),
            f"{answer.row['engine']}, {answer.row['model']}",
            f"{answer.row['expected_bytes']:,}",
            signed(answer.error),
            signed(answer.shown) + (" (inferred)" if answer.inferred else ""),
            signed(answer.plain),
            str(causes.get(answer.row["id"], "not known")),
        )
        for answer in sorted(off, key=lambda answer: causes.get(answer.row["id"], 0))
    ]
    head = "row|engine, model|engine's bytes>|as asked>|with the record's settings>|plain>|cause>"
    return [table(head, rows), "The causes:", "\n".join(_cause(number, miss) for number, miss in enumerate(notes()["misses"], 1))]


def _cause(number: int, miss: dict[str, Any]) -> str:
    names: dict[str, list[str]] = defaultdict(list)
    for name, settings in miss["rows"].items():
        named = {**settings, **({"kv_dtype": miss["kv_dtype"]} if "kv_dtype" in miss else {})}
        names[", ".join(f"{key}={value}" for key, value in named.items())].append(name)
    shown = "; ".join(f"{', '.join(rows)}: `{settings}`" for settings, rows in names.items() if settings)
    words = f"{number}. {miss['cause']}" + (f" Settings: {shown}." if shown else "")
    return words + (f" Stated by: {miss['stated']}." if "stated" in miss else "")


def _doubted() -> list[str]:
    return ["\n".join(f"- {', '.join(entry['rows'])}: {entry['why']}" for entry in notes()["doubted"])]


def _whole() -> list[str]:
    catalogue = load_catalogue()
    logs, unasked = whole_logs(catalogue)
    stock, forks, incomplete = whole_recipes(catalogue)
    every = [*logs, *stock]
    good = sum(device.good for device in every)
    bounds = f"between {signed(LOW)} and {signed(HIGH)}"
    words = (
        f"**{good} of {len(every)}** rows ({share(good / len(every))}) lie {bounds}: {sum(device.good for device in logs)} of {len(logs)} "
        f"logs, {sum(device.good for device in stock)} of {len(stock)} recipes of stock versions. The misses:"
    )
    return [
        words,
        _devices([device for device in every if not device.good]),
        "Their causes:",
        "\n".join(f"- {', '.join(entry['rows'])}: {entry['why']}." for entry in notes()["devices"]),
        "Recipes of stock versions:",
        _devices(stock),
        FORKS,
        _devices(forks),
        f"Not asked, of logs that print weights, cache and utilisation: {_counted(unasked)}.",
        f"Not asked, of recipes with a share of memory and tokens: {_counted(incomplete)}.",
    ]


def _devices(found: list[Whole]) -> str:
    head = "row|model, engine, device|weights GiB>|cache GiB>|overhead GiB>|budget GiB>|error>|overhead that the row leaves, GiB>"
    return table(head, (_device(device) for device in found))


def _device(device: Whole) -> tuple[str, ...]:
    sizes = (f"{size / GIB:.2f}" for size in (device.weights, device.cache, device.overhead, device.budget))
    seen = "not stated" if device.seen is None else f"{device.seen / GIB:.2f}"
    return (_link(device.name, device.source), device.setting, *sizes, signed(device.error), seen)


def _counted(reasons: Counter[str]) -> str:
    return "; ".join(f"{count}: {reason}" for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])))


if __name__ == "__main__":
    raise SystemExit(main())
