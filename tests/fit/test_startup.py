import json

from fitcheck import fit, kv_memory, load_catalogue, read_model

CATALOGUE = load_catalogue()
VISIBLE = 130_663_006_208  # 121.69 GiB of a DGX Spark
NEEDED = 113_676_815_400  # 0.87 of it, rounded down: what vLLM takes there and wants free (request_memory)


def test_vllm_wants_its_share_free_and_the_files_stay_cached():
    report = fit("qwen3.8-27b", cluster="spark", checkpoint="official-bf16", engine="vllm", catalogue=CATALOGUE)
    build = bytes_of("qwen3.8-27b", "official-bf16")
    assert (report.startup.free_needed_bytes, report.startup.checked) == (NEEDED, True)
    assert report.startup.page_cache_bytes == min(build, VISIBLE - build)
    assert VISIBLE - report.startup.page_cache_bytes < NEEDED
    assert any("page cache" in warning for warning in report.warnings)


def bytes_of(model, build):
    found = next(record for record in CATALOGUE.models if record.id == model).checkpoint(build)
    return sum(part.value for part in found.components if not part.optional)


def test_a_small_build_leaves_room_for_the_next_start():
    # 14.96 GiB of files: 121.69 - 14.96 = 106.73 GiB are free again, and 105.87 are wanted
    report = fit("llama-3.1-8b", cluster="spark", checkpoint="official-bf16", engine="vllm", catalogue=CATALOGUE)
    assert not any("page cache" in warning for warning in report.warnings)


def test_a_card_of_its_own_memory_caches_nothing_there_and_llama_cpp_checks_nothing():
    card = fit("llama-3.1-8b", cluster="rtx-4090", checkpoint="official-bf16", engine="vllm", catalogue=CATALOGUE)
    assert card.startup.page_cache_bytes == 0
    mapped = fit("llama-3.1-8b", cluster="spark", checkpoint="gguf-q8-0", engine="llama.cpp", catalogue=CATALOGUE)
    assert (mapped.startup.checked, mapped.startup.page_cache_bytes) == (False, 0)
    assert mapped.startup.free_needed_bytes == mapped.devices[0].total_bytes


def test_the_cache_dtype_that_a_build_asks_for_is_taken_by_vllm_alone(tmp_path):
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    ask = {"cluster": "rtx-4090", "context": 32768, "checkpoint": "as-configured", "catalogue": CATALOGUE}
    eight = fit(read_model(path), engine="vllm", **ask)
    # 32 layers x 2 x 8 heads x 128 x 1 B x 32,768 tokens; 2 B where it is asked for or not heeded
    assert sum(term.bytes for term in eight.devices[0].terms if term.part == "state") == 32 * 2 * 8 * 128 * 32768
    assert eight.kv_dtype == "fp8"
    asked = {"engine": "vllm", "context": 32768}
    assert kv_memory(read_model(path), **asked).kv_bytes == 32 * 2 * 8 * 128 * 32768
    assert kv_memory(read_model(path), kv_dtype="bf16", **asked).kv_bytes == 2 * 32 * 2 * 8 * 128 * 32768
    assert kv_memory(read_model(path), engine="sglang", context=32768, page_size=1).kv_bytes > 32 * 2 * 8 * 128 * 32768
    assert fit(read_model(path), engine="vllm", kv_dtype="bf16", **ask).kv_bytes_per_token == 2 * 65536
    assert fit(read_model(path), engine="sglang", **ask).kv_dtype == "auto"
    assert fit(read_model(path), cluster="rtx-4090", checkpoint="bf16", engine="vllm", catalogue=CATALOGUE).kv_dtype == "auto"
