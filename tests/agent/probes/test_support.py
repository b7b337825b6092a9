"""How many examples a call is given, as far as its arguments say so."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from stepscope.agent.probes.support import examples, outside

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


def test_what_a_library_does_for_the_user_is_at_the_users_line() -> None:
    """A value read inside of NumPy has the line that called NumPy."""
    seen = []

    def look(row: np.ndarray) -> float:
        frame = sys._getframe().f_back
        assert frame is not None
        seen.append((frame.f_code.co_filename, outside(frame).f_code.co_name))
        return float(row.sum())

    np.apply_along_axis(look, 1, np.ones((2, 3)))
    assert {name for _, name in seen} == {"test_what_a_library_does_for_the_user_is_at_the_users_line"}
    assert all(file != __file__ for file, _ in seen)
