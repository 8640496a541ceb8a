"""Which files make a build: listings as repositories have them."""

import json
import time

import pytest

from fitcheck.errors import DataError
from fitcheck.sources.store import StoredFile
from fitcheck.sources.stored.builds import find_builds


class Listed:
    """A store of names and sizes, and of the texts of its small files."""

    label, url = "org/name", "https://example.org/org/name"

    def __init__(self, *names, texts=(), sizes=()):
        self.texts = {name: text if isinstance(text, bytes) else json.dumps(text).encode() for name, text in dict(texts).items()}
        known = dict(sizes)
        self.listing = tuple(StoredFile(name, known.get(name, 100)) for name in sorted({*names, *self.texts}))
        self.reads = []

    def files(self):
        return self.listing

    def read(self, path, most_bytes):
        self.reads.append(path)
        assert len(self.texts[path]) <= most_bytes
        return self.texts[path]

    def spans(self, wanted):
        raise AssertionError(wanted)


def builds(*names, **options):
    return {build.id: [file.path for file in build.files] for build in find_builds(Listed(*names, **options)).builds}


def index(*names, **metadata):
    return {"metadata": metadata, "weight_map": {f"tensor.{number}": name for number, name in enumerate(names)}}


def shards(count, stem="model", ending="safetensors"):
    return [f"{stem}-{number:05d}-of-{count:05d}.{ending}" for number in range(1, count + 1)]


def test_shards_with_an_index_are_one_build_and_their_names_settle_it():
    store = Listed(*shards(3), "model.safetensors.index.json", "config.json", "tokenizer.json")
    (build,) = find_builds(store).builds
    assert [file.path for file in build.files] == shards(3)
    assert (build.id, build.bytes, build.index, store.reads) == ("model", 300, "model.safetensors.index.json", [])


def test_shards_without_an_index_and_a_single_file():
    assert builds(*shards(2)) == {"model": shards(2)}
    assert builds("model.safetensors") == {"model": ["model.safetensors"]}


def test_an_index_whose_names_count_nothing_is_read():
    store = Listed(
        "a.safetensors",
        "b.safetensors",
        "other.safetensors",
        texts={"model.safetensors.index.json": index("a.safetensors", "b.safetensors")},
    )
    found = {build.id: [file.path for file in build.files] for build in find_builds(store).builds}
    assert found == {"model": ["a.safetensors", "b.safetensors"], "other": ["other.safetensors"]}


def test_mistrals_consolidated_files_are_counted_once_and_it_is_said():
    listing = find_builds(Listed(*shards(2), "consolidated.safetensors", "model.safetensors.index.json"))
    assert [file.path for file in listing.builds[0].files] == shards(2)
    assert len(listing.builds) == 1
    assert "consolidated.safetensors (1 file, 100 bytes) holds the same weights" in listing.notes[0]
    several = find_builds(
        Listed(*shards(2), *shards(3, "consolidated"), "model.safetensors.index.json", "consolidated.safetensors.index.json")
    )
    assert [len(build.files) for build in several.builds] == [2]
    assert builds("consolidated.safetensors", "params.json") == {"consolidated": ["consolidated.safetensors"]}
    assert builds(*shards(3, "consolidated"), "consolidated.safetensors.index.json") == {"consolidated": shards(3, "consolidated")}


GPT_OSS = [f"model-{number:05}-of-00002.safetensors" for number in (0, 1, 2)]
"""The shards of huggingface.co/openai/gpt-oss-20b: three of them, counted from 0 to 2 of 2."""


@pytest.mark.parametrize("indexed", [True, False])
def test_gpt_oss_counts_its_shards_from_0_and_has_them_twice(indexed):
    texts = {"model.safetensors.index.json": index(*GPT_OSS)} if indexed else {}
    listing = find_builds(
        Listed(
            "config.json",
            *GPT_OSS,
            *texts,
            "metal/model.bin",
            "original/config.json",
            "original/dtypes.json",
            "original/model.safetensors",
            texts=texts,
        )
    )
    assert [(build.id, [file.path for file in build.files], build.problem) for build in listing.builds] == [("model", GPT_OSS, None)]
    assert listing.notes == ("original (1 file, 100 bytes) holds the same weights in OpenAI's layout: not counted",)
    large = [f"original/model--{number:05}-of-00007.safetensors" for number in range(1, 8)]
    assert list(builds(*GPT_OSS, "original/dtypes.json", *large)) == ["model"]
    assert builds("dtypes.json", "config.json", "model.safetensors") == {"model": ["model.safetensors"]}
    with pytest.raises(DataError, match="00001 of 00002 is missing"):
        find_builds(Listed(GPT_OSS[0], GPT_OSS[2]))


def test_several_precisions_are_several_builds():
    fp8 = ["model.fp8-00001-of-00002.safetensors", "model.fp8-00002-of-00002.safetensors"]
    texts = {"model.safetensors.index.json": index(*shards(2)), "model.fp8.safetensors.index.json": index(*fp8)}
    assert builds(*shards(2), *fp8, texts=texts) == {"model": shards(2), "model.fp8": fp8}
    named = {"model.safetensors.index.json": index(*shards(2)), "model.safetensors.index.fp8.json": index(*fp8)}
    assert builds(*shards(2), *fp8, texts=named) == {"model": shards(2), "model.fp8": fp8}
    assert builds("model.safetensors", "model.fp16.safetensors") == {
        "model": ["model.safetensors"],
        "model.fp16": ["model.fp16.safetensors"],
    }
    assert builds("model.safetensors", "fp8/model.safetensors", "original/model.safetensors", "onnx/model.safetensors") == {
        "model": ["model.safetensors"],
        "fp8/model": ["fp8/model.safetensors"],
        "original/model": ["original/model.safetensors"],
    }


def test_a_merged_copy_beside_the_shards_is_a_build_of_its_own():
    texts = {"model.safetensors.index.json": index(*shards(2))}
    assert builds(*shards(2), "model.safetensors", texts=texts) == {"model": shards(2), "model-of-1": ["model.safetensors"]}
    assert list(builds("x.safetensors", "x.gguf")) == ["x", "x#2"]


def test_single_files_without_an_index_are_taken_together():
    (build,) = find_builds(Listed("layer0.safetensors", "layer1.safetensors")).builds
    assert len(build.files) == 2
    assert "2 files without an index" in build.notes[0]


def test_a_drafter_that_an_index_names_is_part_of_the_build_and_others_come_on_demand():
    whole = Listed(*shards(2), "mtp.safetensors", texts={"model.safetensors.index.json": index(*shards(2), "mtp.safetensors")})
    (build,) = find_builds(whole).builds
    assert [file.path for file in build.files] == [*shards(2), "mtp.safetensors"]
    assert build.drafters == ()
    apart = Listed(*shards(2), "mtp.safetensors", "eagle3/model.safetensors", texts={"model.safetensors.index.json": index(*shards(2))})
    (build,) = find_builds(apart).builds
    assert [file.path for file in build.files] == shards(2)
    assert sorted(file.path for file in build.drafters) == ["eagle3/model.safetensors", "mtp.safetensors"]


def test_each_quantisation_of_a_gguf_repository_is_a_build_with_its_tower():
    names = [
        "x-Q4_K_M.gguf",
        "x-Q8_0.gguf",
        *shards(3, "BF16/x-BF16", "gguf"),
        "mmproj-F16.gguf",
        "mmproj-BF16.gguf",
        "imatrix.gguf",
        "x.imatrix",
    ]
    listing = find_builds(Listed(*names, "mtp-x-Q8_0.gguf", sizes={"mtp-x-Q8_0.gguf": 10}))
    assert {build.id: len(build.files) for build in listing.builds} == {"x-Q4_K_M": 1, "x-Q8_0": 1, "BF16/x-BF16": 3}
    for build in listing.builds:
        assert [file.path for file in build.towers] == ["mmproj-F16.gguf"]
        assert [file.path for file in build.drafters] == ["mtp-x-Q8_0.gguf"]
        assert "of 2 files of the vision tower mmproj-F16.gguf is taken" in build.notes[0]


def test_a_gguf_file_with_its_draft_layers_is_a_build_and_so_is_a_drafter_alone():
    assert set(builds("x-Q4_K_M.gguf", "x-MTP-Q4_K_M.gguf")) == {"x-Q4_K_M", "x-MTP-Q4_K_M"}
    assert set(builds("eagle3-x-F16.gguf")) == {"eagle3-x-F16"}
    assert set(builds("x-IQ2_M-imatrix.gguf", "x-imatrix.gguf")) == {"x-IQ2_M-imatrix"}


def test_an_adapter_is_not_a_model():
    with pytest.raises(DataError, match="no weights that are read") as caught:
        find_builds(Listed("adapter_model.safetensors", "adapter_config.json"))
    assert "an adapter (LoRA)" in caught.value.hint
    listing = find_builds(Listed("model.safetensors", "adapter_model.safetensors"))
    assert [build.id for build in listing.builds] == ["model"]
    assert "adapter (LoRA)" in listing.notes[0]


def test_pickles_have_a_size_and_nothing_else():
    names = ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin", "pytorch_model.bin.index.json", "training_args.bin"]
    (build,) = find_builds(Listed(*names)).builds
    assert (build.kind, build.bytes, len(build.files)) == ("pickle", 200, 2)
    assert "reading them runs code" in build.notes[0]
    assert set(builds("model.safetensors", *names)) == {"model"}


def test_a_diffusion_pipeline_is_no_language_model():
    names = [
        "model_index.json",
        "unet/diffusion_pytorch_model.safetensors",
        "transformer/model.safetensors",
        "text_encoder/model.safetensors",
    ]
    with pytest.raises(DataError, match="no weights") as caught:
        find_builds(Listed(*names))
    assert "diffusion pipeline" in caught.value.hint


def test_missing_shards_are_named():
    with pytest.raises(DataError, match=r"model has 2 of 4 files: 00002, 00004 of 00004 are missing"):
        find_builds(Listed(shards(4)[0], shards(4)[2], "model.safetensors.index.json"))
    texts = {"model.safetensors.index.json": index("a.safetensors", "b.safetensors")}
    with pytest.raises(DataError, match=r"names b.safetensors, which is missing"):
        find_builds(Listed("a.safetensors", texts=texts))
    with pytest.raises(DataError, match="00002 of 00002 is missing"):
        find_builds(Listed("x-Q4_K_M-00001-of-00002.gguf"))
    partly = find_builds(Listed("x-Q8_0.gguf", "x-Q4_K_M-00001-of-00002.gguf")).builds
    assert [(build.id, build.problem is None) for build in partly] == [("x-Q8_0", True), ("x-Q4_K_M", False)]


@pytest.mark.parametrize(
    "name",
    [
        "../x.safetensors",
        "/etc/passwd",
        "a/b.safetensors",
        "a\\b.safetensors",
        "C:x",
        "x\0.safetensors",
        ".hidden",
        "..",
        "",
        "\x1b[2J",
        "x" * 300,
    ],
)
def test_a_shard_whose_name_leads_elsewhere_is_refused(name):
    texts = {"model.safetensors.index.json": index("a.safetensors", name)}
    with pytest.raises(DataError, match="not the plain name of a file beside it") as caught:
        find_builds(Listed("a.safetensors", "b.safetensors", texts=texts))
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"[]", "no weight_map"),
        (b"{}", "no weight_map"),
        (b'{"weight_map": []}', "no weight_map"),
        (b'{"weight_map": {"a": 1}}', "not the plain name"),
        (b'{"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}}', "'a' is given twice"),
        (b'{"weight_map": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001, "nested too deeply"),
        (b'{"metadata": {"total_size": NaN}, "weight_map": {"a": "a.safetensors"}}', "NaN is not a number"),
    ],
)
def test_an_index_that_is_none_is_refused(raw, words):
    with pytest.raises(DataError, match=words):
        find_builds(Listed("a.safetensors", "b.safetensors", texts={"model.safetensors.index.json": raw}))


def test_a_huge_count_in_a_name_costs_nothing():
    with pytest.raises(DataError, match="said to have 999,999 files"):
        find_builds(Listed("x-000001-of-999999.safetensors"))


def test_a_listing_of_ten_thousand_files_is_sorted_out_at_once():
    names = [f"{place}-{number}.{ending}" for number in range(2500) for place, ending in (
        ("consolidated", "safetensors"), ("x/layer", "safetensors"), ("mmproj", "gguf"), ("mtp", "gguf"))]  # fmt: skip
    began = time.perf_counter()
    find_builds(Listed("model.safetensors", "y-Q8_0.gguf", *names, sizes={"y-Q8_0.gguf": 10_000}))
    assert time.perf_counter() - began < 10
