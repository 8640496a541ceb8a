"""llama.cpp's architectures: as which family a file counts, how its layers are read, and what the metadata leaves out.

Names are those of `LLM_ARCH_NAMES` (`src/llama-arch.cpp`, build 11549). An architecture that is not here has no family in
`fit/engines/llamacpp_families`, so what it would keep is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fitcheck.sources.gguf_model import builds, states, windows
from fitcheck.sources.gguf_model.builds import Build, attention, hybrid, latent_attention, sharing, stateful
from fitcheck.sources.gguf_model.keys import Keys

Choose = Callable[[Keys], str]


class Arch(NamedTuple):
    """The family, or how to tell it; the builder; and what engines other than llama.cpp would need besides."""

    family: str | Choose
    build: Build
    lost: str | None = None


_STATE_DTYPE = "the dtype of the recurrent state, which the config may name (mamba_ssm_dtype)"
_WINDOW = "whether layers slide, and by how much (sliding_window): llama.cpp's converter does not write it"
_OLD_LATENT = "the latent that the model keeps where an engine knows latent attention: this file describes every head"


def _llama(keys: Keys) -> str:
    if windows.window_of(keys):
        return "mistral"
    return "mixtral" if keys.maybe("expert_count", least=0) else "llama"


def _olmo2(keys: Keys) -> str:
    return "olmo3" if windows.window_of(keys) else "olmo2"


def _deepseek2(keys: Keys) -> str:
    return "deepseek_v3" if keys.has("attention.q_lora_rank") else "deepseek_v2"


def _modelled(*pairs: str) -> dict[str, str]:
    return dict(pair.split(":") for line in pairs for pair in line.split())


_ATTENTION = _modelled(
    "mistral3:ministral3 falcon:falcon gpt2:gpt2 gptneox:gpt_neox mpt:mpt bloom:bloom baichuan:baichuan starcoder:gpt_bigcode",
    "refact:gpt_refact stablelm:stablelm qwen:qwen qwen2:qwen2 qwen2moe:qwen2_moe qwen2vl:qwen2_5_vl qwen3:qwen3 qwen3moe:qwen3_moe",
    "qwen3vl:qwen3_vl qwen3vlmoe:qwen3_vl_moe phi2:phi phimoe:phimoe orion:orion internlm2:internlm2 minicpm:minicpm gemma:gemma",
    "xverse:xverse command-r:cohere dbrx:dbrx olmo:olmo olmoe:olmoe openelm:openelm arctic:arctic deepseek:deepseek chatglm:chatglm",
    "glm4:glm4 glm4moe:glm4_moe bitnet:bitnet jais2:jais2 nemotron:nemotron exaone:exaone granite:granite granitemoe:granitemoe",
    "chameleon:chameleon bailingmoe:bailing_moe bailingmoe2:bailing_moe_v2 dots1:dots1 arcee:arcee apertus:apertus ernie4_5:ernie4_5",
    "ernie4_5-moe:ernie4_5_moe hunyuan-moe:hunyuan_v1_moe hunyuan-dense:hunyuan_v1_dense hunyuan_vl:hunyuan_vl hy_v3:hy_v3",
    "smollm3:smollm3 seed_oss:seed_oss minimax-m2:minimax_m2 paddleocr:paddleocr_vl deci:nemotron-nas",
    "grok:grok-1 pangu-embedded:PanguEmbedded",
)
_ENCODERS = _modelled("bert:bert nomic-bert:nomic_bert modern-bert:modernbert eurobert:eurobert")

ARCHES: dict[str, Arch] = {
    **{arch: Arch(family, attention()) for arch, family in _ATTENTION.items()},
    **{arch: Arch(family, builds.encoder) for arch, family in _ENCODERS.items()},
    "llama": Arch(_llama, attention(windows.everywhere), _WINDOW),
    "starcoder2": Arch("starcoder2", attention(), _WINDOW),
    "phi3": Arch("phi3", attention(windows.everywhere)),
    # sliding windows
    "gemma2": Arch("gemma2", attention(windows.every(2, default=4096))),
    "gemma3": Arch("gemma3", attention(windows.every(6))),
    "gemma3n": Arch("gemma3n", sharing(windows.every(5, needed=True), owning=20)),
    "gemma4": Arch("gemma4", sharing(windows.every(None, needed=True))),
    "gpt-oss": Arch("gpt_oss", attention(windows.every(2, needed=True))),
    "cohere2": Arch("cohere2", attention(windows.every(4, needed=True))),
    "cohere2moe": Arch("cohere2_moe", attention(windows.every(4, full_first=True, needed=True))),
    "exaone4": Arch("exaone4", attention(windows.exaone4)),
    "exaone-moe": Arch("exaone_moe", attention(windows.every(4, needed=True))),
    "olmo2": Arch(_olmo2, attention(windows.every(4))),
    "afmoe": Arch("afmoe", attention(windows.every(4))),
    "laguna": Arch("laguna", attention(windows.every(4, full_first=True))),
    "muse-glimmer": Arch("muse_glimmer", attention(windows.every(4, needed=True))),
    "mellum": Arch("mellum", attention(windows.every(4))),
    "granite_swa": Arch("granite_swa", attention(windows.every(None, needed=True))),
    "smallthinker": Arch("smallthinker", attention(windows.every(4, full_first=True))),
    "mimo2": Arch("mimo_v2_flash", attention(windows.every(None, needed=True))),
    "step35": Arch("step3p5", attention(windows.every(None, needed=True))),
    "llama4": Arch("llama4", attention(windows.llama4)),
    # latent attention, with and without an indexer
    "minicpm3": Arch("minicpm3", builds.minicpm3),
    "deepseek2": Arch(_deepseek2, latent_attention(old=True)),
    "mistral4": Arch("mistral4", latent_attention()),
    "deepseek32": Arch("deepseek_v32", latent_attention(builds.each_layer)),
    "glm-dsa": Arch("glm_moe_dsa", latent_attention(builds.glm_dsa)),
    "hy_v4": Arch("hy_v4", latent_attention(builds.hy_v4)),
    "minimax-m3": Arch("minimax_m3", builds.minimax_m3),
    "deepseek4": Arch("deepseek_v4", builds.deepseek4),
    # recurrent layers
    "mamba": Arch("mamba", stateful(states.mamba_1)),
    "mamba2": Arch("mamba2", stateful(states.mamba_2)),
    "rwkv6": Arch("rwkv6", stateful(states.wkv)),
    "rwkv7": Arch("rwkv7", stateful(states.wkv)),
    "jamba": Arch("jamba", hybrid(states.without_heads, states.mamba_1)),
    "plamo2": Arch("plamo2", hybrid(states.without_heads, states.mamba_2)),
    "falcon-h1": Arch("falcon_h1", hybrid(states.all_of_them, states.mamba_2, beside=True)),
    "granitehybrid": Arch("granitemoehybrid", hybrid(states.without_heads, states.mamba_2)),
    "nemotron_h": Arch("nemotron_h", builds.nemotron_h, _STATE_DTYPE),
    "nemotron_h_moe": Arch("nemotron_h", builds.nemotron_h, _STATE_DTYPE),
    "lfm2": Arch("lfm2", hybrid(states.without_heads, states.convolutions, window=windows.in_all)),
    "lfm2moe": Arch("lfm2_moe", hybrid(states.without_heads, states.convolutions)),
    "minimax-01": Arch("minimax_m1", hybrid(states.between(8), states.flash)),
    "qwen3next": Arch("qwen3_next", hybrid(states.between(4), states.gdn), _STATE_DTYPE),
    "qwen35": Arch("qwen3_5", hybrid(states.between(4), states.gdn), _STATE_DTYPE),
    "qwen35moe": Arch("qwen3_5_moe", hybrid(states.between(4), states.gdn), _STATE_DTYPE),
    "qwen4exp": Arch("qwen4_exp", builds.qwen4exp, _STATE_DTYPE),
    "kimi-linear": Arch("kimi_linear", latent_attention(None, states.without_heads, states.delta)),
    "kimi-k3": Arch("kimi_k3", latent_attention(None, states.without_heads, states.delta)),
    "bailingmoe3": Arch("bailing_hybrid", latent_attention(None, states.without_heads, states.delta)),
    "glm5-next": Arch("glm5_next", latent_attention(builds.as_typed, states.without_heads, states.delta)),
}
"""One entry for each architecture."""

WRITTEN_CONTEXT = {"falcon": 2048, **dict.fromkeys(["granitehybrid", "nemotron_h", "nemotron_h_moe"], 2**20)}
"""The context that llama.cpp's converter writes into every file of an architecture, whatever the config says (`conversion/falcon.py`,
`GraniteHybridModel` in `granite.py`, of which Nemotron-H's is one)."""

APART = {
    "clip": "a projector for images or sound, not a language model",
    "eagle3": "a drafter (EAGLE-3), which runs beside a model",
    "dflash": "a drafter (DFlash), which runs beside a model",
    "gemma4-assistant": "a drafter, which reads the caches of the model that it runs beside",
}
"""Files that are no model of their own."""


def family_of(arch: Arch, keys: Keys) -> str:
    """The family, as a config's `model_type` names it."""
    return arch.family if isinstance(arch.family, str) else arch.family(keys)


def lost_in(arch: Arch, keys: Keys) -> tuple[str, ...]:
    """What this file's metadata does not say and engines other than llama.cpp need for their own figure."""
    if arch.lost == _WINDOW and windows.window_of(keys):
        return ()
    if arch is ARCHES["deepseek2"] and keys.raw("attention.key_length_mla") is None:
        return (_OLD_LATENT,)
    return (arch.lost,) if arch.lost else ()
