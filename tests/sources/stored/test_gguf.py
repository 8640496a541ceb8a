"""GGUF headers: as gguf's own reader sees them, through windows, and what is refused."""

import struct
from itertools import pairwise

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type

from fitcheck.errors import DataError
from fitcheck.sources.stored import gguf as ours
from fitcheck.sources.stored.ggml_types import FILE_TYPES, TYPES
from fitcheck.sources.stored.gguf import read_gguf
from tests.sources.stored.files import gguf_file, quantised

KEYS = (
    ("add_block_count", 2),
    ("add_file_type", 15),
    ("add_head_count_kv", [8, 0]),
    ("add_bool", "llama.flag", True),
    ("add_float32", "llama.rope.freq_base", 10000.0),
    ("add_uint64", "llama.large", (1 << 64) - 1),
    ("add_int8", "llama.small", -7),
    ("add_array", "general.tags", ["text", "chat"]),
    ("add_token_list", [f"token {number}" for number in range(5000)]),
    ("add_token_scores", [0.5] * 5000),
    ("add_chat_template", "{{ x }}" * 50),
)


def reader(path, served=None):
    raw = path.read_bytes()

    def read(start, length):
        if served is not None:
            served.append((start, length))
        return raw[start : start + length]

    return read


def header(path, served=None):
    return read_gguf(reader(path, served), path.name, path.stat().st_size)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    kinds = [Type.Q4_K, Type.Q6_K, Type.Q8_0, Type.IQ2_XXS, Type.MXFP4, Type.IQ4_XS, Type.TQ1_0]
    tensors = {f"blk.{number}.ffn_up.weight": quantised(kind, 6, 512) for number, kind in enumerate(kinds)}
    tensors |= {"output_norm.weight": np.zeros(100, np.float32), "blk.0.ffn_gate_exps.weight": np.zeros((3, 5, 7), np.float16)}
    return gguf_file(tmp_path_factory.mktemp("gguf") / "mixed-Q4_K_M.gguf", tensors, keys=KEYS)


def test_tensors_are_as_ggufs_own_reader_says(mixed):
    found = {tensor.name: (tensor.dtype, tensor.shape, tensor.bytes) for tensor in header(mixed).tensors}
    read = gguf.GGUFReader(mixed)
    assert found == {t.name: (t.tensor_type.name, tuple(int(size) for size in t.shape)[::-1], int(t.n_bytes)) for t in read.tensors}
    assert header(mixed).data_start == read.data_offset


def test_values_are_kept_and_long_lists_are_not(mixed):
    found = header(mixed)
    assert found.version == 3
    assert found.metadata["general.architecture"] == "llama"
    assert found.metadata["llama.attention.head_count_kv"] == [8, 0]
    assert found.metadata["llama.flag"] is True
    assert (found.metadata["llama.large"], found.metadata["llama.small"]) == ((1 << 64) - 1, -7)
    assert found.metadata["general.tags"] == ["text", "chat"]
    assert found.metadata["tokenizer.chat_template"] == "{{ x }}" * 50
    assert "tokenizer.ggml.tokens" not in found.metadata
    assert found.lengths["tokenizer.ggml.tokens"] == ("string", 5000)
    assert found.lengths["tokenizer.ggml.scores"] == ("float32", 5000)
    assert set(found.metadata) | set(found.lengths) == {key for key in gguf.GGUFReader(mixed).fields if not key.startswith("GGUF.")}


@pytest.mark.parametrize("first", [1, 7, 64, 1000, 40_000])
def test_any_window_gives_the_same_header(mixed, first, monkeypatch):
    whole = header(mixed)
    monkeypatch.setattr(ours, "FIRST_WINDOW_BYTES", first)
    monkeypatch.setattr(ours, "NEXT_WINDOW_BYTES", first)
    served = []
    assert header(mixed, served) == whole
    assert served[0] == (0, first)
    assert all(start == before + length for (before, length), (start, _) in pairwise(served))


def test_a_large_vocabulary_takes_few_requests(tmp_path):
    words = [f"{number:024d}" for number in range(260_000)]  # (8 + 24) x 260,000 = 8.3 MB
    path = gguf_file(tmp_path / "x.gguf", {"a": np.zeros(8, np.float32)}, keys=[("add_token_list", words)])
    served = []
    assert header(path, served).lengths["tokenizer.ggml.tokens"] == ("string", 260_000)
    assert len(served) <= 3


@pytest.mark.parametrize(("kind", "count"), [("gpt2", 152_000), ("gpt2", 50_000), ("llama", 262_144), ("llama", 32_000)])
def test_a_vocabulary_is_fetched_with_little_more_than_it_takes(tmp_path, kind, count):
    """Tokens grow longer with their rank, as those of BPE do, and half as long again at the end as on average."""
    words = [f"{'x' * (number.bit_length() // 3)}{number:x}" for number in range(count)]
    keys = [("add_tokenizer_model", kind), ("add_token_list", words), ("add_token_types", [1] * count)]
    if kind == "gpt2":
        keys.append(("add_token_merges", [f"{word[:1]} {word[1:]}" for word in words[256:]]))
    else:
        keys.insert(2, ("add_token_scores", [0.5] * count))
    tensors = {f"blk.{number}.ffn_down.weight": np.zeros(8, np.float32) for number in range(500)}
    path = gguf_file(tmp_path / "x.gguf", tensors, keys=keys)
    served = []
    found = header(path, served)
    assert found.lengths["tokenizer.ggml.tokens"] == ("string", count)
    assert len(served) <= 4
    assert sum(length for _, length in served) <= max(1.1 * found.header_bytes, found.header_bytes + 128 * 1024)


def test_texts_that_belie_every_guess_take_no_thousand_windows():
    """A million empty texts, then long ones: each guess by the average is a text short, and all that is not understood is read again."""
    few, long = 1_000_000, 100
    texts = b"\0" * 8 * few + (struct.pack("<Q", 60_000) + b"x" * 60_000) * long
    key = b"general.tags"
    raw = b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, len(key)) + key + struct.pack("<IIQ", 9, 8, few + long) + texts
    served = []

    def read(start, length):
        served.append(length)
        return raw[start : start + length]

    assert read_gguf(read, "x.gguf", len(raw)).lengths == {"general.tags": ("string", few + long)}
    assert len(served) <= 8


def test_every_type_of_the_library_is_in_the_table():
    assert {number: (kind.block, kind.bytes) for number, kind in TYPES.items() if number in set(Type)} == {
        int(kind): sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()
    }
    assert all(TYPES[kind].name == kind.name for kind in Type)
    mixes = {int(kind): kind.name.removeprefix("MOSTLY_").removeprefix("ALL_") for kind in gguf.LlamaFileType if kind.name != "GUESSED"}
    assert {number: name for number, name in FILE_TYPES.items() if number in mixes} == mixes


@pytest.mark.parametrize(
    ("number", "columns", "rows", "size"),
    [  # ik_llama.cpp's rows: blocks of 256, and row_meta_size bytes in front of each row
        (144, 4096, 2, 2 * (16 * 136 + 4)),
        (157, 4096, 2, 2 * (16 * 86 + 2)),
        (139, 4096, 2, 2 * 16 * 144),
        (219, 4096, 4, 403_701_760 // (256 * 2048) * 4),  # 256 experts of 2,048 x 4,096 in IQ1_S_R4: 403,701,760 bytes
        (42, 128, 3, 3 * 2 * 18),
    ],
)
def test_types_that_the_library_does_not_know(number, columns, rows, size):
    assert TYPES[number].size(columns, rows) == size
    assert TYPES[number].size(columns + 1, rows) is None


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name, kind, value=b""):
    return text(name) + struct.pack("<I", kind) + value


def tensor(name, dims, kind=0, offset=0):
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def raw_file(keys=(), tensors=(), version=3, data=4096, counts=None, magic=b"GGUF"):
    numbers = counts or (len(tensors), len(keys))
    return magic + struct.pack("<IQQ", version, *numbers) + b"".join((*keys, *tensors)) + bytes(data)


def array(kind, length, values=b""):
    return struct.pack("<IQ", kind, length) + values


HOSTILE = {
    "nothing": (b"", "ends within its header, after 0 bytes"),
    "another magic": (b"PK\3\4" + bytes(100), "is not a GGUF file"),
    "before GGUF": (b"tjgg" + bytes(100), "a format before GGUF"),
    "version 1": (raw_file(version=1), "version 1, and versions 2 and 3 are read"),
    "version 4": (raw_file(version=4), "version 4"),
    "big-endian": (raw_file(version=3 << 24), "big-endian order, which is not read"),
    "2^63 tensors": (raw_file(counts=(1 << 63, 0)), "declares 9,223,372,036,854,775,808 tensors"),
    "2^64 keys": (raw_file(counts=(0, (1 << 64) - 1)), "18,446,744,073,709,551,615 keys"),
    "a key of 2^63 bytes": (raw_file([struct.pack("<Q", 1 << 63)]), "a key of 9,223,372,036,854,775,808 bytes"),
    "a text of 2^63 bytes": (raw_file([key("a", 8, struct.pack("<Q", 1 << 63))]), "ends within its header"),
    "an array of 2^63 numbers": (raw_file([key("a", 9, array(0, 1 << 63))]), "ends within its header"),
    "an array of 2^63 texts": (raw_file([key("a", 9, array(8, 1 << 63))]), "9,223,372,036,854,775,808 texts"),
    "an array of 2^63 arrays": (raw_file([key("a", 9, array(9, 1 << 63))]), "9,223,372,036,854,775,808 arrays"),
    "arrays of arrays of arrays": (raw_file([key("a", 9, array(9, 1, array(9, 1, array(9, 1))))]), "nested more than two deep"),
    "a key twice": (raw_file([key("a", 7, b"\1"), key("a", 7, b"\1")]), "the key a twice"),
    "a key type": (raw_file([key("a", 13)]), "of the type 13"),
    "an array type": (raw_file([key("a", 9, array(77, 1))]), "of the type 77"),
    "an inner array type": (raw_file([key("a", 9, array(9, 1, array(77, 1)))]), "of the type 77"),
    "neither true nor false": (raw_file([key("a", 7, b"\2")]), "neither true nor false"),
    "neither, in an array": (raw_file([key("a", 9, array(7, 2, b"\1\3"))]), "neither true nor false"),
    "a key that is not UTF-8": (raw_file([key(b"\xff", 7, b"\1")]), "a key that is not UTF-8"),
    "a control character": (raw_file([key("\x1b[2J", 99)]), r"\\x1b\[2J of the type 99"),
    "a tensor twice": (raw_file([], [tensor("a", [8]), tensor("a", [8], offset=32)]), "two tensors of the name a"),
    "a tensor name of 300": (raw_file([], [tensor("a" * 300, [8])]), "a name of 300 bytes"),
    "five dimensions": (raw_file([], [tensor("a", [1] * 5)]), "5 dimensions"),
    "2^32 dimensions": (raw_file([], [text("a") + struct.pack("<I", (1 << 32) - 1)]), "4,294,967,295 dimensions"),
    "2^64 elements": (raw_file([], [tensor("a", [1 << 32, 1 << 32])]), "2\\^63 elements or more"),
    "an unknown type": (raw_file([], [tensor("a", [256], kind=143)]), "of ggml type 143, which is not known"),
    "half a block": (raw_file([], [tensor("a", [255], kind=12)]), "rows of 255 are not whole blocks of Q4_K"),
    "overlapping": (raw_file([], [tensor("a", [16]), tensor("b", [16], offset=32)]), "tensor b that begins before"),
    "the same place": (raw_file([], [tensor("a", [16]), tensor("b", [16])]), "begins before"),
    "not aligned": (raw_file([], [tensor("a", [8], offset=33)]), "not aligned to 32 bytes"),
    "alignment of 3": (raw_file([key("general.alignment", 4, struct.pack("<I", 3))]), "alignment 3, which is not a power of two"),
    "alignment of 0": (raw_file([key("general.alignment", 4, bytes(4))]), "not a power of two"),
    "alignment of 2^31": (raw_file([key("general.alignment", 4, struct.pack("<I", 1 << 31))]), "not a power of two"),
    "alignment of a text": (raw_file([key("general.alignment", 8, text("32"))]), "not a power of two"),
    "beyond the file": (raw_file([], [tensor("a", [1 << 40])]), "it is cut short"),
    "beyond by its offset": (raw_file([], [tensor("a", [8], offset=1 << 62)]), "it is cut short"),
    "cut in a key": (raw_file([key("a", 8, struct.pack("<Q", 100))], data=50), "ends within its header"),
    "cut in a tensor": (raw_file([], [text("a")], data=3, counts=(1, 0)), "ends within its header"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_header_is_refused_with_one_clear_error(name, tmp_path):
    raw, words = HOSTILE[name]
    path = tmp_path / "x.gguf"
    path.write_bytes(raw)
    with pytest.raises(DataError, match=words) as caught:
        header(path)
    assert caught.value.message.startswith("x.gguf ")
    assert caught.value.message.isprintable()


def test_big_endian_files_of_the_library_are_refused(tmp_path):
    path = gguf_file(tmp_path / "x.gguf", {"a": np.zeros(8, np.float32)}, endianess=gguf.GGUFEndian.BIG)
    with pytest.raises(DataError, match="big-endian"):
        header(path)


def test_version_2_is_read(tmp_path):
    path = gguf_file(tmp_path / "x.gguf", {"a": np.zeros(8, np.float32)})
    raw = bytearray(path.read_bytes())
    raw[4] = 2
    path.write_bytes(raw)
    assert header(path).version == 2


def test_an_endless_header_is_given_up():
    words = (struct.pack("<Q", 32) + b"x" * 32) * (1 << 21)  # 80 MiB, of which the array says there is more
    raw = raw_file([key("a", 9, array(8, 1 << 22, words))], data=0)
    asked = []
    with pytest.raises(DataError, match="a header of more than 64 MiB"):
        read_gguf(lambda start, length: asked.append(length) or raw[start : start + length], "x.gguf")
    assert sum(asked) == 64 * 1024**2


def test_other_alignments_are_kept(tmp_path):
    path = gguf_file(
        tmp_path / "x.gguf", {"a": np.zeros(8, np.float32), "b": np.zeros(8, np.float32)}, keys=[("add_custom_alignment", 4096)]
    )
    assert header(path).data_start % 4096 == 0
    assert [tensor.bytes for tensor in header(path).tensors] == [32, 32]


def test_split_files_say_what_they_are(tmp_path):
    tensors = {f"blk.{number}.ffn_up.weight": np.zeros((4, 32), np.float32) for number in range(5)}
    gguf_file(tmp_path / "x.gguf", tensors, split_max_tensors=2)
    files = sorted(tmp_path.glob("*.gguf"))
    assert [path.name for path in files] == [f"x-{number:05d}-of-00003.gguf" for number in (1, 2, 3)]
    assert [header(path).split for path in files] == [(number, 3, 5) for number in range(3)]
