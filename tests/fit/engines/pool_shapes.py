"""Architectures of published configs, by hand, for the tables of SGLang, MLX and TensorRT-LLM."""

from fitcheck.catalogue.layers import (
    Attention,
    Chunked,
    Compressed,
    CompressedWindow,
    Indexer,
    Latent,
    LayerGroup,
    Recurrent,
    Sliding,
    Stateless,
)
from fitcheck.catalogue.models import Architecture


def full(layers: int, heads: int, width: int, value: int | None = None) -> Attention:
    return Attention(kind="attention", layers=layers, kv_heads=heads, k_dim=width, v_dim=value or width)


def slides(layers: int, heads: int, width: int, window: int, value: int | None = None) -> Sliding:
    return Sliding(kind="sliding", layers=layers, kv_heads=heads, k_dim=width, v_dim=value or width, window_tokens=window)


def mla(layers: int, latent: int = 512, rope: int = 64, heads: int | None = None) -> Latent:
    wide = {"expanded_heads": heads, "expanded_k_dim": 192, "expanded_v_dim": 128} if heads else {}
    return Latent(kind="latent", layers=layers, latent_dim=latent, rope_dim=rope, **wide)


def keys(layers: int, pool: int = 1) -> Indexer:
    return Indexer(kind="indexer", layers=layers, bytes_per_key=132, pool_tokens=pool, key_dim=128)


def gdn(layers: int, key_heads: int, value_heads: int, width: int = 128) -> Recurrent:
    step = (2 * key_heads + value_heads) * width
    return Recurrent(
        kind="recurrent",
        layers=layers,
        state_elements=value_heads * width * width,
        conv_elements=3 * step,
        flavour="gdn",
        conv_kernel=4,
        heads=value_heads,
        groups=key_heads,
        group_elements=2 * width,
    )


QWEN4_EXP = (
    full(12, 2, 256),
    Indexer(kind="indexer", layers=12, bytes_per_key=256, pool_tokens=4, key_dim=128),
    gdn(36, 16, 48).model_copy(update={"ngram_conv_elements": 3 * 3 * 4 * 2560}),
)


def kda(layers: int, heads: int) -> Recurrent:
    tail = 3 * heads * 128 * 3
    return Recurrent(
        kind="recurrent",
        layers=layers,
        state_elements=heads * 128 * 128,
        conv_elements=tail,
        flavour="kda",
        conv_kernel=4,
        heads=heads,
    )


NEMOTRON_MAMBA = Recurrent(
    kind="recurrent",
    layers=23,
    state_elements=64 * 64 * 128,
    conv_elements=(64 * 64 + 2 * 8 * 128) * 3,
    flavour="mamba2",
    conv_kernel=4,
    heads=64,
    groups=8,
    group_elements=2 * 128,
)
NEMOTRON_9B_MAMBA = NEMOTRON_MAMBA.model_copy(
    update={"layers": 27, "state_elements": 128 * 80 * 128, "conv_elements": (128 * 80 + 2 * 8 * 128) * 3, "heads": 128}
)


def compressed(layers: int, ratio: int) -> Compressed:
    return Compressed(kind="compressed", layers=layers, ratio=ratio, record_bytes={"fp8": 584}, row_dim=512)


def recent(layers: int) -> CompressedWindow:
    return CompressedWindow(kind="compressed_window", layers=layers, window_tokens=128, record_bytes={"fp8": 584}, row_dim=512)


def built(family: str, *groups: LayerGroup, draft: tuple[LayerGroup, ...] = ()) -> Architecture:
    layers = max(1, sum(group.layers for group in groups))
    return Architecture(source="hand", family=family, max_context_tokens=1 << 20, layers=layers, groups=groups, draft_groups=draft)


SHAPES = {
    "llama-2-7b": built("llama", full(32, 32, 128)),
    "llama-3.1-8b": built("llama", full(32, 8, 128)),
    "llama-4-scout": built(
        "llama4", full(12, 8, 128), Chunked(kind="chunked", layers=36, kv_heads=8, k_dim=128, v_dim=128, chunk_tokens=8192)
    ),
    "qwen2.5-1.5b": built("qwen2", full(28, 2, 128)),
    "qwen2.5-7b": built("qwen2", full(28, 4, 128)),
    "qwen3-235b": built("qwen3_moe", full(94, 4, 128)),
    "glm-4.5-air": built("glm4_moe", full(46, 8, 128)),
    "glm-4.7-flash": built("glm4_moe_lite", mla(47)),
    "deepseek-v2-lite": built("deepseek_v2", mla(27, heads=16)),
    "deepseek-v3": built("deepseek_v3", mla(61), draft=(mla(1),)),
    "deepseek-v3.2": built("deepseek_v32", mla(61), keys(61), draft=(mla(1), keys(1))),
    "kimi-k2.5": built("kimi_k25", mla(61)),
    "glm-5": built("glm_moe_dsa", mla(78), keys(78)),
    "glm-5.2": built("glm_moe_dsa", mla(78), keys(21)),
    "glm-5.3-flash": built("glm5_next", mla(11, rope=0), keys(11, pool=4), kda(34, 64)),
    "kimi-linear": built("kimi_linear", mla(7), kda(20, 32)),
    "mimo-v2-flash": built("mimo_v2_flash", full(9, 4, 192, 128), slides(39, 8, 192, 128, 128)),
    "gpt-oss-120b": built("gpt_oss", full(18, 8, 64), slides(18, 8, 64, 128)),
    "gemma-3-27b": built("gemma3", full(10, 16, 128), slides(52, 16, 128, 1024)),
    "gemma-4-e4b": built("gemma4", full(4, 2, 512), slides(20, 2, 256, 512), Stateless(kind="none", layers=18)),
    "gemma-4-26b-a4b": built("gemma4", full(5, 2, 512), slides(25, 8, 256, 1024)),
    "ling-3.0-tiny": built("bailing_hybrid", mla(6), kda(18, 16)),
    "nemotron-nano-9b-v2": built("nemotron_h", full(4, 8, 128), NEMOTRON_9B_MAMBA, Stateless(kind="none", layers=25)),
    "qwen3-0.6b": built("qwen3", full(28, 8, 128)),
    "qwen3.8-flash-next": built("qwen4_exp", *QWEN4_EXP, draft=(full(1, 2, 256), QWEN4_EXP[1].model_copy(update={"layers": 1}))),
    "nemotron-super-49b": built("nemotron-nas", full(49, 8, 128), Stateless(kind="none", layers=31)),
    "mistral-7b-v0.1": built("mistral", slides(32, 8, 128, 4096)),
    "qwen3.8-27b": built("qwen3_5", full(16, 4, 256), gdn(48, 16, 48), draft=(full(1, 4, 256),)),
    "nemotron-3-nano": built("nemotron_h", full(6, 2, 128), NEMOTRON_MAMBA, Stateless(kind="none", layers=23)),
    "deepseek-v4-flash": built("deepseek_v4", compressed(21, 4), keys(21, pool=4), compressed(20, 128), recent(43), draft=(recent(1),)),
    "deepseek-v4-pro": built("deepseek_v4", compressed(30, 4), keys(30, pool=4), compressed(31, 128), recent(61)),
    "deepseek-v4.1-flash": built(
        "deepseek_v41", compressed(3, 2), compressed(1, 1), keys(3, pool=2), keys(1), recent(40), draft=(recent(3),)
    ),
}
"""One for each model of the tables."""
