import pytest

from fitcheck.catalogue.models import Architecture
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import UnknownFact, UsageError
from fitcheck.fit.engines.base import Ledger, Settings, allocator
from fitcheck.fit.state import kv_dtype

MIB = 1 << 20
GEMMA_3_27B = (
    "gemma3",
    62,
    [
        {"kind": "attention", "layers": 10, "kv_heads": 16, "k_dim": 128, "v_dim": 128},
        {"kind": "sliding", "layers": 52, "kv_heads": 16, "k_dim": 128, "v_dim": 128, "window_tokens": 1024},
    ],
)
QWEN3_235B = ("qwen3_moe", 94, [{"kind": "attention", "layers": 94, "kv_heads": 4, "k_dim": 128, "v_dim": 128}])
LLAMA_8B = ("llama", 32, [{"kind": "attention", "layers": 32, "kv_heads": 8, "k_dim": 128, "v_dim": 128}])
DEEPSEEK_R1 = ("deepseek_v3", 61, [{"kind": "latent", "layers": 61, "latent_dim": 512, "rope_dim": 64}])
QWEN3_NEXT = (
    "qwen3_next",
    48,
    [
        {"kind": "attention", "layers": 12, "kv_heads": 2, "k_dim": 256, "v_dim": 256},
        {"kind": "recurrent", "layers": 36, "state_elements": 524288, "conv_elements": 24576},
    ],
)
MAMBA = ("mamba2", 2, [{"kind": "recurrent", "layers": 2, "state_elements": 524288, "conv_elements": 24576}])


def shape(family, layers, groups):
    return Architecture(
        source=("config",), grade=Grade.PUBLISHED, family=family, max_context_tokens=1 << 20, layers=layers, groups=tuple(groups)
    )


LLAMA = shape(*LLAMA_8B)


def ask(model, context, *, users=1, dtype="auto", **named):
    return Ledger(allocator("ik_llama.cpp")(shape(*model), Settings(context, users, kv_dtype(dtype), named=named)))


@pytest.mark.parametrize(
    ("model", "context", "dtype", "printed_mib"),
    [
        # "KV self size = ...", https://github.com/ikawrakow/ik_llama.cpp
        (GEMMA_3_27B, 32768, "f16", 15872.00),  # discussion 334
        (GEMMA_3_27B, 131072, "f16", 63488.00),  # issue 539
        (QWEN3_235B, 32768, "q8_0", 3196.00),
        (QWEN3_235B, 65536, "q8_0/f16", 9212.00),
        (LLAMA_8B, 1024, "iq4_nl/f16", 82.00),
        (DEEPSEEK_R1, 32768, "f16", 2196.00),
        (DEEPSEEK_R1, 65536, "q8_0", 2333.25),
    ],
)
def test_logs_are_reproduced(model, context, dtype, printed_mib):
    assert abs(ask(model, context, dtype=dtype).bytes / MIB - printed_mib) < 0.01


DEEPSEEK_V2_LITE = (
    "deepseek_v2",
    27,
    [
        {
            "kind": "latent",
            "layers": 27,
            "latent_dim": 512,
            "rope_dim": 64,
            "expanded_heads": 16,
            "expanded_k_dim": 192,
            "expanded_v_dim": 128,
        }
    ],
)


@pytest.mark.parametrize(
    ("model", "context", "settings", "printed_mib"),
    [
        # logs, latents and their transposes together
        (DEEPSEEK_R1, 16384, {"mla": 1, "fa": "off"}, 2074.00),  # public file 17743082571, address not known
        (DEEPSEEK_R1, 512, {"mla": 1, "fa": "off"}, 64.81),  # Kimi K2, the same latents; public file 25854171383, address not known
        (DEEPSEEK_R1, 163840, {"mla": 1, "fa": "off"}, 20740.00),  # public file 17233911709, address not known
        (DEEPSEEK_R1, 16384, {"mla": 1, "fa": "on"}, 1098.00),  # "kv^T: not used"; public file 17746990650, address not known
        (DEEPSEEK_R1, 65536, {"mla": 2, "type_k": "q8_0"}, 2333.25),  # V's type left at f16; public file 17617421211, address not known
        # by hand: 61 x (576 / 32 x 34 B + 512 x 2 B) x 16,384, and without the second part; no log of either is at hand
        (DEEPSEEK_R1, 16384, {"mla": 1, "fa": "off", "type_k": "q8_0"}, 1559.3125),
        (DEEPSEEK_R1, 16384, {"mla": 2, "fa": "off", "type_k": "q8_0"}, 583.3125),
        # by hand: 27 x 16 x (192 + 128) x 2 B x 65,536, of which a log has 6,912 MiB of V (public file 17200999694, address not known)
        (DEEPSEEK_V2_LITE, 65536, {"mla": 0}, 17280.00),
        # by hand: 27 x 576 / 32 x 26 B x 65,536
        (DEEPSEEK_V2_LITE, 65536, {"type_k": "q6_0"}, 789.75),
    ],
)
def test_latents_are_kept_as_mla_says(model, context, settings, printed_mib):
    assert abs(ask(model, context, **settings).bytes / MIB - printed_mib) < 0.01


@pytest.mark.parametrize("mla", [1, 2])
def test_quantised_values_need_flash_attention_even_where_none_are_kept(mla):
    with pytest.raises(UsageError, match="q8_0 V cache without flash attention"):
        ask(DEEPSEEK_R1, 512, mla=mla, fa="off", dtype="q8_0")


def test_q6_0_is_the_forks_alone():
    assert ask(LLAMA_8B, 1024, dtype="q6_0").bytes == 32 * 2 * 1024 * 1024 // 32 * 26
    with pytest.raises(UsageError):
        allocator("llama.cpp")(LLAMA, Settings(1024, 1, kv_dtype("q6_0")))


@pytest.mark.parametrize("mla", [4, "3"])
def test_no_such_mla(mla):
    with pytest.raises(UsageError):
        ask(DEEPSEEK_R1, 512, mla=mla)


def test_users_share_one_pool():
    # four users of 8,192 tokens are n_ctx 32,768 in one pool: 15,872 MiB as above
    assert ask(GEMMA_3_27B, 8192, users=4, dtype="f16").bytes == 15872 * MIB


@pytest.mark.parametrize(("model", "settings"), [(MAMBA, {}), (DEEPSEEK_R1, {"mla": 0}), (GEMMA_3_27B, {"swa_compress": True})])
def test_what_was_not_read_is_unknown(model, settings):
    with pytest.raises(UnknownFact):
        ask(model, 8192, **settings)


def test_delta_nets_keep_one_row_of_f32_for_each_sequence():
    # llama_hparams::n_embd_v_s: (4 - 1) x (2 x 16 x 128 + 32 x 128) and 128 x 128 x 32 elements in one row, 36 layers, 4 B
    one, four = ask(QWEN3_NEXT, 8192), ask(QWEN3_NEXT, 8192, users=4)
    assert one.state_bytes == 36 * 4 * (3 * (2 * 2048 + 4096) + 128 * 128 * 32)
    assert four.state_bytes == 4 * one.state_bytes
    # 12 layers of 2 heads x (256 + 256) x 2 B, four users of 8,192 cells in one pool
    assert (one.kv_bytes, four.kv_bytes) == (12 * 2048 * 8192, 12 * 2048 * 32768)


def test_the_fork_has_no_snapshots():
    with pytest.raises(UsageError, match="n_rs_seq"):
        ask(QWEN3_NEXT, 8192, n_rs_seq=2)
