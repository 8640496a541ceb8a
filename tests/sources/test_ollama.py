"""Models that Ollama pulled: names, folders, manifests and blobs, laid out on disk as Ollama does it."""

import hashlib
import json
import os
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fitcheck.errors import DataError, FitcheckError, UnknownId, UsageError
from fitcheck.sources.ollama import folders, named, open_store, parse_name
from fitcheck.sources.ollama.manifest import LIST
from fitcheck.sources.ollama.names import SERVICE
from fitcheck.sources.store import Span

IMAGE = "application/vnd.ollama.image."
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"

NAMES = {
    "llama3.2": ("registry.ollama.ai", "library", "llama3.2", "latest"),
    "ollama:llama3.2:3b": ("registry.ollama.ai", "library", "llama3.2", "3b"),
    "qwen3:30b-a3b": ("registry.ollama.ai", "library", "qwen3", "30b-a3b"),
    "cas/nous-hermes-2-mistral-7b-dpo:latest": ("registry.ollama.ai", "cas", "nous-hermes-2-mistral-7b-dpo", "latest"),
    "hf.co/bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M": ("hf.co", "bartowski", "Llama-3.2-1B-Instruct-GGUF", "Q4_K_M"),
    "localhost:5000/ns/model:v1.0": ("localhost:5000", "ns", "model", "v1.0"),
}
"""Forms of Ollama's own documentation of `ParseName` and its FAQ."""


@pytest.mark.parametrize("text", NAMES)
def test_names_are_filled_as_ollama_fills_them(text):
    assert parse_name(text) == NAMES[text]


@pytest.mark.parametrize(
    "text", ["", "ollama:", "a/b/c/d", "../../etc/passwd", "a:b:c", "ns.dot/model", "model:", "-x", "a b", "m\x1b[2J", "é"]
)
def test_what_is_no_name(text):
    with pytest.raises(UsageError) as caught:
        parse_name(text)
    assert caught.value.message.isprintable()


def test_a_bare_name_is_ollamas_only_where_its_form_says_so():
    alone = ["llama3.2:3b", "user/model:q8_0", "hf.co/org/name", "host.example/ns/model:tag", "ollama:llama3.2"]
    assert all(named(text) is not None for text in alone)
    others = [
        "llama3.2",
        "org/name",
        "org/name@main",
        "glm-5.3-flash",
        "C:\\models\\x.gguf",
        "https://host/x.gguf",
        "./a:b",
        "2xspark",
        "a/b/c",
    ]
    assert all(named(text) is None for text in others)


def test_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folders({}) == (tmp_path / ".ollama" / "models", SERVICE)
    assert folders({"OLLAMA_MODELS": f' "{tmp_path}" '}) == (tmp_path,)


class Models:
    """A folder as Ollama fills it."""

    def __init__(self, folder):
        self.folder = folder
        self.environ = {"OLLAMA_MODELS": str(folder)}

    def blob(self, raw):
        digest = hashlib.sha256(raw).hexdigest()
        (self.folder / "blobs").mkdir(parents=True, exist_ok=True)
        (self.folder / "blobs" / f"sha256-{digest}").write_bytes(raw)
        return f"sha256:{digest}"

    def layer(self, kind, raw, **more):
        return {"mediaType": f"{IMAGE}{kind}", "digest": self.blob(raw), "size": len(raw), **more}

    def manifest(self, name, *layers, tree="manifests", **more):
        return self.write(name, {"schemaVersion": 2, "mediaType": MANIFEST, "layers": list(layers), **more}, tree)

    def write(self, name, found, tree="manifests"):
        host, namespace, model, tag = parse_name(name)
        path = self.folder / tree / host / namespace / model / tag
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found if isinstance(found, str) else json.dumps(found))
        return path

    def open(self, name):
        return open_store(parse_name(name), self.environ)


@pytest.fixture
def models(tmp_path):
    return Models(tmp_path / "models")


def paths(store):
    return [file.path for file in store.files()]


def test_a_model_with_its_projector_and_parameters(models):
    weights = b"GGUF" + bytes(100)
    models.manifest(
        "llava:7b",
        models.layer("model", weights),
        models.layer("projector", b"GGUF-projector"),
        models.layer("license", b"MIT"),
        models.layer("license", b"more"),
        models.layer("template", b"{{ .Prompt }}"),
        models.layer("params", b'{"num_ctx": 8192, "stop": ["x"]}'),
        config={"mediaType": "application/vnd.docker.container.image.v1+json", "digest": models.blob(b"{}"), "size": 2},
    )
    store = models.open("LLaVA:7b")
    assert store.label == "ollama:llava:7b"
    assert store.url == "file:llava:7b"
    assert paths(store) == ["license-1", "license-2", "mmproj.gguf", "model.gguf", "params.json", "template.txt"]
    assert {file.path: file.bytes for file in store.files()}["model.gguf"] == 104
    assert store.files()[3].etag == hashlib.sha256(weights).hexdigest()
    assert store.spans([Span("model.gguf", 0, 4), Span("model.gguf", 102, 1 << 62), Span("model.gguf", 1 << 62, 5)]) == (
        b"GGUF",
        b"\0\0",
        b"",
    )
    assert store.read("template.txt", 100) == b"{{ .Prompt }}"
    assert store.num_ctx == 8192
    assert store.notes == ("its own parameters set num_ctx to 8,192 tokens",)
    with pytest.raises(DataError, match="larger"):
        store.read("model.gguf", 50)
    with pytest.raises(DataError, match="has no"):
        store.read("../../secret", 50)


def test_parts_of_a_split_file_are_ordered_by_their_own_number(models, tmp_path):
    gguf = pytest.importorskip("gguf", reason="pip install gguf")
    raw = []
    for number in (0, 1, 2):
        path = tmp_path / f"{number}.gguf"
        writer = gguf.GGUFWriter(None, "llama")
        if number == 0:
            writer.add_array("tokenizer.ggml.tokens", ["token"] * 20_000)
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", 3)
        writer.write_header_to_file(path)
        writer.write_kv_data_to_file()
        writer.close()
        raw.append(path.read_bytes())
    models.manifest("big", *(models.layer("model", raw[number]) for number in (2, 0, 1)))
    store = models.open("big")
    assert paths(store) == [f"model-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    assert [store.read(path, 1 << 20) for path in paths(store)] == raw


def test_tensors_as_layers_of_their_own(models):
    models.manifest(
        "gemma4:31b-nvfp4",
        models.layer("tensor", b"one", name="model.embed_tokens.weight"),
        models.layer("tensor; name=model.norm.weight; dtype=BF16; shape=4", b"two"),
        models.layer("tensor", b"three", name="../../escape"),
        models.layer("json", b"{}", name="config.json"),
        runner="mlx",
        format="safetensors",
    )
    store = models.open("gemma4:31b-nvfp4")
    expected = ["config.json", "model.embed_tokens.weight.safetensors", "model.norm.weight.safetensors", "tensor-00003.safetensors"]
    assert paths(store) == expected
    assert store.notes == ("Ollama runs it with mlx",)


def test_a_list_of_manifests_gives_the_one_that_runs_here(models, monkeypatch):
    gguf, mlx = ({"schemaVersion": 2, "layers": [models.layer(kind, kind.encode())]} for kind in ("model", "tensor"))
    entries = [{"mediaType": MANIFEST, "digest": models.blob(json.dumps(mlx).encode()), "runner": "mlx"}, {**gguf, "runner": "llamacpp"}]
    models.write("both", {"schemaVersion": 2, "mediaType": LIST, "manifests": entries})
    monkeypatch.setattr("sys.platform", "linux")
    assert paths(models.open("both")) == ["model.gguf"]
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("fitcheck.sources.ollama.manifest.machine", lambda: "arm64")
    assert paths(models.open("both")) == ["tensor-00001.safetensors"]


def test_a_manifest_may_be_a_link_to_its_blob_and_to_nothing_else(models, tmp_path):
    path = models.manifest("linked", models.layer("model", b"x"), tree="manifests-v2")
    digest = models.blob(path.read_bytes()).replace(":", "-")
    path.unlink()
    path.symlink_to(models.folder / "blobs" / digest)
    assert paths(models.open("linked")) == ["model.gguf"]
    outside = tmp_path / "outside"
    outside.write_text("{}")
    path.unlink()
    path.symlink_to(outside)
    with pytest.raises(DataError, match="outside"):
        models.open("linked").files()


def test_a_model_that_is_not_there_names_its_neighbours(models):
    for name in ("llama3.2:3b", "llama3.2:1b", "user/qwen:7b"):
        models.manifest(name, models.layer("model", b"x"))
    (models.folder / "manifests" / "registry.ollama.ai" / "library" / "llama3.2" / "\x1b[2J").write_text("")
    with pytest.raises(UnknownId) as caught:
        models.open("llama3.2:8b")
    assert caught.value.hint == "ollama pull llama3.2:8b"
    assert set(caught.value.nearest[:2]) == {"llama3.2:3b", "llama3.2:1b"}
    assert all(name.isprintable() for name in caught.value.nearest)


def test_a_blob_that_is_missing_or_cut_short(models):
    layer = models.layer("model", b"whole")
    models.manifest("cut", layer)
    place = models.folder / "blobs" / layer["digest"].replace(":", "-")
    place.write_bytes(b"who")
    with pytest.raises(DataError, match="3 bytes and its manifest says 5") as caught:
        models.open("cut").files()
    assert caught.value.hint == "ollama pull cut:latest"
    place.unlink()
    with pytest.raises(DataError, match="pull was not finished"):
        models.open("cut").files()
    (models.folder / "blobs" / layer["digest"]).write_bytes(b"whole")
    assert paths(models.open("cut")) == ["model.gguf"]


def test_a_model_of_the_cloud_has_no_weights_here(models):
    config = json.dumps({"remote_host": "https://ollama.com:443", "remote_model": "gpt-oss:120b"}).encode()
    models.manifest("gpt-oss:120b-cloud", config={"digest": models.blob(config), "size": len(config)})
    with pytest.raises(DataError, match="runs on Ollama's servers"):
        models.open("gpt-oss:120b-cloud").files()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_may_not_be_read(models):
    models.manifest("secret", models.layer("model", b"x"))
    tree = models.folder / "manifests"
    tree.chmod(0)
    try:
        with pytest.raises(DataError, match="cannot be read"):
            models.open("secret")
    finally:
        tree.chmod(stat.S_IRWXU)


GOOD = {"mediaType": f"{IMAGE}model", "digest": f"sha256:{'0' * 64}", "size": 1}
BAD = [
    "",
    "nonsense",
    "[" * 100_000,
    "[]",
    "{}",
    {"layers": {}},
    {"layers": [1]},
    {"layers": [{**GOOD, "size": -1}]},
    {"layers": [{**GOOD, "size": True}]},
    {"layers": [{**GOOD, "size": 1 << 70}]},
    {"layers": [{**GOOD, "digest": "sha256:../../../etc/passwd"}]},
    {"layers": [{**GOOD, "digest": f"sha256:{'0' * 63}g"}]},
    {"layers": [{**GOOD, "digest": None}]},
    {"layers": [GOOD, {**GOOD, "mediaType": None}]},
    {"layers": [{**GOOD, "mediaType": f"{IMAGE}license"}]},
    {"mediaType": LIST, "manifests": None},
    {"mediaType": LIST, "manifests": [{"runner": "ollama", "mediaType": LIST, "layers": []}]},
    {"mediaType": LIST, "manifests": [{"runner": "other", "layers": []}]},
    {"mediaType": LIST, "manifests": [{"runner": "ollama", "digest": "sha256:x"}]},
    {"mediaType": LIST, "manifests": [{"runner": "ollama", "digest": f"sha256:{'1' * 64}"}]},
]


@pytest.mark.parametrize("found", BAD, ids=lambda found: str(found)[:60])
def test_what_is_no_manifest(models, found):
    models.write("bad", found)
    with pytest.raises(DataError) as caught:
        models.open("bad").files()
    assert caught.value.message.isprintable()


VALUES = st.none() | st.booleans() | st.integers(-2, 1 << 70) | st.floats() | st.text(max_size=8) | st.sampled_from([*GOOD.values(), LIST])
KEYS = st.sampled_from(["layers", "config", "mediaType", "digest", "size", "name", "manifests", "runner", "format"])
TREES = st.recursive(VALUES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=16)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=TREES)
def test_any_manifest_is_answered_or_refused(models, found):
    models.write("any", json.dumps(found))
    store = models.open("any")
    try:
        store.files()
        said = store.notes
    except FitcheckError as error:
        said = (error.message,)
    assert all(text.isprintable() for text in said)
