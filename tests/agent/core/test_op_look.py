"""What a look says of large results: real ops of TensorFlow, each noted as it runs."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from stepscope.agent.core.op_look import Look
from stepscope.agent.probes.tensorflow import eager_ops

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tf, pytest.mark.slow]

tf = pytest.importorskip("tensorflow")
LARGE = (32, 500_000)


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    """Notes all ops from now on."""
    from tensorflow.python import pywrap_tfe

    found = Look(time.monotonic_ns, 1, 10_000, eager_ops.same_ops({}), eager_ops.scope_of)
    for name, parts in ((eager_ops.FAST, eager_ops.fast_parts), (eager_ops.EXECUTE, eager_ops.execute_parts)):
        original = getattr(pywrap_tfe, name)

        def execute(
            *args: object,
            run: Callable[..., object] = original,
            of: Callable[..., tuple[str, tuple[object, ...]]] = parts,
        ) -> object:
            start = time.monotonic_ns()
            results = run(*args)
            op, given = of(args)
            found.note(op, given, results, start, time.monotonic_ns(), sys._getframe(1))
            return results

        monkeypatch.setattr(pywrap_tfe, name, execute)
    return found


def parts(look: Look) -> dict[str, int]:
    """Number of results by op that were copied for a part of them."""
    rows = look.told()["rows"]
    assert isinstance(rows, list)
    return {row["op"]: row["part"] for row in rows if row["part"]}


def test_a_copy_for_a_part(look: Look) -> None:
    """A tensor is converted as a whole, and then a row of it is used."""
    tf.square(tf.cast(tf.fill(LARGE, 1), tf.float32)[3])
    assert parts(look) == {"Cast": 1}


def test_a_copy_that_is_used_piece_by_piece(look: Look) -> None:
    """Small batches of a large one take a part each, and all of it together."""
    batch = tf.cast(tf.fill(LARGE, 1), tf.float32)
    for at in range(0, 32, 4):
        tf.square(batch[at : at + 4])
    assert parts(look) == {}


def test_a_copy_that_is_used_as_a_whole_too(look: Look) -> None:
    """What one user takes whole is no copy for a part."""
    batch = tf.cast(tf.fill(LARGE, 1), tf.float32)
    tf.square(batch[3])
    tf.square(batch)
    assert parts(look) == {}


def test_a_tensor_that_is_appended_to(look: Look) -> None:
    """Each step copies what the steps before have collected; pieces that are joined once are no such thing."""
    kept = tf.fill(LARGE, 1.0)
    for _ in range(3):
        kept = tf.concat([kept, tf.ones((1, LARGE[1]))], axis=0)
    tf.concat([tf.ones((1, LARGE[1]))] * 4, axis=0)
    assert parts(look) == {"ConcatV2": 2}


def test_constants_in_between_interrupt_no_run(look: Look) -> None:
    """A known chain of ops with shapes made in between is one: all of it could be kept, and nothing of it is new."""
    batch = tf.constant([[float(number) for number in range(1000)]] * 500)
    for _ in range(4):
        hidden = tf.matmul(batch, batch, transpose_b=True)
        tf.nn.relu(tf.reshape(hidden, tf.stack([250, -1])))
    said = look.told()
    rows = said["rows"]
    assert isinstance(rows, list)
    again: Counter[str] = Counter()  # an op that was interrupted has another row, with its line
    for row in rows:
        again[row["op"]] += row["again"]
    assert +again == {"MatMul": 3, "Reshape": 3, "Relu": 3}
    assert said["fresh"] == 0
