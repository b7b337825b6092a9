"""Trials that are switched on and off in one process, on real programs."""

from __future__ import annotations

from statistics import geometric_mean

import pytest
from tests.agent.conftest import Armed
from tests.agent.trials.run_trial import Trialled, switch

from stepscope.agent.trials.switching import ORDER
from stepscope.experiments.blocks import judge
from stepscope.use_cases.whatif import runs

pytestmark = pytest.mark.tf

STUBBED = """
import time, tensorflow as tf
weights = tf.Variable(0.0)
@tf.function
def step(x): weights.assign_sub(0.001 * x)
def prepare():
    time.sleep(0.01)
    return tf.constant(1.0)
def endless():
    while True:
        yield prepare()
for x in endless(): step(x)
"""

SHORT = STUBBED.replace("for x in endless(): step(x)", "for x, _ in zip(endless(), range(120)): step(x)\nprint('done')")

GENERATORS = STUBBED.replace("for x in endless()", "while True:\n  for _, x in zip(range(100), endless())")

FIT = """
import time, keras, numpy as np
class Slow(keras.callbacks.Callback):
    epochs = batches = 0
    def on_train_batch_end(self, batch, logs=None):
        Slow.batches += 1
        time.sleep(0.01)
    def on_epoch_end(self, epoch, logs=None):
        Slow.epochs += 1
        print(epoch + 1 == Slow.epochs, flush=True)
class Other(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None): time.sleep(0.002)
x, y = np.ones((1600, 2), "float32"), np.ones((1600, 1), "float32")
model = keras.Sequential([keras.layers.Dense(2), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, batch_size=4, epochs=1000, verbose=0, callbacks=[Slow(), Other()])
"""

QUEUE = """
import time, keras, numpy as np, tensorflow as tf
def items():
    x, y = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
    while True:
        time.sleep(0.03)
        yield x, y
spec = (tf.TensorSpec((4, 2)), tf.TensorSpec((4, 1)))
data = tf.data.Dataset.from_generator(items, output_signature=spec).prefetch(2000)
class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None): time.sleep(0.06)
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data, steps_per_epoch=100_000, verbose=0, callbacks=[Slow()])
"""

SUMMARIES = """
import tempfile, tensorflow as tf
writer = tf.summary.create_file_writer(tempfile.mkdtemp())
weights = tf.Variable(tf.zeros(50_000))
def write():
    with writer.as_default(step=0): tf.summary.histogram("weights", weights)
@tf.function
def step(x):
    weights.assign_sub(0.001 * x * tf.ones_like(weights))
    IN_STEP
while True:
    step(tf.constant(1.0))
    AFTER_STEP
"""

COLLECTS = """
import gc, tensorflow as tf
weights = tf.Variable(0.0)
@tf.function
def step(x): weights.assign_sub(0.001 * x)
step(tf.constant(1.0))
gc.freeze()
kept = [[number] for number in range(20_000)]
while True:
    step(tf.constant(1.0))
    gc.collect()
"""


def alternates(trial: Trialled) -> None:
    """Blocks are off, on, on, off and so on, then a long one is on and a last one off; it takes hold where it is on."""
    *usual, long, last = trial.blocks
    assert len(usual) >= 8, (trial.interventions, trial.errors)
    assert [one.on for one in usual] == [ORDER[place % len(ORDER)] for place in range(len(usual))]
    assert (long.long, long.on, last.long, last.on) == (True, True, False, False)
    assert all(bool(one.count) == one.on for one in trial.blocks)
    assert all(one.steps and one.steps_ns for one in trial.blocks)


def step_ns(trial: Trialled, *, on: bool) -> float:
    blocks = [one for one in trial.blocks if one.on == on]
    return sum(one.steps_ns for one in blocks) / sum(one.steps for one in blocks)


def test_a_function_is_stubbed_and_called_again(armed: Armed) -> None:
    """Steps without the function are far shorter, and it is called in each block that is off."""
    trial = switch(armed, STUBBED, "stub:prepare")
    alternates(trial)
    assert step_ns(trial, on=True) < 0.5 * step_ns(trial, on=False)


def test_a_generator_gives_its_own_items_where_it_is_off(armed: Armed) -> None:
    trial = switch(armed, GENERATORS, "stub:endless")
    alternates(trial)
    assert step_ns(trial, on=True) < 0.5 * step_ns(trial, on=False)


def test_a_program_that_ends_before(armed: Armed) -> None:
    """It ends as it does without us; the blocks that were complete are in the log."""
    trial = switch(armed, SHORT, "stub:prepare")
    assert (trial.output, trial.code) == ("done\n", 0), trial.errors
    assert not any(one.long for one in trial.blocks)


@pytest.mark.parametrize("intervention", ["no-callbacks", "without-callback:Slow"])
def test_callbacks_miss_batches_and_no_epoch(armed: Armed, intervention: str) -> None:
    """The hooks of epochs run in all blocks; the step is shorter where those of batches do not."""
    trial = switch(armed, FIT, intervention)
    alternates(trial)
    assert "False" not in trial.output
    assert step_ns(trial, on=True) < 0.7 * step_ns(trial, on=False)


def test_a_queue_that_fills_while_it_is_off_does_not_mislead(armed: Armed) -> None:
    """Without the callback a step waits for the input, at first not: the blocks say half of the time, or nothing."""
    trial = switch(armed, QUEUE, "no-callbacks")
    alternates(trial)
    judged = judge(runs.blocks_of(trial.blocks))
    assert judged.why or geometric_mean(on / off for off, on in judged.pairs) == pytest.approx(0.5, abs=0.15)


def test_a_callback_that_is_not_there(armed: Armed) -> None:
    """There are no blocks, and the reason names those that are there."""
    trial = switch(armed, FIT, "without-callback:Plot")
    assert not trial.blocks
    assert trial.outcome("without-callback") == ("not-reached", 0, "no callback Plot; there are Other, Slow")


def test_summaries_of_eager_code(armed: Armed) -> None:
    trial = switch(armed, SUMMARIES.replace("IN_STEP", "pass").replace("AFTER_STEP", "write()"), "no-summaries")
    alternates(trial)
    assert step_ns(trial, on=True) < step_ns(trial, on=False)


def test_summaries_in_a_graph_cannot_be_switched(armed: Armed) -> None:
    """The graph has them or not: there are no blocks, and the reason is said."""
    trial = switch(armed, SUMMARIES.replace("IN_STEP", "write()").replace("AFTER_STEP", "pass"), "no-summaries")
    assert not trial.blocks
    outcome, _, text = trial.outcome("no-summaries")
    assert (outcome, text) == ("not-reached", "summaries are written in a graph, which cannot be switched")


def test_garbage_collection_stops_and_begins_again(armed: Armed) -> None:
    """That which the program asks for, too."""
    trial = switch(armed, COLLECTS, "gc-off")
    alternates(trial)
    assert step_ns(trial, on=True) < step_ns(trial, on=False)


def test_what_changes_nothing_takes_the_same_turns(armed: Armed) -> None:
    alternates(switch(armed, STUBBED, "nothing"))
