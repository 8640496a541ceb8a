"""A local folder as a store: links, circles, names that lead elsewhere."""

import os

import pytest

from fitcheck.errors import DataError
from fitcheck.sources.store import Span
from fitcheck.sources.stored import folder as ours
from fitcheck.sources.stored.folder import local_store
from fitcheck.sources.stored.reading import read_builds


@pytest.fixture
def cache(tmp_path):
    """A snapshot as the Hugging Face cache has it: every file a link into `blobs`."""
    blobs, snapshot = tmp_path / "models--org--name" / "blobs", tmp_path / "models--org--name" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    (snapshot / "fp8").mkdir(parents=True)
    for name, text in (("config.json", b"{}"), ("model.safetensors", b"12345678"), ("fp8/model.safetensors", b"1234")):
        blob = blobs / name.replace("/", "-")
        blob.write_bytes(text)
        (snapshot / name).symlink_to(os.path.relpath(blob, (snapshot / name).parent))
    return snapshot


def test_links_of_the_hub_cache_are_files(cache):
    store = local_store(cache)
    assert [(file.path, file.bytes) for file in store.files()] == [
        ("config.json", 2),
        ("fp8/model.safetensors", 4),
        ("model.safetensors", 8),
    ]
    assert store.read("config.json", 100) == b"{}"
    assert store.spans([Span("model.safetensors", 2, 3), Span("fp8/model.safetensors", 3, 100)]) == (b"345", b"4")
    assert (store.label, store.url) == ("org/name@abc", "file:name@abc")


@pytest.mark.parametrize(
    "path", ["../blobs/config.json", "/etc/hostname", "fp8/../config.json", "..\\x", "config.json\0", "./config.json", "", "."]
)
def test_a_name_that_is_not_in_the_listing_finds_nothing(cache, path):
    store = local_store(cache)
    for ask in (lambda: store.read(path, 100), lambda: store.spans([Span(path, 0, 8)])):
        with pytest.raises(DataError, match="has no such file") as caught:
            ask()
        assert caught.value.message.isprintable()


def test_hidden_files_circles_and_things_that_are_no_files_are_left_out(cache):
    (cache / ".git").mkdir()
    (cache / ".git" / "model.safetensors").write_bytes(b"x")
    (cache / ".cache.json").write_bytes(b"x")
    (cache / "circle").symlink_to(cache)
    (cache / "gone.safetensors").symlink_to(cache / "nowhere")
    os.mkfifo(cache / "pipe.safetensors")
    assert [file.path for file in local_store(cache).files()] == ["config.json", "fp8/model.safetensors", "model.safetensors"]


def test_a_folder_of_more_files_than_any_model_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(ours, "MOST_ENTRIES", 10)
    for number in range(11):
        (tmp_path / f"{number}.txt").touch()
    with pytest.raises(DataError, match="more than 10 files"):
        local_store(tmp_path).files()


def test_folders_are_followed_to_a_depth(tmp_path):
    deep = tmp_path
    for _ in range(12):
        deep = deep / "x"
        deep.mkdir()
        (deep / "a.json").touch()
    assert len(local_store(tmp_path).files()) == ours.MOST_DEPTH


def test_a_file_larger_than_wanted_is_not_read_whole(cache):
    with pytest.raises(DataError, match="larger than 7 bytes"):
        local_store(cache).read("model.safetensors", 7)
    assert local_store(cache).read("model.safetensors", 8) == b"12345678"


def test_a_part_far_beyond_the_end_is_empty_and_costs_nothing(cache):
    assert local_store(cache).spans([Span("model.safetensors", 1 << 62, 1 << 62), Span("model.safetensors", 0, 1 << 62)]) == (
        b"",
        b"12345678",
    )
    with pytest.raises(DataError, match="does not exist"):
        local_store(cache).spans([Span("model.safetensors", -1, 4)])


def test_one_file_stands_for_its_series_and_nothing_else(tmp_path):
    for name in ("x-00001-of-00002.gguf", "x-00002-of-00002.gguf", "y.gguf", "config.json", "secret.txt"):
        (tmp_path / name).write_bytes(b"x")
    assert [file.path for file in local_store(tmp_path / "x-00002-of-00002.gguf").files()] == [
        "x-00001-of-00002.gguf",
        "x-00002-of-00002.gguf",
    ]
    assert [file.path for file in local_store(tmp_path / "y.gguf").files()] == ["y.gguf"]
    (tmp_path / "model.safetensors").write_bytes(b"x")
    assert [file.path for file in local_store(tmp_path / "model.safetensors").files()] == ["config.json", "model.safetensors"]
    assert local_store(tmp_path / "y.gguf").url == "file:y.gguf"


def test_a_file_stands_for_a_shard_before_the_first_too(tmp_path):
    """gpt-oss-20b is published as 00000, 00001 and 00002 of 00002."""
    names = [f"model-{number:05}-of-00002.safetensors" for number in (0, 1, 2)]
    for name in names:
        (tmp_path / name).write_bytes(b"12345678")
    for name in names:
        assert [file.path for file in local_store(tmp_path / name).files()] == names


def test_a_file_that_was_not_fetched_is_said_to_be_a_pointer(tmp_path):
    """As git-lfs writes it, from its docs/spec.md."""
    pointer = (
        "version https://git-lfs.github.com/spec/v1\n"
        "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
    )
    for name in ("model.safetensors", "model.gguf"):
        (tmp_path / name).write_text(pointer)
        with pytest.raises(DataError, match=f"{name} is a pointer of Git LFS") as caught:
            read_builds(local_store(tmp_path / name))
        assert "git lfs pull" in caught.value.hint


@pytest.mark.parametrize("path", ["nowhere", "a\0b", "x" * 5000])
def test_what_is_not_there_is_said(tmp_path, path):
    with pytest.raises(DataError, match="no such file or folder"):
        local_store(tmp_path / path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_may_not_be_listed_is_said(tmp_path):
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(DataError, match="Permission denied"):
        local_store(tmp_path).files()
