"""Ask vLLM itself what its caches take for a model's config.json, on a machine without a GPU.

    LD_LIBRARY_PATH=DRIVER python scripts/ask_vllm.py CONFIGS OUT.jsonl --ask '{"context": 32768, "tp": 2}' [--only NAME …]

In an environment of vLLM (see `without_gpu.py`, also for DRIVER). CONFIGS holds `NAME.json` files. vLLM builds the model without weights
and plans a pool as at start-up; a line of OUT is the config's name, what was asked, and `bytes`: the pool over its "Maximum concurrency",
which is what one request of `context` tokens takes on the fullest rank. Rows that are there already are not asked again. Settings other
than context, kv_dtype, tp, pp, dcp and draft (tokens of the model's own MTP layers) are vLLM's own arguments; `max_num_batched_tokens` is
8,192 where not given. Remote code is not run: a config's `auto_map` is left out, and a model type
that transformers does not know is read as it stands.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import without_gpu

_HEAVY = ("vllm.engine.arg_utils", "vllm.model_executor.model_loader.utils", "vllm.v1.worker.gpu_model_runner")
"""What takes long to import, and is the same in every child."""

POOL_BYTES = 80 << 40
"""Large, so that what does not fill a block is no part of the answer."""


def main() -> int:
    """Ask every config everything, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--ask", type=json.loads, nargs="+", default=[{}])
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--capability", default="9.0", help="the GPU's compute capability")
    given = parser.parse_args()
    without_gpu.pretend(given.capability)
    for name in _HEAVY:
        import_module(name)
    names = given.only or sorted(path.stem for path in given.configs.glob("*.json"))
    done = {_key(row) for row in map(json.loads, given.out.read_text().splitlines())} if given.out.is_file() else set()
    with given.out.open("a") as out:
        for asked in given.ask:
            for name in names:
                row = {"config": name, "capability": given.capability, "asked": asked}
                if _key(row) not in done:
                    answer = _apart(given.configs / f"{name}.json", asked)
                    out.write(json.dumps({**row, **answer}) + "\n")
                    out.flush()
    return 0


def _key(row: dict[str, Any]) -> str:
    return json.dumps([row["config"], row["capability"], row["asked"]], sort_keys=True)


def _apart(path: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """The answer of a forked process, since vLLM keeps much between models."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            answer = ask(path, **asked)
        except BaseException as error:  # whatever stops vLLM is the answer
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return json.loads(data) if data else {"error": "died"}


def ask(
    path: Path,
    *,
    context: int = 32768,
    kv_dtype: str = "auto",
    tp: int = 1,
    pp: int = 1,
    dcp: int = 1,
    draft: int = 0,
    max_num_batched_tokens: int = 8192,
    **settings: Any,
) -> dict[str, Any]:
    """What one request takes, with the block and the layers behind it."""
    from vllm.config import set_current_vllm_config
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.core.kv_cache_utils import get_max_concurrency_for_kv_cache_config

    folder, overrides = _served(path)
    config = EngineArgs(
        model=folder,
        skip_tokenizer_init=True,
        load_format="dummy",
        enforce_eager=True,
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        decode_context_parallel_size=dcp,
        max_model_len=context,
        kv_cache_dtype=kv_dtype,
        max_num_batched_tokens=max_num_batched_tokens,
        speculative_config={"method": "mtp", "num_speculative_tokens": draft} if draft else None,
        hf_overrides=overrides,
        **settings,
    ).create_engine_config()
    with set_current_vllm_config(config):
        stages = [_stage(config, stage, tp, pp, dcp, draft) for stage in range(pp)]
        specs = [spec for spec, _ in stages]
        planned = _plan(config, specs)[0]
        requests = get_max_concurrency_for_kv_cache_config(config, planned)
    import vllm

    return {
        "version": vllm.__version__,
        "bytes": round(POOL_BYTES / requests),
        "weights_bytes": max(weights for _, weights in stages),
        "block_tokens": config.cache_config.block_size,
        "prefix_caching": config.cache_config.enable_prefix_caching,
        "max_num_seqs": config.scheduler_config.max_num_seqs,
    }


def _served(path: Path) -> tuple[str, dict[str, Any]]:
    """A folder with the config as vLLM can read it without the repository's own code, and what of it has to be insisted on."""
    from transformers import AutoConfig, PretrainedConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from vllm.transformers_utils.config import _CONFIG_REGISTRY

    raw = json.loads(path.read_text())
    raw.pop("auto_map", None)
    folder = Path(tempfile.mkdtemp())
    (folder / "config.json").write_text(json.dumps(raw))
    kind = raw.get("model_type")
    if kind and kind not in CONFIG_MAPPING and kind not in _CONFIG_REGISTRY:
        AutoConfig.register(kind, type("Plain", (PretrainedConfig,), {"model_type": kind}))
    # transformers' class of Ling 3 says that a head is as wide as its rotary part, the makers' own that it is as wide as the file says
    return str(folder), {"head_dim": raw["head_dim"]} if kind == "bailing_hybrid" else {}


def _stage(config: Any, stage: int, tp: int, pp: int, dcp: int, draft: int) -> tuple[dict[str, Any], int]:
    """What the layers of the first rank of a pipeline stage want, by name, as `GPUModelRunner.get_kv_cache_spec` collects it.

    With it the bytes of its parameters, before a kernel repacks them; the drafter's are not among them.
    """
    import torch
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.platforms import current_platform
    from vllm.utils.torch_utils import set_default_torch_dtype
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    config.parallel_config.rank = stage * tp
    config.compilation_config.static_forward_context.clear()
    without_gpu.ranks(stage * tp, tp, pp, dcp)
    with set_default_torch_dtype(config.model_config.dtype), torch.device("meta"), without_gpu.on_meta():
        try:
            from vllm.v1.worker.workspace import init_workspace_manager

            init_workspace_manager(torch.device("meta"), 1)
        except ImportError:
            pass  # older versions have none
        model = initialize_model(vllm_config=config)
        if draft and stage == pp - 1:
            initialize_model(vllm_config=_drafter(config), model_config=config.speculative_config.draft_model_config)
        if stage == 0:
            current_platform.update_block_size_for_backend(config)
        runner = type("Runner", (), {"vllm_config": config, "shared_kv_cache_layers": {}})
        return GPUModelRunner.get_kv_cache_spec(runner), sum(each.numel() * each.element_size() for each in model.parameters())


def _drafter(config: Any) -> Any:
    from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer

    speculative = config.speculative_config
    held = {"vllm_config": config, "speculative_config": speculative, "draft_model_config": speculative.draft_model_config}
    return SpecDecodeBaseProposer._create_draft_vllm_config(type("Proposer", (), held)())


def _plan(config: Any, specs: list[dict[str, Any]]) -> list[Any]:
    """The pools of all stages, by the steps of `EngineCore._initialize_kv_caches` of this version."""
    from vllm.v1.core import kv_cache_utils

    pools = [POOL_BYTES] * len(specs)
    try:
        from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs

        register_all_kvcache_specs(config)
    except ImportError:
        pass  # older versions register none
    layout = _layout(config, specs)
    try:
        from vllm.v1.core.kv_cache_planning import get_global_kv_cache_groups, get_kv_cache_configs
    except ImportError:
        layout()
        return kv_cache_utils.get_kv_cache_configs(config, specs, pools)
    groups = get_global_kv_cache_groups(config, specs)
    config.adjust_dcp_kv_cache_interleave_size(groups)
    layout()
    planned = get_kv_cache_configs(config, specs, pools, groups)
    for each in planned:
        each.kv_cache_layout = config.cache_config.kv_cache_layout
    return planned


def _layout(config: Any, specs: list[dict[str, Any]]) -> Any:
    """What settles the layout of the cache, where the version knows several."""
    try:
        from vllm.v1.attention.backends.utils import resolve_kv_cache_layout
        from vllm.v1.worker import worker_base as worker
    except ImportError:
        return lambda: None
    if not hasattr(worker, "record_kv_cache_layout"):
        return lambda: None
    names = [each.name for each in worker.get_supported_kv_cache_layouts(worker.get_current_attn_backends(config))]
    found = resolve_kv_cache_layout(config, [names], [spec for stage in specs for spec in stage.values()])
    return lambda: worker.record_kv_cache_layout(config.cache_config, found.name)


if __name__ == "__main__":
    sys.exit(main())
