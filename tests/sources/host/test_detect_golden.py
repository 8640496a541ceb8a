"""Every machine of golden/detect.yaml is understood as its source says."""

from datetime import date
from decimal import Decimal

import pytest

from fitcheck.catalogue.described import looks_described
from fitcheck.catalogue.lookup import find_cluster
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import UsageError
from fitcheck.sources.host import read_host
from fitcheck.sources.host.here import cluster_of
from fitcheck.sources.host.match import matched
from tests.golden import rows
from tests.sources.host.machines import machine_of

ROWS = rows("detect.yaml")
DAY = date(2026, 12, 1)
FIELDS = {
    "name": "name",
    "installed": "installed_bytes",
    "visible": "visible_bytes",
    "free": "free_bytes",
    "unified": "unified",
    "capability": "compute_capability",
    "driver": "driver",
    "gfx": "gfx",
    "pci": "pci",
    "index": "index",
    "hidden": "hidden",
    "sliced": "sliced",
    "link": "link",
    "wired": "wired_limit_bytes",
}


def host_of(row, tmp_path):
    given = {name: row[name] for name in ("files", "tools", "nvml", "environment", "system") if name in row}
    return read_host(machine_of(tmp_path, **given))


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_what_is_found(catalogue, tmp_path, row):
    host = host_of(row, tmp_path)
    found = host.accelerators[:1] if row.get("nvml", {}).get("repeat") else host.accelerators
    assert len(found) == len(row["expect"])
    for known, wanted in zip(found, row["expect"], strict=True):
        assert {key: getattr(known, FIELDS[key]) for key in wanted if key != "device"} == {
            key: value for key, value in wanted.items() if key != "device"
        }
        device = matched(catalogue.devices, known, host)
        if "device" in wanted:
            assert (device.id if device else None) == wanted["device"]
    if "ram" in row:
        assert [host.ram.total_bytes, host.ram.available_bytes, host.ram.limit_bytes] == row["ram"]
    for note in row.get("notes", []):
        assert any(note in text for text in host.notes), host.notes


@pytest.mark.parametrize("row", [row for row in ROWS if "here" in row], ids=[row["name"] for row in ROWS if "here" in row])
def test_here_is_what_was_measured(catalogue, tmp_path, row):
    found = cluster_of(catalogue, host_of(row, tmp_path), 1, DAY)
    device_id, count, visible = row["here"]
    seen = found.device.memory.visible[0]
    assert (found.device.id, found.count, seen.value, seen.grade) == (device_id, count, visible, Grade.MEASURED)
    assert found.device.sources["here"].url.startswith("file:")
    assert found.origin.assumed[0].startswith("this machine, through")
    if "free" in row:
        assert found.origin.free_bytes == row["free"]
    if "share" in row:
        assert {share.fraction for share in found.device.usable if share.engine in ("mlx", "llama.cpp")} == {Decimal(row["share"])}
    if "said" in row:
        assert any(row["said"] in text for text in found.origin.assumed)
    if looks_described(device_id):
        again = find_cluster(catalogue, found.label)
        assert (again.device.memory.visible[0].value, again.device.chip) == (visible, found.device.chip)
        assert again.device.memory.unified == found.device.memory.unified


@pytest.mark.parametrize("row", [row for row in ROWS if "error" in row], ids=[row["name"] for row in ROWS if "error" in row])
def test_here_says_what_to_type_where_it_cannot_be_used(catalogue, tmp_path, row):
    with pytest.raises(UsageError) as caught:
        cluster_of(catalogue, host_of(row, tmp_path), 1, DAY)
    assert row["error"] in caught.value.message
    assert row.get("hint", "fitcheck detect") in caught.value.hint


def test_every_row_says_where_its_texts_are_from():
    assert all(row["source"] for row in ROWS)
