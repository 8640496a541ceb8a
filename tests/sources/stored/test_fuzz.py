"""A short run of the fuzzer: the long one is `python -m tests.fuzz_headers --inputs 200000`."""

from tests.fuzz_headers import MOST_BYTES, MOST_SECONDS, fuzz


def test_no_header_index_or_config_breaks_its_reader(monkeypatch):
    monkeypatch.setattr("fitcheck.sources.stored.gguf.FIRST_WINDOW_BYTES", 128 * 1024)  # which the fuzzer varies
    found = fuzz(3000, seed=7)
    assert found["failures"] == []
    assert found["slowest_s"] < MOST_SECONDS
    assert found["most_bytes"] < MOST_BYTES
    assert all(
        found["outcome"][f"{name} {what}"] > 50 for name in ("safetensors", "gguf", "config", "index") for what in ("answered", "refused")
    )


def test_an_input_comes_back_by_its_number():
    assert sum(fuzz(0, seed=7, only=3)["outcome"].values()) == 1
