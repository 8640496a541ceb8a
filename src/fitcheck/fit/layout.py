"""How a model is split over the devices of a cluster: tensor, pipeline, data, expert and decode-context parallelism."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from fitcheck.catalogue.hardware import Engine
from fitcheck.catalogue.layers import Attention, Chunked, Sliding
from fitcheck.catalogue.models import Architecture
from fitcheck.errors import UsageError
from fitcheck.fit.state import Share


class Layout(NamedTuple):
    """Tensor x pipeline x data parallelism over all devices, and why it was chosen. `stock` is false where only a recipe runs it so.

    Each of `dp` replicas has its own attention and its share of the users; routed experts are shared between all of them. With `ep`
    each lies whole on one rank, else in parts on all (vLLM, docs/serving/data_parallel_deployment: "expert layers form a tensor parallel
    group of size DP x TP"; SGLang's `--enable-dp-attention`). `dcp` ranks of a tensor-parallel group share what each of them would else
    keep of a context.
    """

    tp: int
    pp: int
    reason: str
    stock: bool = True
    dp: int = 1
    dcp: int = 1
    ep: bool = False

    @property
    def share(self) -> Share:
        """What one device holds."""
        return Share(tp=self.tp, pp=self.pp)

    @property
    def label(self) -> str:
        """`TP2`, `PP3`, `TP2 PP2`, `TP4 DP2 EP DCP2`."""
        sizes = (("TP", self.tp if self.tp > 1 or self.pp * self.dp == 1 else 1), ("PP", self.pp), ("DP", self.dp))
        parts = [f"{name}{size}" for name, size in sizes if size > 1 or (name == "TP" and self.pp * self.dp == 1)]
        return " ".join([*parts, *(["EP"] if self.ep else []), *([f"DCP{self.dcp}"] if self.dcp > 1 else [])])

    def users(self, users: int) -> int:
        """Users that the fullest replica serves."""
        return ceil(users / self.dp)


class Degrees(NamedTuple):
    """What was asked of a layout; None and 1 leave it to the recipe or the engine."""

    tp: int | None = None
    dp: int = 1
    dcp: int | None = None
    ep: bool = False


def choose_layout(count: int, engine: Engine, architecture: Architecture | None, asked: Degrees, recipe: Degrees) -> Layout:
    """The layout for `count` devices: as asked, as the best recipe runs it, else what the engine does by itself.

    Raises `UsageError` for degrees that do not divide the devices.
    """
    _check_degrees(count, asked)
    base = _tensor_layout(count // asked.dp, engine, architecture, asked_tp=asked.tp, recipe_tp=recipe.tp if asked.dp == 1 else None)
    as_recipe = asked.dp == 1 and recipe.tp == base.tp == count
    dcp = asked.dcp or ((recipe.dcp or 1) if as_recipe else 1)
    ep = (asked.ep or (as_recipe and recipe.ep)) and base.tp * asked.dp > 1
    if dcp > 1 and base.tp % dcp:
        raise UsageError(f"--dcp {dcp} does not divide the {base.tp} tensor-parallel ranks", hint=f"choose a divisor of {base.tp}")
    odd = _no_shares(architecture, base.tp, dcp)
    if odd is not None and asked.dcp is not None:
        raise UsageError(f"--dcp {dcp}: {odd}", hint="leave --dcp out")
    if asked.ep and architecture is not None and architecture.experts is None:
        raise UsageError("--ep: the model has no routed experts", hint="leave --ep out")
    return base._replace(dp=asked.dp, dcp=1 if odd else dcp, ep=ep)


def _check_degrees(count: int, asked: Degrees) -> None:
    for name, value in (("tp", asked.tp), ("dp", asked.dp)):
        if value is not None and value < 1:
            raise UsageError(f"--{name} {value} makes no sense", hint=f"choose a divisor of {count}")
    if count % asked.dp:
        raise UsageError(f"--dp {asked.dp} does not divide {count} devices", hint=f"choose a divisor of {count}")
    if asked.dcp is not None and asked.dcp < 1:
        raise UsageError(f"--dcp {asked.dcp} makes no sense", hint="choose a divisor of the tensor-parallel size")


def lacking_degree(engine: Engine, asked: Degrees) -> str | None:
    """Which of the asked degrees the engine is not known to have, in words; None where it has all."""
    wanted = {"dp": asked.dp > 1, "ep": asked.ep, "dcp": (asked.dcp or 1) > 1}
    lacking = next((name for name, is_asked in wanted.items() if is_asked and name not in engine.parallel), None)
    return f"{engine.name} is not known to have --{lacking}" if lacking else None


def _no_shares(architecture: Architecture | None, tp: int, dcp: int) -> str | None:
    """Why a context cannot be shared by so many ranks: only ranks that would keep the same KV heads share them, and never windows.

    vLLM (`docs/serving/context_parallel_deployment`): with H KV heads the degree is at most tp / H; latent caches are the same everywhere.
    `kv_cache_interface.py` of 0.33.0: "DCP not support sliding window".
    """
    if architecture is None or dcp == 1:
        return None
    for group in architecture.groups:
        if isinstance(group, Sliding | Chunked):
            return "layers with a window keep it whole on each rank, and engines refuse to share it"
        if isinstance(group, Attention) and group.kv_heads * dcp > tp:
            return f"{tp} ranks for {group.kv_heads} KV heads leave {max(1, tp // group.kv_heads)} with the same ones"
    return None


def _tensor_layout(count: int, engine: Engine, architecture: Architecture | None, *, asked_tp: int | None, recipe_tp: int | None) -> Layout:
    """Tensor times pipeline parallelism over the devices of one replica.

    Stock engines divide heads evenly, so tensor parallelism takes the largest divisor of the count that also divides the heads (vLLM:
    "Total number of attention heads must be divisible by tensor parallel size"); the rest is pipeline parallelism.
    Engines that split by layers (llama.cpp's default `--split-mode layer`) use pipeline stages alone.
    Raises `UsageError` for a tensor-parallel size that does not divide the count.
    """
    if asked_tp is not None:
        if count % asked_tp:
            raise UsageError(
                f"--tp {asked_tp} does not divide {count} devices",
                hint=f"choose a divisor of {count}; with --dp it is that of one replica",
            )
        return _named(asked_tp, count, architecture, "as asked (--tp)")
    if recipe_tp is not None and recipe_tp == count:
        return _named(recipe_tp, count, architecture, "as the best recipe runs it")
    if engine.split == "pipeline":
        return Layout(1, count, f"{engine.name} splits by layers")
    tp = max(size for size in range(1, count + 1) if count % size == 0 and indivisible(architecture, size) is None)
    reason = "tensor parallel over all devices" if tp == count else f"{indivisible(architecture, count)} do not divide by {count}"
    return Layout(tp, count // tp, reason)


def indivisible(architecture: Architecture | None, tp: int) -> str | None:
    """What does not divide over so many ranks, in words; None where all of it does.

    Attention heads must divide by the ranks, KV heads by the ranks or the ranks by them (they are then replicated).
    """
    if architecture is None:
        return None
    if architecture.attention_heads is not None and architecture.attention_heads % tp:
        return f"{architecture.attention_heads} attention heads"
    for group in architecture.groups:
        if isinstance(group, Attention | Sliding | Chunked) and group.kv_heads % tp and tp % group.kv_heads:
            return f"{group.kv_heads} KV heads"
    return None


def _named(tp: int, count: int, architecture: Architecture | None, reason: str) -> Layout:
    odd = indivisible(architecture, tp)
    if odd is not None:
        return Layout(tp, count // tp, f"{reason}, although {odd} do not divide by {tp}", stock=False)
    return Layout(tp, count // tp, reason)
