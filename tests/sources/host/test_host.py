"""Readers on what no table of machines shows: masks, hostile files, tools that fail, and the machine this runs on."""

import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitcheck.sources.host import read_host
from fitcheck.sources.host.apple import parse_sysctl, parse_vm_stat
from fitcheck.sources.host.edge import MOST_BYTES, nvml_module, run_tool, this_machine
from fitcheck.sources.host.masks import apply_masks
from fitcheck.sources.host.meminfo import parse_meminfo
from fitcheck.sources.host.nvidia import from_nvml, from_smi
from fitcheck.sources.host.records import Accelerator
from tests.sources.host.machines import FakeNvml, machine_of

FOUR = tuple(Accelerator("NVIDIA L40S", "nvidia", "nvml", index=index, uuid=f"GPU-{index}aaa") for index in range(4))


# CUDA C++ Programming Guide, environment variables: "only the devices whose index is present in the sequence are visible"; "if one of the
# indices is invalid, only the devices whose index precedes the invalid index are visible"; a UUID may be shortened as far as it is unique.
@pytest.mark.parametrize(
    ("mask", "open_"),
    [
        ("0,1,2,3", [0, 1, 2, 3]),
        ("2", [2]),
        ("0,-1,2", [0]),
        ("0,9,2", [0]),
        ("-1", []),
        ("", []),
        ("GPU-1aaa,GPU-3", [1, 3]),
        ("GPU-", []),
        (" 1 , 2 ", [1, 2]),
        ("1,1,2", [1]),
        ("NoDevFiles", []),
        ("9" * 40, []),
    ],
)
def test_a_mask_opens_what_cuda_would(mask, open_):
    found, notes = apply_masks(FOUR, {"CUDA_VISIBLE_DEVICES": mask})
    assert [one.index for one in found if one.hidden is None] == open_
    assert f"{len(open_)} of 4 accelerators are open" in notes[0]


def test_without_a_mask_nothing_is_hidden_and_nothing_said():
    assert apply_masks(FOUR, {"ROCR_VISIBLE_DEVICES": "0"}) == (FOUR, ())


def test_an_index_among_unlike_gpus_depends_on_the_order():
    unlike = (*FOUR[:1], Accelerator("NVIDIA GeForce RTX 4090", "nvidia", "nvml", index=1))
    _, said = apply_masks(unlike, {"CUDA_VISIBLE_DEVICES": "1"})
    assert any("CUDA_DEVICE_ORDER=PCI_BUS_ID" in note for note in said)
    _, silent = apply_masks(unlike, {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    assert len(silent) == 1


def test_a_control_character_in_a_variable_does_not_reach_a_terminal():
    from fitcheck.views.detect import DetectReport, MemoryRow, detect_document

    _, notes = apply_masks(FOUR, {"CUDA_VISIBLE_DEVICES": "\x1b[31m0"})
    document = detect_document(DetectReport("Linux", None, (), MemoryRow(None, None, None), (), None, "none", notes))
    assert all("\x1b" not in note for note in document.notes)


def test_nvml_is_shut_down_again():
    module = FakeNvml(devices=[{"name": "NVIDIA L40S", "total": 48305799168}])  # 46,068 MiB
    assert from_nvml(module, (None, None))[0].visible_bytes == 48305799168
    assert module.closed


def test_names_of_older_bindings_are_bytes():
    module = FakeNvml(devices=[{"name": b"NVIDIA L40S", "total": 48305799168}])
    assert from_nvml(module, (None, None))[0].name == "NVIDIA L40S"


def test_nvml_without_a_driver_leaves_the_table_to_read(tmp_path):
    table = "index, name, memory.total [MiB]\n0, NVIDIA L40S, 46068 MiB\n"
    host = read_host(machine_of(tmp_path, nvml={}, tools={"nvidia-smi": table}))
    assert host.accelerators[0].visible_bytes == 48305799168
    assert "NVML did not start" in host.notes[0]


def test_a_driver_without_anything_that_tells_of_it_is_said(tmp_path):
    host = read_host(machine_of(tmp_path, files={"proc/driver/nvidia/version": "NVRM version: 580.95.05"}))
    assert "an NVIDIA driver is loaded" in host.notes[0]
    assert sum("nvidia-ml-py" in note for note in host.notes) == 1


def test_ports_that_can_join_machines(tmp_path):
    # names, MT4129 and states by ibstat of a Dell Pro Max with GB10 (https://github.com/geerlingguy/sbc-reviews/issues/92); the rate in
    # the form that the kernel writes it to sysfs (drivers/infiniband/core/sysfs.c)
    files = {
        "sys/class/infiniband/rocep1s0f0/hca_type": "MT4129\n",
        "sys/class/infiniband/rocep1s0f0/ports/1/rate": "200 Gb/sec (4X HDR)\n",
        "sys/class/infiniband/rocep1s0f0/ports/1/state": "4: ACTIVE\n",
        "sys/class/infiniband/rocep1s0f1/hca_type": "MT4129\n",
        "sys/class/infiniband/rocep1s0f1/ports/1/rate": "40 Gb/sec (4X QDR)\n",
        "sys/class/infiniband/rocep1s0f1/ports/1/state": "1: DOWN\n",
    }
    ports = read_host(machine_of(tmp_path, files=files)).ports
    assert [(port.name, port.rate, port.state) for port in ports] == [
        ("rocep1s0f0 (MT4129)", "200 Gb/sec (4X HDR)", "ACTIVE"),
        ("rocep1s0f1 (MT4129)", "40 Gb/sec (4X QDR)", "DOWN"),
    ]


@pytest.mark.parametrize("text", ["", "x" * 100, "-1", "9" * 400, "0x", "\0\0", "1.5", "١٢"])
def test_files_that_hold_no_size_are_not_known(tmp_path, text):
    files = {
        "sys/class/drm/card0/device/vendor": "0x1002",
        "sys/class/drm/card0/device/device": text,
        "sys/class/drm/card0/device/mem_info_vram_total": text,
        "sys/class/drm/card0/device/mem_info_gtt_total": text,
        "proc/meminfo": text,
        "proc/self/cgroup": f"0::/{text}",
        "sys/fs/cgroup/memory.max": text,
    }
    host = read_host(machine_of(tmp_path, files=files))
    assert len(host.accelerators) == 1
    assert host.accelerators[0].chip == "amd"


def test_a_file_is_read_up_to_a_cap(tmp_path):
    (tmp_path / "huge").write_bytes(b"1" * (MOST_BYTES + 10))
    assert len(machine_of(tmp_path).text("huge")) == MOST_BYTES


@given(st.text(max_size=300))
@settings(max_examples=300)
def test_any_text_of_a_tool_is_read_without_a_crash(text):
    for found in (*from_smi(text, (None, None)), *from_smi(f"index, name, memory.total [MiB], pci.device_id\n{text}", (None, None))):
        assert found.visible_bytes is None or found.visible_bytes >= 0
    parse_meminfo(text)
    parse_sysctl(text)
    parse_vm_stat(text)


def test_a_missing_tool_and_a_failing_one_give_nothing():
    assert run_tool(["no-such-tool-anywhere"]) is None
    assert run_tool([sys.executable, "-c", "raise SystemExit(3)"]) is None
    assert run_tool([sys.executable, "-c", "print('said')"]).strip() == "said"


@pytest.mark.skipif(sys.platform == "win32", reason="a tool that starts another is written in sh")
def test_a_tool_that_hangs_or_prints_without_end_is_ended_with_what_it_started(tmp_path, monkeypatch):
    """A driver that is stuck keeps nvidia-smi waiting; a wrapper of it hands its output on to what it starts."""
    tool, mark = tmp_path / "tool", tmp_path / "pid"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("fitcheck.sources.host.edge.TOOL_SECONDS", 0.5)
    for body, said in (
        ("sleep 60 & echo $! > PID; wait", None),
        ("yes & echo $! > PID; wait", None),
        ("sleep 60 & echo $! > PID; echo said", "said\n"),
    ):
        tool.write_text(f"#!/bin/sh\n{body.replace('PID', str(mark))}\n")
        tool.chmod(0o755)
        began = time.monotonic()
        assert run_tool(["tool"]) == said
        assert time.monotonic() - began < 5
        assert ended(int(mark.read_text()))


def ended(number):
    """Whether a process is gone, or dead and not yet taken note of by the one that should."""
    for _ in range(50):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        state = Path(f"/proc/{number}/stat")
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False


def test_this_machine_answers():
    host = read_host(this_machine())
    assert host.ram.total_bytes is None or host.ram.total_bytes > 2**28
    assert host.accelerators or host.notes


def test_the_real_bindings_have_what_is_asked_of_them():
    module = nvml_module()
    if module is None:
        pytest.skip("nvidia-ml-py is not installed")
    asked = [name for name in dir(FakeNvml) if name.startswith("nvml") or name.startswith("NVML")]
    assert [name for name in asked if not hasattr(module, name)] == []
    assert hasattr(module, "nvmlDeviceGetMaxPcieLinkGeneration")
    assert hasattr(module, "nvmlDeviceGetMaxPcieLinkWidth")
