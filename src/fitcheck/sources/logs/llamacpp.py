"""What llama.cpp and ik_llama.cpp print when they start, from the wordings of 2023 to those of 2026. MB were MiB from the start."""

from __future__ import annotations

from fitcheck.sources.logs.rows import NUM, Row

_CONTEXT = "https://github.com/ggml-org/llama.cpp/blob/master/src/llama-context.cpp"
_CACHE = "https://github.com/ggml-org/llama.cpp/blob/master/src/llama-kv-cache.cpp"
_STATE = "https://github.com/ggml-org/llama.cpp/blob/master/src/llama-memory-recurrent.cpp"
_MODEL = "https://github.com/ggml-org/llama.cpp/blob/master/src/llama-model.cpp"
_LOADER = "https://github.com/ggml-org/llama.cpp/blob/master/src/llama-model-loader.cpp"
_ARGS = "https://github.com/ggml-org/llama.cpp/blob/master/common/common.cpp"
_IK = "https://github.com/ikawrakow/ik_llama.cpp/blob/main/src/llama.cpp"

_KINDS = rf"K \((?P<type_k>\w{{1,20}})\): {{1,8}}{NUM} Mi?B, V \((?P<type_v>\w{{1,20}})\)"
_CTX = r"(?:llama_context|llama_new_context_with_model|llama_init_from_model)"
_DEV = r"(?P<where>[A-Za-z][\w.\[\]:-]{0,60})"
_MB = r"Mi?B"

ROWS = (
    Row(
        "loaded meta data with",
        r"loaded meta data with .{1,80}? tensors from (?P<model>.{1,400}?) \(version ",
        "",
        "2023 to build 11549",
        _LOADER,
        once=True,
    ),
    Row("general.name", r"print_(?:info|meta): general\.name {1,12}= {1,2}(?P<name>.{1,120})", "", "2023 to build 11549", _MODEL),
    Row("build", r"\bbuild(?:_info)?:? b?(?P<version>\d{1,6})[ -]\(?[0-9a-f]{6,10}\)?", "", "2023 to build 11549", _ARGS),
    Row("build =", r"\bbuild = (?P<version>\d{1,6}) \([0-9a-f]{6,10}\)", "", "2023 to build 4600, and ik_llama.cpp", _ARGS),
    Row("arch", r"print_(?:info|meta): arch {1,20}= (?P<architecture>[\w.-]{1,40})", "", "2023 to build 11549", _MODEL),
    Row("type", r"print_(?:info|meta): (?:file type|model ftype) {1,16}= (?P<file_type>.{1,60})", "", "2023 to build 11549", _MODEL),
    Row(
        "size",
        rf"print_(?:info|meta): (?:file size|model size) {{1,16}}= (?P<weights_file>{NUM}) GiB",
        "GiB",
        "2023 to build 11549",
        _MODEL,
    ),
    Row(
        "size",
        rf"print_(?:info|meta): (?:file size|model size) {{1,16}}= (?P<weights_file>{NUM}) MiB",
        "MiB",
        "2023 to build 11549",
        _MODEL,
    ),
    Row("no_alloc", r"print_info: no_alloc {1,20}= (?P<no_alloc>[01])", "", "builds 7000 to 11549", _MODEL),
    Row(
        "using device",
        rf"using device {_DEV} \((?P<device>[^()]{{1,80}}(?:\([^()]{{1,20}}\)[^()]{{0,60}})?)\)(?: \([\w:.]{{1,20}}\))? "
        rf"- (?P<free_before>{NUM}) MiB free",
        "MiB",
        "builds 3800 to 11549",
        _MODEL,
    ),
    Row(
        "  Device ",
        r"^.{0,60}?  Device \d{1,3}: (?P<device>[^,]{1,80}), compute capability",
        "",
        "CUDA and ROCm, 2023 to build 11549",
        "https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/ggml-cuda/ggml-cuda.cu",
    ),
    Row("layers to GPU", r"offloaded (?P<offloaded>\d{1,5})/(?P<offloadable>\d{1,5}) layers to GPU", "", "2023 to build 11549", _MODEL),
    Row(
        "buffer size",
        rf"load_tensors: {{1,12}}{_DEV} (?:model )?buffer size {{1,4}}= {{1,8}}(?P<weights>{NUM}) {_MB}",
        "MiB",
        "2024 to build 11549",
        _MODEL,
    ),
    Row("constructing", r"(?P<second_context>llama_context: constructing) llama_context", "", "builds 4900 to 11549", _CONTEXT),
    Row("n_ctx ", rf"{_CTX}: n_ctx {{1,20}}= (?P<n_ctx>\d{{1,12}})", "", "2023 to build 11549", _CONTEXT),
    Row("n_seq_max", rf"{_CTX}: n_seq_max {{1,20}}= (?P<n_seq_max>\d{{1,6}})", "", "builds 4000 to 11549", _CONTEXT),
    Row("n_batch", rf"{_CTX}: n_batch {{1,20}}= (?P<n_batch>\d{{1,9}})", "", "2023 to build 11549", _CONTEXT),
    Row("n_ubatch", rf"{_CTX}: n_ubatch {{1,20}}= (?P<n_ubatch>\d{{1,9}})", "", "2024 to build 11549", _CONTEXT),
    Row("n_rs_seq", rf"{_CTX}: n_rs_seq {{1,20}}= (?P<n_rs_seq>\d{{1,6}})", "", "builds 10000 to 11549", _CONTEXT),
    Row("flash_attn", rf"{_CTX}: flash_attn {{1,20}}= (?P<flash_attention>\w{{1,10}})", "", "2024 to build 11549", _CONTEXT),
    Row("kv_unified", rf"{_CTX}: kv_unified {{1,20}}= (?P<kv_unified>\w{{1,10}})", "", "builds 5900 to 11549", _CONTEXT),
    Row("mla_attn", rf"{_CTX}: mla_attn {{1,20}}= (?P<mla_attn>\d)", "", "ik_llama.cpp", _IK),
    Row("full-size SWA cache", r"(?P<full_window>using full-size SWA cache)", "", "builds 5500 to 11549", _CACHE),
    Row(
        "KV buffer size",
        rf"llama_kv_cache\w{{0,12}}: {{1,16}}{_DEV} KV buffer size = {{1,8}}(?P<device_kv>{NUM}) {_MB}",
        "MiB",
        "2024 to build 11549",
        _CACHE,
    ),
    Row(
        " cells,",
        rf"llama_kv_cache\w{{0,12}}: size = {{1,8}}(?P<kv_allocated>{NUM}) {_MB} "
        rf"\( {{0,8}}(?P<cells>{NUM}) cells, {{1,6}}(?P<layers>\d{{1,5}}) layers"
        rf"(?:, {{1,4}}(?P<sequences>\d{{1,6}})(?:/(?P<streams>\d{{1,6}}))? seqs)?\), {_KINDS}",
        "MiB",
        "builds 4900 to 11549 (_unified to 6400)",
        _CACHE,
    ),
    Row(
        "KV self size",
        rf"KV self size {{1,4}}= {{1,8}}(?P<kv_allocated>{NUM}) {_MB}, {_KINDS}",
        "MiB",
        "2023 to build 4900, and ik_llama.cpp",
        _IK,
    ),
    Row(
        "c^KV",
        rf"KV self size {{1,4}}= {{1,8}}(?P<kv_allocated>{NUM}) {_MB}, "
        rf"c\^KV \((?P<type_k>\w{{1,20}})\): {{1,8}}(?P<latent_bytes>{NUM}) {_MB}",
        "MiB",
        "ik_llama.cpp, latent attention",
        _IK,
    ),
    Row(
        "RS buffer size",
        rf"llama_memory_recurrent: {{1,16}}{_DEV} RS buffer size = {{1,8}}(?P<device_state>{NUM}) {_MB}",
        "MiB",
        "builds 5700 to 11549",
        _STATE,
    ),
    Row(
        "llama_memory_recurrent: size",
        rf"llama_memory_recurrent: size = {{1,8}}(?P<state>{NUM}) {_MB} \( {{0,8}}(?P<state_slots>{NUM}) cells?,",
        "MiB",
        "builds 5700 to 11549",
        _STATE,
    ),
    Row(
        "compute buffer size",
        rf"(?:{_CTX}|sched_reserve): {{1,16}}{_DEV} compute buffer size {{1,4}}= {{1,8}}(?P<compute>{NUM}) {_MB}",
        "MiB",
        "2023 to build 11549",
        _CONTEXT,
    ),
    Row(
        "output buffer size",
        rf"{_CTX}: {{1,16}}{_DEV} {{1,2}}output buffer size {{1,4}}= {{1,8}}(?P<output>{NUM}) {_MB}",
        "MiB",
        "2024 to build 11549",
        _CONTEXT,
    ),
    Row(
        "_print: |   - ",
        rf"memory_breakdown_print: \|   - {_DEV} \((?P<device>[^|]{{1,80}})\) {{0,40}}\| "
        rf"{{0,8}}(?P<breakdown_total>\d{{1,9}}) = {{1,8}}(?P<breakdown_free>\d{{1,9}}) \+ "
        rf"\( {{0,8}}\d{{1,9}} = {{1,8}}(?P<breakdown_model>\d{{1,9}}) \+ {{1,8}}(?P<breakdown_context>\d{{1,9}})"
        rf" \+ {{1,8}}(?P<breakdown_compute>\d{{1,9}})\)",
        "MiB",
        "builds 6700 to 11549",
        _CONTEXT,
    ),
)

IK_WORDS = ("mla_attn", "fused_moe", "attn_max_b", "c^KV", "iqk_")
"""Words that only ik_llama.cpp prints."""
