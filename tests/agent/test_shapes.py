"""Shapes of what calls are given: numbers that stay few, and what counts as the shape of a call's arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stepscope.agent.shapes import EXACT, MAX_RANK, Shapes, shape_of, varies
from stepscope.wire.kinds import OTHER_SHAPE, SHAPE_SHIFT

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign


class Agent:
    """As much of the agent's state as a log needs."""

    def __init__(self) -> None:
        self.lines: list[dict[str, object]] = []
        self.log = self.lines.append

    @staticmethod
    def now() -> int:
        """The time."""
        return 7


def test_each_shape_has_one_line_and_one_number() -> None:
    """However often it is met; a scalar has none."""
    agent: Foreign = Agent()
    shapes = Shapes(agent)
    found = [shapes.flags(shape) >> SHAPE_SHIFT for shape in ((8, 64), (8, 128), (8, 64), ())]
    assert found == [1, 2, 1, 0]
    assert agent.lines == [
        {"t": "shape", "at": 7, "id": 1, "dims": [8, 64], "rounded": False},
        {"t": "shape", "at": 7, "id": 2, "dims": [8, 128], "rounded": False},
    ]


def test_a_shape_that_is_not_known_yet_has_no_number() -> None:
    """A model is called while another one is built of it: its batch is None."""
    agent: Foreign = Agent()
    shape: Foreign = (None, 64)
    assert Shapes(agent).flags(shape) == 0
    assert agent.lines == []


def test_many_shapes_are_rounded_and_the_log_stays_short() -> None:
    """Lengths of sequences by the thousand share classes of powers of two; numbers never leave their eight bits."""
    agent: Foreign = Agent()
    shapes = Shapes(agent)
    numbers = {length: shapes.flags((1, length)) >> SHAPE_SHIFT for length in range(1, 3000)}
    assert numbers[EXACT + 5] == numbers[EXACT + 30]
    assert agent.lines[numbers[2000] - 1]["dims"] == [1, 2048]
    assert agent.lines[numbers[2000] - 1]["rounded"]
    assert len(agent.lines) < EXACT + 10
    for rank in range(3000):
        shapes.flags((1 << (rank % 30), 1 << (rank // 30 % 30), 3))
    assert len(agent.lines) <= OTHER_SHAPE
    assert agent.lines[-1]["id"] == OTHER_SHAPE


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (np.zeros((3, 5)), (3, 5)),
        (np.float32(1), ()),
        ((np.float32(1), np.zeros((2, 7))), (2, 7)),
        ({"mask": None, "ids": [np.zeros((4, 9))]}, (4, 9)),
        ([1.0, 2.0, 3.0], (3,)),
        ((), ()),
        (None, ()),
    ],
)
def test_the_shape_is_that_of_the_first_array(value: object, shape: tuple[int, ...]) -> None:
    """Nested as framework calls nest their inputs; a list of numbers becomes an array."""
    assert shape_of(value) == shape


def test_a_long_rank_is_cut() -> None:
    """A line holds the first sizes only."""
    agent: Foreign = Agent()
    shapes = Shapes(agent)
    shapes.flags((1, 2, 3, 4, 5, 6, 7))
    assert agent.lines[0]["dims"] == list(range(1, MAX_RANK + 1))


class Spec:
    """A tensor of a signature."""

    def __init__(self, *shape: int | None) -> None:
        self.shape = shape


@pytest.mark.parametrize(
    ("spec", "open_size"), [(Spec(1, None), True), ([Spec(1, 3), {"x": Spec(None)}], True), (Spec(2, 3), False)]
)
def test_a_signature_with_an_open_size_serves_several_shapes(spec: object, *, open_size: bool) -> None:
    """Wherever in it the size is."""
    assert varies(spec) is open_size
