"""Metadata from outside: whatever it holds, the answer is an architecture that can be counted, or a reason that can be shown."""

import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from fitcheck.api import kv_memory
from fitcheck.errors import FitcheckError
from fitcheck.sources.gguf_model import read_metadata
from fitcheck.sources.gguf_model.arches import APART, ARCHES
from fitcheck.sources.gguf_model.dialect import RENAMED
from fitcheck.sources.store import StoredTensor
from tests.fit.engines.llamacpp_tiny import COMMON
from tests.fit.engines.llamacpp_tiny_attention import ATTENTION
from tests.fit.engines.llamacpp_tiny_states import STATES
from tests.sources.gguf_variants import VARIANTS

TINY = [(tiny.arch, tiny.own) for tiny in (*ATTENTION, *STATES)] + list(VARIANTS.values())
FILES = [
    (arch, {name: tuple(value) if isinstance(value, list) else value for name, value in {**COMMON, **own}.items() if value is not None})
    for arch, own in TINY
]
NAMES = sorted({name for _, keys in FILES for name in keys})
NUMBERS = (
    st.integers(-2, 1 << 64)
    | st.integers(0, 9)
    | st.sampled_from([0, 1, 4, 512, 4096, (1 << 24), (1 << 24) + 1, (1 << 32) - 1, (1 << 63) - 1])
)
PLAIN = NUMBERS | st.booleans() | st.floats() | st.text(max_size=6) | st.sampled_from(["\x1b[2J", "\ud800", "llama"])
ARRAYS = st.lists(PLAIN, max_size=6).map(tuple) | st.lists(st.booleans() | st.integers(0, 4), min_size=2, max_size=8).map(tuple)
VALUES = PLAIN | ARRAYS | st.integers(0, 5000).map(lambda length: (1,) * length)
GENERAL = st.dictionaries(
    st.sampled_from(["general.name", "general.type", "general.file_type", "general.quantized_by", "split.tensors.count"]), PLAIN, max_size=3
)
TENSORS = st.lists(
    st.builds(
        StoredTensor,
        st.sampled_from(["token_embd.weight", "blk.4.nextn.eh_proj.weight", "blk.99999.x", "rope_freqs.weight", ""]),
        st.just("F32"),
        st.lists(st.integers(0, 1 << 40), max_size=4).map(tuple),
        st.just(0),
        st.just("x.gguf"),
    ),
    max_size=3,
)
QUICK = settings(max_examples=600, deadline=None)


def answered(metadata, lengths, tensors=()):
    tracemalloc.start()
    model = read_metadata(metadata, lengths, tensors)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20
    assert (model.architecture is None) == bool(model.unknown)
    assert all(text.isprintable() and len(text) < 200 for text in (*model.unknown, *model.assumed, *model.lost, model.name))
    if model.architecture is None:
        return
    for asked in ({}, {"n_seq_max": 2, "fa": "off"}, {"type_k": "q8_0", "type_v": "q8_0"}):
        try:
            assert kv_memory(model, engine="llama.cpp", context=4096, **asked).bytes >= 0
        except FitcheckError:
            continue


def named(arch, keys):
    return {"general.architecture": arch, **{f"{arch}.{name}": value for name, value in keys.items()}}


@QUICK
@given(
    file=st.sampled_from(FILES),
    changes=st.lists(st.tuples(st.integers(0, 99), VALUES), min_size=1, max_size=3),
    dropped=st.lists(st.integers(0, 99), max_size=2),
    long=st.dictionaries(st.integers(0, 99), st.integers(0, 1 << 64), max_size=1),
    general=GENERAL,
    tensors=TENSORS,
)
def test_a_real_file_with_some_keys_changed(file, changes, dropped, long, general, tensors):
    arch, keys = file
    own, known = dict(keys), sorted(keys)
    for at, value in changes:
        own[known[at % len(known)]] = value
    for at in [*dropped, *long]:
        own.pop(known[at % len(known)], None)
    lengths = {f"{arch}.{known[at % len(known)]}": length for at, length in long.items()}
    answered({**named(arch, own), **general}, lengths, tensors)


@QUICK
@given(arch=st.sampled_from(sorted({*ARCHES, *APART, *RENAMED})), keys=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=24))
def test_any_architecture_with_any_keys(arch, keys):
    answered(named(arch, keys), {})


@QUICK
@given(arch=st.sampled_from(sorted(ARCHES)), keys=st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(1, 8))))
def test_any_architecture_with_small_numbers(arch, keys):
    answered(named(arch, keys), {})


@QUICK
@given(metadata=st.dictionaries(st.text(max_size=12) | st.just("general.architecture"), VALUES, max_size=5))
def test_any_metadata(metadata):
    answered(metadata, {})
