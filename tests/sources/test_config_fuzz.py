"""Files from outside: whatever they hold, the reader answers, or raises an error of ours, and what it answers can be counted."""

import copy
import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fitcheck.errors import DataError, FitcheckError
from fitcheck.fit.state import Share, kv_dtype, sequence_state
from fitcheck.sources.config import ConfigModel, read_config
from fitcheck.sources.families import FAMILIES
from tests.golden import rows
from tests.sources.test_config import expanded

CONFIGS = [expanded(row["config"]) for row in rows("configs.yaml")]
NAMES = sorted({name for config in CONFIGS for part in (config, config.get("text_config", {})) for name in part} | {"quantization_config"})
HOSTILE = (
    st.none()
    | st.booleans()
    | st.integers(-2, 1 << 70)
    | st.integers(1, 9)
    | st.floats()
    | st.sampled_from([1 << 24, (1 << 24) + 1, 10**400, "4", "full_attention", "M*", "auto", "\ud800", "\x1b]0;x\x07"])
    | st.text(max_size=8)
)
VALUES = st.recursive(
    HOSTILE, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4), max_leaves=12
)
QUICK = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def answered(tmp_path, config):
    path = tmp_path / "config.json"
    path.write_bytes(config if isinstance(config, bytes) else json.dumps(config).encode("utf-8", "surrogatepass"))
    try:
        model = read_config(path)
    except DataError:
        return
    assert isinstance(model, ConfigModel)
    assert (model.architecture is None) == bool(model.unknown)
    assert all(reason.isprintable() and len(reason) < 200 for reason in model.unknown)
    if model.architecture is not None:
        for dtype in ("bf16", "fp8"):
            try:
                assert all(part.bytes >= 0 for part in sequence_state(model.architecture, 4096, kv_dtype(dtype), Share()))
            except FitcheckError:
                continue


@QUICK
@given(config=st.sampled_from(CONFIGS), changes=st.lists(st.tuples(st.integers(0, 99), VALUES), min_size=1, max_size=3), drop=st.booleans())
def test_a_real_config_with_some_fields_changed(tmp_path, config, changes, drop):
    config = copy.deepcopy(config)
    for at, value in changes:
        part = config.get("text_config") if at % 2 and isinstance(config.get("text_config"), dict) else config
        name = sorted(part)[at % len(part)] if part else "model_type"
        if drop and at % 3 == 0:
            part.pop(name, None)
        elif isinstance(part.get(name), list) and part[name] and at % 5 == 0:
            part[name][at % len(part[name])] = value
        else:
            part[name] = value
    answered(tmp_path, config)


@QUICK
@given(family=st.sampled_from(sorted(FAMILIES)), fields=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=24))
def test_any_family_with_any_fields(tmp_path, family, fields):
    answered(tmp_path, {**fields, "model_type": family})


@QUICK
@given(family=st.sampled_from(sorted(FAMILIES)), fields=st.dictionaries(st.sampled_from(NAMES), st.integers(1, 8), min_size=8))
def test_any_family_with_small_numbers(tmp_path, family, fields):
    answered(tmp_path, {**fields, "model_type": family})


@QUICK
@given(raw=st.binary(max_size=200) | st.text(alphabet='{}[]",:0129eE.-truefalsn ', max_size=80).map(str.encode))
def test_any_bytes(tmp_path, raw):
    answered(tmp_path, raw)
