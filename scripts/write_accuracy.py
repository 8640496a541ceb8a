"""Write docs/accuracy.md: what fitcheck predicts beside what engines printed.

    python scripts/write_accuracy.py [--check]

With `--check` nothing is written, and the exit code is 1 where the committed page differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from accuracy_devices import whole_section
from accuracy_figures import MISS, Answer, Measures, answers, exact_rows, notes
from accuracy_tables import link, share, signed, table
from accuracy_vllm import vllm_section

PAGE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"

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
- **vLLM's own counts**: the engine's planning of its pool, over real configs and without a GPU; equal or wrong.
- **Whole device**: weights + cache + overhead against utilisation x memory.
"""

SCORES = """
ik_llama.cpp keeps the whole context for layers with sliding windows where llama.cpp does not, so under the other's name its rows of such
models are far too low. The 90th percentile is taken as the scorer of these records takes it: the error below which nine of ten answered
rows lie. Aimed at are a median of at most 0.5 %, a 90th percentile of at most 3 %, no row under by more than 3 %, and at most 5 % unknown.
"""

OFF = f"""
## Rows off by more than {MISS * 100:.0f} %, and unknown ones

Every one, with its error as asked, with the record's settings, and by the plain formula. The causes follow by number.
"""

DOUBTED = """
## Records we doubt
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
    parts = (INTRO, *_scoreboard(found), *_families(found), OFF, *_misses(found), DOUBTED, *_doubted(), *vllm_section(), *whole_section())
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _scoreboard(found: list[Answer]) -> list[str]:
    kinds = {
        "fitcheck, as asked": Measures.of(answer.error for answer in found),
        "fitcheck, with the record's settings": Measures.of(answer.told for answer in found),
        "fitcheck, as asked, ik_llama.cpp under llama.cpp's name": Measures.of(answer.parent for answer in found),
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
            link(answer.row["id"], answer.row["source"]),
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


if __name__ == "__main__":
    raise SystemExit(main())
