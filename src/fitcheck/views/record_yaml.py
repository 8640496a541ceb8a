"""A record as an entry of a catalogue file: what the loader reads back as the same record."""

from __future__ import annotations

from decimal import Decimal
from typing import Any


def as_entry(record: Any, comments: tuple[str, ...] = ()) -> str:
    """YAML of one record under its id, with comments above it; fields that say nothing are left out."""
    import yaml

    fields = _kept(record.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True))
    entry = {record.id: {"kind": record.kind, **{name: value for name, value in fields.items() if name not in ("id", "kind")}}}
    text: str = yaml.dump(entry, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=140, default_flow_style=None)
    return "".join(f"# {comment}\n" for comment in comments) + text


def _kept(value: Any) -> Any:
    """Plain values: no tuples, no enumerations, days as text; empty lists and tables are left out."""
    if isinstance(value, dict):
        kept = {str(name): _kept(entry) for name, entry in value.items()}
        return {name: entry for name, entry in kept.items() if entry not in ({}, [])}
    if isinstance(value, list | tuple):
        return [_kept(entry) for entry in value]
    if isinstance(value, bool | int | Decimal):
        return value
    return str(value)


def _dumper() -> Any:
    """A dumper that writes decimals as numbers, as the loader reads them."""
    import yaml

    class Entries(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature is yaml's; the loader refuses aliases
            return True

    Entries.add_representer(Decimal, lambda dumper, number: dumper.represent_scalar("tag:yaml.org,2002:float", format(number, "f")))
    return Entries
