"""A model known by a GGUF file's metadata alone.

The same layer groups as from the config that the file was made from, where the metadata says the same; what it does not settle is
`unknown`, naming the key. Nothing in the metadata decides how much is allocated. Rules are llama.cpp's (build 11549), which wrote the
file and reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fitcheck.catalogue.models import Architecture
from fitcheck.catalogue.provenance import Grade
from fitcheck.frozen import frozen
from fitcheck.sources.families.fields import MOST_TOKENS, Fields, Unsettled, shown
from fitcheck.sources.families.sizes import sizes
from fitcheck.sources.gguf_model.about import file_type, parameters, text_of
from fitcheck.sources.gguf_model.arches import APART, ARCHES, WRITTEN_CONTEXT, Arch, family_of, lost_in
from fitcheck.sources.gguf_model.dialect import translated
from fitcheck.sources.gguf_model.keys import Keys
from fitcheck.sources.store import StoredTensor

SOURCE = "gguf"


@frozen
class GgufModel:
    """What a GGUF file says of its model: the architecture, or why it cannot be told.

    `arch` is llama.cpp's own name of it. `parameters` are those of the decoder, `file_type` the mix (`Q4_K_M`). `assumed` lists llama.cpp's
    own rules that stand for what the file leaves out. `lost` lists what the config may have said and the file does not: llama.cpp does
    without it, and for an engine that needs it the memory is not known.
    """

    name: str
    arch: str | None
    architecture: Architecture | None
    unknown: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    parameters: int | None = None
    file_type: str | None = None
    quantised_by: str | None = None
    size_label: str | None = None


def read_metadata(
    metadata: Mapping[str, Any], lengths: Mapping[str, int], tensors: Sequence[StoredTensor] = (), *, name: str = "model"
) -> GgufModel:
    """The model of a file, or of the first of several with the tensors of all.

    `metadata` holds plain values, arrays as tuples; an array too long to keep is absent there and has its length in `lengths`. `name` is
    taken where the file has none. Never raises for what the file holds.
    """
    known: Any = {
        "name": text_of(metadata, "general.name", "general.basename") or name,
        "arch": text_of(metadata, "general.architecture"),
        "file_type": file_type(metadata),
        "quantised_by": text_of(metadata, "general.quantized_by"),
        "size_label": text_of(metadata, "general.size_label"),
    }
    metadata, lengths = translated(metadata, lengths)
    try:
        arch, found = _known_arch(metadata)
        keys = Keys(arch, metadata, lengths)
        architecture = _architecture(found, keys, _vocabulary(keys, lengths, tensors), frozenset(tensor.name for tensor in tensors))
        lost = lost_in(found, keys)
    except Unsettled as unsettled:
        return GgufModel(architecture=None, unknown=(str(unsettled),), parameters=parameters(metadata, tensors, None), **known)
    counted = parameters(metadata, tensors, architecture.layers)
    return GgufModel(architecture=architecture, assumed=tuple(keys.assumed), lost=lost, parameters=counted, **known)


def _known_arch(metadata: Mapping[str, Any]) -> tuple[str, Arch]:
    arch = metadata.get("general.architecture")
    if not isinstance(arch, str):
        raise Unsettled("general.architecture is missing" if arch is None else f"general.architecture is {shown(arch)}")
    kind = metadata.get("general.type")
    if arch in APART:
        raise Unsettled(f"general.architecture is {arch}: {APART[arch]}")
    if kind not in (None, "model"):
        raise Unsettled(f"general.type is {shown(kind)}, not a model")
    if arch not in ARCHES:
        raise Unsettled(f"general.architecture is {shown(arch)}, which is not known")
    return arch, ARCHES[arch]


def _architecture(arch: Arch, keys: Keys, vocabulary: int | None, names: frozenset[str]) -> Architecture:
    family, found = family_of(arch, keys), arch.build(keys, names)
    context = keys.count("context_length", most=MOST_TOKENS)
    if WRITTEN_CONTEXT.get(keys.arch) == context:
        keys.rule(f"the converter writes a context_length of {context:,} into every {keys.arch} file; the model's own may differ")
    return Architecture(
        source=(SOURCE,),
        grade=Grade.DERIVED if keys.assumed else Grade.PUBLISHED,
        note="; ".join(keys.assumed) or None,
        family=family,
        max_context_tokens=context,
        layers=found.layers,
        groups=found.groups,
        draft_groups=found.draft,
        **sizes(_as_config(keys, vocabulary)),
    )


_NAMES = {
    "embedding_length": "hidden_size",
    "attention.head_count": "num_attention_heads",
    "feed_forward_length": "intermediate_size",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
}


def _as_config(keys: Keys, vocabulary: int | None) -> Fields:
    """The sizes under the names that a config has for them; layers that have none of a thing do not count.

    Heads are those of the first block that has any (`n_head()`). Where all layers have experts, the converter writes their size for the
    dense one too (gpt-oss, MiniMax M2).
    """
    values = {name: keys.raw(key) for key, name in _NAMES.items()}
    kept = {name: [entry for entry in value if entry != 0] if isinstance(value, list) else value for name, value in values.items()}
    if isinstance(kept["num_attention_heads"], list):
        kept["num_attention_heads"] = next(iter(kept["num_attention_heads"]), None)
    if kept["intermediate_size"] == kept["moe_intermediate_size"] and not keys.maybe("leading_dense_block_count", least=0):
        kept["intermediate_size"] = None
    return Fields({**kept, "vocab_size": vocabulary})


def _vocabulary(keys: Keys, lengths: Mapping[str, int], tensors: Sequence[StoredTensor]) -> int | None:
    """Tokens: given, else counted in the tokenizer's list, else the rows of the embedding."""
    given = keys.maybe("vocab_size", most=1 << 28)
    listed = lengths.get("tokenizer.ggml.tokens")
    rows = next((tensor.shape[0] for tensor in tensors if tensor.name == "token_embd.weight" and len(tensor.shape) == 2), None)
    return given or listed or rows


__all__ = ["GgufModel", "read_metadata"]
