"""llama.cpp's architectures: which one reads a family, and what is its own in how it keeps state.

Read from llama.cpp at build 11549: the converters (`conversion/*.py`) tell which architecture a family becomes,
`llama_model::create_memory` (`src/llama-model.cpp`) which kind of memory an architecture gets, and `load_arch_hparams` in
`src/models/<architecture>.cpp` its windows, recurrent layers and indexers. A family that is not here has no converter, so nobody can tell
what llama.cpp would do with it.
"""

from __future__ import annotations

from typing import NamedTuple

from fitcheck.catalogue.layers import Recurrent
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UnknownFact


class Rules(NamedTuple):
    """How an architecture keeps state where that differs from one key and one value row per layer and cell.

    `windows`: sliding layers get a cache of their own of a window's size (`llama_kv_cache_iswa`), in a model of `window_layers` layers
    where that is set, and of `window_tokens` whatever the file says where that is set; without it sliding layers keep everything.
    `latent`: keys only, one latent row (`hparams.is_mla`). `head_v_from_width`: the value head's width, where the converter writes none,
    is width / heads (`load_hparams`). `index_rows`: index keys a cell, and `index_values` an unused value row beside them. `rollback`:
    snapshots of the recurrent state are kept (`llm_arch_supports_rs_rollback`). `draft_cached`: the main context also keeps the draft
    layers. `owning_layers`: only so many first layers own a cache. `context_tokens`: the context that the converter writes into every
    file. `values_everywhere`: layers without heads get a value row too, where values lie transposed. `keeps`: whether there is any memory.
    `flash`: whether flash attention may be on (`llama_init_from_model` forces it off for Grok).
    """

    arch: str = ""
    windows: bool = False
    window_tokens: int | None = None
    window_layers: int | None = None
    latent: bool = False
    head_v_from_width: bool = False
    index_rows: int = 1
    index_values: bool = False
    rollback: bool = False
    draft_cached: bool = False
    owning_layers: int | None = None
    context_tokens: int | None = None
    values_everywhere: bool = False
    keeps: bool = True
    flash: bool = True


PLAIN = Rules()
"""`llama_kv_cache`: keys and values of every layer for every cell; sliding windows are not looked at (llama.cpp for Mistral-7B-v0.1,
phi3.cpp: "Phi SWA is currently disabled", starcoder2.cpp)."""
WINDOWED = Rules(windows=True)
"""`llama_kv_cache_iswa`: `set_swa_pattern` or `attention.sliding_window_pattern`, which the converters write from the layers' kinds."""
HYBRID = Rules()
"""`llama_memory_hybrid` or `llama_memory_recurrent`, without snapshots."""
SNAPSHOTS = Rules(rollback=True)
"""As `HYBRID`, with snapshots (`llama-arch.cpp`, `llm_arch_supports_rs_rollback`)."""
LATENT = Rules(latent=True)
"""MLA with `attention.key_length_mla` in the file: `llama_kv_cache` makes no value tensors (`has_v = !is_mla`). With an indexer
`llama_kv_cache_dsa` adds one key row of `indexer_head_size` in `type_k`."""
NOTHING = Rules(keeps=False)
"""`create_memory` returns no memory: encoders and diffusion models."""

_ARCHITECTURES: tuple[tuple[str, Rules, str], ...] = (
    # attention in all layers
    ("llama", PLAIN, "llama mistral mixtral internlm3 iquestcoder llava janus voxtral"),
    ("mistral3", PLAIN, "ministral3 mistral3"),
    ("deci", PLAIN._replace(values_everywhere=True), "nemotron-nas deci"),
    ("falcon", PLAIN._replace(context_tokens=2048), "falcon RefinedWeb RefinedWebModel"),
    ("gpt2", PLAIN, "gpt2 gpt-sw3"),
    ("gptneox", PLAIN, "gpt_neox"),
    ("mpt", PLAIN, "mpt"),
    ("bloom", PLAIN, "bloom"),
    ("baichuan", PLAIN, "baichuan"),
    ("starcoder", PLAIN, "gpt_bigcode"),
    ("starcoder2", PLAIN, "starcoder2"),
    ("refact", PLAIN, "gpt_refact"),
    ("stablelm", PLAIN, "stablelm stablelm_epoch"),
    ("qwen", PLAIN, "qwen"),
    ("qwen2", PLAIN, "qwen2 qwen2_audio audioflamingo3 mimo minicpmv"),
    ("qwen2moe", PLAIN, "qwen2_moe"),
    ("qwen2vl", PLAIN, "qwen2_vl qwen2_5_vl qwen2_5_omni"),
    ("qwen3", PLAIN, "qwen3"),
    ("qwen3moe", PLAIN, "qwen3_moe"),
    ("qwen3vl", PLAIN, "qwen3_vl qwen3_asr"),
    ("qwen3vlmoe", PLAIN, "qwen3_vl_moe qwen3_omni_moe"),
    ("phi2", PLAIN, "phi phi-msft"),
    ("phi3", PLAIN, "phi3 phi3_v phi4"),
    ("phimoe", PLAIN, "phimoe"),
    ("orion", PLAIN, "orion"),
    ("internlm2", PLAIN, "internlm2"),
    ("minicpm", PLAIN, "minicpm"),
    ("minicpm3", PLAIN, "minicpm3"),
    ("gemma", PLAIN, "gemma"),
    ("xverse", PLAIN, "xverse"),
    ("command-r", PLAIN, "cohere"),
    ("dbrx", PLAIN, "dbrx"),
    ("olmo", PLAIN, "olmo"),
    ("olmoe", PLAIN, "olmoe"),
    ("openelm", PLAIN, "openelm"),
    ("arctic", PLAIN, "arctic"),
    ("deepseek", PLAIN, "deepseek"),
    ("chatglm", PLAIN, "chatglm glm"),
    ("glm4", PLAIN, "glm4 glm4v glm_ocr"),
    ("glm4moe", PLAIN, "glm4_moe glm4v_moe solar_open"),
    ("bitnet", PLAIN, "bitnet"),
    ("jais2", PLAIN, "jais2"),
    ("nemotron", PLAIN, "nemotron"),
    ("exaone", PLAIN, "exaone"),
    ("granite", PLAIN, "granite"),
    ("granitemoe", PLAIN, "granitemoe granitemoeshared"),
    ("chameleon", PLAIN, "chameleon"),
    ("bailingmoe", PLAIN, "bailing_moe"),
    ("bailingmoe2", PLAIN, "bailing_moe_v2 sarvam_moe"),
    ("dots1", PLAIN, "dots1"),
    ("arcee", PLAIN, "arcee"),
    ("apertus", PLAIN, "apertus"),
    ("ernie4_5", PLAIN, "ernie4_5"),
    ("ernie4_5-moe", PLAIN, "ernie4_5_moe"),
    ("hunyuan-moe", PLAIN, "hunyuan_v1_moe"),
    ("hunyuan-dense", PLAIN, "hunyuan_v1_dense"),
    ("hunyuan_vl", PLAIN, "hunyuan_vl"),
    ("hy_v3", PLAIN, "hy_v3"),
    ("smollm3", PLAIN, "smollm3"),
    ("seed_oss", PLAIN, "seed_oss"),
    ("minimax-m2", PLAIN, "minimax_m2"),
    ("paddleocr", PLAIN, "paddleocr_vl"),
    ("grok", PLAIN._replace(flash=False), "grok-1"),
    ("pangu-embedded", PLAIN, "PanguEmbedded"),
    # sliding windows
    ("gemma2", WINDOWED, "gemma2"),
    ("gemma3", WINDOWED, "gemma3 shieldgemma2"),
    ("gemma3n", WINDOWED._replace(owning_layers=20), "gemma3n"),
    ("gemma4", WINDOWED, "gemma4 gemma4_unified"),
    ("gpt-oss", WINDOWED, "gpt_oss"),
    ("cohere2", WINDOWED, "cohere2"),
    ("cohere2moe", WINDOWED, "cohere2_moe"),
    ("exaone4", WINDOWED._replace(window_layers=64), "exaone4 exaone4_5"),
    ("exaone-moe", WINDOWED, "exaone_moe"),
    ("olmo2", WINDOWED, "olmo2 olmo3"),
    ("afmoe", WINDOWED, "afmoe"),
    ("laguna", WINDOWED, "laguna"),
    ("muse-glimmer", WINDOWED, "muse_glimmer"),
    ("mellum", WINDOWED, "mellum"),
    ("granite_swa", WINDOWED, "granite_swa granitemoe_swa"),
    ("smallthinker", WINDOWED._replace(window_tokens=4096), "smallthinker"),
    ("mimo2", WINDOWED, "mimo_v2 mimo_v2_flash"),
    ("step35", WINDOWED, "step3p5 step3p7"),
    ("llama4", WINDOWED._replace(window_tokens=8192), "llama4"),
    # latent attention, with and without an indexer
    ("deepseek2", LATENT, "deepseek_v2 deepseek_v3 kimi_k2 kimi_k25 glm4_moe_lite youtu youtu_llm"),
    ("mistral4", LATENT, "mistral4"),
    ("deepseek32", LATENT, "deepseek_v32"),
    ("glm-dsa", LATENT, "glm_moe_dsa"),
    ("hy_v4", LATENT, "hy_v4"),
    # an index key cache beside keys and values, with values nobody reads (`llama_kv_cache_msa`)
    ("minimax-m3", PLAIN._replace(index_values=True), "minimax_m3 minimax_m3_vl"),
    # compressed caches (`llama_kv_cache_dsv4`)
    ("deepseek4", SNAPSHOTS._replace(latent=True), "deepseek_v4"),
    # recurrent layers
    ("mamba", HYBRID, "mamba falcon_mamba"),
    ("mamba2", HYBRID, "mamba2"),
    ("rwkv6", HYBRID, "rwkv6"),
    ("rwkv7", HYBRID, "rwkv7"),
    ("jamba", HYBRID, "jamba"),
    ("plamo2", HYBRID, "plamo2"),
    ("falcon-h1", HYBRID, "falcon_h1"),
    ("granitehybrid", HYBRID._replace(context_tokens=2**20), "granitemoehybrid"),
    ("granitehybrid", HYBRID, "bamba"),
    ("nemotron_h", SNAPSHOTS._replace(context_tokens=2**20), "nemotron_h"),
    ("lfm2", SNAPSHOTS._replace(windows=True), "lfm2"),
    ("lfm2moe", SNAPSHOTS, "lfm2_moe"),
    ("minimax-01", HYBRID, "minimax minimax_m1 minimax_text_01"),
    ("qwen3next", HYBRID, "qwen3_next"),
    ("qwen35", SNAPSHOTS, "qwen3_5"),
    ("qwen35moe", SNAPSHOTS, "qwen3_5_moe"),
    # recurrent layers beside indexed ones, whose index keeps key and pooled key side by side (`indexer_kpool_row`)
    ("qwen4exp", SNAPSHOTS._replace(index_rows=2), "qwen4_exp"),
    # recurrent layers beside latent ones
    ("kimi-linear", HYBRID._replace(latent=True, head_v_from_width=True), "kimi_linear"),
    ("kimi-k3", SNAPSHOTS._replace(latent=True), "kimi_k3"),
    ("bailingmoe3", SNAPSHOTS._replace(latent=True, draft_cached=True), "bailing_hybrid"),
    # a pooling indexer keeps key, gate and pooled key side by side (`indexer_kpool_row`)
    ("glm5-next", SNAPSHOTS._replace(latent=True, index_rows=3), "glm5_next"),
    # no memory
    ("bert", NOTHING, "bert distilbert roberta xlm-roberta camembert"),
    ("nomic-bert", NOTHING, "nomic_bert"),
    ("modern-bert", NOTHING, "modernbert"),
    ("eurobert", NOTHING, "eurobert"),
)

RULES: dict[str, Rules] = {family: rules._replace(arch=arch) for arch, rules, families in _ARCHITECTURES for family in families.split()}
"""Rules by the family's Hugging Face `model_type`, without `_text`."""


_WITHOUT_RECURRENT = {"granitemoehybrid": "granite"}
"""What a family becomes whose model has no recurrent layer (`conversion/granite.py`, GraniteHybridModel)."""


def rules_for(architecture: Architecture) -> Rules:
    """The rules of an architecture's family. Raises `UnknownFact` for one that llama.cpp cannot read."""
    family = architecture.family
    if not any(isinstance(group, Recurrent) for group in architecture.groups):
        family = _WITHOUT_RECURRENT.get(family, family)
    found = RULES.get(family)
    if found is None:
        raise UnknownFact(f"llama.cpp has no architecture for {family} (build 11549), so what it would allocate is not known")
    return found
