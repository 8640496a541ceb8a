import pytest

from fitcheck.catalogue.hardware import Device
from fitcheck.catalogue.load import load_catalogue
from fitcheck.catalogue.models import Architecture
from fitcheck.catalogue.provenance import Grade
from fitcheck.fit.engines.base import Ledger, Settings
from fitcheck.fit.engines.vllm import allocate
from fitcheck.fit.memory import batch_defaults
from fitcheck.fit.state import KvDtype
from tests.golden import rows

GIB = 1 << 30


def architecture(hidden, ffn, vocabulary, expert=None, each=None, experts=None):
    group = {"kind": "attention", "layers": 2, "kv_heads": 8, "k_dim": 64, "v_dim": 64}
    return Architecture(
        source=("config",),
        grade=Grade.PUBLISHED,
        family="llama",
        max_context_tokens=1 << 17,
        layers=2,
        hidden_size=hidden,
        vocabulary=vocabulary,
        feed_forward_size=ffn,
        expert_feed_forward_size=expert,
        experts=experts,
        experts_per_token=each,
        groups=(group,),
    )


def peak(model, *, tp=1, **named):
    return Ledger(allocate(model, Settings(8192, 1, KvDtype("auto", "auto", "auto"), tp, named=named))).compute_bytes


@pytest.mark.parametrize("row", rows("vllm_peak.yaml"), ids=lambda row: f"{row['model']}-{row['version']}-{row['batched']}")
def test_the_profiling_peak_is_as_printed(row):
    widths = {name: row.get(name) for name in ("hidden", "ffn", "vocabulary", "expert", "each", "experts")}
    found = peak(
        architecture(**widths),
        tp=row.get("tp", 1),
        vllm_version=row["version"],
        max_num_batched_tokens=row["batched"],
        max_num_seqs=row["seqs"],
    )
    assert found / GIB == pytest.approx(float(row["printed_gib"]), rel=0.08), row["source"]


def test_new_versions_do_not_sort_the_vocabulary():
    # 16-bit logits 2 + 32-bit copy 4 + probabilities 4 + random draw 4 = 14 B: 1,024 x 151,936 x 14
    model = architecture(1024, 3072, 151936)
    assert peak(model, max_num_batched_tokens=8192, max_num_seqs=1024) == 1024 * 151936 * 14
    assert peak(model, max_num_batched_tokens=8192, max_num_seqs=1024, vllm_version="0.20") == 1024 * 151936 * 14


def test_routed_experts_are_divided_by_tensor_and_kept_by_expert_parallelism():
    # TritonExperts.workspace_shapes (vLLM 0.33.0): 65,536 tokens x (8 experts x (max(2 x 768, 512) + max(768, 512)) + 4 x 512) x 2 B;
    # over two ranks max(768, 512) + max(384, 512)
    model = architecture(512, None, None, expert=768, each=8, experts=128)
    assert peak(model, max_num_batched_tokens=65536) == 65536 * (8 * (1536 + 768) + 2048) * 2
    assert peak(model, max_num_batched_tokens=65536, tp=2) == 65536 * (8 * (768 + 512) + 2048) * 2
    assert peak(model, max_num_batched_tokens=65536, tp=2, enable_expert_parallel=True) == 65536 * (8 * (1536 + 768) + 2048) * 2


def test_as_many_rows_are_sampled_as_users_are_asked():
    model = architecture(1024, 3072, 151936)
    asked = Settings(64, 2000, KvDtype("auto", "auto", "auto"), named={"max_num_batched_tokens": 2048, "max_num_seqs": 256})
    assert Ledger(allocate(model, asked)).compute_bytes == 2000 * 151936 * 14


def test_a_peak_is_in_no_sum_of_caches_and_grows_with_the_batch():
    model = architecture(4096, 14336, 128256)
    ledger = Ledger(allocate(model, Settings(8192, 1, KvDtype("auto", "auto", "auto"), named={"max_num_batched_tokens": 8192})))
    # 2 layers x 2 x 8 heads x 64 x 2 B x 8,192 tokens
    assert ledger.bytes == 2 * 2 * 8 * 64 * 2 * 8192
    sizes = [peak(model, max_num_batched_tokens=size, max_num_seqs=64) for size in (2048, 8192, 32768)]
    assert sizes == sorted(sizes)


def test_a_config_without_widths_gives_no_peak():
    assert peak(architecture(None, None, None)) == 0


@pytest.mark.parametrize(
    ("device", "batched", "seqs"),
    [
        ("rtx-4090", 2048, 256),
        ("dgx-spark", 2048, 256),
        ("a100-80", 2048, 256),
        ("h100", 8192, 1024),
        ("b200", 16384, 1024),
    ],
)
def test_batch_defaults_are_those_of_get_batch_defaults(device, batched, seqs):
    # vLLM 0.33.0, engine/arg_utils.py: below 70 GiB, A100 and compute capability 12.1 take the small tier; 160 GiB and more the large one
    found = load_catalogue().get(Device, device)
    assert batch_defaults(found) == {"max_num_batched_tokens": batched, "max_num_seqs": seqs}


def test_overhead_is_that_of_the_number_of_devices_and_of_the_version():
    catalogue = load_catalogue()
    pro, r9700 = catalogue.get(Device, "rtx-pro-6000"), catalogue.get(Device, "r9700")
    assert [pro.overhead_of("vllm", count).value for count in (1, 2, 4, 8)] == [round(size * GIB) for size in (2.1, 2.1, 2.1, 7.0)]
    assert [r9700.overhead_of("vllm", 1, version).value for version in (None, "0.11.2.dev690", "0.13")] == [
        round(size * GIB) for size in (0.95, 2.83, 0.95)
    ]
