"""Encoders, which keep nothing, and decoders that attend to an encoder."""

from __future__ import annotations

from fitcheck.catalogue.layers import Cross, LayerGroup
from fitcheck.sources.families.dense import Build
from fitcheck.sources.families.fields import MOST_TOKENS, Fields, Layers, Unsettled
from fitcheck.sources.families.groups import Heads, attention, plain_heads, stateless
from fitcheck.sources.families.kinds import indices


def encoder(fields: Fields) -> Layers:
    """BERT and its kin: no cache at all."""
    layers = fields.layers()
    return Layers(layers, stateless(layers))


def _cross(layers: int, heads: Heads, positions: int | None) -> LayerGroup:
    return Cross(kind="cross", layers=layers, kv_heads=heads.kv_heads, k_dim=heads.k_dim, v_dim=heads.v_dim, positions=positions)


def encoder_decoder(fields: Fields) -> Layers:
    """Whisper and BART: each decoder layer keeps its own keys and values and those of the encoder's positions.

    transformers 5.24.0 `WhisperConfig` (`max_source_positions`) and `BartConfig` (`max_position_embeddings`).
    """
    layers, heads = fields.layers("decoder_layers"), fields.count("decoder_attention_heads")
    hidden = fields.count("d_model")
    if hidden % heads:
        raise Unsettled(f"d_model {hidden} is no multiple of {heads} decoder_attention_heads")
    kept = Heads(heads, hidden // heads, hidden // heads)
    positions = fields.count("max_source_positions", "max_position_embeddings", most=MOST_TOKENS)
    return Layers(layers, (*attention(layers, kept), _cross(layers, kept, positions)))


def mllama(fields: Fields) -> Layers:
    """Llama 3.2 Vision: the `cross_attention_layers` keep the image's keys and values, whose number depends on the image."""
    layers, heads = fields.layers(), plain_heads(fields)
    crossing = len(indices(fields, "cross_attention_layers", layers))
    cross = (_cross(crossing, heads, None),) if crossing else ()
    return Layers(layers, (*attention(layers - crossing, heads), *cross))


TABLE: dict[str, Build] = {
    **dict.fromkeys(
        ["bert", "roberta", "xlm-roberta", "distilbert", "mpnet", "nomic_bert", "modernbert", "eurobert", "camembert"], encoder
    ),
    **dict.fromkeys(["whisper", "bart", "mbart"], encoder_decoder),
    "mllama": mllama,
}
"""One entry for each family."""
