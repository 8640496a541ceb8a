import re

import pytest

from fitcheck import fit, load_catalogue
from fitcheck.catalogue.models import ComponentKind, Model
from fitcheck.errors import UsageError
from fitcheck.fit.offload import Place, with_experts_apart

CATALOGUE = load_catalogue()
GPT_OSS = CATALOGUE.get(Model, "gpt-oss-120b")
EXPERTS = ComponentKind.EXPERTS
OTHERS = 116_829_156_672 - 36 * 128 * 3 * 2880 * 2880
"""Parameters of gpt-oss-120b that are not in its 36 x 128 routed experts of three 2,880 x 2,880 matrices: 2,167,371,072."""


def ask(place=None, model="gpt-oss-120b", cluster="rtx-5090", engine="llama.cpp", **options):
    places = {EXPERTS: place} if place else None
    return fit(model, cluster=cluster, engine=engine, places=places, catalogue=CATALOGUE, **options)


def test_what_is_not_an_expert_is_counted_in_sixteen_bits_at_most():
    build = GPT_OSS.checkpoint("gguf-mxfp4")
    parts = {part.kind: part.value for part in with_experts_apart(build, GPT_OSS.architecture, GPT_OSS.parameters.total.value)}
    assert parts[ComponentKind.WEIGHTS] == 2 * OTHERS
    assert parts[EXPERTS] == build.total_bytes - 2 * OTHERS


def test_the_bytes_of_layers_kept_and_away_add_up():
    report = ask("ram:22")
    here = {term.name: term.bytes for term in report.devices[0].terms}
    (away,) = report.devices[0].off_device
    whole = GPT_OSS.checkpoint("gguf-mxfp4").total_bytes
    assert here["weights"] + here["routed experts, 14 of 36 layers"] + away.bytes == whole
    assert away.component == "routed experts, 22 of 36 layers"
    assert away.bytes == -((2 * OTHERS - whole) * 22 // 36)


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
