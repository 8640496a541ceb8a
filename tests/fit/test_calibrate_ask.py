"""Names as logs write them, to the catalogue's."""

import pytest

from fitcheck.fit.calibrate_ask import calibration_case, model_names
from fitcheck.fit.printed import Printed
from tests.conftest import AS_OF


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("zai-org/GLM-5.3-Flash", "zai-org/GLM-5.3-Flash"),
        ("/home/me/.cache/huggingface/hub/models--zai-org--GLM-5.3-Flash/snapshots/2d59de1c", "zai-org/GLM-5.3-Flash"),
        ("/models/models--meta-llama--Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("/mnt/models/zai-org/GLM-5.3-Flash/", "zai-org/GLM-5.3-Flash"),
        ("D:\\models\\Qwen3.5-0.8B", "Qwen3.5-0.8B"),
        ("gguf/Qwen3.8-27B-UD-Q4_K_M.gguf", "Qwen3.8-27B"),
        ("gpt-oss-120b-mxfp4-00001-of-00003.gguf", "gpt-oss-120b"),
    ],
)
def test_what_a_model_may_be_called(printed, name):
    assert name in list(model_names(printed))


def test_no_name_is_no_model():
    assert list(model_names("")) == []


@pytest.mark.parametrize(
    ("printed", "device"),
    [
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA GB10", "dgx-spark"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("AMD Radeon AI PRO R9700", "r9700"),
        ("Tesla T4", None),
        ("999999x rtx-4090", None),
        ("", None),
    ],
)
def test_devices_as_drivers_call_them(catalogue, printed, device):
    case = calibration_case(catalogue, Printed(engine="llama.cpp", device=printed, devices=2), as_of=AS_OF, source="file:x")
    assert (case.device.id if case.device else None) == device
    assert case.devices == 2


def test_what_a_file_calls_itself_counts_last(catalogue):
    printed = Printed(engine="llama.cpp", model="a.gguf", called="gpt-oss-120b", whole=True)
    assert calibration_case(catalogue, printed, as_of=AS_OF, source="file:x").model.id == "gpt-oss-120b"
