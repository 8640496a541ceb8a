"""Reading single fields of a published config: typed, bounded, and never guessed."""

from __future__ import annotations

from typing import Any, NamedTuple

from fitcheck.catalogue.layers import LayerGroup

MOST = 1 << 24
"""No width, head count or number of experts of a real model comes near it."""
MOST_LAYERS = 4096
MOST_TOKENS = 1 << 40
MOST_LIST = 1 << 16


class Unsettled(Exception):
    """What the config does not settle, naming the fields."""


class Layers(NamedTuple):
    """What a family's builder makes of a config: the decoder's layers and the groups that keep state."""

    layers: int
    groups: tuple[LayerGroup, ...]
    draft: tuple[LayerGroup, ...] = ()


def shown(value: Any) -> str:
    """A value from outside, short and without control characters."""
    text = ascii(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:40]}..."


class Fields:
    """The decoder's fields, with the class defaults that stand for what its file leaves out.

    `assumed` collects the defaults that were really used.
    """

    def __init__(self, values: dict[str, Any], defaults: dict[str, Any] | None = None) -> None:
        self.values = values
        self.defaults = defaults or {}
        self.assumed: list[str] = []

    def raw(self, *names: str) -> Any:
        """The first of these fields that is there and not null, else the class default of one that is not in the file at all, else None."""
        for name in names:
            if self.values.get(name) is not None:
                return self.values[name]
        for name in names:
            if name in self.defaults and name not in self.values:
                note = f"{name} = {self.defaults[name]}, which the file does not state"
                if note not in self.assumed:
                    self.assumed.append(note)
                return self.defaults[name]
        return None

    def has(self, *names: str) -> bool:
        """Whether the file itself gives one of these fields."""
        return any(self.values.get(name) is not None for name in names)

    def count(self, *names: str, most: int = MOST, least: int = 1) -> int:
        """The first of these fields that is there, as a whole number within bounds."""
        value = self.raw(*names)
        if value is None:
            raise Unsettled(f"{names[0]} is missing")
        return whole(value, names[0], most, least)

    def maybe(self, *names: str, most: int = MOST, least: int = 1) -> int | None:
        """As `count`, or None where no field is there."""
        return None if self.raw(*names) is None else self.count(*names, most=most, least=least)

    def layers(self, *names: str) -> int:
        """How many decoder layers there are."""
        return self.count(*(names or ("num_hidden_layers", "n_layer", "num_layers", "n_layers")), most=MOST_LAYERS)

    def flag(self, name: str) -> bool:
        """A switch, off where it is absent."""
        value = self.raw(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise Unsettled(f"{name} is {shown(value)}, neither true nor false")

    def sequence(self, name: str, least: int = 0) -> list[Any] | None:
        """A list with at least that many entries, or None where it is absent."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise Unsettled(f"{name} is {shown(value)}, not a list")
        if not least <= len(value) <= MOST_LIST:
            raise Unsettled(f"{name} has {len(value)} entries, and {least} are needed")
        return value

    def counts(self, name: str, length: int, least: int = 0) -> list[int]:
        """A list of whole numbers, one for each of the first `length` layers."""
        values = self.sequence(name, length)
        if values is None:
            raise Unsettled(f"{name} is missing")
        return [whole(value, name, MOST, least) for value in values[:length]]

    def nested(self, name: str) -> Fields:
        """The fields of an object within the config."""
        value = self.raw(name)
        if not isinstance(value, dict):
            raise Unsettled(f"{name} is {'missing' if value is None else shown(value)}")
        inner = Fields(value)
        inner.assumed = self.assumed
        return inner


def whole(value: Any, name: str, most: int, least: int) -> int:
    """A whole number within bounds, or `Unsettled`."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unsettled(f"{name} is {shown(value)}, not a whole number")
    if not least <= value <= most:
        raise Unsettled(f"{name} is {shown(value) if abs(value) < 1 << 64 else 'beyond any size'}, outside {least} to {most}")
    return value
