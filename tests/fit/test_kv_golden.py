"""KV and state bytes against figures from logs, model cards and hand arithmetic."""

from math import ceil

import pytest

from fitcheck.catalogue.models import Model
from fitcheck.fit.state import Share, kv_dtype, sequence_state, state_bytes
from tests.golden import rows


@pytest.mark.parametrize("row", rows("kv.yaml"), ids=lambda row: f"{row['model']}-{row['kv_dtype']}")
def test_state_is_what_the_source_says(catalogue, row):
    architecture = catalogue.get(Model, row["model"]).architecture
    dtype = kv_dtype(row["kv_dtype"])
    parts = sequence_state(architecture, architecture.max_context_tokens, dtype, Share())
    assert ceil(sum(part.per_token for part in parts)) == row["per_token"], row["source"]
    if "fixed" in row:
        assert sum(part.bytes for part in parts if part.fixed) == row["fixed"], row["source"]
    if "at" in row:
        assert state_bytes(architecture, row["at"]["tokens"], dtype, Share()) == row["at"]["bytes"], row["source"]
