"""DeepSeek V4 and V4.1: compressed caches, the windows beside them and their compressors."""

from __future__ import annotations

from fitcheck.catalogue.layers import Compressed, CompressedWindow, Compressor, LayerGroup
from fitcheck.sources.families.dense import Build, draft_layers
from fitcheck.sources.families.fields import MOST_TOKENS, Fields, Layers, Unsettled
from fitcheck.sources.families.groups import indexer
from fitcheck.sources.families.kinds import indices

_V4 = {"fp8": 584}
"""448 FP8 and 64 BF16 rope elements, 8 bytes of scales (vLLM `fp8_ds_mla` of V4)."""
_V41 = {"fp8": 584, "fp8_sm100": 528, "fp4": 288}
"""584 bytes up to Hopper; on SM100 512 FP8 and 16 UE8M0 scales are 528; in NVFP4 288 (architectures.md, section 8)."""
_V41_WINDOW = {"fp8": 584, "fp8_sm100": 528, "fp4": 528}
"""The window stays in FP8 where the compressed records are FP4, which only SM100 has."""


def _window(fields: Fields, layers: int, record: dict[str, int]) -> tuple[LayerGroup, ...]:
    if not layers:
        return ()
    window, row = fields.count("sliding_window", most=MOST_TOKENS), fields.count("head_dim")
    return (CompressedWindow(kind="compressed_window", layers=layers, window_tokens=window, record_bytes=record, row_dim=row),)


def _cache(fields: Fields, layers: int, ratio: int, record: dict[str, int]) -> LayerGroup:
    return Compressed(kind="compressed", layers=layers, ratio=ratio, record_bytes=record, row_dim=fields.count("head_dim"))


def v4(fields: Fields) -> Layers:
    """DeepSeek V4: `compress_ratios` 4 (with an indexer), 128 or 0 (window only).

    The list goes on with the draft layers, of which there may be more than `num_nextn_predict_layers` says (V4-Flash-0731: 3, not 1).

    vLLM 0.33.0 `deepseek_v4.py`: a compressor keeps FP32 keys and scores; with ratio 4 its windows overlap, so that it keeps 8 tokens of
    2 x 2 x 512 elements (and of 2 x 2 x 128 for the index keys), with ratio 128 it keeps 128 tokens of 2 x 512.
    """
    layers = fields.layers()
    ratios = fields.counts("compress_ratios", layers)
    width, index_width = fields.count("head_dim"), fields.count("index_head_dim")
    if set(ratios) - {0, 4, 128}:
        raise Unsettled("compress_ratios has others than 0, 4 and 128")
    fine, coarse = ratios.count(4), ratios.count(128)
    groups: list[LayerGroup] = []
    if fine:
        groups += [_cache(fields, fine, 4, _V4), *indexer(fields, fine, 4)]
    if coarse:
        groups.append(_cache(fields, coarse, 128, _V4))
    groups += _window(fields, layers, _V4)
    if fine:
        groups.append(
            Compressor(kind="compressor", layers=fine, window_tokens=8, bytes_per_token=16 * width, index_bytes_per_token=16 * index_width)
        )
    if coarse:
        groups.append(Compressor(kind="compressor", layers=coarse, window_tokens=128, bytes_per_token=8 * width))
    draft = max(wanted, len(fields.sequence("compress_ratios") or []) - layers) if (wanted := draft_layers(fields)) else 0
    return Layers(layers, tuple(groups), _window(fields, draft, _V4))


def v41(fields: Fields) -> Layers:
    """DeepSeek V4.1: only `kv_source_layer_ids` write compressed caches and index keys, the other layers read a source's.

    vLLM 0.33.0 and its log of 2026-10 (architectures.md, sections 1 and 8). The compressors' rings (one block a sequence) are left out:
    no source gives their size.
    """
    layers = fields.layers()
    ratios = fields.counts("compress_ratios", layers)
    kept = [ratios[source] for source in sorted(indices(fields, "kv_source_layer_ids", layers))]
    if 0 in kept:
        raise Unsettled("a layer of kv_source_layer_ids has the compress_ratio 0")
    by_ratio = [(ratio, kept.count(ratio)) for ratio in sorted(set(kept), reverse=True)]
    caches = [_cache(fields, count, ratio, _V41) for ratio, count in by_ratio]
    keys = [group for ratio, count in by_ratio for group in indexer(fields, count, ratio, fp4=True)]
    draft = _window(fields, draft_layers(fields), _V41_WINDOW)
    return Layers(layers, (*caches, *keys, *_window(fields, layers, _V41_WINDOW)), draft)


TABLE: dict[str, Build] = {"deepseek_v4": v4, "deepseek_v41": v41}
"""One entry for each family."""
