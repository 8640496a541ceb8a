"""What a build holds: exact bytes by component and part, parameters counted, what they are stored as."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable
from functools import partial
from math import prod

from fitcheck.catalogue.models import ComponentKind
from fitcheck.catalogue.provenance import Grade
from fitcheck.frozen import frozen
from fitcheck.sources.store import StoredTensor
from fitcheck.sources.stored.names import draft_layers, parts_of
from fitcheck.sources.stored.packed import PLAIN, SCALES, Hints, stored_as
from fitcheck.sources.tensors.record import Part, gguf_component

OTHER = "other"
"""The part of tensors whose names say nothing; they count as weights."""

_VALUES = {part: part.value for part in Part}
_BLOCK = re.compile(r"blk\.([0-9]{1,6})\.")


@frozen
class StoredComponent:
    """A part of a build that is placed as one: its bytes, and how they are known.

    `published` bytes are those of the files' own headers; `derived` ones come from the config, for a build that was not read. An `optional`
    part lies in files of its own and is loaded only where it is asked for. `by_layer` are the bytes of each layer's routed experts, where a
    GGUF file numbers them. `whole_bytes` of it lie on every rank of tensor parallelism.
    """

    kind: ComponentKind
    bytes: int
    grade: Grade
    note: str
    optional: bool = False
    by_layer: tuple[tuple[int, int], ...] = ()
    whole_bytes: int = 0

    @property
    def layer_bytes(self) -> tuple[int, ...]:
        """The bytes of each layer, first to last, where they are all that there is and not all the same."""
        sizes = tuple(size for _, size in self.by_layer)
        return sizes if sum(sizes) == self.bytes and len(set(sizes)) > 1 else ()


@frozen
class Contents:
    """What the tensors of a build add up to.

    `parts` splits the bytes finer (a part's name, or `other`). `parameters` are values before packing, without scales, as stored: a tied
    head that is stored twice counts twice, and parts that are optional are left out; None where a tensor's packing is not known, which
    `unknown` then says. `kinds` are bytes by what they are stored as: `bf16`, `fp8`, `Q4_K`, and `scales` of whatever is packed.
    """

    components: tuple[StoredComponent, ...]
    parts: dict[str, int]
    parameters: int | None
    parameters_by_part: dict[str, int]
    kinds: dict[str, int]
    tensors: int
    unknown: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all components that come with the build."""
        return sum(part.bytes for part in self.components if not part.optional)


class Naming:
    """How a build's names are read: layers of the decoder (None: not known), GGUF's architecture, and whether all is of a drafter."""

    def __init__(self, layers: int | None = None, architecture: str = "", whole: Part | None = None) -> None:
        self.layers, self.architecture, self.whole = layers, architecture, whole

    def parts(self, tensors: Iterable[StoredTensor]) -> list[str]:
        """The part of each tensor by its name."""
        found = list(tensors)
        if self.whole is not None:
            return [self.whole.value] * len(found)
        drafts = draft_layers(tensor.name for tensor in found) if self.layers is None else frozenset[int]()
        parts = parts_of((tensor.name for tensor in found), self.layers, drafts, self.architecture)
        return [OTHER if part is None else _VALUES[part] for part in parts]


def tally(
    tensors: tuple[StoredTensor, ...],
    naming: Naming,
    hints: Hints | None = None,
    *,
    gguf: bool = False,
    optional: bool = False,
) -> Contents:
    """The contents of tensors that are loaded together. A name that comes twice, in two files, counts once, and is noted."""
    single = {tensor.name: tensor for tensor in tensors}
    notes = [] if len(single) == len(tensors) else [f"{len(tensors) - len(single):,} tensors are in two files, and count once"]
    listed = list(single.values())
    parts = naming.parts(listed)
    sizes, counts, kinds, unknown = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    plain: dict[tuple[str, str], int] = {}
    layers = Counter[int]()
    for tensor, part in zip(listed, parts, strict=True):
        name, dtype, shape, size, _ = tensor
        if gguf:
            kind, parameters = dtype, prod(shape)
            block = _BLOCK.match(name) if part == Part.EXPERTS else None
            if block:
                layers[int(block[1])] += size
        elif dtype in PLAIN and name.endswith(".weight"):  # most are, and half a million are many
            plain[part, dtype] = plain.get((part, dtype), 0) + size
            continue
        else:
            kind, found = stored_as(tensor, single, hints or Hints())
            if found is None:
                unknown[kind] += 1
            parameters = found or 0
        sizes[part] += size
        counts[part] += parameters
        kinds[kind] += size
    for (part, dtype), size in plain.items():
        kind, width = PLAIN[dtype]
        sizes[part] += size
        counts[part] += size // width
        kinds[kind] += size
    if naming.layers is None and naming.whole is None and not gguf:
        notes.append("the number of layers is not known: a draft layer that is named as any other counts as weights")
    if sizes[OTHER]:
        notes.append(f"{sizes[OTHER]:,} bytes are in tensors whose names say nothing: they count as weights")
    return Contents(
        components=_components(sizes, layers, len(listed), _division(single) if gguf else _component, optional=optional, ranks=not gguf),
        parts={part: size for part, size in sizes.items() if size},
        parameters=None if unknown else sum(counts.values()),
        parameters_by_part=dict(counts),
        kinds={kind: size for kind, size in kinds.most_common() if kind != SCALES} | ({SCALES: kinds[SCALES]} if kinds[SCALES] else {}),
        tensors=len(listed),
        unknown=tuple(f"the packing of {times:,} {kind} tensors is not known, so parameters are not" for kind, times in unknown.items()),
        notes=tuple(notes),
    )


def joined(first: Contents, *others: Contents) -> Contents:
    """Contents of files that are read apart: a build, its tower, its drafters. Parameters are those of what is not optional."""
    every = (first, *others)
    loaded = [one for one in every if not any(part.optional for part in one.components)]
    parts, counts, kinds = Counter[str](), Counter[str](), Counter[str]()
    for one in every:
        parts.update(one.parts)
        counts.update(one.parameters_by_part)
        kinds.update(one.kinds)
    found = [part for one in every for part in one.components]
    merged = []
    for optional in (False, True):
        for kind in ComponentKind:
            same = [part for part in found if part.kind is kind and part.optional is optional]
            if same:
                notes = "; ".join(dict.fromkeys(part.note for part in same))
                layers = sum((Counter(dict(part.by_layer)) for part in same), Counter[int]())
                size = sum(part.bytes for part in same)
                whole = sum(part.whole_bytes for part in same)
                merged.append(StoredComponent(kind, size, same[0].grade, notes, optional, tuple(sorted(layers.items())), whole))
    unknown = tuple(dict.fromkeys(reason for one in every for reason in one.unknown))
    return Contents(
        tuple(merged),
        dict(parts),
        None if any(one.parameters is None for one in loaded) else sum(one.parameters or 0 for one in loaded),
        dict(counts),
        dict(kinds),
        sum(one.tensors for one in every),
        unknown,
        tuple(dict.fromkeys(note for one in every for note in one.notes)),
    )


def _component(part: Part) -> ComponentKind:
    return part.component


def _division(tensors: Container[str]) -> Callable[[Part], ComponentKind]:
    """How the parts of a GGUF build with these tensors are components."""
    return partial(gguf_component, tied="output.weight" not in tensors)


def _components(
    sizes: Counter[str], layers: Counter[int], tensors: int, division: Callable[[Part], ComponentKind], *, optional: bool, ranks: bool
) -> tuple[StoredComponent, ...]:
    by_kind: dict[ComponentKind, list[str]] = {}
    for part in sizes:
        kind = ComponentKind.WEIGHTS if part == OTHER else division(Part(part))
        by_kind.setdefault(kind, []).append(part)
    found = []
    for kind in ComponentKind:
        parts = [part for part in by_kind.get(kind, ()) if sizes[part]]
        if parts:
            size = sum(sizes[part] for part in parts)
            note = f"headers of the files, {tensors:,} tensors" + (
                f": {' + '.join(f'{sizes[p]:,} {p}' for p in parts)}" if len(parts) > 1 else ""
            )
            by_layer = tuple(sorted(layers.items())) if kind is ComponentKind.EXPERTS else ()
            whole = sum(sizes[part] for part in parts if ranks and part != OTHER and Part(part).whole)
            found.append(StoredComponent(kind, size, Grade.PUBLISHED, note, optional, by_layer, whole))
    return tuple(found)
