"""A published config as a model that `fit` can be asked about."""

import json
from datetime import date

import pytest

import fitcheck
from fitcheck.catalogue.lint import lint
from fitcheck.errors import DataError
from fitcheck.sources.record import config_record
from fitcheck.views.record_yaml import as_entry
from tests.cli.run import fitcheck as run
from tests.conftest import AS_OF, ROOT

CONFIGS = ROOT / "tests" / "data" / "configs"
DAY = date(2026, 11, 30)


def build_bytes(record, name):
    return record.checkpoint(name).total_bytes


def test_builds_have_the_sizes_that_were_published():
    record = config_record(CONFIGS / "llama-3.1-8b.json", DAY)
    # llama.cpp counts 8,030,261,248 parameters in this model's file; two bytes each
    assert record.parameters.total.value == 8_030_261_248
    assert build_bytes(record, "bf16") == 16_060_522_496
    assert record.checkpoint("bf16").native
    assert record.architecture.family == "llama"


def test_a_config_that_is_quantised_itself_comes_first(catalogue, tmp_path):
    config = json.loads((CONFIGS / "gpt-oss-20b.json").read_text(encoding="utf-8"))
    kept = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps({**config, "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": kept}}), encoding="utf-8"
    )
    native = config_record(path, DAY).checkpoint("as-configured")
    assert (native.format, native.native) == ("mxfp4", True)
    report = fitcheck.fit(fitcheck.read_model(path), cluster="spark", as_of=AS_OF, catalogue=catalogue)
    assert report.checkpoint == "as-configured"
    assert abs(report.checkpoints[0].bytes / (12.82 * 1024**3) - 1) < 0.001  # 12.82 GiB printed of the real files


@pytest.mark.parametrize("arguments", [("--cluster", "spark"), ("--cluster", "2x4090", "--users", "2", "--format", "json")])
def test_fit_takes_the_path_of_a_config(arguments):
    ran = run("fit", str(CONFIGS / "llama-3.1-8b.json"), *arguments)
    assert ran.code == 0, ran.err
    assert "bf16" in ran.out


def test_a_folder_with_a_config_is_a_model_too(tmp_path):
    (tmp_path / "config.json").write_bytes((CONFIGS / "llama-3.1-8b.json").read_bytes())
    assert run("fit", str(tmp_path), "--cluster", "spark").code == 0


@pytest.mark.parametrize("text", ["", "[]", "{", '{"model_type": "qwen3", "model_type": "llama"}', "\x00"])
def test_what_is_no_config_is_one_clear_error(tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text, encoding="utf-8")
    ran = run("fit", str(path), "--cluster", "spark")
    assert (ran.code, ran.out) == (4, "")
    assert "broken.json" in ran.err
    with pytest.raises(DataError):
        config_record(path, DAY)


def test_a_family_nobody_knows_is_unknown(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "never_seen", "num_hidden_layers": 4, "hidden_size": 64}', encoding="utf-8")
    assert run("fit", str(path), "--cluster", "spark").code == 12


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
def test_the_entry_of_a_config_is_accepted_as_it_is(path):
    entry = as_entry(config_record(path, DAY))
    assert [finding for finding in lint([("mine.yaml", entry)]) if finding.severity == "error"] == []


@pytest.mark.parametrize(
    "fields",
    [
        # attention and a state in every layer (Falcon-H1); an encoder and a decoder with cross-attention (Whisper)

        {"model_type": "falcon_h1", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
         "vocab_size": 128, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_d_ssm": 64, "mamba_n_groups": 1,
         "mamba_d_conv": 4, "max_position_embeddings": 1024, "head_dim": 16, "intermediate_size": 96},
        {"model_type": "whisper", "decoder_layers": 4, "encoder_layers": 4, "d_model": 64, "decoder_attention_heads": 4,
         "encoder_attention_heads": 4, "vocab_size": 128, "max_target_positions": 448, "max_source_positions": 1500},
    ],
)  # fmt: skip
def test_unusual_layers_are_accepted_too(tmp_path, fields):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(fields), encoding="utf-8")
    record = config_record(path, DAY)
    assert record.architecture is not None, record.note
    assert [finding for finding in lint([("mine.yaml", as_entry(record))]) if finding.severity == "error"] == []


def test_an_unknown_family_says_which_fields_matter_and_runs_nothing(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "zorg", "auto_map": {"AutoModel": "m.py"}, "num_hidden_layers": 4, "kv_lora_rank": 512}))
    note = config_record(path, DAY).note
    for words in ("zorg", "num_hidden_layers, kv_lora_rank", "code of its own, which is not run"):
        assert words in note
