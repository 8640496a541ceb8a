"""The part of docs/accuracy.md on whole devices."""

from __future__ import annotations

from collections import Counter

from accuracy_figures import notes
from accuracy_tables import link, share, signed, table
from accuracy_whole import HIGH, LOW, Whole, whole_logs, whole_recipes, whole_unseen

from fitcheck import load_catalogue
from fitcheck.catalogue.load import Catalogue
from fitcheck.units import GIB

WHOLE = """
## Whole device

Rows that print weights, cache and utilisation. Predicted are the weights as printed (recipes: as the catalogue has them for
that many devices) + the cache of our engine module for the printed tokens or concurrency + the overhead that the catalogue has for the
device, the number of them and the engine's version, or the profiling peak of our vLLM module with what comes beside it where that is
more. Compared is utilisation x memory, which the engine fills. Beside what the logs state, vLLM's own defaults of
`max_num_batched_tokens` and `max_num_seqs` for the device are passed.

What this cannot show: the catalogue's overheads are medians of public logs, many of them these very rows. So it tells how far
one figure per device, number of devices and old version carries, not how an unseen build would fare, which the logs under the next
heading tell; and where overheads of 1, 2 and 4 GiB are seen on one card, no single figure is right. `fit` answers for new versions and
never takes the figure of an old one; few of these logs are of versions that count CUDA graphs inside the share (0.20 and later). And of the
recipes of forks and own images below, which DGX Spark owners follow, most come out too low: their overheads are larger than what stock
versions show.
"""

UNSEEN = """
## Whole device, logs that were read later

Logs read after the figures above stood. *When first read* is the error of the figures and rules as they then were: the honest measure of
what an unseen build meets. The last columns are today's. Two kinds are kept apart: logs from which a rule or a figure has since been
taken (memory outside PyTorch, what CUDA graphs take, what is held while sampling: all of vLLM 0.19.0 on H100s), and logs from which none
has. But the second kind has been looked at too: that they came out too low on DGX Spark led to a new look at its overhead, whose figure is
still of other runs.
"""

FORKS = """
Recipes of forks and own images say neither batch nor block sizes: their settings are incomplete. They are shown, not counted:
"""


def whole_section() -> list[str]:
    """Logs, recipes, and logs that were read after the figures stood."""
    catalogue = load_catalogue()
    return [WHOLE, *_known(catalogue), UNSEEN, *_unseen(catalogue)]


def _known(catalogue: Catalogue) -> list[str]:
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


def _unseen(catalogue: Catalogue) -> list[str]:
    used, unseen = whole_unseen(catalogue)
    first = sum(LOW <= device.first <= HIGH for device in [*used, *unseen] if device.first is not None)
    bounds = f"between {signed(LOW)} and {signed(HIGH)}"
    parts = [f"**{first} of {len(used) + len(unseen)}** lay {bounds} when first read."]
    for kind, rows in (
        ("Logs from which no figure is taken", unseen),
        ("Logs that a rule or a figure has since taken something from", used),
    ):
        before = sum(LOW <= device.first <= HIGH for device in rows if device.first is not None)
        words = f"{kind}: {before} of {len(rows)} when first read, **{sum(device.good for device in rows)} of {len(rows)}** today."
        parts += [words, _later(rows)]
    return [*parts, "The causes:", "\n".join(f"- {', '.join(entry['rows'])}: {entry['why']}." for entry in notes()["unseen"])]


def _later(found: list[Whole]) -> str:
    head = "row|model, engine, device|weights GiB>|cache GiB>|budget GiB>|overhead that the row leaves, GiB>|"
    head += "when first read>|overhead GiB>|error>"
    return table(head, (_later_device(device) for device in found))


def _later_device(device: Whole) -> tuple[str, ...]:
    name, setting, weights, cache, overhead, budget, error, seen = _device(device)
    return (name, setting, weights, cache, budget, seen, signed(device.first), overhead, error)


def _devices(found: list[Whole]) -> str:
    head = "row|model, engine, device|weights GiB>|cache GiB>|overhead GiB>|budget GiB>|error>|overhead that the row leaves, GiB>"
    return table(head, (_device(device) for device in found))


def _device(device: Whole) -> tuple[str, ...]:
    sizes = (f"{size / GIB:.2f}" for size in (device.weights, device.cache, device.overhead, device.budget))
    seen = "not stated" if device.seen is None else f"{device.seen / GIB:.2f}"
    return (link(device.name, device.source), device.setting, *sizes, signed(device.error), seen)


def _counted(reasons: Counter[str]) -> str:
    return "; ".join(f"{count}: {reason}" for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
