"""Arrays that are given to compiled functions again, on a real program."""

from __future__ import annotations

import pytest
from tests.agent.conftest import Armed
from tests.agent.trials.run_trial import run

pytestmark = pytest.mark.tf

PROGRAM = """
import numpy as np, tensorflow as tf
table, small = np.ones((200, 200), "float32"), np.ones(4, "float32")
@tf.function
def step(x, parts): return tf.reduce_sum(x) + tf.reduce_sum(parts["b"])
sums = []
for turn in range(4):
    sums.append(float(step(table, {"b": small * turn})))
    table += 1
print(sums, step.experimental_get_tracing_count())
"""


def test_an_array_is_converted_once(armed: Armed) -> None:
    """From the second call on the tensor is the same, even if the array has changed; small arrays stay as they are."""
    trial = run(armed, PROGRAM, "feeds-kept")
    assert trial.output.splitlines() == ["[40000.0, 80004.0, 80008.0, 80012.0] 1"], trial.errors
    assert trial.outcome("feeds-kept") == ("in-effect", 3, "")
