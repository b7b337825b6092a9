"""What is seen of the arrays of a batch."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from stepscope.agent import inputs
from stepscope.agent.inputs import MAX_BYTES, examined

if TYPE_CHECKING:
    from stepscope.agent.state import AgentState

RNG = np.random.default_rng(3)
ROWS = RNG.random((8, 100), "float32")


@pytest.mark.parametrize(
    ("array", "distinct", "block", "tiled"),
    [
        (ROWS, 8, 1, True),
        (np.repeat(ROWS, 4, 0), 8, 4, False),
        (np.repeat(ROWS, 4, 0)[:30], 8, 4, False),
        (np.tile(ROWS, (4, 1)), 8, 0, True),
        (np.repeat(ROWS[:1], 32, 0), 1, 32, True),
        (ROWS[[0, 1, 1, 0, 2, 1]], 3, 0, False),
        (np.array([0, 1, 1, 0]), 2, 0, False),
    ],
    ids=["all-differ", "blocks", "a-block-is-cut-off", "tiles", "one", "no-order", "numbers"],
)
def test_equal_rows(array: np.ndarray, distinct: int, block: int, *, tiled: bool) -> None:
    """Their number and order."""
    found = examined(array)
    assert found is not None
    assert (found["distinct"], found["block"], found["tiled"]) == (distinct, block, tiled)


def test_zeros_and_how_much_is_examined() -> None:
    """The first rows of a large array stand for it."""
    array = np.zeros((4_000, 1_000), "float32")
    array[:, ::10] = 1
    found = examined(array)
    assert found is not None
    assert found["zeros_ratio"] == pytest.approx(0.9)
    assert found["rows"] == MAX_BYTES // array[0].nbytes


@pytest.mark.parametrize("array", [np.zeros((64, 64)), np.ones((3, 1_000_000)), np.full(9, 2)])
def test_what_is_left_out(array: np.ndarray) -> None:
    """One value everywhere, and rows of which few can be examined."""
    assert examined(array) is None


def test_feeds_keep_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers and lists of rows among the feeds are left out, and shift no name."""
    monkeypatch.setattr(inputs, "CALLS", frozenset((1,)))
    told: list[dict[str, object]] = []
    state = SimpleNamespace(now=lambda: 0, log=told.append)
    array = np.arange(20.0).reshape(5, 4)
    inputs.Inputs(cast("AgentState", state), lambda: ("a.py", "f", 1)).fed(
        {"keep": 0.5, "rows": [array, array], "x": array}
    )
    assert [(line["name"], line["shape"]) for line in told] == [("x", [5, 4])]


def test_a_machine_that_lets_the_thread_wait_ends_no_examination() -> None:
    """What it may take is CPU time."""
    told: list[dict[str, object]] = []
    state = SimpleNamespace(now=itertools.count(0, inputs.BUDGET_NS).__next__, log=told.append)
    look = inputs.Inputs(cast("AgentState", state), lambda: ("a.py", "f", 1)).look
    for _ in range(inputs.LOOKS):
        look(np.arange(20.0).reshape(5, 4))
    assert len(told) == inputs.LOOKS
