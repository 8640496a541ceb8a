"""Stands in for an NVIDIA GPU, so that vLLM builds a model and plans its caches on a machine that has none.

Weights are of the meta device, which has shapes and dtypes and no memory; process groups are PyTorch's fake ones; what vLLM asks of the
driver is answered here. Import this before anything else of vLLM, in an environment of its own (`pip install vllm`). Its extensions want
a `libcuda.so.1` to load: without a driver, `python scripts/without_gpu.py FOLDER` writes one whose functions all fail, for
`LD_LIBRARY_PATH=FOLDER`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update(VLLM_LOGGING_LEVEL="ERROR", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_ALLOW_LONG_MAX_MODEL_LEN="1")

NAMES = {8: "NVIDIA A100-SXM4-80GB", 9: "NVIDIA H100 80GB HBM3", 10: "NVIDIA B200", 12: "NVIDIA RTX PRO 6000 Blackwell"}
MEMORY_BYTES = 80 << 30
DEVICES = 8


class Card(NamedTuple):
    """What PyTorch says of a device; vLLM reads some of it for kernels that are never run."""

    major: int
    minor: int
    name: str
    total_memory: int = MEMORY_BYTES
    multi_processor_count: int = 132
    shared_memory_per_block_optin: int = 232448
    shared_memory_per_multiprocessor: int = 233472
    regs_per_multiprocessor: int = 65536
    max_threads_per_multi_processor: int = 2048
    warp_size: int = 32
    L2_cache_size: int = 50 << 20
    is_integrated: bool = False
    uuid: str = "GPU-0"


class Nothing:
    """A stream, an event or a communicator, of which nothing is wanted."""

    cuda_stream = 0
    world_size = 1
    disabled = True
    all2all_manager = None
    use_all2all = False

    def __init__(self, *_: Any, **__: Any) -> None:
        """Take whatever the real one takes."""

    def __getattr__(self, name: str) -> Any:
        """Do nothing under any name."""
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None

    def __enter__(self) -> Nothing:
        """Do nothing as a context."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing at its end."""


def pretend(version: str) -> None:
    """Let vLLM find devices of this compute capability ("9.0"). Once in a process."""
    import torch

    _stand_in()
    from vllm import platforms
    from vllm.platforms.cuda import NonNvmlCudaPlatform
    from vllm.platforms.interface import DeviceCapability

    capability = tuple(map(int, version.split(".")))
    card = Card(capability[0], capability[1], NAMES[capability[0]])
    answers = {
        "get_device_capability": DeviceCapability(*capability),
        "get_device_name": card.name,
        "get_device_total_memory": MEMORY_BYTES,
        "get_device_uuid": card.uuid,
        "get_cuda_runtime_major": 13,
        "num_compute_units": card.multi_processor_count,
        "device_count": DEVICES,
        "set_device": None,
        "is_fully_connected": True,
        "is_integrated_gpu": False,
        "is_pin_memory_available": False,
    }
    methods = {name: classmethod(lambda _, *__, value=value, **___: value) for name, value in answers.items()}
    methods["get_device_communicator_cls"] = classmethod(lambda _: f"{__name__}.Nothing")
    platforms._current_platform = type("Pretended", (NonNvmlCudaPlatform,), methods)()
    torch._C._cuda_init = torch.cuda._lazy_init = lambda: None
    for name, value in {
        "is_available": True,
        "device_count": DEVICES,
        "current_device": 0,
        "get_device_properties": card,
        "get_device_capability": capability,
        "get_device_name": card.name,
        "mem_get_info": (MEMORY_BYTES, MEMORY_BYTES),
        "synchronize": None,
        "empty_cache": None,
        "set_device": None,
    }.items():
        setattr(torch.cuda, name, lambda *_, value=value, **__: value)
    torch.cuda.Stream = torch.cuda.Event = torch.cuda.current_stream = torch.cuda.default_stream = Nothing
    _kernels_are_there()


def _stand_in() -> None:
    """Empty modules for extensions that were built against an older PyTorch's C++ and cannot be loaded beside a newer one."""
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    import vllm

    if tuple(map(int, vllm.__version__.split(".")[:2])) < (0, 28):
        for name in ("_C", "_moe_C", "vllm_flash_attn._vllm_fa2_C", "vllm_flash_attn._vllm_fa3_C"):
            module = ModuleType(f"vllm.{name}")
            module.__spec__ = ModuleSpec(module.__name__, None)
            sys.modules[module.__name__] = module


def _kernels_are_there() -> None:
    """What decides on backends by whether a kernel's library loads is told that it does."""
    from importlib import import_module

    for module, names in {
        "vllm.utils.platform_utils": ["is_uva_available"],
        "vllm.utils.deep_gemm": ["is_deep_gemm_supported", "has_deep_gemm", "is_deep_gemm_e8m0_used"],
        "vllm.utils.import_utils": ["has_deep_gemm"],
    }.items():
        found = import_module(module)
        for name in names:
            if hasattr(found, name):
                setattr(found, name, lambda *_, **__: True)
    import_module("vllm.model_executor.models.registry")._run_in_subprocess = lambda call: call()


def ranks(rank: int, tp: int, pp: int, dcp: int) -> None:
    """Process groups as rank `rank` of tp x pp has them, without the other processes."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from vllm.distributed import parallel_state
    from vllm.distributed.device_communicators.shm_broadcast import MessageQueue

    if dist.is_initialized():
        parallel_state.destroy_model_parallel()
        parallel_state._WORLD = None
        dist.destroy_process_group()
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=tp * pp)
    if not hasattr(dist, "real_new_group"):
        dist.real_new_group = dist.new_group
    dist.new_group = lambda members=None, *_, **__: dist.real_new_group(members, backend="fake")
    MessageQueue.create_from_process_group = staticmethod(Nothing)
    parallel_state.in_the_same_node_as = lambda *_, **__: [True] * (tp * pp)
    address = "tcp://127.0.0.1:1"  # never dialled: the groups are there already
    parallel_state.init_distributed_environment(tp * pp, rank, address, 0, backend="gloo")
    parallel_state.initialize_model_parallel(tp, pp, 1, dcp)


def on_meta() -> Any:
    """A mode in which every tensor is of the meta device, wherever it is wanted."""
    import torch
    from torch.overrides import TorchFunctionMode

    def meta(value: Any) -> Any:
        named = isinstance(value, torch.device) or str(value).split(":")[0] in ("cuda", "cpu")
        return "meta" if named else value

    class OnMeta(TorchFunctionMode):
        def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = {key: "meta" if key == "device" and value is not None else value for key, value in (kwargs or {}).items()}
            name = getattr(function, "__name__", "")
            if name == "cuda":
                return args[0]
            if name == "to":
                args = tuple(map(meta, args))
            if name in ("item", "tolist") and isinstance(args[0], torch.Tensor) and args[0].is_meta:
                return 0 if name == "item" else [0] * args[0].numel()
            return True if name in ("equal", "allclose") else function(*args, **kwargs)

    return OnMeta()


def write_driver(folder: Path) -> None:
    """A `libcuda.so.1` with every function that the installed extensions and Triton name, each of which fails (100, no device)."""
    site = Path(find_spec("vllm").origin).parents[1]  # type: ignore[union-attr,arg-type]
    libraries = [*(site / "vllm").rglob("*.so"), *(site / "torch" / "lib").glob("*.so*")]
    undefined = "".join(
        subprocess.run(["nm", "-D", "--undefined-only", str(path)], capture_output=True, text=True, check=False).stdout
        for path in libraries
    )
    sources = "".join(path.read_text(errors="replace") for path in (site / "triton" / "backends" / "nvidia").rglob("*.[ch]"))
    names = sorted(set(re.findall(r"\bcu[A-Z]\w+", undefined + sources)))
    folder.mkdir(parents=True, exist_ok=True)
    code = folder / "driver.c"
    code.write_text("".join(f"int {name}() {{ return 100; }}\n" for name in names))
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(folder / "libcuda.so.1"), str(code)], check=True)


if __name__ == "__main__":
    write_driver(Path(sys.argv[1]))
