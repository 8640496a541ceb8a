"""`fitcheck detect` and `--cluster here`, on this machine and on made-up ones."""

import json
from unittest import mock

import pytest

import fitcheck
from tests.cli.run import fitcheck as process
from tests.cli.run import inside
from tests.sources.host.machines import machine_of

SMI = (
    "index, name, memory.total [MiB], memory.free [MiB], compute_cap, driver_version\n"
    "0, NVIDIA GeForce RTX 4090, 24564 MiB, 2000 MiB, 8.9, 550.163.01\n"
    "1, NVIDIA GeForce RTX 4090, 24564 MiB, 24057 MiB, 8.9, 550.163.01\n"
)  # https://github.com/RLinf/RLinf/issues/255 in the form of --format=csv, with other figures for what is free


@pytest.fixture
def two_4090(tmp_path):
    machine = machine_of(tmp_path, tools={"nvidia-smi": SMI}, files={"proc/meminfo": "MemTotal: 65000000 kB\nMemAvailable: 60000000 kB\n"})
    with mock.patch("fitcheck.sources.host.edge.this_machine", return_value=machine):
        yield machine


@pytest.mark.parametrize("format_", ["table", "plain", "json", "csv", "md"])
def test_this_machine_is_an_answer_in_every_format(format_):
    ran = process("detect", "--format", format_)
    assert (ran.code, ran.err) == (0, "")
    assert "Linux" in ran.out or "macOS" in ran.out or "Windows" in ran.out


@pytest.mark.usefixtures("two_4090")
def test_accelerators_in_a_table():
    ran = inside("detect", columns=160)
    assert ran.code == 0
    assert "2 accelerators" in ran.out
    assert "rtx-4090" in ran.out
    assert "23.99" in ran.out  # 24,564 MiB
    assert "1.95" in ran.out  # 2,000 MiB
    assert "--cluster here stands for 2x rtx-4090" in ran.out


@pytest.mark.usefixtures("two_4090")
def test_json_holds_bytes():
    result = json.loads(inside("detect", "--format", "json").out)["result"]
    first = result["accelerators"][0]
    assert (first["device"], first["visible_bytes"], first["free_bytes"], first["cluster"]) == (
        "rtx-4090",
        25757220864,
        2097152000,
        "rtx-4090",
    )
    assert result["memory"]["total_bytes"] == 66560000000


@pytest.mark.usefixtures("two_4090")
def test_fit_here_takes_what_is_measured_and_warns_of_what_is_not_free():
    answer = json.loads(inside("fit", "gpt-oss-20b", "--cluster", "here", "--format", "json").out)
    assert answer["inputs"]["cluster"] == {"device": "rtx-4090", "count": 2}
    assert answer["result"]["cluster"]["visible_bytes"] == 25757220864
    assert answer["result"]["cluster"]["free_now_bytes"] == 2097152000  # 2,000 MiB, the least of the two
    assert any("1.95 GiB is free on this machine now" in warning for warning in answer["warnings"])
    assert answer["result"]["assumptions"][0]["text"].startswith("this machine, through nvidia-smi: 2x NVIDIA GeForce RTX 4090")
    sources = [source["url"] for device in answer["result"]["devices"] for source in device["usable_sources"]]
    assert "file:nvidia-smi" in sources


@pytest.mark.usefixtures("two_4090")
def test_what_is_free_here_stands_in_place_of_what_owners_report():
    shown = inside("fit", "gpt-oss-20b", "--cluster", "here").out
    assert "23.99 GiB visible" in shown
    assert "1.95 GiB free now" in shown
    assert "owners report" not in shown


@pytest.mark.parametrize(
    "words",
    [
        ("recommend", "--cluster", "here"),
        ("cost", "gpt-oss-120b", "--tokens", "50M", "--cluster", "here"),
        ("hardware", "here"),
        ("fit", "gpt-oss-120b", "--cluster", "2 x HERE"),
        ("fit", "gpt-oss-120b", "--cluster", "here*2"),
    ],
)
@pytest.mark.usefixtures("two_4090")
def test_here_is_taken_wherever_a_cluster_is(words):
    ran = inside(*words, "--format", "json")
    answer = json.loads(ran.out)
    assert answer["inputs"]["cluster"]["device"] == "rtx-4090"
    assert answer["inputs"]["cluster"]["count"] == (4 if {"2 x HERE", "here*2"} & {*words} else 2)


@pytest.mark.usefixtures("two_4090")
def test_a_log_may_be_of_this_machine(tmp_path):
    (tmp_path / "server.log").write_text("llama_context: n_ctx = 4096\nllama_context:      CUDA0 compute buffer size =   300.00 MiB\n")
    ran = inside("calibrate", str(tmp_path / "server.log"), "--cluster", "here", "--format", "json")
    assert json.loads(ran.out)["inputs"]["cluster"] == {"device": "rtx-4090", "count": 2}


@pytest.mark.usefixtures("two_4090")
def test_the_python_api_takes_here():
    assert fitcheck.fit("gpt-oss-20b", cluster="here").cluster.visible_bytes == 25757220864
    assert fitcheck.recommend(cluster="here").cluster.count == 2
    assert fitcheck.cost("gpt-oss-120b", tokens="50M", cluster="here", price="4000", watts="900", speed="60").own.cluster.count == 2


def test_here_without_an_accelerator_says_what_to_do(tmp_path):
    with mock.patch("fitcheck.sources.host.edge.this_machine", return_value=machine_of(tmp_path)):
        ran = inside("fit", "gpt-oss-20b", "--cluster", "here")
    assert ran.code == 2
    assert "fitcheck detect" in ran.err
    assert "24GiB@936GB/s" in ran.err


@pytest.mark.parametrize("spec", ["0xhere", "9999xhere", "here*0"])
@pytest.mark.usefixtures("two_4090")
def test_a_number_of_machines_that_makes_no_sense(spec):
    ran = inside("fit", "gpt-oss-20b", "--cluster", spec)
    assert ran.code == 2
    assert "makes no sense" in ran.err


def test_nothing_of_it_is_imported_where_here_is_not_asked():
    import subprocess
    import sys

    code = (
        "import sys; sys.argv = ['fitcheck', 'fit', 'gpt-oss-20b', '--cluster', '2xspark']\n"
        "from fitcheck.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([name for name in sys.modules if name.startswith('fitcheck.sources') or name in ('pynvml', 'fitcheck.catalogue.described')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
