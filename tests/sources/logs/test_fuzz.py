"""Whatever a file holds: one reading or one clear error, soon."""

import json
import random
import time
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fitcheck.errors import FitcheckError
from fitcheck.fit.calibrate import calibrate
from fitcheck.fit.calibrate_ask import calibration_case
from fitcheck.sources.logs import read_logs, read_text
from fitcheck.sources.logs.printed import printed_of
from fitcheck.sources.logs.settings import pairs
from tests.conftest import AS_OF
from tests.sources.logs.golden import ROWS, model

LINES = [line for row in ROWS for line in row["lines"].splitlines()]
JUNK = [
    "9" * 30,
    "-1",
    "0",
    "1e9",
    "NaN",
    "\x00",
    "\x1b[31m",
    "\u202e",
    "'",
    '"',
    "(",
    ")",
    "{",
    "}",
    "=",
    ",",
    " ",
    "GiB",
    "\r",
    "é",
    "None",
]


def reads(text, catalogue, config=None):
    """A reading, its plain record and a calibration, or an error of ours."""
    known = model(config) if config else None
    with suppress(FitcheckError):
        printed = printed_of(read_text(text))
        calibrate(calibration_case(catalogue, printed, as_of=AS_OF, source="file:x", model=known, cluster="h100"))


@st.composite
def mangled(draw):
    """Real lines with parts cut out, doubled, or replaced by what does not belong there."""
    lines = draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=12))
    found = []
    for line in lines:
        for _ in range(draw(st.integers(0, 3))):
            at, end = sorted((draw(st.integers(0, len(line))), draw(st.integers(0, len(line)))))
            line = line[:at] + draw(st.sampled_from([*JUNK, line[at:end] * 2])) + line[min(end, at + 8) :]  # noqa: PLW2901 - mangled in place
        found.append(line)
    return "\n".join(found)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=mangled(), row=st.sampled_from([None, *(row["model"] for row in ROWS if "model" in row)]))
def test_mangled_logs(text, row, catalogue):
    reads(text, catalogue, row)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=4000))
def test_binary_junk(raw, tmp_path):
    file = tmp_path / "junk"
    file.write_bytes(raw)
    with suppress(FitcheckError):
        read_logs([file])


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet="abc=:(){}[],'\"\\ 019.-", max_size=400))
def test_settings_of_any_text(text):
    assert all(isinstance(name, str) for name, _ in pairs(text))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["avg_ts", "n_prompt", "n_gen", "output_throughput", "max_concurrency", "completed", "date", "backend", "model_id"]
                ),
                inner,
                max_size=9,
            )
        ),
        max_leaves=20,
    )
)
def test_results_of_any_json(value, catalogue):
    reads(json.dumps(value), catalogue)


def test_many_mangled_lines():
    """A fixed walk over as many inputs as a test may take; 200,000 were run once with other seeds."""
    chance = random.Random(5)
    for _ in range(3_000):
        line = chance.choice(LINES)
        at = chance.randrange(len(line) + 1)
        text = line[:at] + chance.choice(JUNK) + line[at + chance.randrange(6) :]
        with suppress(FitcheckError):
            printed_of(read_text(text))


@pytest.mark.parametrize(
    "line",
    [
        "KV cache size: " + "1," * 20_000,
        "Free memory on device (" + "9" * 30_000,
        "llama_kv_cache: size = " + " " * 30_000 + "1 MiB",
        "Load weight end." + " type=x" * 4_000,
        "using device A (" + "(" * 30_000,
        "loaded meta data with " + "tensors from " * 2_000,
        "with config: " + "a=(" * 10_000,
        "with config: " + "'" + "\\" * 30_000,
        "Reported total GPU memory per device (MiB): [" + "1, " * 10_000,
        "  Device 1: " * 3_000,
        "| " * 15_000,
        "KV Cache is allocated." + " #tokens: 1," * 2_500,
    ],
)
def test_no_line_is_slow(line):
    started = time.process_time()
    with suppress(FitcheckError):
        read_text((line + "\n") * 20)
    assert time.process_time() - started < 2
