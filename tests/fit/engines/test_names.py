"""Settings under the names of command lines and logs: each means what the engine's own name does, or nothing."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitcheck.errors import FitcheckError, UnknownId, UsageError
from fitcheck.fit.engines import llamacpp_settings, mlx, sglang_ask, tensorrt
from fitcheck.fit.engines.base import MODULES, Ledger, Settings, allocator, module_of
from fitcheck.fit.engines.names import TABLES, understood
from fitcheck.fit.engines.vllm_settings import NAMES
from fitcheck.fit.state import kv_dtype
from tests.fit.engines.pool_shapes import SHAPES


def ledger(engine, model="qwen3.8-27b", /, **named):
    module = module_of(engine)
    return Ledger(allocator(engine)(SHAPES[model], understood(Settings(8192, 2, kv_dtype("auto"), named=named), module)))


@pytest.mark.parametrize(
    ("engine", "said", "meant"),
    [
        # vLLM: core.py's "Initializing a V1 LLM engine" line, and the command line
        ("vllm", {"max_seq_len": 4096}, {"max_model_len": 4096}),
        ("vllm", {"--max-model-len": "4096"}, {"max_model_len": 4096}),
        ("vllm", {"cache_dtype": "fp8"}, {"kv_cache_dtype": "fp8"}),
        ("vllm", {"no-enable-prefix-caching": True}, {"enable_prefix_caching": False}),
        ("vllm", {"enable_prefix_caching": "False"}, {"enable_prefix_caching": False}),
        ("vllm", {"mamba_cache_mode": "none"}, {"mamba_cache_mode": "none"}),
        ("vllm", {"compute_capability": Decimal("9.0")}, {"compute_capability": 9.0}),
        ("vllm", {"mamba_ssm_cache_dtype": "torch.float32"}, {"mamba_ssm_cache_dtype": "float32"}),
        # SGLang: ServerArgs, and the start-up line "max_total_num_tokens=..., context_len=..."
        ("sglang", {"context_len": 4096}, {"context_length": 4096}),
        ("sglang", {"max_total_num_tokens": 65536}, {"max_total_tokens": 65536}),
        ("sglang", {"mamba_scheduler_strategy": "no_buffer"}, {"mamba_radix_cache_strategy": "no_buffer"}),
        ("sglang", {"--page-size": "64"}, {"page_size": 64}),
        # llama.cpp: common/arg.cpp, and what llama_context prints
        ("llama.cpp", {"-c": "32768", "-np": "4"}, {"n_ctx": 32768, "n_seq_max": 4}),
        ("llama.cpp", {"ctx_size": 32768, "parallel": 4}, {"n_ctx": 32768, "n_seq_max": 4}),
        ("llama.cpp", {"-ctk": "q8_0", "-ctv": "q8_0"}, {"type_k": "q8_0", "type_v": "q8_0"}),
        ("llama.cpp", {"cache-type-k": "Q8_0", "cache-type-v": "Q8_0"}, {"type_k": "q8_0", "type_v": "q8_0"}),
        ("llama.cpp", {"flash_attn": "enabled"}, {"fa": "on"}),
        ("llama.cpp", {"kv_unified": "true"}, {"kv_unified": True}),
        ("llama.cpp", {"-ub": 256, "-b": 1024}, {"n_ubatch": 256, "n_batch": 1024}),
        ("llama.cpp", {"-nkvo": True}, {"offload_kqv": False}),
        ("llama.cpp", {"ngl": 99}, {"n_gpu_layers": 99}),
        ("ik_llama.cpp", {"mla_attn": 3}, {"mla": 3}),
        # TensorRT-LLM: llm_args.py
        ("tensorrt-llm", {"kv_cache_config": {"tokens_per_block": 64, "enable_block_reuse": True}}, {"tokens_per_block": 64}),
        ("tensorrt-llm", {"kv_cache_free_gpu_memory_fraction": 0.9}, {"free_gpu_memory_fraction": 0.9}),
    ],
)
def test_a_setting_by_another_name(engine, said, meant):
    assert ledger(engine, **said).terms == ledger(engine, **meant).terms


@pytest.mark.parametrize(
    ("engine", "named", "scale"),
    [
        # 94 layers x 4 KV heads x (128 + 128) x 2 B a token: FP8 is half of it, a rank of two holds two heads, a stage of two 47 layers
        ("sglang", {"kv_cache_dtype": "fp8_e4m3"}, 2),
        ("sglang", {"tp_size": 2}, 2),
        ("sglang", {"pp_size": 2}, 2),
        ("sglang", {"tp": 2}, 2),
        ("tensorrt-llm", {"dtype": "fp8"}, 2),
        ("tensorrt-llm", {"kv_cache_config": {"dtype": "torch.float8_e4m3fn"}}, 2),
        ("tensorrt-llm", {"tensor_parallel_size": 4}, 4),
        ("vllm", {"data_parallel_size": 1, "tensor_parallel_size": 4}, 4),
    ],
)
def test_dtypes_and_degrees_among_the_settings(engine, named, scale):
    assert ledger(engine, "qwen3-235b", **named).kv_bytes * scale == ledger(engine, "qwen3-235b").kv_bytes


@pytest.mark.parametrize(
    ("engine", "named"),
    [
        # host memory, addresses and kernels take nothing of a device's caches
        ("vllm", {"swap_space": 4, "quantization": "fp8", "limit_mm_per_prompt": {"image": 1}, "seed": 0, "enable_chunked_prefill": True}),
        ("vllm", {"speculative_config": None, "kv_cache_dtype": None, "tokenizer": "x", "trust_remote_code": True, "dtype": "bfloat16"}),
        ("sglang", {"max_prefill_tokens": 16384, "cuda_graph_max_bs": 32, "available_gpu_mem": 10.5, "speculative_algorithm": "None"}),
        ("llama.cpp", {"causal_attn": 1, "freq_base": 1e6, "freq_scale": 1, "n_threads": 8, "main_gpu": 0, "split_mode": "layer"}),
        ("llama.cpp", {"n_cpu_moe": 10, "override_tensor": "exps=CPU", "ctx_checkpoints": 32, "cache_ram": 8192}),
        ("ik_llama.cpp", {"attn_max_b": 512, "fused_moe": 1, "rtr": True, "ser": "-1, 0"}),
        ("tensorrt-llm", {"enable_block_reuse": True, "max_beam_width": 1, "backend": "pytorch"}),
    ],
)
def test_settings_that_decide_nothing_of_a_cache(engine, named):
    assert ledger(engine, **named).terms == ledger(engine).terms


def test_one_setting_twice_is_one_or_refused():
    assert ledger("llama.cpp", n_ctx=8192, ctx_size=8192).terms == ledger("llama.cpp", n_ctx=8192).terms
    with pytest.raises(UsageError, match="n_ctx is given twice, as 8192 and 4096"):
        ledger("llama.cpp", n_ctx=8192, ctx_size=4096)


@pytest.mark.parametrize("engine", MODULES)
@pytest.mark.parametrize("named", [{"no_such_setting": 1}, {"\x1b[31m": 1}, {"": 1}])
def test_names_of_no_engine_are_refused(engine, named):
    with pytest.raises(UsageError, match="has no setting") as refused:
        ledger(engine, "qwen3-235b", **named)
    assert "\x1b" not in refused.value.message


@pytest.mark.parametrize("value", [10**5000, -(10**5000), 1 << 60], ids=["huge", "low", "large"])
@pytest.mark.parametrize(
    ("engine", "name"), [("vllm", "max_model_len"), ("sglang", "page_size"), ("llama.cpp", "n_ctx"), ("mlx", "max_kv_size")]
)
def test_numbers_beyond_any_engine(engine, name, value):
    with pytest.raises(UsageError):
        ledger(engine, "qwen3-235b", **{name: value})


@pytest.mark.parametrize(
    ("engine", "name", "value"),
    [
        ("vllm", "mamba_ssm_cache_dtype", []),
        ("vllm", "compute_capability", float("inf")),
        ("vllm", "attention_backend", "FLASH\x1b[31m"),
        ("sglang", "mamba_scheduler_strategy", {"no": 1}),
        ("sglang", "speculative_algorithm", "E\nAGLE"),
        ("llama.cpp", "fa", {}),
        ("tensorrt-llm", "dtype", b"fp8"),
    ],
)
def test_values_that_no_setting_has(engine, name, value):
    with pytest.raises(UsageError) as refused:
        ledger(engine, **{name: value})
    assert refused.value.message.isprintable()


SPELLED = {name for table in TABLES.values() for names in (table.same, table.negated, table.parallel, table.idle) for name in names}
NAMED = sorted({*SPELLED, *NAMES, *sglang_ask.KNOWN, *llamacpp_settings.DEFAULTS, *mlx.KNOWN, *tensorrt.KNOWN, "kv_cache_config", "mla"})
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=2),
    st.just({}),
    st.just("8"),
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(MODULES)), st.dictionaries(st.sampled_from(NAMED), ANYTHING, max_size=3))
def test_any_value_is_an_answer_or_a_fitcheck_error(engine, named):
    model = "qwen3.8-27b" if engine in ("vllm", "sglang") else "gpt-oss-120b"
    try:
        said = f"{ledger(engine, model, **named).bytes}"
    except FitcheckError as error:
        said = error.message
    assert said.isprintable()


@pytest.mark.parametrize("name", ["llama.cpp", "llamacpp", "llama-cpp", "Llama_CPP"])
def test_an_engines_name_is_known_by_its_letters(name):
    assert module_of(name) == "llamacpp"
    assert [module_of(other) for other in ("ik_llama.cpp", "mlx-lm", "TensorRT_LLM", "trtllm", "vLLM")] == [
        "ikllamacpp",
        "mlx",
        "tensorrt",
        "tensorrt",
        "vllm",
    ]


def test_an_engine_that_is_not_modelled():
    with pytest.raises(UnknownId):
        allocator("ollama")
