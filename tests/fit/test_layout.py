import pytest

from fitcheck import fit, load_catalogue
from fitcheck.catalogue.hardware import Engine
from fitcheck.catalogue.models import Component, ComponentKind, Model
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import UsageError
from fitcheck.fit.layout import Degrees, Layout, choose_layout
from fitcheck.fit.placement import component_bytes

CATALOGUE = load_catalogue()
VLLM, SGLANG = CATALOGUE.get(Engine, "vllm"), CATALOGUE.get(Engine, "sglang")
ROW = 61 * (512 + 64) * 2
"""DeepSeek V3 keeps 61 layers x (512 + 64) elements x 2 B of every token, whole on each tensor-parallel rank."""
TOKENS = 32_768


def state(users, **degrees):
    report = fit(
        "deepseek-v3", cluster="8xh200", context=TOKENS, users=users, engine="vllm", kv_dtype="bf16", catalogue=CATALOGUE, **degrees
    )
    return sum(term.bytes for term in report.devices[0].terms if term.part == "state")


def test_replicas_share_the_users_and_tensor_parallel_ranks_do_not():
    assert state(8, tp=8) == 8 * TOKENS * ROW
    assert state(8, dp=8) == TOKENS * ROW
    assert state(9, dp=8) == 2 * TOKENS * ROW  # nine users over eight replicas: one has two


def test_a_context_is_shared_by_decode_context_parallel_ranks():
    assert state(8, tp=8, dcp=8) == TOKENS * ROW
    assert state(8, tp=8, dcp=2) == 4 * TOKENS * ROW


def test_replicas_share_the_experts_whole_or_in_parts():
    part = Component(kind=ComponentKind.EXPERTS, value=256_000, source=("x",), grade=Grade.PUBLISHED)
    # 256 experts of 1,000 B: a third is 85,333 1/3; whole, one of three ranks holds 86
    assert component_bytes(part, Layout(3, 1, ""), 61, 256)[0] == 85_334
    assert component_bytes(part, Layout(3, 1, "", ep=True), 61, 256)[0] == 86_000
    # vLLM, docs/serving/data_parallel_deployment: "expert layers form a tensor parallel group of size DP x TP"; SGLang's DP attention alike
    for engine in (VLLM, SGLANG):
        for ep in (False, True):
            assert component_bytes(part, choose_layout(8, engine, None, Degrees(dp=8, ep=ep), Degrees()), 61, 256)[0] == 32_000
    # two stages of two replicas of two ranks: 31 of 61 layers, over four ranks
    staged = choose_layout(8, VLLM, None, Degrees(tp=2, dp=2, ep=True), Degrees())
    assert component_bytes(part, staged, 61, 256)[0] == -(-256_000 * 31 * 64 // (61 * 256))


def test_expert_parallelism_wants_experts_and_ranks():
    with pytest.raises(UsageError, match="no routed experts"):
        fit("llama-3.1-8b", cluster="4xh100", engine="vllm", ep=True, catalogue=CATALOGUE)
    assert choose_layout(3, VLLM, None, Degrees(tp=1, ep=True), Degrees()).label == "PP3"


def test_builds_whose_experts_are_not_known_apart_are_still_divided_and_never_understated():
    build = CATALOGUE.get(Model, "deepseek-v3").checkpoint("official-fp8")
    whole = fit("deepseek-v3", cluster="8xh200", checkpoint="official-fp8", dp=8, ep=True, engine="vllm", catalogue=CATALOGUE)
    weights = sum(term.bytes for term in whole.devices[0].terms if term.part == "weights")
    # 58 layers x 256 experts x 3 x 7,168 x 2,048 parameters; the rest of the model at 16 bits on every replica at most
    experts = 58 * 256 * 3 * 7168 * 2048
    rest = 2 * (CATALOGUE.get(Model, "deepseek-v3").parameter_count - experts)
    assert weights <= rest + -(-build.total_bytes // 8)
    assert weights > build.total_bytes // 8


def test_windows_are_not_shared():
    # vLLM 0.33.0, kv_cache_interface.py: "DCP not support sliding window"
    with pytest.raises(UsageError, match="window"):
        fit("gpt-oss-120b", cluster="16xh100", engine="vllm", dcp=2, catalogue=CATALOGUE)


def test_the_smallest_cluster_keeps_the_degrees():
    report = fit("llama-3.3-70b", cluster="4xh100", checkpoint="official-bf16", dp=4, engine="vllm", catalogue=CATALOGUE)
    # 131.4 GiB of weights, 10 GiB of cache: over two devices 65.7 + 5 + 5.4 of overhead are more than the 75.2 usable, over three less; x 4
    assert report.smallest_cluster == 12


def test_the_rest_of_the_devices_is_pipeline_parallel():
    layout = choose_layout(8, VLLM, None, Degrees(tp=2, dp=2), Degrees())
    assert (layout.tp, layout.pp, layout.dp, layout.label) == (2, 2, 2, "TP2 PP2 DP2")


@pytest.mark.parametrize(
    ("degrees", "message"),
    [
        ({"dp": 3}, "--dp 3 does not divide 8 devices"),
        ({"dp": 0}, "--dp 0 makes no sense"),
        ({"tp": -1}, "--tp -1 makes no sense"),
        ({"dcp": 3}, "--dcp 3 does not divide the 8 tensor-parallel ranks"),
        ({"dcp": 0}, "--dcp 0 makes no sense"),
    ],
)
def test_degrees_that_do_not_divide_are_refused(degrees, message):
    with pytest.raises(UsageError, match=message):
        choose_layout(8, VLLM, None, Degrees(**degrees), Degrees())


def test_ranks_with_kv_heads_of_their_own_share_no_context():
    # vLLM: at most TP / KV heads ranks share a context; Llama 3.1 8B has 8 KV heads
    llama = CATALOGUE.get(Model, "llama-3.1-8b").architecture
    with pytest.raises(UsageError, match="8 KV heads"):
        choose_layout(8, VLLM, llama, Degrees(dcp=2), Degrees())
    assert choose_layout(16, VLLM, llama, Degrees(dcp=2), Degrees()).dcp == 2


def test_an_engine_without_it_is_refused_and_a_recipe_brings_its_own():
    with pytest.raises(UsageError, match=r"llama\.cpp is not known to have --ep"):
        fit("llama-3.1-8b", cluster="2xrtx-4090", engine="llama.cpp", ep=True, catalogue=CATALOGUE)
    # spark-ds41f and MiaAI's recipe on three DGX Sparks state tp 3, ep 3
    assert fit("deepseek-v4.1-flash", cluster="3xspark", checkpoint="official", catalogue=CATALOGUE).layout == "TP3 EP"
