import re

import pytest
from pydantic import ValidationError

from fitcheck import fit, load_catalogue
from fitcheck.catalogue.models import Component, ComponentKind, Model
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import UsageError
from fitcheck.fit.layout import Layout
from fitcheck.fit.offload import Place, divided, with_experts_apart
from fitcheck.fit.placement import component_bytes
from tests.golden import rows

CATALOGUE = load_catalogue()
DEEPSEEK = CATALOGUE.get(Model, "deepseek-v3")
EXPERTS = ComponentKind.EXPERTS
MIB = 1024 * 1024
OTHERS = DEEPSEEK.parameters.total.value - 58 * 256 * 3 * 7168 * 2048
"""Parameters of DeepSeek V3 that are not in its 58 x 256 routed experts of three 7,168 x 2,048 matrices."""


def ask(place=None, model="gpt-oss-120b", cluster="rtx-5090", engine="llama.cpp", **options):
    places = {EXPERTS: place} if place else None
    return fit(model, cluster=cluster, engine=engine, places=places, catalogue=CATALOGUE, **options)


def test_what_is_not_an_expert_is_counted_in_sixteen_bits_at_most():
    build = DEEPSEEK.checkpoint("gguf-q2-k")
    assert [part.kind for part in build.components] == [ComponentKind.WEIGHTS]
    parts = {part.kind: part.value for part in with_experts_apart(build, DEEPSEEK.architecture, DEEPSEEK.parameters.total.value)}
    assert parts[ComponentKind.WEIGHTS] == 2 * OTHERS
    assert parts[EXPERTS] == build.total_bytes - 2 * OTHERS


def test_the_bytes_of_layers_kept_and_away_add_up():
    report = ask("ram:22")
    here = {term.name: term.bytes for term in report.devices[0].terms}
    away, table = report.devices[0].off_device
    whole = CATALOGUE.get(Model, "gpt-oss-120b").checkpoint("gguf-mxfp4").total_bytes
    assert here["weights"] + here["routed experts, 14 of 36 layers"] + away.bytes + table.bytes == whole
    assert away.component == "routed experts, 22 of 36 layers"
    # a layer: 128 experts of three 2,880 x 2,880 matrices in MXFP4 (17 B for 32) and their biases in 32 bits
    assert away.bytes == 22 * 128 * 3 * (2880 * 2880 * 17 // 32 + 4 * 2880)


def test_where_nobody_knows_the_experts_layers_are_alike_and_what_is_away_is_rounded_up():
    (away,) = ask("ram:20", "deepseek-v3", "8xh200", checkpoint="gguf-q2-k").devices[0].off_device
    assert away.bytes == -((2 * OTHERS - DEEPSEEK.checkpoint("gguf-q2-k").total_bytes) * 20 // 58)


@pytest.mark.parametrize("row", rows("offload.yaml"), ids=lambda row: f"{row['model']}-{row.get('place', 'gpu')}")
def test_where_llama_cpp_keeps_a_build(row):
    devices = ask(row.get("place"), row["model"], "8xh200", checkpoint=row["checkpoint"], tp=1).devices[0]
    away = {part.component: part.bytes for part in devices.off_device}
    build = CATALOGUE.get(Model, row["model"]).checkpoint(row["checkpoint"])
    table = away.pop("input embedding", 0)
    found = {"table": table, "experts": sum(away.values()), "gpu": build.total_bytes - table - sum(away.values())}
    for name in found.keys() & row.keys():
        within = float(row.get("within", {}).get(name, 0.01))
        assert found[name] / MIB == pytest.approx(float(row[name]), abs=within), (name, row["source"])


def component(*layer_bytes):
    return Component(kind=EXPERTS, value=sum(layer_bytes), layer_bytes=layer_bytes, source=("x",), grade=Grade.DERIVED)


def test_the_first_layers_leave_with_their_own_bytes():
    # GLM-5 in IQ1_S_R4, 75 equal layers with experts behind three without: with all of them away llama.cpp printed 129,975.00 MiB, with
    # --n-cpu-moe 74, which leaves the last four, 123,043.00 (the card of sokann/GLM-5-GGUF-1.594bpw, as a mirror has it)
    even = Component(kind=EXPERTS, value=129_975 * MIB, source=("x",), grade=Grade.DERIVED)
    away, kept = divided(even, Place("ram", 71), 75)
    assert (away.component.value, kept.component.value) == (123_043 * MIB, 6_932 * MIB)
    away, kept = divided(component(50, 50, 30, 40), Place("ram", 3), 4)
    assert (away.component.value, away.component.layer_bytes) == (130, (50, 50, 30))
    assert (kept.component.value, kept.component.layer_bytes) == (40, (40,))


def test_bytes_of_another_number_of_layers_are_not_taken_for_these():
    away, _ = divided(component(50, 50, 30), Place("ram", 1), 4)
    assert away.component.value == 33  # 130 / 4, rounded up


def test_a_stage_holds_the_heaviest_layers_in_a_row():
    two, last = Layout(1, 2, ""), component(30, 30, 50, 50)
    assert component_bytes(last, two, 5)[0] == 130  # five layers in two stages: three in a row of the four with experts
    assert component_bytes(last, two, 5, None, 4)[0] == 130
    assert component_bytes(last, Layout(1, 1, ""), 5)[0] == 160
    assert component_bytes(last, two, None)[0] == 80  # how many layers the model has is not known: a half


def test_the_layers_of_a_part_add_up_to_it():
    with pytest.raises(ValidationError, match="layer_bytes add up to 3, not to 4"):
        Component(kind=EXPERTS, value=4, layer_bytes=(1, 2), source=("x",))


def test_the_remedy_names_the_fewest_layers_that_do():
    remedy = next(remedy for remedy in ask().remedies if "experts=ram" in remedy.option)
    layers = int(re.search(r"ram:(\d+)", remedy.option)[1])
    assert ask(f"ram:{layers}").verdict.runs
    assert not ask(f"ram:{layers - 1}").verdict.runs


def test_unified_memory_has_no_other_ram():
    assert not any("experts" in remedy.option for remedy in ask(model="deepseek-v3", cluster="spark").remedies)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("ram:0", "36 layers have routed experts"),
        ("ram:37", "36 layers have routed experts"),
        ("ram:x", "cannot read 'x' as a number of layers"),
        ("ram:", "cannot read '' as a number of layers"),
        ("disk", "there is no place 'disk'"),
        ("gpu:3", "layers are counted where they lie elsewhere"),
    ],
)
def test_places_that_make_no_sense_are_refused(place, message):
    with pytest.raises(UsageError, match=message):
        ask(place)


def test_only_experts_are_divided():
    with pytest.raises(UsageError, match="only routed experts are divided"):
        fit("gpt-oss-120b", cluster="rtx-5090", engine="llama.cpp", places={ComponentKind.WEIGHTS: "ram:3"}, catalogue=CATALOGUE)


def test_places_are_read():
    assert Place.read("ram:12") == ("ram", 12)
    assert Place.read("nvme") == ("nvme", None)


def test_of_several_devices_the_last_holds_the_layers_that_stay():
    # glm-4.5-air: 45 of 46 layers have experts, two stages of 23 layers; --n-cpu-moe takes the first, so with 30 away the second stage
    # holds all 15 that stay, and with 9 away it still holds 23 of 36
    build = CATALOGUE.get(Model, "glm-4.5-air").checkpoint("gguf-q4-k-m")
    experts = next(part.value for part in with_experts_apart(build, *whole("glm-4.5-air")) if part.kind is EXPERTS)
    for away, held, kept in ((30, 15, 15), (9, 23, 36)):
        report = ask(f"ram:{away}", "glm-4.5-air", "2xrtx-3090", checkpoint="gguf-q4-k-m")
        (term,) = (term for term in report.devices[0].terms if term.name.startswith("routed experts"))
        stays = experts - -(-experts * away // 45)
        assert term.bytes == -(-stays * held // kept)


def whole(name):
    model = CATALOGUE.get(Model, name)
    return model.architecture, model.parameter_count


@pytest.mark.parametrize("engine", ["ik-llama.cpp", "llama.cpp"])
def test_what_would_make_it_fit_is_never_an_error(engine):
    report = ask(model="llama-3.3-70b", cluster="rtx-3090", engine=engine)
    assert report.remedies


def test_mlx_without_a_smaller_cache_answers_too():
    assert not ask(model="llama-3.3-70b", cluster="mac-studio-m4-max-128", engine="mlx").verdict.runs


def test_an_engine_without_layers_apart_and_a_build_without_the_part_are_unknown():
    assert ask("ram:10", engine="vllm", cluster="8xh100").verdict.value == "unknown"
    # nothing at hand says in how many layers of Mistral Small 4 experts lie, and none of its builds names them apart
    with pytest.raises(UsageError, match="experts as a part of its own"):
        ask("ram", "mistral-small-4-119b", "8xh100")
