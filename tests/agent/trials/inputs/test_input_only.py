"""input-only on real programs: batches are taken, nothing is computed."""

from __future__ import annotations

import pytest
from tests.agent.conftest import Armed
from tests.agent.trials.run_trial import run

from stepscope.wire.kinds import Kind

pytestmark = pytest.mark.tf

PROGRAM = """
import keras, numpy as np, tensorflow as tf
pulled = 0
def batches():
    global pulled
    while True:
        pulled += 1
        yield np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
class Logs(keras.callbacks.Callback):
    seen = []
    def on_train_batch_end(self, batch, logs=None): Logs.seen.append(sorted(logs))
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
history = model.fit(batches(), steps_per_epoch=20, epochs=2, verbose=0, callbacks=[Logs()])
print(int(model.optimizer.iterations), pulled >= 40, len(Logs.seen), Logs.seen[-1], len(history.history["loss"]))
total = tf.Variable(0.0)
@tf.function
def step(x, training=True):
    total.assign_add(x)
    return {"total": total.read_value(), "training": training}
results = [step(tf.constant(2.0)) for _ in range(10)]
print(float(total), float(results[-1]["total"]), bool(step(tf.constant(2.0), training=False)["training"]))
@tf.function
def take(iterator): return next(iterator)
numbers = iter(tf.data.Dataset.range(100))
for _ in range(10): take(numbers)
print(int(next(numbers)))
"""


def test_steps_take_their_input_and_compute_nothing(armed: Armed) -> None:
    """A fit updates its weights 3 times in 40 steps that take 40 batches; a loop's compiled function runs 3 times."""
    trial = run(armed, PROGRAM, "input-only")
    assert trial.output.splitlines() == ["3 True 40 ['loss'] 2", "6.0 6.0 False", "10"], trial.errors
    assert trial.outcome("input-only") == ("in-effect", 37 + 7 + 7, "")


def test_the_steps_are_still_recorded(armed: Armed) -> None:
    """Steps that compute nothing leave their records, and the batches that they take show as such."""
    run(armed, PROGRAM, "input-only")
    (process,) = armed.processes()
    assert len(process.kinds(Kind.EXECUTION)) == 40
    assert len(process.kinds(Kind.NEXT)) >= 37
