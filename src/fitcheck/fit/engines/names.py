"""The names under which engines, their command lines and their logs state one setting, and the settings that decide nothing of a cache.

A log of vLLM says `max_seq_len`, its command line `--max-model-len`, a start-up line of SGLang `context_len` for what `--context-length`
asked. Each is taken for the engine's own name, so that what a log states can be handed on as it stands. Names are those of the command
lines and start-up lines of the versions that the modules name (SGLang's of `arg_groups/fields` in 0.5.23, TensorRT-LLM's of
`llmapi/llm_args.py`, llama.cpp's of `common/arg.cpp` and of what `llama_context::llama_context` prints), and older spellings that logs
have. A name in none of these tables is the module's own, or refused there.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any, NamedTuple

from fitcheck.errors import UsageError
from fitcheck.fit.engines.base import Settings
from fitcheck.fit.state import kv_dtype

MOST = 1 << 48
"""No setting counts more; larger numbers come from no engine."""

_PARALLEL = {
    "tensor_parallel_size": "tp",
    "tp_size": "tp",
    "pipeline_parallel_size": "pp",
    "pp_size": "pp",
    "data_parallel_size": "dp",
    "dp_size": "dp",
    "decode_context_parallel_size": "dcp",
    "dcp_size": "dcp",
}


class Names(NamedTuple):
    """An engine's words: `same` name by other spelling, `negated` flags by the spelling that turns them off, `idle` settings.

    `dtype` are the names of the cache's dtype where the module itself reads none; `nested` are settings that hold others.
    """

    same: Mapping[str, str]
    idle: frozenset[str]
    negated: Mapping[str, str] = {}
    dtype: frozenset[str] = frozenset()
    nested: frozenset[str] = frozenset()
    parallel: Mapping[str, str] = _PARALLEL


def _idle(words: str) -> frozenset[str]:
    return frozenset(words.split())


_VLLM = Names(
    same={
        "max_seq_len": "max_model_len",
        "cache_dtype": "kv_cache_dtype",
        "kv_cache_memory": "kv_cache_memory_bytes",
        "num_spec_tokens": "num_speculative_tokens",
        "spec_method": "method",
    },
    negated={
        "no_enable_prefix_caching": "enable_prefix_caching",
        "no_async_scheduling": "async_scheduling",
        "no_disable_hybrid_kv_cache_manager": "disable_hybrid_kv_cache_manager",
        "no_enable_chunked_prefill": "enable_chunked_prefill",
        "no_enable_expert_parallel": "enable_expert_parallel",
        "no_enforce_eager": "enforce_eager",
    },
    idle=_idle("""
        all2all_backend api_server_count calculate_kv_scales chat_template compilation_config config_format cpu_offload_gb
        cudagraph_capture_sizes dcp_kv_cache_interleave_size device disable_custom_all_reduce disable_log_requests disable_log_stats
        distributed_executor_backend download_dir enable_auto_tool_choice enable_eplb enable_log_requests
        enable_reasoning generation_config host kv_offloading_backend kv_offloading_size kv_sharing_fast_prefill language_model_only
        limit_mm_per_prompt load_format mm_encoder_tp_mode mm_processor_cache_gb model moe_backend num_gpu_blocks
        num_lookahead_slots optimization_level override_generation_config port prefix_caching_hash_algo quantization
        reasoning_parser revision safetensors_load_strategy scheduling_policy seed served_model_name skip_tokenizer_init swap_space
        tokenizer tokenizer_mode tool_call_parser trust_remote_code uvicorn_log_level
    """),
)
"""`swap_space`, `cpu_offload_gb` and `kv_offloading_size` are host memory; `num_gpu_blocks` is what the pool came to."""

_SGLANG = Names(
    same={
        "context_len": "context_length",
        "max_total_num_tokens": "max_total_tokens",
        "mamba_scheduler_strategy": "mamba_radix_cache_strategy",
    },
    dtype=frozenset({"kv_cache_dtype"}),
    parallel={**_PARALLEL, "tp": "tp", "dp": "dp", "pp": "pp"},
    idle=_idle("""
        api_key available_gpu_mem base_gpu_id chat_template collect_tokens_histogram cuda_graph_bs cuda_graph_bs_decode
        cuda_graph_max_bs cuda_graph_max_bs_decode decode_log_interval device disable_cuda_graph disable_cuda_graph_padding
        disable_custom_all_reduce dist_init_addr download_dir dtype enable_dp_lm_head enable_metrics enable_mixed_chunk
        enable_multimodal enable_torch_compile ep ep_size fp4_gemm_runner_backend fp8_gemm_runner_backend grammar_backend
        hicache_ratio hicache_size host is_embedding kv_events_config language_model_only linear_attn_backend load_balance_method
        load_format log_level log_level_http log_requests mamba_backend mamba_track_interval max_prefill_tokens max_queued_requests
        mm_attention_backend model_path moe_a2a_backend moe_runner_backend nccl_port nnodes node_rank port quantization random_seed
        reasoning_parser revision sampling_backend schedule_conservativeness schedule_policy served_model_name skip_server_warmup
        skip_tokenizer_init speculative_accept_threshold_acc speculative_accept_threshold_single speculative_attention_mode
        stream_interval tokenizer_mode tokenizer_path tool_call_parser trust_remote_code watchdog_timeout
    """),
)

_LLAMA_CPP = Names(
    same={
        **dict.fromkeys(["c", "ctx_size"], "n_ctx"),
        **dict.fromkeys(["np", "parallel", "n_parallel"], "n_seq_max"),
        **dict.fromkeys(["b", "batch_size"], "n_batch"),
        **dict.fromkeys(["ub", "ubatch_size"], "n_ubatch"),
        **dict.fromkeys(["ctk", "cache_type_k"], "type_k"),
        **dict.fromkeys(["ctv", "cache_type_v"], "type_v"),
        **dict.fromkeys(["flash_attn", "flash_attn_type"], "fa"),
        "kvu": "kv_unified",
        **dict.fromkeys(["ngl", "gpu_layers"], "n_gpu_layers"),
        **dict.fromkeys(["kv_offload", "kvo"], "offload_kqv"),
        "mla_attn": "mla",
    },
    negated={"no_kv_offload": "offload_kqv", "nkvo": "offload_kqv", "no_kv_unified": "kv_unified", "no_swa_full": "swa_full"},
    dtype=frozenset({"kv_cache_dtype"}),
    parallel={},
    idle=_idle("""
        alias amb attn_max_b attn_max_batch cache_ram cache_reuse causal_attn cont_batching context_shift cpu_moe ctx_checkpoints
        defrag_thold device embeddings fmoe freq_base freq_scale fused_delta fused_mmad fused_moe fused_up_gate graph_reuse
        grouped_er host jinja k_cache_hadam k_cache_hadamard main_gpu merge_qkv mlock model n_cpu_moe n_predict n_threads
        n_threads_batch no_mmap no_perf no_warmup numa op_offload override_tensor pooling_type port reduce_type repack rope_cache
        rope_freq_base rope_freq_scale rope_scaling rtr sched_async seed ser slot_save_path threads threads_batch use_mlock use_mmap
        v_cache_hadamard warmup yarn_attn_factor yarn_beta_fast yarn_beta_slow yarn_ext_factor yarn_orig_ctx
    """),
)
"""Experts on the processor (`n_cpu_moe`, `override_tensor`) leave caches where their layers are; checkpoints and `cache_ram` are host
memory."""

_MLX = Names(
    same={},
    dtype=frozenset({"kv_cache_dtype"}),
    idle=_idle("""
        adapter_path host log_level max_tokens model port prompt_cache_bytes prompt_cache_size prompt_concurrency seed temp top_k
        top_p trust_remote_code use_default_chat_template
    """),
)

_TENSORRT = Names(
    same={"kv_cache_free_gpu_memory_fraction": "free_gpu_memory_fraction", "kv_cache_free_gpu_mem_fraction": "free_gpu_memory_fraction"},
    dtype=frozenset({"kv_cache_dtype", "dtype"}),
    nested=frozenset({"kv_cache_config"}),
    idle=_idle("""
        attn_backend backend batching_type copy_on_partial_reuse cuda_graph_config disable_overlap_scheduler enable_block_reuse
        enable_chunked_prefill enable_partial_reuse ep_size event_buffer_size gpus_per_node host host_cache_size max_input_len
        max_util_for_resume moe_config moe_expert_parallel_size moe_tensor_parallel_size port print_iter_log scheduler_config
        secondary_offload_min_priority stream_interval tokenizer trust_remote_code use_kv_cache_manager_v2
    """),
)
"""Blocks kept for reuse are those that no request holds, so that `enable_block_reuse` adds none; `host_cache_size` is host memory."""

TABLES = {"vllm": _VLLM, "sglang": _SGLANG, "llamacpp": _LLAMA_CPP, "ikllamacpp": _LLAMA_CPP, "mlx": _MLX, "tensorrt": _TENSORRT}
"""By the engine's module."""


def check_words(numbers: Mapping[str, Any], words: Mapping[str, Any]) -> None:
    """Raise `UsageError` for what is asked beside the settings where it is no whole number of one or more, or no name."""
    for name, value in numbers.items():
        _degree(name, value)
    for name, value in words.items():
        _text(name, value)


def understood(settings: Settings, module: str) -> Settings:
    """The settings under the engine's own names; parallel degrees and the cache's dtype take the place of what was asked.

    Raises `UsageError` for a setting that is given twice with different values, and for numbers beyond any engine's.
    """
    names, named = TABLES[module], dict[str, Any]()
    for name, given in _flat(settings.named, names).items():
        own, value = (names.negated[name], not given) if name in names.negated else (names.same.get(name, name), given)
        if own in names.idle or value is None:
            continue
        _check_value(own, value)
        if own in named and named[own] != value:
            raise UsageError(f"{own} is given twice, as {_shown(named[own])} and {_shown(value)}")
        named[own] = value
    degrees: dict[str, Any] = {names.parallel[name]: _degree(name, named.pop(name)) for name in list(named) if name in names.parallel}
    found = settings._replace(named=named, **degrees)
    for name in names.dtype & named.keys():
        found = found._replace(kv_dtype=kv_dtype(_text(name, named.pop(name))))
    return found


_LISTS = {"max_attention_window", "tensor_split", "speculative_config"}
"""Settings that are more than one number or word."""


def _check_value(name: str, value: Any) -> None:
    """Raise `UsageError` for what no setting is: neither a number nor a word that can be printed."""
    plain = isinstance(value, str | int) or (isinstance(value, float | Decimal) and isfinite(value))
    if not (plain or (name in _LISTS and isinstance(value, list | tuple | Mapping))):
        raise UsageError(f"{ascii(name)[:80]} is {_shown(value)}, and must be a number, a word, true or false")
    if isinstance(value, str) and name not in _LISTS and not value.isprintable():
        raise UsageError(f"{ascii(name)[:80]} is {_shown(value)}, which has characters that cannot be printed")


def _flat(given: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """Settings as they are written, hyphens for underscores and leading dashes dropped, with those of nested ones among them."""
    flat: dict[str, Any] = {}
    for name, value in given.items():
        plain = name.strip().lstrip("-").replace("-", "_")
        if plain in names.nested:
            if not isinstance(value, Mapping):
                raise UsageError(f"{plain} is {_shown(value)}, and holds settings by name")
            flat |= {str(inner): _read(str(inner), held) for inner, held in value.items()}
        else:
            flat[plain] = _read(plain, value)
    return flat


_WORDS = {"true": True, "True": True, "false": False, "False": False, "None": None, "null": None, "": None}
"""`none` is a value (`mamba_cache_mode`), `None` is Python's."""


def _read(name: str, value: Any) -> Any:
    """A value as a log or a command line writes it: whole numbers, true, false and none as such, decimals as floats."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, str):
        text = value.strip()
        if text in _WORDS:
            return _WORDS[text]
        if len(text) < len(str(MOST)) and text.removeprefix("-").isdecimal() and text.isascii():
            return int(text)
        return text
    if isinstance(value, int) and abs(value) > MOST:
        raise UsageError(f"{name} is {_shown(value)}")
    return value


def _degree(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise UsageError(f"{name} is {_shown(value)}, and must be a whole number of 1 or more")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} is {_shown(value)}, and must be a name")
    return value


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) > MOST:
        return "beyond any engine's size"
    text = ascii(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:40]}..."
