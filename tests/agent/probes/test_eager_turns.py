"""Which of its ops marks the turns of a loop that runs op by op."""

from __future__ import annotations

import functools
from types import CodeType, SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from stepscope.agent.probes.tensorflow import eager_turns
from stepscope.agent.probes.tensorflow.eager_turns import QUIET_NS, EagerTurns, picked
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.agent.probes.tensorflow.eager_turns import Op
    from stepscope.agent.state import AgentState

START = 1_000_000_000
THREAD, OTHER = 1, 2


def matmul() -> None:
    """Runs an op."""


def add() -> None:
    """Runs an op."""


def zeros() -> None:
    """Runs an op."""


@functools.lru_cache
def divide() -> None:
    """Runs an op, behind a wrapper that has taken its name."""


def code_of(function: object) -> CodeType:
    """The code of a function."""
    code = getattr(function, "__code__", None)
    assert isinstance(code, CodeType)
    return code


def ops(*functions: object, thread: int = THREAD) -> list[Op]:
    """What a look notes of these calls."""
    return [(code_of(function), globals(), thread) for function in functions]


def turn(count: int = 10) -> list[Op]:
    """One multiplication and so many additions."""
    return ops(matmul, *[add] * count)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(turn() * 50, matmul, id="the-rarest"),
        pytest.param(ops(zeros) + turn() * 50, matmul, id="not-what-came-once"),
        pytest.param((turn() * 9 + ops(*[zeros] * 3)) * 8, matmul, id="not-what-comes-in-bursts"),
        pytest.param(turn() * 50 + ops(*[zeros] * 20, thread=OTHER), matmul, id="of-the-thread-with-most"),
        pytest.param(turn() * 10, None, id="too-few-ops"),
        pytest.param([], None, id="none"),
    ],
)
def test_the_rarest_op_that_comes_evenly_marks_a_turn(seen: list[Op], expected: object) -> None:
    """What each turn runs the fewest times, most likely once."""
    found = picked(seen)
    assert (found[0] if found is not None else None) is (code_of(expected) if expected is not None else None)


def test_a_function_behind_a_wrapper_marks_no_turn() -> None:
    """It cannot be replaced by its name: another one of the turn is picked, though it runs as often or more."""
    seen = (turn() + ops(divide.__wrapped__)) * 50
    found = picked(seen[:-1])
    assert found is not None
    assert found[0] is code_of(matmul)


@pytest.fixture
def module() -> SimpleNamespace:
    """A module with the function that runs all ops."""
    return SimpleNamespace(**{eager_turns.EXECUTE: lambda *_: "done"})


def test_a_look_begins_where_nothing_repeats_and_leaves_nothing(opened: AgentState, module: SimpleNamespace) -> None:
    """After two seconds without a call that may be a step; at its end the module is as it was."""
    original, turns = vars(module)[eager_turns.EXECUTE], EagerTurns(opened, module)
    turns.tick(START)
    turns.tick(START + QUIET_NS)
    during = vars(module)[eager_turns.EXECUTE]
    assert during is not original
    assert during(None, "MatMul") == "done"
    turns.tick(START + QUIET_NS + eager_turns.LOOK_NS)
    assert vars(module)[eager_turns.EXECUTE] is original


def test_looks_that_see_nothing_do_not_count(opened: AgentState, module: SimpleNamespace) -> None:
    """A process that imports for a minute is looked at as soon when its loop has begun."""
    original, turns = vars(module)[eager_turns.EXECUTE], EagerTurns(opened, module)
    looks = 0
    for half_second in range(120):
        turns.tick(START + half_second * START // 2)
        looks += vars(module)[eager_turns.EXECUTE] is not original
    assert looks > eager_turns.MOST_LOOKS * 4


@pytest.mark.parametrize("kind", [Kind.FUNCTION, Kind.SYNC, Kind.APPLY, Kind.LOOP])
def test_there_is_no_look_while_something_repeats(opened: AgentState, module: SimpleNamespace, kind: Kind) -> None:
    """A job with calls, updates or values that are read is left alone."""
    original, turns = vars(module)[eager_turns.EXECUTE], EagerTurns(opened, module)
    for second in range(20):
        opened.write(1, 1, 0, 1, int(kind), 0, 1)
        turns.tick(START + second * START)
    assert vars(module)[eager_turns.EXECUTE] is original
