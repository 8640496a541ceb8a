"""Files whose names count them: `model-00001-of-00062.safetensors`, `x-Q4_K_M-00001-of-00005.gguf`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from fitcheck.frozen import frozen
from fitcheck.sources.store import StoredFile
from fitcheck.sources.stored.text import named

_NUMBERED = re.compile(
    r"^(?P<stem>.+?)[-_](?P<number>\d{1,6})[-_]of[-_](?P<count>\d{1,6})(?P<rest>(?:\.[\w-]+)?)\.(?:safetensors|gguf)$", re.IGNORECASE
)
OF_ANY_MODEL = re.compile(r"(?:config|model|consolidated)(?:-\d{5}-of-\d{5})?\.(?:json|gguf|safetensors)")
"""Names that files of any model have: their folder's says which it is."""
PRECISIONS = re.compile(
    r"(?<![a-z0-9])(?:fp8(?:_?e4m3(?:fn)?|_?e5m2)?|bf16|fp16|f16|fp32|f32|int8|int4|nvfp4|mxfp4|mxfp8|awq|gptq|nf4|fp4|[48]-?bit|w4a16|w8a8)(?![a-z0-9])",
    re.IGNORECASE,
)
"""A word of a file's name that says a precision."""
_QUANT = re.compile(
    r"(?<![A-Za-z0-9])(?:UD-)?((?:I?Q|TQ)\d(?:_[A-Z0-9]{1,3}){0,3}|BF16|F16|F32|FP16|MXFP4(?:_MOE)?|NVFP4)(?![A-Za-z0-9])", re.IGNORECASE
)


@frozen
class Series:
    """The files of one series in order, of which there should be `count`; a file without a number is a series of one."""

    stem: str
    count: int
    files: tuple[StoredFile, ...]
    numbers: tuple[int, ...]


def series_of(files: Iterable[StoredFile]) -> list[Series]:
    """The series that files form, by the path without its number."""
    found: dict[tuple[str, int], list[tuple[int, StoredFile]]] = defaultdict(list)
    for file in files:
        match = _NUMBERED.match(file.path)
        if match and int(match["count"]):
            found[match["stem"] + match["rest"], int(match["count"])].append((int(match["number"]), file))
        else:
            found[file.path.rpartition(".")[0], 1].append((1, file))
    several: dict[str, int] = defaultdict(int)
    for stem, _ in found:
        several[stem] += 1
    series = []
    for (stem, count), members in found.items():
        members.sort(key=lambda member: member[0])
        shown = stem if several[stem] == 1 else f"{stem}-of-{count}"
        series.append(Series(shown, count, tuple(file for _, file in members), tuple(number for number, _ in members)))
    return series


def missing_in(series: Series) -> str | None:
    """What is missing from a series, naming the numbers, or None.

    Files are counted from 1, or from 0 to one below the count, or, as OpenAI counts those of gpt-oss, from 0 to the count itself.
    """
    if series.count == 1:
        return None
    there = set(series.numbers)
    if series.count > 100_000:
        return None if len(there) == series.count else f"{named(series.stem)} is said to have {series.count:,} files"
    start = 0 if 0 in there and series.count not in there else 1
    absent = [number for number in range(start, start + series.count) if number not in there]
    if not absent:
        return None
    shown = ", ".join(f"{number:05d}" for number in absent[:5]) + (f" and {len(absent) - 5:,} more" if len(absent) > 5 else "")
    verb = "is" if len(absent) == 1 else "are"
    return f"{named(series.stem)} has {len(there)} of {series.count:,} files: {shown} of {series.count:05d} {verb} missing"


def quant_in(name: str) -> str | None:
    """The quantisation that a GGUF file's name says (`Q4_K_M`, `IQ2_XXS`), in capitals, or None."""
    found = _QUANT.findall(name)
    return found[-1].upper() if found else None
