"""The value trial on real programs: what it sees of their tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.agent.trials.run_trial import Trialled, run

from stepscope.model.log.values import FunctionWatched, ValueSeen

if TYPE_CHECKING:
    from tests.agent.conftest import Armed

pytestmark = pytest.mark.tf

STEP = """
import numpy as np, tensorflow as tf
weight, frozen = (tf.Variable(tf.random.normal((96, 96), seed=seed)) for seed in (1, 2))
fixed = tf.constant(np.eye(96, dtype="float32") * 2)
@tf.function
def step(batch, ids):
    inverse = tf.linalg.inv(fixed)
    with tf.GradientTape() as tape:
        features = tf.matmul(batch, frozen)
        out = tf.matmul(tf.matmul(features, weight), inverse)
        again = tf.matmul(features, weight.read_value())
        picked = tf.matmul(tf.one_hot(ids, 4096), tf.ones((4096, 96)))
        loss = tf.reduce_mean(out * again + picked)
    tf.linalg.matmul(features, features, transpose_a=True)
    weight.assign_sub(1e-6 * tape.gradient(loss, weight))
    add = lambda i, total: (i + 1, total + tf.reduce_mean(tf.matmul(features, frozen)))
    loss += tf.while_loop(lambda i, total: i < 3, add, (0, 0.0))[1]
    return loss + tf.reduce_sum(tf.identity(tf.matmul(features, weight))[0])
data = tf.data.Dataset.range(40).map(lambda i: tf.random.stateless_normal((64, 96), (1, i))).repeat()
for number, batch in enumerate(data.take(100_000)):
    step(batch, tf.range(64) + number % 3)
print("went on")
"""

FIT = """
import keras, numpy as np
model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(128, trainable=False), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.random.default_rng(0).standard_normal((320, 64)).astype("float32")
model.fit(x, x[:, :1], batch_size=32, epochs=100_000, verbose=0)
"""

SESSION = """
import numpy as np, tensorflow.compat.v1 as tf
tf.disable_eager_execution()
x = tf.placeholder(tf.float32, (None, 64))
fixed = tf.constant(np.eye(64, dtype="float32"))
out = tf.matmul(tf.matmul(x, tf.get_variable("w", (64, 64))), tf.matmul(tf.get_variable("f", (64, 64)), fixed))
unused = tf.matmul(out, fixed)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    while True:
        session.run(out, {x: np.random.random((32, 64))})
"""

EAGER = """
import tensorflow as tf
weight = tf.random.normal((64, 64))
while True:
    x = tf.random.normal((32, 64))
    for _ in range(5):
        tf.matmul(x, weight)
"""


def values(trial: Trialled, op_type: str) -> list[ValueSeen]:
    """The tensors of a type that were seen, in the order in which the program makes them."""
    found = [line for line in trial.lines if isinstance(line, ValueSeen) and line.type == op_type]
    return sorted(found, key=lambda line: line.number)


def test_a_step_of_all_kinds(armed: Armed) -> None:
    """Constants, what depends on the batch alone, twins, zeros, and what only the look needs are told from the rest."""
    trial = run(armed, STEP, "values")
    assert trial.outcome("values")[0] == "in-effect", trial.errors
    assert trial.output == ""
    (inverse,) = values(trial, "MatrixInverse")
    assert (inverse.line, inverse.steps, inverse.step_distinct, inverse.same_distinct) == (7, 10, 1, 1)
    products = {line.line: line for line in values(trial, "MatMul")}
    assert (products[9].step_distinct, products[9].same_distinct, products[9].same_steps) == (10, 1, 4)
    assert products[11].same_distinct == 4
    (first,) = [line for line in values(trial, "MatMul") if line.line == 10 and line.inputs[0] == products[9].number]
    assert first.signature == products[11].signature
    assert first.expression != products[11].expression
    (one_hot,) = values(trial, "OneHot")
    assert one_hot.zeros_ratio == pytest.approx(1 - 1 / 4096, abs=1e-6)
    assert not products[14].alive
    assert (products[16].runs, products[16].again, products[16].distinct) == (30, 20, 10)
    (cut,) = products[18].uses
    assert (cut.type, cut.place, cut.shape, cut.of) == ("StridedSlice", 0, (96,), (64, 96))
    assert "MatMul" in {use.type for use in products[9].uses}
    (function,) = [line for line in trial.lines if isinstance(line, FunctionWatched)]
    assert (function.function, function.same_batch_calls) == ("step", 4)
    assert function.recurring_ratio == 1.0


def test_a_fit_repeats_its_batch(armed: Armed) -> None:
    """The batch of a Keras fit is held by its iterator: the frozen layer gives the same, the trained one does not."""
    trial = run(armed, FIT, "values")
    frozen, trained, *_ = values(trial, "MatMul")
    assert (frozen.same_steps, frozen.same_distinct, trained.same_distinct) == (4, 1, 4), trial.errors
    (function,) = [line for line in trial.lines if isinstance(line, FunctionWatched)]
    assert function.recurring_ratio == 1.0


def test_runs_of_a_session(armed: Armed) -> None:
    """A graph of version 1 is seen in what its runs fetch; ops that are not fetched are not computed for the look."""
    trial = run(armed, SESSION, "values")
    made = {line.name: line for line in values(trial, "MatMul")}
    assert set(made) == {"MatMul", "MatMul_1", "MatMul_2"}, trial.errors
    assert [made[name].step_distinct for name in sorted(made)] == [10, 1, 10]
    assert {line.uses for line in made.values()} == {()}, "what is fetched is not known"


def test_eager_code(armed: Armed) -> None:
    """What runs eagerly is seen by type and line: four of five products give what was known."""
    trial = run(armed, EAGER, "values")
    (product,) = values(trial, "MatMul")
    assert product.function == "eager code"
    assert product.again / product.looked_at == pytest.approx(0.8, abs=0.01)


def test_ops_are_left_out(armed: Armed) -> None:
    """An op gives ones in place of what it would compute; other ops stay."""
    program = """
import tensorflow as tf
@tf.function
def f(x):
    left_out = tf.matmul(x, x, name="left_out")
    return left_out + tf.matmul(tf.ones((2, 2)), tf.ones((2, 2)))
print(f(tf.fill((2, 2), float("nan"))).numpy().tolist())
"""
    trial = run(armed, program, "without-ops:left_out+other")
    assert trial.output == "[[3.0, 3.0], [3.0, 3.0]]\n", trial.errors
    assert trial.outcome("without-ops") == ("in-effect", 1, "")
