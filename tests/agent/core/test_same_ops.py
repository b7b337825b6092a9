"""Which eager ops give what they gave before: real ops of TensorFlow, each noted as it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stepscope.agent.core.same_ops import KNOWN
from stepscope.agent.probes.tensorflow import eager_ops

if TYPE_CHECKING:
    from collections.abc import Callable

    Arguments = tuple[object, ...]

pytestmark = [pytest.mark.tf, pytest.mark.slow]

tf = pytest.importorskip("tensorflow")
SIZE = (20, 20)
Noted = list[tuple[str, bool]]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """(op, whether its result was known) of all ops from now on."""
    from tensorflow.python import pywrap_tfe

    same = eager_ops.same_ops({})
    found: Noted = []

    def noting(name: str, parts: Callable[[Arguments], tuple[str, Arguments]]) -> None:
        original = getattr(pywrap_tfe, name)

        def execute(*args: object) -> object:
            results = original(*args)
            op, given = parts(args)
            found.append((op, same.note(op, given, results) == KNOWN))
            return results

        monkeypatch.setattr(pywrap_tfe, name, execute)

    noting(eager_ops.FAST, eager_ops.fast_parts)
    noting(eager_ops.EXECUTE, eager_ops.execute_parts)
    return found


def known(noted: Noted, op: str) -> list[bool]:
    """Of the ops of a type, in order, whether the result was known."""
    return [again for name, again in noted if name == op]


def test_the_same_inputs_give_the_same(noted: Noted) -> None:
    """A product of the same tensors is known the second time, and so is what is computed of it."""
    a = tf.constant(np.ones(SIZE))
    for _ in range(2):
        tf.nn.relu(tf.matmul(a, a))
    tf.matmul(a, a, transpose_a=True)
    assert (known(noted, "MatMul"), known(noted, "Relu")) == ([False, True, False], [False, True])


@pytest.mark.parametrize(("other", "again"), [(False, False), (True, True)], ids=["it", "another"])
def test_a_variable_that_is_written_is_another(noted: Noted, *, other: bool, again: bool) -> None:
    """What reads a variable is new once that variable was written, and only then."""
    variable, another = tf.Variable(tf.ones(SIZE)), tf.Variable(1.0)
    tf.square(variable)
    (another if other else variable).assign(another + 0.0 if other else tf.zeros(SIZE))
    tf.square(variable)
    assert known(noted, "Square") == [False, again]


def test_constants_are_not_told(noted: Noted) -> None:
    """What is made of shapes and numbers alone, as in every gradient of a mean, is not known again."""
    for _ in range(2):
        tf.square(tf.fill(SIZE, 3.0))
    assert known(noted, "Square") == [False, False]


def test_random_numbers_are_new(noted: Noted) -> None:
    """What is computed of random numbers is never known."""
    for _ in range(3):
        tf.nn.relu(tf.random.normal((4,)))
    assert not any(known(noted, "Relu"))


@pytest.mark.parametrize(("changed", "again"), [(0.0, True), (1.0, False)], ids=["same", "other"])
@pytest.mark.parametrize("rows", [50, 50_000], ids=["small", "large"])
def test_an_array_is_known_by_what_it_holds(noted: Noted, rows: int, changed: float, *, again: bool) -> None:
    """An array that is converted in each call makes new tensors, which hold the same or something else."""
    array = np.ones((rows, 50), np.float32)
    tf.square(tf.constant(array))
    array[:, -1] += changed
    tf.square(tf.constant(array))
    assert known(noted, "Square") == [False, again]


@pytest.mark.parametrize(
    ("name", "calls"),
    [("reads", [False, False, True, True]), ("writes", [False] * 4), ("draws", [False] * 4)],
)
def test_a_function_that_writes_nothing_is_an_op(noted: Noted, name: str, calls: list[bool]) -> None:
    """Calls of a graph function are known if it only reads; one that writes or draws is new in each call."""
    weights, counter, x = tf.Variable(2.0), tf.Variable(0.0), tf.constant(3.0)
    bodies = {
        "reads": lambda x: x * weights,
        "writes": lambda x: counter.assign_add(x) + 1.0,
        "draws": lambda x: x * tf.random.uniform(()) + weights,
    }
    function = tf.function(bodies[name])
    for _ in range(4):
        function(x)
    assert [again for op, again in noted if op.startswith("__inference_<lambda>")] == calls


def test_what_a_function_writes_is_new_afterwards(noted: Noted) -> None:
    """A graph function may write whatever variable it is given."""
    weights = tf.Variable(2.0)
    step = tf.function(weights.assign_sub)
    tf.square(weights)
    for _ in range(3):
        step(tf.constant(1.0))
        tf.square(weights)
    assert known(noted, "Square") == [False] * 4
