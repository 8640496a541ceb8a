"""The cache: what comes back, what never does, and what it leaves on the disk."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fitcheck.sources.cache import Cache, default_directory, identity, key

NAME = key("hub", "a")


def entry_files(root):
    return [path for path in Path(root).rglob("*") if path.is_file()]


def test_what_was_written_comes_back(tmp_path):
    cache = Cache(tmp_path)
    assert cache.read(NAME) is None
    cache.write(NAME, b"\0\n bytes", '"etag"', 5_000_000_000)
    entry = Cache(tmp_path).read(NAME)
    assert (entry.data, entry.etag, entry.total_bytes) == (b"\0\n bytes", '"etag"', 5_000_000_000)
    assert cache.read(key("hub", "b")) is None
    assert cache.warning is None


def test_it_is_for_its_owner_alone(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    Cache(tmp_path / "open").write(NAME, b"x", None, None)
    for path in (tmp_path / "open").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


DAMAGES = {"cut": slice(None, -1), "cut in its facts": slice(None, 20), "empty": slice(0, 0), "begun late": slice(1, None)}


@pytest.mark.parametrize("part", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_none(tmp_path, part):
    cache = Cache(tmp_path)
    cache.write(NAME, b"some bytes", None, None)
    (file,) = entry_files(tmp_path)
    file.write_bytes(file.read_bytes()[part])
    assert cache.read(NAME) is None
    assert not file.exists()


def test_every_changed_bit_is_noticed(tmp_path):
    cache = Cache(tmp_path)
    cache.write(NAME, b"some bytes", '"e"', 1)
    (file,) = entry_files(tmp_path)
    raw = file.read_bytes()
    for index in range(len(raw)):
        file.write_bytes(raw[:index] + bytes([raw[index] ^ 4]) + raw[index + 1 :])
        assert cache.read(NAME) is None


def test_an_entry_moved_to_another_key_is_none(tmp_path):
    cache = Cache(tmp_path)
    cache.write(NAME, b"x", None, None)
    other = key("other")
    (file,) = entry_files(tmp_path)
    (file.parent.parent / other[:2]).mkdir(exist_ok=True)
    file.rename(file.parent.parent / other[:2] / other)
    assert cache.read(other) is None


def test_the_oldest_are_dropped_past_the_limit(tmp_path):
    for index in range(20):
        Cache(tmp_path, most_bytes=10_000).write(key(index), b"x" * 900, None, None)
        file = next(path for path in entry_files(tmp_path) if path.name == key(index))
        os.utime(file, (index, index))
    kept = [index for index in range(20) if Cache(tmp_path).read(key(index)) is not None]
    assert sum(path.stat().st_size for path in entry_files(tmp_path)) <= 10_000
    assert kept == list(range(20 - len(kept), 20))
    assert len(kept) >= 6


def test_one_long_run_stays_within_its_limit_too(tmp_path):
    cache = Cache(tmp_path, most_bytes=20_000)
    for index in range(200):
        cache.write(key(index), b"x" * 900, None, None)
    assert sum(path.stat().st_size for path in entry_files(tmp_path)) <= 22_500  # the limit, and a sixteenth and an entry more
    cache.write(key("large"), b"x" * 6000, None, None)
    assert cache.read(key("large")) is None


def test_what_was_half_written_is_cleared_away_after_an_hour(tmp_path):
    Cache(tmp_path).write(NAME, b"x", None, None)
    (file,) = entry_files(tmp_path)
    old, new = file.parent / "tmp-old", file.parent / "tmp-new"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (time.time() - 4000, time.time() - 4000))
    Cache(tmp_path).write(key("b"), b"x", None, None)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_directory_that_cannot_be_written_means_no_cache_and_one_warning(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    cache = Cache(tmp_path / "file" / "cache")
    cache.write(NAME, b"x", None, None)
    assert cache.read(NAME) is None
    assert cache.warning.startswith("nothing is cached: ")
    assert Cache(None).read(NAME) is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_somebody_else_is_not_used(tmp_path):
    (tmp_path / "http-1").mkdir()
    os.chown(tmp_path / "http-1", 12345, 12345)
    cache = Cache(tmp_path)
    cache.write(NAME, b"x", None, None)
    assert entry_files(tmp_path) == []
    assert "belongs to somebody else" in cache.warning


def test_a_link_in_its_place_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "http-1").symlink_to(tmp_path / "elsewhere")
    cache = Cache(tmp_path)
    cache.write(NAME, b"x", None, None)
    assert entry_files(tmp_path / "elsewhere") == []


def test_processes_share_it(tmp_path):
    script = """
import sys
from pathlib import Path
from fitcheck.sources.cache import Cache, key
cache = Cache(Path(sys.argv[1]), most_bytes=200_000)
for turn in range(25):
    for index in range(20):
        entry = cache.read(key(index))
        assert entry is None or entry.data == bytes([index]) * 2000, index
        cache.write(key(index), bytes([index]) * 2000, None, None)
assert cache.warning is None, cache.warning
"""
    runs = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stderr=subprocess.PIPE) for _ in range(3)]
    for run in runs:
        assert run.communicate(timeout=60)[1] == b""
    assert not [path for path in entry_files(tmp_path) if path.name.startswith("tmp-")]


def test_a_key_says_nothing_of_a_token():
    assert identity(None) == "public"
    assert identity("hf_a") != identity("hf_b")
    assert "hf_a" not in identity("hf_a")
    assert key("a", "b") != key("ab") != key("a,b")


@pytest.mark.parametrize(
    ("platform", "environment", "place"),
    [
        ("linux", {"FITCHECK_CACHE": "/own"}, "/own"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/fitcheck"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/fitcheck"),
        ("linux", {}, "/home/me/.cache/fitcheck"),
        ("darwin", {"XDG_CACHE_HOME": "/xdg"}, "/home/me/Library/Caches/fitcheck"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/fitcheck/cache"),
        ("win32", {}, "/home/me/AppData/Local/fitcheck/cache"),
    ],
)
def test_where_it_lies(monkeypatch, platform, environment, place):
    for name in ("FITCHECK_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", "USERPROFILE": "/home/me", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert default_directory() == Path(place)
