"""A calibration as catalogue entries: a recipe, and the device with the measured overhead, in the form that `validate` accepts."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fitcheck.errors import DataError, UsageError
from fitcheck.fit.calibrated import Calibrated

if TYPE_CHECKING:
    from fitcheck.catalogue.load import Catalogue
    from fitcheck.catalogue.models import Model
    from fitcheck.fit.calibration import CalibrationCase, CalibrationReport
    from fitcheck.fit.printed import PrintedSpeed

SOURCE = "log"
_LINE_CHARACTERS = 140


def contribution(case: CalibrationCase, report: CalibrationReport, catalogue: Catalogue) -> str:
    """YAML of the entries, with that of the model where it lies outside the catalogue.

    Raises `UsageError` where the model is not known, its id is another's, or the device is none of the catalogue's.
    """
    if case.device is None:
        raise UsageError(
            "a catalogue entry names its device, and the log does not", hint="write --cluster with what it ran on, such as 2xspark"
        )
    if case.device.id not in catalogue.ids("device"):
        raise UsageError(
            f"a recipe names a device of the catalogue, and {case.device.id} is none",
            hint="'fitcheck hardware' lists them; an overlay can add one",
        )
    if case.model is None:
        raise UsageError(
            "a recipe names its model, and this is not known" + (f" ({case.unknown_model})" if case.unknown_model else ""),
            hint="write --model with an id of the catalogue, or where it lies: org/name, a folder, a file",
        )
    if case.another_model is not None:
        raise UsageError(case.another_model, hint="leave --model out, or give the log of that model")
    records = {_recipe_id(case, report): _recipe(case, report)}
    if report.measured is not None:
        records[case.device.id] = _device(case, report.measured, catalogue)
    head = f"# {report.engine_name} {report.version or ''} on {report.devices}x {case.device.id}, read from {', '.join(report.files)}"
    entries = [*_own_model(case.model, catalogue, _day(report, case.as_of)), *(_yaml({name: record}) for name, record in records.items())]
    text = _single_line(head) + "\n\n" + "\n".join(entries)
    _checked(text, catalogue)
    return text


def _own_model(model: Model, catalogue: Catalogue, day: str) -> tuple[str, ...]:
    """The entry of a model that the catalogue does not have; it was there on the day of the run, whenever it was released."""
    from fitcheck.catalogue.models import Model
    from fitcheck.views.record_yaml import as_entry

    if model.id not in catalogue.ids("model"):
        released = model.released.model_copy(update={"value": min(model.released.value, day)})
        return (as_entry(model.model_copy(update={"released": released})),)
    if catalogue.get(Model, model.id) != model:
        raise UsageError(
            f"the catalogue has another model called {model.id}", hint="rename the folder or file, or write --model with the catalogue's id"
        )
    return ()


def _single_line(text: str) -> str:
    from fitcheck.views.document import clean

    return clean(text).rstrip()


def _checked(text: str, catalogue: Catalogue) -> None:
    """Nothing is printed that `validate` would not take."""
    from fitcheck.catalogue.lint import lint

    shipped, overlays = catalogue.texts
    for finding in lint([("calibration", text)], [*shipped.items(), *overlays.items()]):
        if finding.severity == "error":
            raise DataError(f"the entry would not be accepted: {finding.message}", hint=f"{finding.id}: {finding.hint}")


def _recipe_id(case: CalibrationCase, report: CalibrationReport) -> str:
    assert case.model is not None
    assert case.device is not None
    build = f"-{report.checkpoint}" if report.checkpoint else ""
    name = f"{case.model.id}-{report.devices}x-{case.device.id}-{report.engine}{build}-{_day(report, case.as_of)}"
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")


def _day(report: CalibrationReport, as_of: date) -> str:
    """The day that the log names, unless it is not over yet."""
    return report.day if report.day and report.day <= as_of.isoformat() else as_of.isoformat()


def _recipe(case: CalibrationCase, report: CalibrationReport) -> dict[str, Any]:
    assert case.model is not None
    assert case.device is not None
    printed = case.printed
    record: dict[str, Any] = {
        "kind": "recipe",
        "model": case.model.id,
        "checkpoint": report.checkpoint,
        "checkpoint_as_named": _plain(_named(report.model_printed)),
        "device": case.device.id,
        "count": report.devices,
        "engine": report.engine,
        "engine_version": _plain(" ".join(part for part in (report.build, report.version) if part)),
        "date": _day(report, case.as_of),
        "trust": "medium",
        "setup": _setup(case, report),
        "speculation": {"method": printed.speculation, **({"draft_tokens": printed.draft_tokens} if printed.draft_tokens else {})}
        if printed.speculation
        else None,
        "speeds": _speeds(report.speeds),
        "protocol": _plain("; ".join(dict.fromkeys(f"{each.tool}, {each.workload}" for each in report.speeds))),
        "note": _plain("; ".join(report.notes)),
        "source": SOURCE,
        "sources": {SOURCE: {"url": case.source.url, "read": case.source.read.isoformat(), "title": _plain(", ".join(report.files))}},
    }
    return {name: value for name, value in record.items() if value not in (None, "", (), [], {})}


def _plain(text: str | None) -> str | None:
    """Text from outside as the catalogue takes it: one line, without control and direction marks, not without end."""
    from fitcheck.views.document import clean

    return clean(text)[:400].strip() or None if text else None


def _named(printed: str | None) -> str | None:
    """A hub id as it is; of a path on somebody's machine only the last part."""
    parts = [part for part in re.split(r"[/\\]+", printed or "") if part]
    local = printed is not None and (len(parts) > 2 or printed[:1] in "/\\~." or printed[1:2] == ":")
    return parts[-1] if local and parts else printed


def _setup(case: CalibrationCase, report: CalibrationReport) -> dict[str, Any]:
    printed = case.printed
    kv = printed.kv if not printed.whole or report.devices == 1 else None
    setup: dict[str, Any] = {
        "tp": printed.tp if not printed.whole else None,
        "pp": printed.pp if not printed.whole else report.devices,
        "context_tokens": _context(case),
        "kv_dtype": _kv_dtype(case),
        "memory_fraction": _text(printed.utilisation),
        "kv_bytes_per_device": kv.value if kv is not None and kv.value > 0 else None,
        "kv_tokens_printed": printed.tokens.value if printed.tokens is not None and printed.tokens.value > 0 else None,
        "weights_bytes_per_device": printed.weights.value if printed.weights is not None else None,
        "overhead_bytes_per_device": report.measured.overhead_bytes if report.measured is not None else None,
        "visible_bytes_per_device": report.measured.visible_bytes if report.measured is not None else None,
    }
    return {name: value for name, value in setup.items() if value is not None}


def _context(case: CalibrationCase) -> int | None:
    """The longest context of one sequence; llama.cpp prints that of all together, in steps of 256 beyond the model's own at times."""
    tokens, named = case.printed.context_tokens, case.printed.named
    if tokens is None or case.model is None:
        return tokens
    if case.printed.whole and not named.get("kv_unified"):
        tokens //= named.get("n_seq_max", 1)
    most = case.model.architecture.max_context_tokens if case.model.architecture else tokens
    return min(tokens, most)


def _kv_dtype(case: CalibrationCase) -> str | None:
    from fitcheck.catalogue.lint.recipes import KV_DTYPES

    named = case.printed.named
    kinds = {named.get("type_k"), named.get("type_v")} - {None}
    name = case.printed.kv_dtype if not kinds else next(iter(kinds)) if len(kinds) == 1 else f"{named['type_k']}/{named['type_v']}"
    return name if name is not None and KV_DTYPES.issuperset(str(name).lower().split("/")) else None


def _text(value: Decimal | None) -> str | None:
    return None if value is None or not 0 < value <= 1 else format(value, "f")


def _speeds(speeds: tuple[PrintedSpeed, ...]) -> list[dict[str, Any]]:
    """Speeds whose number of users is known; what nothing tells apart is one range."""
    ranges: dict[tuple[Any, ...], list[Decimal]] = {}
    for each in speeds:
        if each.users:
            ranges.setdefault((each.phase, each.users, each.per, each.workload), []).append(each.tok_per_s)
    return [
        {
            "phase": phase,
            "users": users,
            "per": per,
            "low_tok_per_s": format(min(values), "f"),
            "high_tok_per_s": format(max(values), "f"),
            "workload": _plain(workload),
        }
        for (phase, users, per, workload), values in ranges.items()
    ]


def _device(case: CalibrationCase, measured: Calibrated, catalogue: Catalogue) -> dict[str, Any]:
    """The device's record as the catalogue has it, with this overhead first and the range of what was seen kept."""
    from fitcheck.catalogue.text import parse_value

    assert case.device is not None
    block = catalogue.blocks("device")[case.device.id]
    body: dict[str, Any] = dict(parse_value(block.text, block.path, block.line)[block.id])
    key = "calibration-log"
    entry: dict[str, Any] = {
        "engine": measured.engine,
        "value": measured.overhead_bytes,
        "source": key,
        "grade": "measured",
        "note": _plain(f"with {measured.model}: {measured.formula}" if measured.model else measured.formula),
    }
    others = [own for own in body.get("overhead", []) if own.get("engine") != measured.engine]
    body["overhead"] = [entry, *others]
    used = _used(body)
    title = _plain(case.source.title)
    source = {"url": case.source.url, "read": case.source.read.isoformat(), **({"title": title} if title else {})}
    kept = {name: value for name, value in body["sources"].items() if name in used}
    return {**body, "sources": {**kept, key: source}}


def _used(value: Any) -> set[str]:
    """Names of sources that figures rest on."""
    if isinstance(value, dict):
        own = value.get("source")
        named = {own} if isinstance(own, str) else set(own) if isinstance(own, list) else set()
        return named.union(*(_used(item) for name, item in value.items() if name != "sources"))
    return set().union(*(_used(item) for item in value)) if isinstance(value, list) else set()


def _yaml(value: dict[str, Any]) -> str:
    """Block style with small lists on one line, as the catalogue is written; no anchors."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature is PyYAML's
            return True

    def listed(dumper: Any, items: list[Any]) -> Any:
        flat = all(not isinstance(item, dict | list) for item in items)
        return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=flat)

    Dumper.add_representer(list, listed)
    Dumper.add_representer(Decimal, lambda dumper, number: dumper.represent_str(format(number, "f")))
    text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=_LINE_CHARACTERS, default_flow_style=False)
    return text
