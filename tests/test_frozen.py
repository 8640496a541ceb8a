"""`frozen` against the standard library's own frozen dataclasses."""

import dataclasses

import pytest

from fitcheck.frozen import frozen


def both(body):
    return [decorate(type("Point", (), dict(body))) for decorate in (frozen, dataclasses.dataclass(frozen=True))]


BODY = {"__annotations__": {"x": int, "y": int, "tags": tuple}, "y": 7, "tags": dataclasses.field(default_factory=tuple), "__module__": "m"}


@pytest.mark.parametrize("arguments", [((1,), {}), ((1, 2), {}), ((), {"x": 1, "tags": ("a",)}), ((1, 2, ("b",)), {})])
def test_the_same_values_the_same_behaviour(arguments):
    args, kwargs = arguments
    ours, theirs = (cls(*args, **kwargs) for cls in both(BODY))
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert repr(ours) == repr(theirs)
    assert ours == type(ours)(*args, **kwargs)
    assert hash(ours) == hash(type(ours)(*args, **kwargs))
    assert ours != theirs
    assert dataclasses.replace(ours, x=9).x == dataclasses.replace(theirs, x=9).x == 9
    assert dataclasses.is_dataclass(ours)


@pytest.mark.parametrize("arguments", [((), {}), ((1, 2, (), 4), {}), ((1,), {"x": 1}), ((1,), {"z": 1})])
def test_the_same_calls_are_refused(arguments):
    args, kwargs = arguments
    for cls in both(BODY):
        with pytest.raises(TypeError):
            cls(*args, **kwargs)


def test_nothing_can_be_assigned_or_deleted():
    for cls in both(BODY):
        point = cls(1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            point.x = 2
        with pytest.raises(dataclasses.FrozenInstanceError):
            del point.x
        assert point.x == 1


def test_checks_after_construction_run():
    def refuse(_self):
        raise ValueError("no")

    for cls in both({**BODY, "__post_init__": refuse}):
        with pytest.raises(ValueError, match="no"):
            cls(1)
