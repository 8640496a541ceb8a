"""Bytes against parameters, bits and each other; GB taken for GiB."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from fitcheck.catalogue.lint.findings import Finding
from fitcheck.catalogue.lint.shelf import Entry, Rule, Shelf, parts
from fitcheck.catalogue.models import Checkpoint, ComponentKind, Model
from fitcheck.catalogue.provenance import BytesFigure, Cited, CountFigure, NumberFigure, Record
from fitcheck.units import GB, GIB, format_gib, parse_bytes

ANY_FORMAT = (0.9, 18.0)
FLOAT32_BITS = (30.0, 34.0)
"""What is published in 32 bits (encoders, older models): believed where the build's own `bits_per_weight` says so too."""
FORMAT_BITS: tuple[tuple[re.Pattern[str], float, float], ...] = tuple(
    (re.compile(pattern), low, high)
    for pattern, low, high in (
        (r"bf16|fp16|\bf16", 14.0, 18.0),
        (r"(?=.*fp8)(?=.*fp4)", 3.9, 9.5),
        (r"fp8|int8|w8a|8bit|\bq8", 7.0, 11.5),
        (r"nvfp4|mxfp4|\bfp4", 3.9, 8.5),
        (r"int4|awq|gptq|w4a|4bit", 3.5, 8.5),
        (r"\bi?q6", 5.5, 8.5),
        (r"\bi?q5", 4.8, 7.5),
        (r"\bi?q4", 3.7, 6.5),
        (r"\bi?q3", 2.6, 5.5),
        (r"\bi?q2", 1.7, 4.5),
        (r"\biq1", 0.9, 3.0),
    )
)
"""Bits per parameter that builds of a format have, embeddings and scales included; the first pattern that the format holds counts.

Small models keep much of their bytes in 16-bit embeddings, so the upper bounds are wide."""

STATED_BITS = (0.75, 1.25)
UNIT_SLIP = 0.003
MOST_HELD = 1.5
"""Times the download that all devices together may hold: buffers, padding and what a kernel unpacks, never another copy for each."""
LONGEST_SIZE = 30
_EXPLAINED = re.compile(r"\bGiB\b")
_PRINTED = re.compile(r"^\s*[0-9][0-9_,]*(?:\.(?P<part>[0-9]+))?\s*(?P<unit>[KMGT]?i?B)\s*$", re.IGNORECASE)
_APART = {ComponentKind.NGRAM, ComponentKind.DRAFTER, ComponentKind.VISION}


class Bits(NamedTuple):
    """Bits per parameter of a checkpoint. A range where nobody knows which parameters the bytes hold."""

    low: float
    high: float

    def outside(self, low: float, high: float) -> bool:
        """Whether no reading of the bytes lies between the bounds."""
        return self.high < low or self.low > high

    def __str__(self) -> str:
        """As a person reads it: one figure, or the range."""
        return f"{self.low:.2f}" if round(self.low, 2) == round(self.high, 2) else f"{self.low:.2f} to {self.high:.2f}"


def bits_of(model: Model, checkpoint: Checkpoint) -> Bits | None:
    """Bits per parameter, n-gram tables, drafters and vision towers aside.

    Where the checkpoint does not name these apart, its bytes may hold them or not, so they are set against `total` and `stored` both.
    """
    loaded = [part for part in checkpoint.components if not part.optional]
    size = sum(part.value for part in loaded if part.kind not in _APART)
    total = model.parameter_count
    if size <= 0 or total <= 0:
        return None
    stored = model.parameters.stored.value if model.parameters.stored else total
    apart = any(part.kind in _APART for part in checkpoint.components)
    most = total if apart else max(total, stored)
    return Bits(size * 8 / most, size * 8 / total)


def unit_slip(one: Decimal | int | float, other: Decimal | int | float) -> bool:
    """Whether two sizes differ by 1000³ against 1024³, to three parts in a thousand."""
    if one <= 0 or other <= 0:
        return False
    ratio = float(one) / float(other) * GB / GIB
    return abs(ratio - 1) <= UNIT_SLIP or abs(ratio * (GIB / GB) ** 2 - 1) <= UNIT_SLIP


def explained(*figures: Cited) -> bool:
    """Whether a note says that the unit was looked at."""
    return any(figure.note and _EXPLAINED.search(figure.note) for figure in figures)


def _format_bounds(checkpoint: Checkpoint) -> tuple[float, float] | None:
    """The bounds of the format; a GGUF build says its quantisation in its id. Pruned builds hold fewer parameters than the model."""
    said = checkpoint.id if checkpoint.format.lower() == "gguf" else checkpoint.format
    name = re.sub(r"[_\s]+", "-", said.lower())
    bounds = next(((low, high) for pattern, low, high in FORMAT_BITS if pattern.search(name)), None)
    return (bounds[0] / 2, bounds[1]) if bounds is not None and checkpoint.pruned else bounds


def bytes_against_parameters(entry: Entry[Model], _: Shelf) -> Iterator[Finding]:
    """FC201, FC202: bytes no build of that many parameters has, or none in that format or in 32 bits unless its own label says as many."""
    for index, checkpoint in enumerate(entry.record.checkpoints):
        bits = bits_of(entry.record, checkpoint)
        bounds = _format_bounds(checkpoint)
        where = ("checkpoints", index, "components")
        if bits is not None and bits.outside(*ANY_FORMAT) and not (_labelled(checkpoint, bits) and not bits.outside(*FLOAT32_BITS)):
            yield entry.finding("FC201", f"{checkpoint.id} has {bits} bits per parameter (0.9 to 18 are possible)", where)
        elif bits is not None and bounds is not None and bits.outside(*bounds) and not _labelled(checkpoint, bits):
            low, high = bounds
            message = f"{checkpoint.id} has {bits} bits per parameter; {checkpoint.format} has {low:g} to {high:g}"
            yield entry.finding("FC202", message, where)


def stated_bits(entry: Entry[Model], _: Shelf) -> Iterator[Finding]:
    """FC203, FC210: the label's bits per weight against the bytes."""
    for index, checkpoint in enumerate(entry.record.checkpoints):
        bits, stated = bits_of(entry.record, checkpoint), checkpoint.bits_per_weight
        if bits is None or stated is None or stated.value <= 0 or checkpoint.pruned:
            continue
        said = float(stated.value)
        where = ("checkpoints", index, "bits_per_weight")
        if bits.outside(said * STATED_BITS[0], said * STATED_BITS[1]):
            yield entry.finding("FC203", f"{checkpoint.id} says {stated.value} bits per weight, its bytes say {bits}", where)
        elif bits.low == bits.high and unit_slip(bits.low, said) and not explained(stated, *checkpoint.components):
            yield entry.finding("FC210", f"{checkpoint.id}: {bits} bits by its bytes, {stated.value} by its label", where)


def _labelled(checkpoint: Checkpoint, bits: Bits) -> bool:
    """Whether the build's own bits per weight are what its bytes say: then the format is what is unusual."""
    stated = checkpoint.bits_per_weight
    return stated is not None and not bits.outside(float(stated.value) * STATED_BITS[0], float(stated.value) * STATED_BITS[1])


def resident_slip(entry: Entry[Model], _: Shelf) -> Iterator[Finding]:
    """FC210: what an engine held on all devices against what is downloaded."""
    for index, checkpoint in enumerate(entry.record.checkpoints):
        whole = checkpoint.total_bytes or 0
        for number, seen in enumerate(checkpoint.resident):
            held = seen.value * seen.devices
            if unit_slip(held, whole) and not explained(seen, *checkpoint.components):
                message = f"{checkpoint.id}: {held:,} B held on {seen.devices} devices, {whole:,} B downloaded"
                yield entry.finding("FC210", message, ("checkpoints", index, "resident", number))


def resident_too_much(entry: Entry[Model], _: Shelf) -> Iterator[Finding]:
    """FC213: each device holds its share of the download and all of what is replicated."""
    for index, checkpoint in enumerate(entry.record.checkpoints):
        whole = sum(part.value for part in checkpoint.components)
        replicated = sum(part.value if part.split == "replicated" else part.whole_bytes for part in checkpoint.components)
        for number, seen in enumerate(checkpoint.resident):
            held, most = seen.value * seen.devices, whole + replicated * (seen.devices - 1)
            if whole and held > most * MOST_HELD:
                message = f"{checkpoint.id}: {format_gib(held)} held on {seen.devices} devices, {format_gib(whole)} downloaded"
                yield entry.finding("FC213", message, ("checkpoints", index, "resident", number))


def layer_count(entry: Entry[Model], _: Shelf) -> Iterator[Finding]:
    """FC215: routed experts have bytes for each layer that has any."""
    layers = entry.record.architecture.expert_layers if entry.record.architecture else None
    for index, checkpoint in enumerate(entry.record.checkpoints):
        for number, part in enumerate(checkpoint.components):
            if part.layer_bytes and (part.kind is not ComponentKind.EXPERTS or len(part.layer_bytes) != layers):
                message = (
                    f"{checkpoint.id}: {part.kind} has bytes of {len(part.layer_bytes)} layers, the model {layers or 'none'} with experts"
                )
                yield entry.finding("FC215", message, ("checkpoints", index, "components", number, "layer_bytes"))


def misprinted(entry: Entry[Record], _: Shelf) -> Iterator[Finding]:
    """FC211: an integer that does not round to what the source printed. Text that is no plain size is passed over."""
    for where, part in parts(entry.record):
        if not isinstance(part, BytesFigure) or part.printed is None:
            continue
        match = _PRINTED.match(part.printed[:LONGEST_SIZE])
        if match is None:
            continue
        printed, unit = parse_bytes(match[0]), parse_bytes(f"1{match['unit']}")
        if abs(printed - part.value) > unit / 10 ** len(match["part"] or "") + 1:
            slip = "; GB taken for GiB?" if unit_slip(printed, part.value) else ""
            yield entry.finding("FC211", f"{part.value:,} B is not {part.printed}{slip}", (*where, "value"))


def zero_figure(entry: Entry[Record], _: Shelf) -> Iterator[Finding]:
    """FC212: a size, count or number that is 0 or below. A divergence of 0 and a score of any sign are facts."""
    for where, part in parts(entry.record):
        if isinstance(part, BytesFigure | CountFigure | NumberFigure) and part.value <= 0 and where[-1] != "divergence":
            yield entry.finding("FC212", f"{'.'.join(map(str, where))} is {part.value}", (*where, "value"))


EVERY_RECORD: tuple[Rule[Record], ...] = (misprinted, zero_figure)
MODEL_RULES: tuple[Rule[Model], ...] = (bytes_against_parameters, stated_bits, resident_slip, resident_too_much, layer_count)
