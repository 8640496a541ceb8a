"""What vLLM prints when it starts, 0.2 to 0.33, on one worker or many."""

from __future__ import annotations

from fitcheck.sources.logs.rows import NUM, Row

_PROFILE = "https://github.com/vllm-project/vllm/blob/main/vllm/v1/worker/gpu_worker.py"
_KV = "https://github.com/vllm-project/vllm/blob/main/vllm/v1/core/kv_cache_utils.py"
_RUNNER = "https://github.com/vllm-project/vllm/blob/main/vllm/v1/worker/gpu_model_runner.py"
_V0 = "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/worker/worker.py"

PROCESS = r"^\s{0,8}\((?P<where>(?:APIServer|EngineCore|CoreEngine|Worker|VllmWorker|RayWorker|MultiprocWorker)[\w.-]{0,60})[^)]{0,80}\)"
"""`(EngineCore_DP0 pid=163)`, `(Worker_TP1 pid=1806414)`, `(VllmWorkerProcess pid=1786)`, `(RayWorkerWrapper pid=87, ip=10.0.0.2)`."""

ROWS = (
    Row(
        " LLM engine (v",
        r"Initializing an? (?:V[01] )?LLM engine \(v?(?P<version>[\w.+-]{1,120})\)",
        "",
        "0.4.1 to 0.33",
        "https://github.com/vllm-project/vllm/blob/main/vllm/v1/engine/core.py",
        once=True,
    ),
    Row(
        "API server version",
        r"API server version:? {1,2}v?(?P<version>\d[\w.+-]{0,120})",
        "",
        "0.4 to 0.33",
        "https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/api_server.py",
        once=True,
    ),
    Row("odel weights took", rf"[Ll]oading model weights took (?P<weights>{NUM}) G(?:i?B)", "GiB", "0.3 to 0.6", _V0),
    Row("odel loading took", rf"Model loading took (?P<weights>{NUM}) Gi?B\b", "GiB", "0.7 to 0.33", _RUNNER),
    Row(
        "Memory profiling results",
        rf"total_gpu_memory=(?P<total_memory>{NUM})GiB.{{0,40}}? initial_memory_usage={NUM}GiB peak_torch_memory=(?P<torch_peak>{NUM})GiB "
        rf"memory_usage_post_profile={NUM}Gi[bB] non_torch_memory=(?P<non_torch>{NUM})GiB kv_cache_size=(?P<kv_available>{NUM})GiB "
        rf"gpu_memory_utilization=(?P<utilisation>{NUM})",
        "GiB",
        "0.6.3 to 0.6.4",
        "https://github.com/vllm-project/vllm/issues/10517",
    ),
    Row(
        "total_gpu_memory (",
        rf"total_gpu_memory \((?P<total_memory>{NUM})GiB\) x (?:gpu_memory_utilization \()?(?P<utilisation>{NUM})\)? "
        rf"= (?P<budget>{NUM})GiB",
        "GiB",
        "0.6.5 to 0.9 (V0)",
        _V0,
    ),
    Row("model weights take", rf"model weights take (?P<weights>{NUM})GiB", "GiB", "0.6.5 to 0.9 (V0)", _V0),
    Row("non_torch_memory takes", rf"non_torch_memory takes (?P<non_torch>{NUM})GiB", "GiB", "0.6.5 to 0.9 (V0)", _V0),
    Row("activation peak memory", rf"PyTorch activation peak memory takes (?P<activation>{NUM})GiB", "GiB", "0.6.5 to 0.9 (V0)", _V0),
    Row("reserved for KV Cache", rf"reserved for KV Cache is (?P<kv_available>{NUM})GiB", "GiB", "0.6.5 to 0.9 (V0)", _V0),
    Row("Available KV cache memory", rf"Available KV cache memory: (?P<kv_available>{NUM}) GiB", "GiB", "0.8 to 0.33 (V1)", _PROFILE),
    Row(
        "GiB KV cache",
        rf"[Rr]eserved (?P<kv_available>{NUM}) GiB (?:memory )?for KV [Cc]ache as specified",
        "GiB",
        "0.10 to 0.33, kv_cache_memory_bytes",
        _PROFILE,
    ),
    Row(
        "Free memory on device",
        rf"Free memory on device(?: [\w:]{{1,20}})? \((?P<free_before>{NUM})/(?P<total_memory>{NUM}) GiB\) on startup",
        "GiB",
        "0.10 to 0.33",
        _PROFILE,
    ),
    Row(
        "GPU memory utilization",
        rf"[Dd]esired GPU memory utilization(?: is)? \((?P<utilisation>{NUM}), (?P<budget>{NUM}) GiB\)",
        "GiB",
        "0.10 to 0.33",
        _PROFILE,
    ),
    Row("GiB for weight", rf"Actual usage is (?P<weights>{NUM}) GiB for weight", "GiB", "0.10 to 0.27", _PROFILE),
    Row(
        "for consumed memory",
        rf"Actual usage is (?P<weights_and_runtime>{NUM}) GiB for consumed memory",
        "GiB",
        "0.27 to 0.33: weights and non-torch memory together",
        _PROFILE,
    ),
    Row("for peak activation", rf"(?P<activation>{NUM}) GiB for peak activation", "GiB", "0.10 to 0.33", _PROFILE),
    Row("for non-torch memory", rf"(?P<non_torch>{NUM}) GiB for non-torch memory", "GiB", "0.10 to 0.27", _PROFILE),
    Row("for CUDAGraph memory", rf"(?P<graphs>{NUM}) GiB for CUDAGraph memory", "GiB", "0.10 to 0.33", _PROFILE),
    Row("kv cache memory in use", rf"Current kv cache memory in use is (?P<kv_in_use>{NUM}) bytes", "B", "0.10 to 0.22", _PROFILE),
    Row("kv cache memory in use", rf"Current kv cache memory in use is (?P<kv_in_use>{NUM}) GiB", "GiB", "0.22 to 0.33", _PROFILE),
    Row("KV cache size", rf"\b\w{{2,10}} KV cache size: (?P<kv_tokens>{NUM}) tokens", "", "0.8 to 0.33 (V1)", _KV),
    Row(" blocks:", rf"# (?:GPU|cuda|CUDA|\w{{2,6}}) blocks: (?P<kv_blocks>{NUM}), # CPU blocks", "", "0.2 to 0.9 (V0)", _V0),
    Row(
        "Maximum concurrency for",
        rf"Maximum concurrency for (?P<concurrency_tokens>{NUM}) tokens per request: (?P<concurrency>{NUM})x",
        "",
        "0.6 to 0.33",
        _KV,
    ),
    Row(
        "finished in",
        rf"Graph capturing finished in {NUM} secs?, took (?P<graphs>{NUM}) GiB",
        "GiB",
        "0.6.4 to 0.33; before, without the size",
        _RUNNER,
    ),
    Row(
        "attention block size to",
        r"Setting attention block size to (?P<block_tokens>\d{1,9}) tokens",
        "",
        "0.11 to 0.33, hybrid models",
        "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/models/config.py",
    ),
    Row(
        "mamba page size by",
        rf"Padding mamba page size by (?P<hybrid_padding>{NUM})%",
        "",
        "0.11 to 0.33, hybrid models",
        "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/models/config.py",
    ),
    Row(
        "max_num_batched_tokens",
        r"Chunked prefill is enabled with max_num_batched_tokens=(?P<batched_tokens>\d{1,9})",
        "",
        "0.4 to 0.33",
        "https://github.com/vllm-project/vllm/blob/main/vllm/config/scheduler.py",
    ),
    Row(
        "KV cache is needed",
        rf"max seq len \((?P<needed_tokens>{NUM})\),? \(?(?P<needed>{NUM}) GiB KV cache is needed, which is larger than the "
        rf"available KV cache memory \((?P<kv_available>{NUM}) GiB\)",
        "GiB",
        "0.8 to 0.33",
        _KV,
    ),
    Row("estimated maximum model length", r"estimated maximum model length is (?P<estimated_tokens>\d{1,9})", "", "0.8 to 0.33", _KV),
    Row(
        "can be stored in KV cache",
        rf"max seq len \((?P<context_tokens>{NUM})\) is larger than the maximum number of tokens that can be stored in KV cache "
        rf"\((?P<stored_tokens>{NUM})\)",
        "",
        "0.2 to 0.7",
        _V0,
    ),
)

SETTINGS_AFTER = ("with config:", "non-default args:", "Namespace(")
"""Words after which a line lists settings as `name=value` or `'name': value`."""

SETTINGS = {
    "model": "model",
    "model_tag": "model",
    "dtype": "dtype",
    "quantization": "quantization",
    "max_seq_len": "max_model_len",
    "max_model_len": "max_model_len",
    "tensor_parallel_size": "tp",
    "pipeline_parallel_size": "pp",
    "data_parallel_size": "dp",
    "decode_context_parallel_size": "dcp",
    "kv_cache_dtype": "kv_cache_dtype",
    "enable_prefix_caching": "enable_prefix_caching",
    "enforce_eager": "enforce_eager",
    "enable_expert_parallel": "enable_expert_parallel",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "block_size": "block_size",
    "num_gpu_blocks_override": "num_gpu_blocks_override",
    "kv_cache_memory_bytes": "kv_cache_memory_bytes",
    "mamba_cache_mode": "mamba_cache_mode",
    "mamba_cache_dtype": "mamba_cache_dtype",
    "mamba_ssm_cache_dtype": "mamba_ssm_cache_dtype",
    "async_scheduling": "async_scheduling",
    "disable_hybrid_kv_cache_manager": "disable_hybrid_kv_cache_manager",
    "speculative_config": "speculative_config",
    "speculative_config.method": "speculative_config.method",
    "speculative_config.model": "speculative_config.model",
    "speculative_config.num_speculative_tokens": "num_speculative_tokens",
    "speculative_config.num_spec_tokens": "num_speculative_tokens",
    "num_speculative_tokens": "num_speculative_tokens",
}
"""Settings by the names under which they are printed."""
