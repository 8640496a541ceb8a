"""What a model weighs, tensor by tensor, from its config alone.

Where a file listing is known it outranks this: a checkpoint may hold more (a second copy of a tied head, a vision tower) or less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from fitcheck.catalogue.models import ComponentKind
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import UnknownFact
from fitcheck.frozen import frozen
from fitcheck.sources.config import decoder_of, family_of
from fitcheck.sources.families import defaults_of
from fitcheck.sources.families.fields import Fields, Unsettled
from fitcheck.sources.tensors import TENSORS, WEIGHT_DEFAULTS
from fitcheck.sources.tensors.formats import gguf_mix, pieces_in
from fitcheck.sources.tensors.record import Part, Piece, Sheet, Tensor, gguf_component


@frozen
class DerivedComponent:
    """A part of a checkpoint: its bytes, and the formula with its numbers.

    `layer_bytes` are those of each of its layers, where the format (a GGUF mix) stores them differently. `whole_bytes` of it lie on every
    rank of tensor parallelism.
    """

    kind: ComponentKind
    bytes: int
    formula: str
    grade: Grade
    layer_bytes: tuple[int, ...] = ()
    whole_bytes: int = 0


def derive_tensors(config: dict[str, Any]) -> tuple[Tensor, ...]:
    """Every weight tensor of the decoder and its drafter. Raises `UnknownFact` naming the field that the config leaves open.

    Towers for images and sound are not among them: `missing_parts` names those that the config has.
    """
    sheet, _ = _derive(config)
    return tuple(sheet.tensors)


def parameters(config: dict[str, Any], *, drafter: bool = False) -> int:
    """Parameters of the decoder, a tied head counted once; with its draft layers where that is asked."""
    return sum(tensor.elements for tensor in derive_tensors(config) if drafter or tensor.part is not Part.DRAFTER)


def missing_parts(config: dict[str, Any]) -> tuple[str, ...]:
    """Parts that the config has and that are not derived: their bytes come on top."""
    towers = ("vision_config", "audio_config", "vision_tower_config", "visual", "talker_config", "code2wav_config")
    holders = [config, *(value for name in ("thinker_config",) if isinstance(value := config.get(name), dict))]
    return tuple(dict.fromkeys(name for holder in holders for name in towers if isinstance(holder.get(name), dict) and holder[name]))


def derive_components(config: dict[str, Any], format: str, **options: Any) -> tuple[DerivedComponent, ...]:
    """What each part of a checkpoint of this format takes.

    `format` is `bf16`, `native` (as the config's own quantisation says, else 16 bits), `fp8` (`block`), `fp8-dynamic`, `fp8-tensor`,
    `mxfp8`, `fp8+mxfp4`, `awq`, `gptq`, `int4` (`bits`, `group_size`), `nvfp4`, `mxfp4`, `mlx` (`bits`, `group_size`), `exl3` (`bpw`,
    `head_bits`), or one of llama.cpp's mixes (`Q4_K_M`, `gguf:f16`; `imatrix`). `keep` lists modules that stay in 16 bits, as a
    `quantization_config` would. Where the config is itself quantised in that format, its own list is taken. `derived` is what the config
    settles, `estimated` what hangs on the habits of whoever quantised it. Raises `UnknownFact` for what the config leaves open and
    `UsageError` for a format that is not known.
    """
    sheet, family = _derive(config)
    try:
        found, grade = pieces_in(config, family, sheet, format, options)
        tied = not any(tensor.name == "output" for tensor in sheet.tensors) if gguf_mix(format) else None
        return _components(found, grade, tied)
    except Unsettled as unsettled:
        raise UnknownFact(f"the weights are not known: {unsettled}") from None


def _derive(config: dict[str, Any]) -> tuple[Sheet, str]:
    values, model_type = decoder_of(config)
    family = family_of(config, model_type)
    if family is None or family not in TENSORS:
        raise UnknownFact(f"the weights of the model_type {ascii(model_type)[:60]} are not known", hint="give the size of its files")
    if "tie_word_embeddings" not in values and "tie_word_embeddings" in config:
        values = {**values, "tie_word_embeddings": config["tie_word_embeddings"]}
    fields = Fields(values, {**WEIGHT_DEFAULTS.get(family, {}), **defaults_of(config, values, family)})
    try:
        sheet = Sheet(fields)
        TENSORS[family](sheet)
    except Unsettled as unsettled:
        raise UnknownFact(f"the weights are not known: {unsettled}", hint="give the size of its files") from None
    return sheet, family


def _components(pieces: Iterable[Piece], grade: Grade, tied: bool | None) -> tuple[DerivedComponent, ...]:
    """Pieces added up by component; `tied` says of a GGUF mix whether the head is the input embedding, and is None for other formats."""
    sizes: Counter[ComponentKind] = Counter()
    kinds: dict[ComponentKind, Counter[str]] = {}
    layers: dict[ComponentKind, Counter[int]] = {}
    whole: Counter[ComponentKind] = Counter()
    for piece in pieces:
        component = piece.part.component if tied is None else gguf_component(piece.part, tied=tied)
        sizes[component] += piece.bytes
        whole[component] += piece.bytes if tied is None and piece.part.whole else 0
        kinds.setdefault(component, Counter())[piece.kind] += piece.elements
        if piece.layer is not None:
            layers.setdefault(component, Counter())[piece.layer] += piece.bytes
    return tuple(
        DerivedComponent(kind, sizes[kind], _formula(kinds[kind], sizes[kind]), grade, _unlike(layers.get(kind), sizes[kind]), whole[kind])
        for kind in ComponentKind
        if sizes[kind]
    )


def _unlike(layers: Counter[int] | None, whole: int) -> tuple[int, ...]:
    """The bytes of each layer, first to last, where they are all that there is and not all the same."""
    if layers is None or sum(layers.values()) != whole or len(set(layers.values())) == 1:
        return ()
    return tuple(size for _, size in sorted(layers.items()))


def _formula(elements: Counter[str], size: int) -> str:
    total = sum(elements.values())
    parts = " + ".join(f"{count:,} in {kind}" for kind, count in elements.most_common())
    return f"{parts}: {8 * size / total:.3f} bits for each of {total:,} parameters"


__all__ = ["DerivedComponent", "Tensor", "derive_components", "derive_tensors", "missing_parts", "parameters"]
