"""What is asked ahead of a model's reading: the config with the lengths of all headers, and only where no index could spare them."""

import json
from datetime import date

import pytest

from fitcheck.errors import DataError
from fitcheck.sources.store import Span
from fitcheck.sources.store_record import read_store
from fitcheck.sources.stored.ahead import Ahead, asked_ahead
from fitcheck.sources.stored.folder import local_store
from tests.sources.stored.files import Counting, of, write

DAY = date(2026, 12, 1)
CONFIG = json.dumps({"model_type": "llama", "num_hidden_layers": 1})


@pytest.fixture
def folder(tmp_path):
    for number in (1, 2):
        write(tmp_path / f"model-0000{number}-of-00002.safetensors", of(**{f"model.layers.0.mlp.{number}.weight": ("BF16", 8)}))
    (tmp_path / "config.json").write_text(CONFIG)
    return tmp_path


def counted(folder):
    store = Counting(local_store(folder))
    store.hub_id, store.notes = None, ()
    return store


def test_config_and_lengths_are_one_round_and_headers_the_other(folder):
    store = counted(folder)
    assert read_store(store, DAY).model.parameter_count == 16
    lengths, headers = store.rounds
    assert {(span.path.partition("-")[0], span.start, span.length) for span in lengths} == {
        ("config.json", 0, len(CONFIG)),
        ("model", 0, 8),
    }
    assert (len(lengths), len(headers), store.reads) == (3, 2, [])


def test_an_index_could_spare_the_headers_so_nothing_is_asked_ahead(folder):
    names = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": dict(zip("ab", names, strict=True))}))
    store = counted(folder)
    read_store(store, DAY)
    assert store.reads[0] == "config.json"


def test_a_config_alone_is_read_as_any_file(tmp_path):
    (tmp_path / "config.json").write_text(CONFIG)
    store = counted(tmp_path)
    read_store(store, DAY)
    assert (store.rounds, store.reads) == ([], ["config.json"])


def test_a_config_that_is_too_large_is_refused_as_ever(folder):
    store = asked_ahead(counted(folder), len(CONFIG) - 1)
    with pytest.raises(DataError, match="larger"):
        store.read("config.json", len(CONFIG) - 1)
    ahead = asked_ahead(counted(folder), len(CONFIG))
    assert isinstance(ahead, Ahead)
    assert ahead.read("config.json", len(CONFIG)).decode() == CONFIG
    with pytest.raises(DataError, match="larger"):
        ahead.read("config.json", len(CONFIG) - 1)


def test_what_is_not_at_hand_is_asked(folder):
    inner = counted(folder)
    ahead = asked_ahead(inner, len(CONFIG))
    path = "model-00001-of-00002.safetensors"
    assert ahead.spans([Span(path, 8, 2), Span(path, 0, 8)]) == local_store(folder).spans([Span(path, 8, 2), Span(path, 0, 8)])
    assert inner.rounds[1:] == [[Span(path, 8, 2)]]
