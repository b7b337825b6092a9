"""How many examples a call is given, as far as its arguments say so."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.agent.probes.support import examples

BATCH, NODES = 32, 1790


@pytest.mark.parametrize(
    ("values", "batched", "expected"),
    [
        pytest.param([np.zeros((BATCH, 8)), np.zeros(BATCH)], False, BATCH, id="inputs-and-targets"),
        pytest.param([(np.zeros((BATCH, 8)), {"y": np.zeros(BATCH)})], False, BATCH, id="nested"),
        pytest.param([np.zeros((BATCH, 8))], False, 0, id="one-array"),
        pytest.param([np.zeros((BATCH, 8))], True, BATCH, id="one-array-of-an-open-signature"),
        pytest.param([(np.zeros((NODES, 3)), np.zeros(NODES)), np.zeros((BATCH, 3))], False, 0, id="nodes-and-labels"),
        pytest.param(
            [(np.zeros((NODES, 3)), np.zeros(NODES)), np.zeros((BATCH, 3))], True, 0, id="of-an-open-signature"
        ),
        pytest.param([0.5, "adam"], True, 0, id="no-array"),
    ],
)
def test_examples_are_counted_where_all_arrays_agree(values: list[object], expected: int, *, batched: bool) -> None:
    """Arrays with different leading dimensions do not say which of them counts examples."""
    assert examples(values, batched=batched) == expected
