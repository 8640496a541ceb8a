import pytest

from fitcheck.catalogue.hardware import Device, Engine
from fitcheck.catalogue.load import load_catalogue
from fitcheck.catalogue.models import Architecture
from fitcheck.catalogue.provenance import Grade
from fitcheck.fit.engines.base import Ledger, Settings
from fitcheck.fit.engines.vllm import allocate
from fitcheck.fit.engines.vllm_graphs import captures
from fitcheck.fit.memory import batch_defaults
from fitcheck.fit.state import KvDtype
from tests.golden import rows

GIB = 1 << 30


def architecture(hidden, ffn, vocabulary, expert=None, each=None, experts=None, layers=2):
    group = {"kind": "attention", "layers": layers, "kv_heads": 8, "k_dim": 64, "v_dim": 64}
    return Architecture(
        source=("config",),
        grade=Grade.PUBLISHED,
        family="llama",
        max_context_tokens=1 << 17,
        layers=layers,
        hidden_size=hidden,
        vocabulary=vocabulary,
        feed_forward_size=ffn,
        expert_feed_forward_size=expert,
        experts=experts,
        experts_per_token=each,
        groups=(group,),
    )


def peak(model, *, tp=1, **named):
    return term("profiling peak", allocate(model, Settings(8192, 1, KvDtype("auto", "auto", "auto"), tp, named=named)))


def graphs(model, *, pp=1, **named):
    return term("CUDA graphs", allocate(model, Settings(8192, 1, KvDtype("auto", "auto", "auto"), pp=pp, named=named)))


def term(name, terms):
    return sum(part.bytes for part in terms if part.name == name)


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
    # 16-bit logits 2 + 32-bit copy 4 + probabilities 4 + random draw 4 = 14 B: 1,024 x 151,936 x 14, and 8,192 hidden states of 1,024 x 2 B
    model = architecture(1024, 3072, 151936)
    size = 1024 * 151936 * 14 + 8192 * 1024 * 2
    assert peak(model, max_num_batched_tokens=8192, max_num_seqs=1024) == size
    assert peak(model, max_num_batched_tokens=8192, max_num_seqs=1024, vllm_version="0.20") == size


def test_the_sort_went_with_0_17():
    # Qwen3-14B on an H100: 5.64 GiB with 0.15.0 and 0.16.0, 2.23 GiB with 0.17.0 (llm-d-planner, accuracy/accuracy_report.md)
    model = architecture(5120, 17408, 151936)
    sizes = [peak(model, max_num_batched_tokens=8192, max_num_seqs=1024, vllm_version=version) for version in ("0.16.0", "0.17.0")]
    assert [size / GIB for size in sizes] == [pytest.approx(5.64, rel=0.08), pytest.approx(2.23, rel=0.08)]


def test_buffers_of_routed_experts_are_held_while_sampling():
    # of 8,192 tokens: 8 experts x (max(2 x 768, 2,048) + max(768, 2,048)) + 2,048 hidden, x 2 B
    model = architecture(2048, 6144, 151936, expert=768, each=8, experts=128)
    assert peak(model, max_num_batched_tokens=8192, max_num_seqs=1024) == 1024 * 151936 * 14 + 8192 * (8 * 4096 + 2048) * 2


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
    assert term("profiling peak", allocate(model, asked)) == 2000 * 151936 * 14 + 2048 * 1024 * 2


@pytest.mark.parametrize(
    ("seqs", "batched", "printed"),
    [
        (1024, 8192, (51, 51)),  # 0.19.0 on an H100: PIECEWISE=51 (largest=512), FULL=51 (largest=512)
        (256, 2048, (51, 35)),  # 0.22.1, gemma-4-E4B: PIECEWISE=51 (largest=512), FULL=35 (largest=256)
        (128, 2048, (35, 19)),  # 0.22.0, Qwen2.5-7B: PIECEWISE=35 (largest=256), FULL=19 (largest=128)
        (20, 8192, (8, 5)),  # 0.23.0, gemma-4-31b: PIECEWISE=8 (largest=40), FULL=5 (largest=16)
    ],
)
def test_as_many_graphs_are_captured_as_were_printed(seqs, batched, printed):
    assert captures(batched, seqs) == printed


@pytest.mark.parametrize("row", rows("vllm_graphs.yaml"), ids=lambda row: f"{row['model']}-{row['version']}-{row['seqs']}")
def test_graphs_are_as_estimated(row):
    found = graphs(
        architecture(4096, 14336, 128256, layers=row["layers"]),
        pp=row.get("pp", 1),
        max_num_batched_tokens=row["batched"],
        max_num_seqs=row["seqs"],
    )
    assert found / GIB == pytest.approx(float(row["printed_gib"]), abs=0.45), row["source"]


def test_graphs_count_from_0_20_on_and_never_where_none_are_made():
    model = architecture(4096, 14336, 128256, layers=32)
    assert graphs(model, vllm_version="0.19.1") == 0
    assert graphs(model, vllm_version="0.20.0") > 0
    assert graphs(model, enforce_eager=True) == 0


def test_memory_beside_buffers_is_that_of_the_number_of_devices_and_of_the_version():
    # medians of 0.19.0 on one, two and four H100s: 0.25, 2.07 and 2.13 GiB; 0.13 before 0.18
    catalogue = load_catalogue()
    vllm, h100 = catalogue.get(Engine, "vllm"), catalogue.get(Device, "h100")
    asked = ((1, None), (2, None), (8, None), (1, "0.17.1"), (2, "0.11"))
    found = [vllm.beside_on(h100, count, version).value / GIB for count, version in asked]
    assert found == pytest.approx([0.25, 2.1, 2.1, 0.13, 0.55], abs=0.001)
    elsewhere = [vllm.beside_on(catalogue.get(Device, "rtx-3090"), count, version).value / GIB for count, version in asked]
    assert elsewhere == pytest.approx([0.25, 0.25, 0.25, 0.13, 0.13], abs=0.001)


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
