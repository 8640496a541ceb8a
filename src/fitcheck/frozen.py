"""Frozen dataclasses that cost little to define.

`dataclasses.dataclass(frozen=True)` writes and compiles half a dozen methods for every class, which took 0.8 ms each, a tenth of the
start-up in all. `frozen` gives a class the same behaviour with methods shared by all: the result is a dataclass to `dataclasses` and to
type checkers.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass
from typing import Any, NoReturn, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True)
def frozen(cls: _Class) -> _Class:
    """Make a class a frozen dataclass: typed fields, keyword or positional construction, equality by value, no assignment."""
    for method in (__init__, __repr__, __eq__, __hash__, __setattr__, __delattr__):
        setattr(cls, method.__name__, method)
    dataclass(init=False, repr=False, eq=False)(cls)  # which changes the class in place
    return cls


def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - set as a method
    fields = self.__dataclass_fields__
    if len(args) > len(fields):
        raise TypeError(f"{type(self).__name__} takes {len(fields)} values, and {len(args)} were given")
    values = dict(zip(fields, args, strict=False))
    for name in kwargs:
        if name in values or name not in fields:
            raise TypeError(f"{type(self).__name__} got {name!r} twice, or has no such field")
    values.update(kwargs)
    for name, field in fields.items():
        if name not in values:
            if field.default_factory is not MISSING:
                values[name] = field.default_factory()
            elif field.default is not MISSING:
                values[name] = field.default
            else:
                raise TypeError(f"{type(self).__name__} needs {name!r}")
        object.__setattr__(self, name, values[name])
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _values(record: Any) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in record.__dataclass_fields__)


def __repr__(self: Any) -> str:  # noqa: N807
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__)
    return f"{type(self).__qualname__}({shown})"


def __eq__(self: Any, other: object) -> bool:  # noqa: N807
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def __hash__(self: Any) -> int:  # noqa: N807
    return hash((type(self), _values(self)))


def __setattr__(self: Any, name: str, value: Any) -> NoReturn:  # noqa: N807
    raise FrozenInstanceError(f"cannot assign to field {name!r} of a {type(self).__name__}: {value!r}")


def __delattr__(self: Any, name: str) -> NoReturn:  # noqa: N807
    raise FrozenInstanceError(f"cannot delete field {name!r} of a {type(self).__name__}")
