"""A prediction beside what an engine printed, term by term.

The same allocators as `fit` uses are asked with the settings that the log states, so that an error is the model's and not the question's.
Errors are shares of the printed figure; negative is too little, the unsafe side.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from fitcheck.catalogue.layers import Indexer, Latent
from fitcheck.errors import FitcheckError
from fitcheck.fit.calibrate_weights import weight_rows
from fitcheck.fit.calibration import CalibrationCase, CalibrationReport, CalibrationRow, row_of
from fitcheck.fit.engines.base import Ledger, Settings, StateTerm, allocator
from fitcheck.fit.memory import batch_defaults
from fitcheck.fit.overhead_seen import known_overhead, measured_overhead, seen_overhead
from fitcheck.fit.printed import Fact, Printed
from fitcheck.fit.state import kv_dtype

SAME_CAPACITY = Decimal("0.006")
"""Half of the last digit of a printed concurrency, and a little: within it, tokens and concurrency say the same."""


def calibrate(case: CalibrationCase) -> CalibrationReport:
    """Answer the case. What cannot be compared is said, never raised."""
    printed = case.printed
    rows = (*weight_rows(case), *_state_and_cache(case), *_parts(case), *_overhead(case))
    model, device = case.model, case.device
    return CalibrationReport(
        engine=case.engine.id,
        engine_name=case.engine.name,
        build=printed.build,
        version=printed.version,
        model_printed=printed.model,
        model=model.id if model else None,
        model_name=model.name if model else None,
        checkpoint=case.checkpoint.id if case.checkpoint else None,
        device=device.id if device else None,
        device_printed=printed.device,
        devices=case.devices,
        tp=printed.tp,
        pp=printed.pp,
        context_tokens=printed.context_tokens,
        kv_dtype=_dtype(case),
        settings=_named(case),
        rows=rows,
        speeds=printed.speeds,
        measured=measured_overhead(printed, device, model, case.checkpoint, case.devices, case.source),
        not_compared=_reasons(rows),
        notes=(*_another(case), *printed.notes, *(f"{what} is not in the prediction" for what in printed.uncounted)),
        files=printed.files,
        day=printed.day,
    )


def _reasons(rows: tuple[CalibrationRow, ...]) -> tuple[str, ...]:
    """What is not compared, by reason."""
    terms: dict[str, list[str]] = {}
    for row in rows:
        if row.because is not None:
            terms.setdefault(row.because, []).append(row.term)
    return tuple(f"{', '.join(dict.fromkeys(names))}: {because}" for because, names in terms.items())


def _dtype(case: CalibrationCase) -> str:
    """The KV dtype as printed; where that is `auto`, what the checkpoint's quantisation asks for."""
    return case.forced_kv_dtype if case.printed.kv_dtype == "auto" and case.forced_kv_dtype else case.printed.kv_dtype


def _named(case: CalibrationCase) -> dict[str, Any]:
    """The settings that the allocator gets: as printed, and for vLLM what it takes by itself on the device."""
    named, device = dict(case.printed.named), case.device
    if case.engine.id == "vllm" and device is not None:
        named = {**batch_defaults(device), **named}
        if device.compute_capability is not None:
            named.setdefault("compute_capability", float(device.compute_capability.value))
    return named


def state_ledger(case: CalibrationCase, tokens: int) -> Ledger:
    """Caches and state for one sequence of so many tokens. Raises a `FitcheckError` for what is not modelled."""
    architecture, printed = case.architecture, case.printed
    assert architecture is not None
    settings = Settings(tokens, 1, kv_dtype(_dtype(case)), printed.tp, printed.pp, 1, printed.dcp, _named(case))
    return Ledger(allocator(case.engine.id)(architecture, settings))


def _state_and_cache(case: CalibrationCase) -> Iterator[CalibrationRow]:
    printed = case.printed
    wanted = (
        ("KV cache", printed.kv),
        ("what one request needs", printed.needed),
        ("recurrent state", printed.state),
        ("compute buffer", printed.compute),
    )
    facts: list[tuple[str, Fact | None]] = [(term, fact) for term, fact in wanted if fact is not None]
    facts = facts or [("KV cache", None)]
    because = _not_counted(case)
    if because is not None:
        yield from (row_of(term, fact, None, because=because) for term, fact in facts)
        return
    try:
        yield from _PER_ENGINE.get(case.engine.id, _pool)(case)
    except FitcheckError as error:
        yield from (row_of(term, fact, None, because=error.message) for term, fact in facts)


def _not_counted(case: CalibrationCase) -> str | None:
    """Why caches cannot be predicted at all."""
    architecture = case.architecture
    if case.model is None:
        return case.unknown_model or "the model is not known"
    if architecture is None:
        return "the architecture is not published"
    if case.printed.unless_latent and any(isinstance(group, Latent | Indexer) for group in architecture.groups):
        return case.printed.unless_latent
    return None


def _vllm(case: CalibrationCase) -> Iterator[CalibrationRow]:
    """Caches and state lie in one pool; its capacity is what was printed, in requests of the longest context."""
    printed = case.printed
    if printed.needed is not None and printed.needed_tokens:
        needed = state_ledger(case, printed.needed_tokens)
        yield row_of(
            "what one request needs", printed.needed, needed.bytes, _formula(needed, f"one request of {printed.needed_tokens:,} tokens")
        )
    context = printed.context_tokens
    if context is None:
        yield row_of("KV cache", printed.kv, None, because="the log does not print the longest context (max_model_len)")
        return
    requests, words, exact = _capacity(printed, context)
    if requests is None:
        yield row_of("KV cache", printed.kv, None, because="the log prints no tokens that the pool holds")
        return
    ledger = state_ledger(case, context)
    formula = _formula(ledger, f"{words} of {context:,} tokens")
    yield row_of("KV cache, bytes for the tokens printed", printed.kv, ledger.bytes * float(requests), formula)
    if printed.kv is not None and printed.kv.value > 0 and ledger.bytes:
        tokens = printed.tokens if exact else Fact(int(requests * context), 0, f"{words}, {context:,} tokens each")
        yield row_of(
            "KV cache, tokens for the bytes printed", tokens, printed.kv.value / ledger.bytes * context,
            f"{printed.kv.value:,} B / {ledger.bytes:,} B x {context:,} tokens", unit="tokens",
        )  # fmt: skip


def _capacity(printed: Printed, context: int) -> tuple[Decimal | None, str, bool]:
    """Requests of the longest context that the pool holds, how that is known, and whether the printed tokens are the capacity.

    vLLM 0.11 to 0.20 print, for layers of several kinds, tokens as if all layers were full attention; the concurrency is right.
    """
    tokens = printed.tokens.value if printed.tokens is not None else None
    if tokens is not None:
        by_tokens = Decimal(tokens) / context
        if printed.concurrency is None or abs(by_tokens - printed.concurrency) <= max(SAME_CAPACITY, by_tokens / 1000):
            return by_tokens, f"{tokens:,} tokens, {by_tokens:,.2f} requests", True
    if printed.concurrency is not None:
        return printed.concurrency, f"{printed.concurrency} requests", False
    return None, "", False


def _pool(case: CalibrationCase) -> Iterator[CalibrationRow]:
    """Caches and states are allocated apart, for the tokens, slots and sequences that the settings name."""
    printed = case.printed
    tokens = printed.tokens.value if printed.tokens is not None else printed.context_tokens
    if tokens is None:
        yield row_of("KV cache", printed.kv, None, because="the log prints no tokens that the pool holds")
        return
    ledger = state_ledger(case, printed.context_tokens or tokens)
    if printed.kv is not None or ledger.kv_bytes:
        yield row_of("KV cache, bytes for the tokens printed", printed.kv, ledger.kv_bytes, _formula(ledger, "", "cache"))
    if printed.tokens is not None and printed.kv is not None and ledger.kv_bytes and not printed.whole:
        yield row_of(
            "KV cache, tokens for the bytes printed", printed.tokens, printed.kv.value / ledger.kv_bytes * tokens,
            f"{printed.kv.value:,} B / {ledger.kv_bytes:,} B x {tokens:,} tokens", unit="tokens",
        )  # fmt: skip
    if printed.state is not None or ledger.state_bytes:
        yield row_of("recurrent state", printed.state, ledger.state_bytes, _formula(ledger, "", "state"))
    if printed.compute is not None:
        one = case.devices == 1 and not printed.processor and ledger.compute_bytes
        because = None if one else "the formula is of one GPU that holds the whole model, with the kernels that were tried"
        yield row_of(
            "compute buffer", printed.compute, ledger.compute_bytes if one else None, _formula(ledger, "", "compute"), because=because
        )


_PER_ENGINE = {"vllm": _vllm}


def _formula(ledger: Ledger, times: str, sort: str | None = None) -> str:
    """The formulas of one sort of terms; without a sort of caches and states, in whose sum buffers are not."""
    terms = [term for term in ledger.terms if (term.sort != "compute" if sort is None else term.sort == sort)]
    words = " + ".join(f"{term.name}: {term.formula}" for term in terms)
    return f"({words}) x {times}" if times else words


def _parts(case: CalibrationCase) -> Iterator[CalibrationRow]:
    """Printed parts of the overhead, which the catalogue has only as a sum."""
    printed = case.printed
    counted = (("CUDA graphs", printed.graphs, "CUDA graphs"), ("activation peak", printed.activation, "profiling peak"))
    for term, fact, name in counted:
        part = _buffer(case, name) if fact is not None else None
        if part is not None:
            yield row_of(term, fact, part.bytes, part.formula)
        elif fact is not None:
            graphs = "counted inside the share of memory from vLLM 0.20 on, beside it before"
            where = graphs if term == "CUDA graphs" else "a part of the overhead"
            yield row_of(term, fact, None, because=f"{where}; no prediction is made of it alone")
    if printed.non_torch is not None:
        beside = case.engine.beside_on(case.device, case.devices, printed.version)
        words = f"the catalogue's for {case.engine.name} on {case.devices}" if beside is not None else ""
        because = None if beside is not None else "a part of the overhead; no prediction is made of it alone"
        yield row_of("memory outside PyTorch", printed.non_torch, beside.value if beside is not None else None, words, because=because)


def _buffer(case: CalibrationCase, name: str) -> StateTerm | None:
    """A buffer of vLLM's by its name, where the config says what it takes."""
    if case.engine.id != "vllm" or case.architecture is None:
        return None
    try:
        ledger = state_ledger(case, min(case.architecture.max_context_tokens, case.printed.context_tokens or 8192))
    except FitcheckError:
        return None
    return next((term for term in ledger.terms if term.name == name), None)


def _overhead(case: CalibrationCase) -> Iterator[CalibrationRow]:
    seen = seen_overhead(case.printed, case.device)
    if isinstance(seen, str):
        yield row_of("overhead", None, None, because=seen)
        return
    fact = Fact(seen[0], 0, seen[1], "")
    known = known_overhead(case.device, case.engine, case.devices, case.printed.version)
    because = "the catalogue has no figure for this engine" if case.device is not None else _unknown_device(case.printed)
    yield row_of("overhead", fact, known[0] if known else None, known[1] if known else None, because=None if known else because)


def _unknown_device(printed: Printed) -> str:
    if printed.device is None:
        return "the log names no device: --cluster says which"
    return f"the catalogue does not know {ascii(printed.device)[1:-1][:120]}: --cluster says what it is, also in words (24GiB@936GB/s)"


def _another(case: CalibrationCase) -> tuple[str, ...]:
    return (case.another_model,) if case.another_model is not None else ()
