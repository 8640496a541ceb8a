"""Models where they lie, as people name them on the command line: folders, files, a hub, Ollama."""

import json
from pathlib import Path

import pytest

import fitcheck as api
from fitcheck.catalogue.load import load_catalogue
from fitcheck.catalogue.models import Model
from tests.cli.run import fitcheck, inside
from tests.fit.engines.llamacpp_tiny import COMMON
from tests.fit.engines.llamacpp_tiny import write as write_gguf
from tests.sources.loopback import Blob, Hub
from tests.sources.stored.files import of, write

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}
LAYER = (("self_attn.q_proj", 64, 64), ("self_attn.k_proj", 32, 64), ("self_attn.v_proj", 32, 64), ("self_attn.o_proj", 64, 64),
         ("mlp.gate_proj", 96, 64), ("mlp.up_proj", 96, 64), ("mlp.down_proj", 64, 96), ("input_layernorm", 64),
         ("post_attention_layernorm", 64))  # fmt: skip
PARAMETERS = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64 + 2 * 64) + 2 * 128 * 64 + 64
"""Two layers of attention, feed-forward and two norms; embedding and head; the last norm: 78,144."""


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A small Llama as a repository has it."""
    return small_llama(tmp_path_factory.mktemp("repository") / "tiny-llama", "BF16", "bfloat16")


@pytest.fixture(scope="module")
def weights_in_32_bits(tmp_path_factory):
    """The same as it was trained."""
    return small_llama(tmp_path_factory.mktemp("repository") / "tiny-llama-f32", "F32", "float32")


def small_llama(folder, dtype, called):
    folder.mkdir()
    tensors = {"model.embed_tokens.weight": (dtype, 128, 64), "model.norm.weight": (dtype, 64), "lm_head.weight": (dtype, 128, 64)}
    tensors |= {f"model.layers.{layer}.{name}.weight": (dtype, *shape) for layer in range(2) for name, *shape in LAYER}
    write(folder / "model.safetensors", of(**tensors))
    (folder / "config.json").write_text(json.dumps(CONFIG | {"torch_dtype": called}))
    return folder


@pytest.fixture(scope="module")
def ggufs(tmp_path_factory):
    """A repository with three builds; only their headers are ever looked at."""
    folder = tmp_path_factory.mktemp("ggufs") / "tiny-gguf"
    folder.mkdir()
    for name in ("tiny-Q4_K_M", "tiny-Q8_0", "tiny-BF16"):
        write_gguf(folder / f"{name}.gguf", "llama", dict(COMMON))
    return folder


def answer(*words, code=0):
    ran = inside(*words, "--format", "json")
    assert ran.code == code, ran.err
    return json.loads(ran.out)["result"]


def test_a_folder_is_a_model_to_the_byte(weights):
    found = answer("fit", str(weights), "--cluster", "rtx-4090", "--engine", "vllm")
    assert found["checkpoints"][0]["bytes"] == 2 * PARAMETERS
    # 2 layers x 2 x 2 heads x 16 x 2 B
    assert found["kv_bytes_per_token"] == 256
    assert answer("inspect", str(weights))["model"]["parameters"]["total"]["value"] == PARAMETERS


def test_one_file_is_a_model_by_the_config_beside_it(weights):
    found = answer("fit", str(weights / "model.safetensors"), "--cluster", "rtx-4090")
    assert found["checkpoints"][0]["bytes"] == 2 * PARAMETERS


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_of_a_name_that_any_model_has_is_called_by_its_folder(weights, name):
    assert answer("fit", str(weights / name), "--cluster", "24GiB")["model"] == "tiny-llama"


def test_a_build_in_f32_is_said_to_be_larger_than_what_servers_load(tmp_path):
    tensors = {"model.embed_tokens.weight": ("F32", 128, 64), "lm_head.weight": ("F32", 128, 64), "model.norm.weight": ("BF16", 64)}
    write(tmp_path / "tiny" / "model.safetensors", of(**tensors))
    (tmp_path / "tiny" / "config.json").write_text(json.dumps(CONFIG))
    notes = answer("inspect", str(tmp_path / "tiny"))["notes"]
    assert any("stored in F32" in note and "32,768 bytes less" in note for note in notes)  # 2 x 128 x 64 x (4 - 2) bytes


def test_of_many_gguf_builds_one_is_read_and_all_are_sized(ggufs):
    found = answer("inspect", str(ggufs))
    assert len(found["builds"]) == 1
    sizes = {file.stem.lower().replace("_", "-"): file.stat().st_size for file in ggufs.iterdir()}
    builds = {build["id"]: build for build in found["model"]["checkpoints"]}
    assert set(builds) == set(sizes)
    read = found["builds"][0]["build"]
    for name, build in builds.items():
        if name != read:
            assert sum(part["value"] for part in build["components"]) == sizes[name]
    chosen = answer("inspect", str(ggufs), "--build", "q8-0")
    assert [row["build"] for row in chosen["builds"]] == ["tiny-q8-0"]
    fits = answer("fit", str(ggufs), "--cluster", "rtx-4090", "--checkpoint", "Q8_0")
    assert [row["id"] for row in fits["checkpoints"]] == ["tiny-q8-0"]
    ran = inside("inspect", str(ggufs), "--build", "q2-k")
    assert (ran.code, ran.out) == (3, "")
    assert "tiny-q" in ran.err


def test_cost_takes_what_fit_takes(weights):
    ran = inside("cost", str(weights), "--tokens", "1M", "--cluster", "rtx-4090", "--speed", "100")
    assert ran.code == 0, ran.err
    assert "tiny-llama" in ran.out


@pytest.mark.parametrize("kind", ["weights", "weights_in_32_bits", "ggufs"])
def test_yaml_is_accepted_as_it_is_and_read_back_the_same(request, tmp_path, kind):
    folder = request.getfixturevalue(kind)
    ran = inside("inspect", str(folder), "--yaml")
    assert ran.code == 0, ran.err
    file = tmp_path / "mine.yaml"
    file.write_text(ran.out, encoding="utf-8")
    checked = inside("validate", str(file))
    assert checked.code == 0, checked.out
    assert "no findings" in checked.out
    shown = answer("inspect", str(folder))["model"]
    mine = load_catalogue(file).get(Model, shown["id"])
    assert json.loads(mine.model_dump_json(by_alias=True)) == shown
    fits = answer("fit", shown["id"], "--cluster", "rtx-4090", "--overlay", str(file))
    assert fits["checkpoints"][0]["bytes"] == answer("fit", str(folder), "--cluster", "rtx-4090")["checkpoints"][0]["bytes"]


def hub_of(folder: Path, **options):
    files = {file.name: Blob(file.read_bytes(), file.stat().st_size) for file in folder.iterdir()}
    return Hub(files, id="acme/tiny-llama", **options)


def test_a_repository_is_read_once_and_then_from_the_cache(weights, tmp_path):
    with hub_of(weights) as hub:
        where = {"HF_ENDPOINT": hub.endpoint, "FITCHECK_CACHE": str(tmp_path / "cache")}
        first = fitcheck("fit", "acme/tiny-llama", "--cluster", "rtx-4090", "--format", "json", **where)
        assert first.code == 0, first.err
        assert first.err == ""  # no bar where nobody watches
        found = json.loads(first.out)["result"]
        assert found["checkpoints"][0]["bytes"] == 2 * PARAMETERS
        assert hub.front.sent_bytes + hub.cdn.sent_bytes < 16_000  # a header, a config, a listing; the weights alone are 156 kB
        asked = len(hub.front.received) + len(hub.cdn.received)
        offline = fitcheck("inspect", "acme/tiny-llama", "--offline", "--yaml", **where)
        assert offline.code == 0, offline.err
        assert "hub_id: acme/tiny-llama" in offline.out
        assert len(hub.front.received) + len(hub.cdn.received) == asked
    gone = fitcheck("fit", "acme/other", "--cluster", "rtx-4090", **where)
    assert (gone.code, gone.out) == (5, "")
    assert len(gone.err.strip().splitlines()) <= 3


def test_names_of_the_catalogue_and_plain_typos_never_ask_a_server(weights):
    with hub_of(weights) as hub:
        where = {"HF_ENDPOINT": hub.endpoint}
        assert fitcheck("fit", "zai-org/GLM-5.3-Flash", "--cluster", "2xspark", **where).code == 0
        typo = fitcheck("fit", "glm-5.3-flsh", "--cluster", "2xspark", **where)
        assert typo.code == 3
        assert "glm-5.3-flash" in typo.err
        assert hub.front.received == []


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("./nothing-here", 4, "there is no such file or folder"),
        ("nothing.gguf", 4, "there is no such file or folder"),
        ("ollama:nothing", 3, "ollama pull nothing"),
        ("file:///etc/passwd", 2, "give the path itself"),
        ("ftp://host/x.gguf", 2, "addresses are not read"),
        ("acme/tiny@../x", 2, "not a revision"),
        ("acme/tiny-llama", 5, "--offline"),
    ],
)
def test_what_is_not_there_is_one_clear_error(name, code, words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ran = inside("fit", name, "--cluster", "spark", "--offline")
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    assert len(ran.err.strip().splitlines()) <= 3


def test_a_folder_of_a_plain_name_counts_only_where_the_catalogue_has_none(weights, monkeypatch):
    monkeypatch.chdir(weights.parent)
    assert answer("fit", "tiny-llama", "--cluster", "rtx-4090")["checkpoints"][0]["bytes"] == 2 * PARAMETERS
    (weights.parent / "glm-5.3-flash").mkdir(exist_ok=True)
    assert answer("fit", "glm-5.3-flash", "--cluster", "2xspark")["model"] == "glm-5.3-flash"


def test_yaml_and_a_format_exclude_each_other(weights):
    ran = inside("inspect", str(weights), "--yaml", "--format", "csv")
    assert (ran.code, ran.out) == (2, "")


def test_no_shard_is_asked_where_listing_index_and_config_say_enough(tmp_path):
    folder = tmp_path / "sharded"
    folder.mkdir()
    tensors = {"model.embed_tokens.weight": ("BF16", 128, 64), "model.norm.weight": ("BF16", 64), "lm_head.weight": ("BF16", 128, 64)}
    tensors |= {f"model.layers.{layer}.{name}.weight": ("BF16", *shape) for layer in range(2) for name, *shape in LAYER}
    halves = [dict(list(tensors.items())[:10]), dict(list(tensors.items())[10:])]
    names = [f"model-{number:05d}-of-00002.safetensors" for number in (1, 2)]
    for name, half in zip(names, halves, strict=True):
        write(folder / name, of(**half))
    index = {
        "metadata": {"total_size": 2 * PARAMETERS},
        "weight_map": {tensor: name for name, half in zip(names, halves, strict=True) for tensor in half},
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    with hub_of(folder) as hub:
        where = {"HF_ENDPOINT": hub.endpoint, "FITCHECK_CACHE": str(tmp_path / "cache")}
        ran = fitcheck("inspect", "acme/tiny-llama", "--format", "json", **where)
        assert ran.code == 0, ran.err
        asked = [request.target for request in (*hub.front.received, *hub.cdn.received)]
    assert not any(".safetensors" in target and "index" not in target for target in asked)
    model = json.loads(ran.out)["result"]["model"]
    (part,) = model["checkpoints"][0]["components"]
    assert (part["value"], part["grade"]) == (2 * PARAMETERS, "derived")


@pytest.mark.parametrize("name", ["My Models", "a: b", "\u00fcn\u00ef \u6a21\u578b", "x" * 150])
def test_any_name_of_a_folder_will_do(weights, tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    for file in weights.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    ran = inside("inspect", str(folder), "--yaml")
    assert ran.code == 0, ran.err
    entry = tmp_path / "mine.yaml"
    entry.write_text(ran.out, encoding="utf-8")
    assert inside("validate", str(entry)).code == 0


def test_builds_in_folders_of_their_own_share_what_their_configs_share(weights, weights_in_32_bits, tmp_path):
    for name, folder in (("bf16", weights), ("full", weights_in_32_bits)):
        (tmp_path / name).mkdir()
        for file in folder.iterdir():
            (tmp_path / name / file.name).write_bytes(file.read_bytes())
    found = answer("inspect", str(tmp_path))["model"]
    assert found["architecture"]["family"] == "llama"
    assert [(build["id"], sum(part["value"] for part in build["components"]) // PARAMETERS) for build in found["checkpoints"]] == [
        ("bf16-model", 2),
        ("full-model", 4),
    ]
    (tmp_path / "full" / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": 3}))
    other = answer("inspect", str(tmp_path))
    assert other["model"]["architecture"] is None
    assert any("no config.json of all builds" in reason for reason in other["unknown"])


def test_a_missing_shard_is_an_error_and_not_another_build(weights, tmp_path):
    for file in weights.iterdir():
        (tmp_path / file.name.replace("model.", "model-00001-of-00002.")).write_bytes(file.read_bytes())
    for command in (("inspect",), ("fit", "--cluster", "rtx-4090")):
        ran = inside(command[0], str(tmp_path), *command[1:])
        assert (ran.code, ran.out) == (4, "")
        assert "00002" in ran.err


def test_a_name_that_only_looks_like_the_catalogues_takes_neither_its_prices_nor_its_recipes(weights, tmp_path):
    folder = tmp_path / "glm-5.3-flash"
    folder.mkdir()
    for file in weights.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    fits = answer("fit", str(folder), "--cluster", "2xspark")
    assert (fits["model"], fits["evidence"]["recipes"], fits["evidence"]["others"]) == ("glm-5.3-flash-as-read", [], [])
    costs = answer("cost", str(folder), "--tokens", "50M", "--cluster", "2xspark", "--speed", "100")
    assert costs["rent"] == []


@pytest.mark.parametrize("name", ["", "  "])
def test_no_name_is_no_folder(name, weights, monkeypatch):
    monkeypatch.chdir(weights)
    for command in (("fit", "--cluster", "spark"), ("inspect",)):
        ran = inside(command[0], name, *command[1:])
        assert (ran.code, ran.out) == (2, "")
    with pytest.raises(api.errors.UsageError):
        api.read_model(name)


def test_what_is_secret_in_an_address_is_never_repeated():
    address = "http://bob:hunter2@127.0.0.1:1/x/model.gguf?X-Sig=topsecret"
    for words in (
        ("inspect", address),
        ("fit", address, "--cluster", "spark"),
        ("models", address),
        ("models", "h/x.gguf?token=topsecret"),
    ):
        for form in ("table", "json"):
            ran = fitcheck(*words, "--format", form, FITCHECK_CACHE="/nonexistent")
            assert ran.code in (2, 3, 5)
            assert "topsecret" not in ran.out + ran.err
            assert "hunter2" not in ran.out + ran.err


def test_inspect_of_a_name_of_the_catalogue_reads_nothing():
    ran = fitcheck("inspect", "zai-org/GLM-5.3-Flash", HF_ENDPOINT="http://127.0.0.1:1")
    assert ran.code == 0, ran.err
    assert "nothing was read" in ran.out


def test_a_family_nobody_knows_is_said_to_be_and_why(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "model_type": "never_seen"}))
    ran = inside("fit", str(tmp_path), "--cluster", "spark")
    assert ran.code == 12
    assert "never_seen" in ran.out


def test_what_was_read_goes_into_the_python_api(weights, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    for place in (weights, tmp_path):
        model = api.read_model(place)
        assert api.fit(model, cluster="rtx-4090").verdict.runs
        assert api.fit(str(place), cluster="rtx-4090").checkpoint == api.fit(model, cluster="rtx-4090").checkpoint
        assert api.kv_memory(model, engine="vllm", context=4096).bytes == 256 * 4096
        assert api.cost(model, tokens="1M", cluster="rtx-4090", speed="100").rent == ()


def test_a_drafter_of_its_own_is_no_parameter_of_the_model(weights, tmp_path):
    for file in weights.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    write(tmp_path / "mtp" / "model.safetensors", of(**{"mtp.layers.0.weight": ("BF16", 64, 64)}))
    model = answer("inspect", str(tmp_path))["model"]
    assert model["parameters"]["total"]["value"] == PARAMETERS
