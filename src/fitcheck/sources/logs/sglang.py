"""What SGLang prints when it starts, 0.3 to 0.5. Its GB are 1024³ (`GB = 1024 * 1024 * 1024`, `mem_cache/memory_pool.py`)."""

from __future__ import annotations

from fitcheck.sources.logs.rows import NUM, Row

_RUNNER = "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/model_executor/model_runner.py"
_POOL = "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/mem_cache/memory_pool.py"
_SCHEDULER = "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/managers/scheduler.py"

PROCESS = r"^\s{0,8}\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?P<where>(?: [A-Z_]{2,8}\d{1,4}){1,8})\]"
"""`[2026-05-15 08:40:32 TP0]`, `[… DP0 TP3 EP3]`."""

ROWS = (
    Row("server_args=", r"server_args=ServerArgs\(", "", "0.2 to 0.5.21", _SCHEDULER, once=True),
    Row("version", r"\bsglang(?:==| v| version:? ?)(?P<version>\d[\w.+]{1,40})", "", "as pip and images print it", _SCHEDULER),
    Row("SGLang Version", r"SGLang Version (?P<version>\d[\w.+]{1,40})", "", "NVIDIA's images", _SCHEDULER),
    Row(
        "total GPU memory per device",
        rf"Reported total GPU memory per device \(MiB\): \[.{{0,200}}?\], using min: (?P<total_memory>{NUM}) MiB",
        "MiB",
        "0.5.6 to 0.5.21",
        "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/utils/common.py",
    ),
    Row("Load weight begin", rf"Load weight begin\. avail mem=(?P<free_before>{NUM}) GB", "GiB", "0.2 to 0.5.21", _RUNNER),
    Row("Load weight end", rf"Load weight end\..{{0,300}}?\bmem usage=(?P<weights>{NUM}) GB", "GiB", "0.4 to 0.5.21", _RUNNER),
    Row("Load weight end", rf"Load weight end\..{{0,300}}?\bavail mem=(?P<free_after_load>{NUM}) GB", "GiB", "0.2 to 0.5.21", _RUNNER),
    Row("Load weight end", r"Load weight end\..{0,100}?\btype=(?P<architecture>\w{1,80})", "", "0.2 to 0.5.21", _RUNNER),
    Row("Load weight end", r"Load weight end\..{0,200}?\bdtype=(?:torch\.)?(?P<dtype>\w{1,30})", "", "0.2 to 0.5.12", _RUNNER),
    Row(
        "KV Cache is allocated",
        rf"KV Cache is allocated\..{{0,80}}? #tokens: (?P<kv_tokens>{NUM}), K size: (?P<k_bytes>{NUM}) GB, V size: (?P<v_bytes>{NUM}) GB",
        "GiB",
        "0.4.3 to 0.5.21",
        _POOL,
    ),
    Row(
        "KV Cache is allocated",
        rf"KV Cache is allocated\..{{0,80}}? #tokens: (?P<kv_tokens>{NUM}), KV size: (?P<latent_bytes>{NUM}) GB",
        "GiB",
        "0.4.3 to 0.5.21, latent attention",
        _POOL,
    ),
    Row("KV Cache is allocated", r"KV Cache is allocated\. dtype: torch\.(?P<kv_dtype>\w{1,30})", "", "0.5.5 to 0.5.21", _POOL),
    Row(
        "Mamba Cache is allocated",
        rf"Mamba Cache is allocated\. max_mamba_cache_size: (?P<state_slots>{NUM}), conv_state size: (?P<conv_state>{NUM}) ?GB, "
        rf"ssm_state size: (?P<ssm_state>{NUM}) ?GB(?:,? intermediate_ssm_state_cache size: (?P<draft_ssm_state>{NUM}) ?GB)?"
        rf"(?:,? intermediate_conv_window_cache size: (?P<draft_conv_state>{NUM}) ?GB)?",
        "GiB",
        "0.5.3 to 0.5.21",
        _POOL,
    ),
    Row(
        "liding window memory pool",
        rf"Use [Ss]liding window memory pool\. full_layer_tokens=(?P<full_tokens>{NUM}), swa_layer_tokens=(?P<swa_tokens>{NUM})",
        "",
        "0.4.8 to 0.5.21",
        _RUNNER,
    ),
    Row("Memory pool end", rf"Memory pool end\. avail mem=(?P<free_after_pool>{NUM}) GB", "GiB", "0.2 to 0.5.21", _RUNNER),
    Row(
        "raph end",
        rf"Capture (?:[\w ]{{1,40}} )?(?:cuda|CUDA|npu|cpu) ?graph end\..{{0,60}}?\bmem usage=(?P<graphs>{NUM}) GB",
        "GiB",
        "0.4.4 to 0.5.21",
        _RUNNER,
    ),
    Row(
        "max_total_num_tokens=",
        rf"max_total_num_tokens=(?P<kv_tokens>\d{{1,18}}),.{{0,120}}?max_running_requests=(?P<running_requests>\d{{1,9}}), "
        rf"context_len=(?P<context_tokens>\d{{1,12}})(?:, available_gpu_mem=(?P<free_at_end>{NUM}) GB)?",
        "GiB",
        "0.2 to 0.5.21",
        _SCHEDULER,
    ),
)

SETTINGS_AFTER = ("server_args=ServerArgs(",)

SETTINGS = {
    "model_path": "model",
    "dtype": "dtype",
    "quantization": "quantization",
    "context_length": "context_length",
    "tp_size": "tp",
    "pp_size": "pp",
    "dp_size": "dp",
    "ep_size": "ep",
    "kv_cache_dtype": "kv_cache_dtype",
    "mem_fraction_static": "mem_fraction_static",
    "max_running_requests": "max_running_requests",
    "max_total_tokens": "max_total_tokens",
    "chunked_prefill_size": "chunked_prefill_size",
    "page_size": "page_size",
    "disable_radix_cache": "disable_radix_cache",
    "enable_dp_attention": "enable_dp_attention",
    "attention_backend": "attention_backend",
    "swa_full_tokens_ratio": "swa_full_tokens_ratio",
    "disable_hybrid_swa_memory": "disable_hybrid_swa_memory",
    "mamba_ssm_dtype": "mamba_ssm_dtype",
    "max_mamba_cache_size": "max_mamba_cache_size",
    "mamba_full_memory_ratio": "mamba_full_memory_ratio",
    "disable_overlap_schedule": "disable_overlap_schedule",
    "speculative_algorithm": "speculative_algorithm",
    "speculative_draft_model_path": "speculative_draft_model_path",
    "speculative_num_steps": "speculative_num_steps",
    "speculative_eagle_topk": "speculative_eagle_topk",
    "speculative_num_draft_tokens": "speculative_num_draft_tokens",
}
"""Settings by the names under which they are printed."""
