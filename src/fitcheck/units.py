"""Bytes, tokens, days and instants as people write them; the only home of 1000 and 1024.

Vendors sell GB (1000³) and memory is reported in GiB (1024³). Inside the program a size is an `int` of bytes; text is parsed and
printed here and nowhere else.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime
from decimal import Decimal

from fitcheck.errors import UsageError

KIB = 1024
MIB = 1024**2
GIB = 1024**3
GB = 1000**3

_BYTE_UNITS = {
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": GB,
    "TB": 1000**4,
    "KIB": KIB,
    "MIB": MIB,
    "GIB": GIB,
    "TIB": 1024**4,
}
_SIZE = re.compile(r"^\s*([0-9][0-9_,]*(?:\.[0-9]+)?)\s*((?:[KMGT]i?)?B)\s*$", re.IGNORECASE)
_BITS = r"[KMGT]b(?!\w)|[bB]it|bps"
_PER_SECOND = r"(?i)\s*/\s*s(?:ec)?\s*$"
_SHORT_UNITS = ("GiB", "GB", "MiB", "MB", "KiB", "KB")
_SHORT_DIGITS = 2
_CONTEXT_SUFFIXES = {"": 1, "K": KIB, "M": MIB}
_VOLUME_SUFFIXES = {"": 1, "K": 1000, "M": 1000**2, "B": 1000**3, "G": 1000**3, "T": 1000**4}
_NUMBER = re.compile(r"^\s*([0-9][0-9_,]*(?:\.[0-9]+)?)\s*([A-Za-z]?)\s*$")
MAX_DIGITS = 30
_MONTH = re.compile(r"^\d{4}-\d{2}$")


def parse_bytes(text: str) -> int:
    """Bytes in a size such as `102GiB`, `128 GB` or `197822818044 B`, rounded to the nearest byte.

    A bare number is refused, because nobody can tell GB from GiB in it. Raises `UsageError`.
    """
    match = _SIZE.match(text)
    if match is None:
        raise UsageError(f"cannot read {text!r} as a size", hint="write a number with its unit, such as 102GiB or 128GB")
    number = _number(match[1])
    return int((number * _BYTE_UNITS[match[2].upper()]).to_integral_value())


def parse_bandwidth(text: str) -> int:
    """Bytes a second in a memory bandwidth such as `936GB/s` or `3.35 TB/s`.

    Bits are refused (`Gb/s`, `Gbit/s`): memory is sold in bytes a second, links in bits. Raises `UsageError`.
    """
    hint = "write bytes a second with the unit, such as 936GB/s or 3.35TB/s"
    size, found = re.subn(_PER_SECOND, "", text)
    if re.search(_BITS, text):
        raise UsageError(f"{text!r} reads as bits a second", hint=hint)
    if not found:
        raise UsageError(f"cannot read {text!r} as a bandwidth", hint=hint)
    try:
        return parse_bytes(size)
    except UsageError as error:
        raise UsageError(f"cannot read {text!r} as a bandwidth", hint=hint) from error


def short_size(size_bytes: int) -> str:
    """The shortest usual text that `parse_bytes` reads back as just this size: `24GiB`, `80GB`, `23.55GiB`, else `25286017025B`."""
    for unit in _SHORT_UNITS:
        scale = _BYTE_UNITS[unit.upper()]
        number = round(Decimal(size_bytes) / scale, _SHORT_DIGITS)
        if number >= 1 and int((number * scale).to_integral_value()) == size_bytes:
            return f"{number.normalize():f}{unit}"
    return f"{size_bytes}B"


def short_bandwidth(bytes_per_s: int) -> str:
    """As `short_size`, a second, in the decimal units that bandwidths are given in where they serve: `936GB/s`, `3350GB/s`."""
    number = round(Decimal(bytes_per_s) / GB, _SHORT_DIGITS)
    exact = number > 0 and int((number * GB).to_integral_value()) == bytes_per_s
    return f"{number.normalize():f}GB/s" if exact else f"{bytes_per_s}B/s"


def format_gib(size_bytes: int, digits: int = 2) -> str:
    """A size in GiB with its unit: `format_gib(130663006208)` is `121.69 GiB`."""
    return f"{gib(size_bytes):,.{digits}f} GiB"


def gib(size_bytes: int) -> float:
    """Bytes as a number of GiB (1024³)."""
    return size_bytes / GIB


def format_gb(size_bytes: int, digits: int = 0) -> str:
    """A size in vendors' GB (1000³) with its unit."""
    return f"{size_bytes / GB:,.{digits}f} GB"


def format_size(size_bytes: int) -> str:
    """A size in the largest binary unit that leaves at least one whole part: `576 B`, `6.4 KiB`, `148.3 MiB`, `92.12 GiB`."""
    for unit, scale, digits in (("GiB", GIB, 2), ("MiB", MIB, 1), ("KiB", KIB, 1)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:,.{digits}f} {unit}"
    return f"{size_bytes:,} B"


def parse_context(text: str) -> int:
    """Tokens in a context length: `262144`, `128k` (131,072) or `1M` (1,048,576).

    Context lengths are powers of two by custom, so the suffixes are binary here and nowhere else. Raises `UsageError`.
    """
    return _parse_count(text, _CONTEXT_SUFFIXES, "a context length", "such as 32768, 128k or 1M")


def parse_volume(text: str) -> int:
    """Tokens in a volume of work: `50M` is 50,000,000 and `2.5B` is 2,500,000,000. Raises `UsageError`."""
    return _parse_count(text, _VOLUME_SUFFIXES, "a number of tokens", "such as 500k, 50M or 2B")


def _parse_count(text: str, suffixes: dict[str, int], what: str, example: str) -> int:
    match = _NUMBER.match(text)
    if match is None or match[2].upper() not in suffixes:
        raise UsageError(f"cannot read {text!r} as {what}", hint=f"write a positive number {example}")
    value = _number(match[1]) * suffixes[match[2].upper()]
    if value != value.to_integral_value() or value < 1:
        raise UsageError(f"{text!r} is not a whole, positive number of tokens", hint=f"write it {example}")
    return int(value)


def _number(digits: str) -> Decimal:
    plain = digits.replace("_", "").replace(",", "")
    if len(plain) > MAX_DIGITS:
        raise UsageError(f"a number of {len(plain)} digits is out of any range", hint=f"write one with {MAX_DIGITS} digits at most")
    return Decimal(plain)


def parse_day(text: str) -> date:
    """A calendar day such as `2026-09-10`. Raises `UsageError`."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"cannot read {text!r} as a date", hint="write it as YYYY-MM-DD, such as 2026-09-10") from error


def counted_from(day_or_month: str) -> date:
    """The day from which something dated `2026-09-10` or only `2026-09` counts: a month counts from its last day.

    Raises `ValueError` for anything else.
    """
    if _MONTH.match(day_or_month):
        year, month = int(day_or_month[:4]), int(day_or_month[5:])
        return date(year, month, monthrange(year, month)[1])
    return date.fromisoformat(day_or_month)


def parse_instant(text: str) -> datetime:
    """An instant with its zone, such as `2026-08-16T16:00Z`, in UTC. Raises `ValueError` when the zone is missing."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or "T" not in text.upper():
        raise ValueError(f"{text!r} has no time and zone: write it as 2026-08-16T16:00Z")
    return moment.astimezone(UTC)


def format_instant(moment: datetime) -> str:
    """An instant in UTC to the minute (`2026-08-16T16:00Z`), with seconds only where it has some."""
    utc = moment.astimezone(UTC)
    return utc.strftime("%Y-%m-%dT%H:%M:%SZ" if utc.second else "%Y-%m-%dT%H:%MZ")
