"""compute-only on real programs: the input is read no further than the batches that are held."""

from __future__ import annotations

import pytest
from tests.agent.conftest import Armed
from tests.agent.trials.run_trial import run

pytestmark = pytest.mark.tf

FIT = """
import keras, numpy as np, tensorflow as tf
pulled = 0
def batches():
    global pulled
    while True:
        pulled += 1
        yield np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
class Count(keras.callbacks.Callback):
    steps = 0
    def on_train_batch_end(self, batch, logs=None): Count.steps += 1
class Items(keras.utils.PyDataset):
    read = 0
    def __len__(self): return 30
    def __getitem__(self, i):
        Items.read += 1
        return next(made)
made = batches()
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(batches(), steps_per_epoch=20, epochs=2, verbose=0, callbacks=[Count()])
print(pulled, Count.steps)
Count.steps = 0
model.fit(Items(), epochs=2, verbose=0, callbacks=[Count()])
print(Items.read <= 8 + 3, Count.steps)  # Keras itself reads some to know their shapes
Count.steps = 0
model.fit(np.ones((80, 2)), np.ones((80, 1)), batch_size=8, epochs=2, verbose=0, callbacks=[Count()])
print(Count.steps, model.predict(np.ones((50, 2)), verbose=0).shape)
print(sorted(model.evaluate(np.ones((80, 2)), np.ones((80, 1)), verbose=0, return_dict=True)))
"""

LOOP = """
import tensorflow as tf
pulled = 0
def numbers():
    global pulled
    for i in range(50):
        pulled += 1
        yield i
data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int32))
known = data.take(20)
print([sum(1 for _ in known) for _ in range(2)], pulled)
print(sorted({int(x) for x in known}), [len(list(known.as_numpy_iterator()))], pulled)
print(sum(1 for _ in data), pulled)  # its length is unknown
ten = tf.data.Dataset.range(10)
print([int(x) for x in ten], [int(x) for x, _ in zip(ten.repeat(), range(9))])
"""


def test_fits_of_every_input(armed: Armed) -> None:
    """A generator is pulled 8 times for 40 steps; fits of a PyDataset and of arrays keep their number of steps."""
    trial = run(armed, FIT, "compute-only")
    assert trial.output.splitlines() == ["8 40", "True 60", "20 (50, 1)", "['loss']"], trial.errors
    assert trial.outcome("compute-only") == ("in-effect", 4, "")


def test_loops_of_the_program(armed: Armed) -> None:
    """Loops over a dataset see its first 8 elements as often as it has elements, and end if that is unknown."""
    trial = run(armed, LOOP, "compute-only")
    assert trial.output.splitlines() == [
        "[20, 20] 8",
        "[0, 1, 2, 3, 4, 5, 6, 7] [20] 8",
        "1000 16",
        "[0, 1, 2, 3, 4, 5, 6, 7, 0, 1] [0, 1, 2, 3, 4, 5, 6, 7, 0]",
    ], trial.errors
    assert trial.outcome("compute-only")[0] == "in-effect"


def test_nothing_to_hold(armed: Armed) -> None:
    """A program that loops over its own arrays is not reached, and the line says what was looked for."""
    trial = run(armed, "import tensorflow as tf\nprint(sum(float(tf.constant(x)) for x in range(3)))", "compute-only")
    assert (trial.output, trial.code) == ("3.0\n", 0)
    outcome, count, text = trial.outcome("compute-only")
    assert (outcome, count) == ("not-reached", 0)
    assert "tf.data" in text


ERROR = """
import tensorflow as tf
def numbers():
    yield 1
    raise RuntimeError("the program's own")
data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int32))
try:
    for x in data: print(int(x))
except tf.errors.OpError as error:
    print("the program's own" in str(error))
"""


def test_an_error_of_the_input_is_the_programs(armed: Armed) -> None:
    """An exception in the program's input reaches the program; it is no failure of the intervention."""
    trial = run(armed, ERROR, "compute-only")
    assert trial.output == "True\n", trial.errors
    assert trial.outcome("compute-only")[0] == "not-reached"
