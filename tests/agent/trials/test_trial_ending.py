"""The early end of a trial."""

from __future__ import annotations

import pytest
from tests.agent.conftest import Armed
from tests.agent.trials.run_trial import run

from stepscope.model.log.events import ProcessEnded

pytestmark = pytest.mark.tf

ENDLESS = """
import atexit, tensorflow as tf
atexit.register(lambda: print("at exit"))
weights = tf.Variable(0.0)
@tf.function
def step(x): weights.assign_sub(0.001 * x)
try:
    steps = 0
    while True:
        step(tf.constant(1.0))
        steps += 1
        if steps == 200: print("200 steps", flush=True)
finally:
    print("finally", flush=True)
"""

TWO_FITS = """
import keras, numpy as np
x, y = np.ones((800, 2), "float32"), np.ones((800, 1), "float32")
class Count(keras.callbacks.Callback):
    steps = 0
    def on_train_batch_end(self, batch, logs=None):
        Count.steps += 1
        if Count.steps == 440: print("440 steps", flush=True)
def fit(epochs, width):
    model = keras.Sequential([keras.layers.Dense(width), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, batch_size=4, epochs=epochs, verbose=0, callbacks=[Count()])
fit(1, 2)
fit(100_000, 3)
print("done", flush=True)
"""


def test_a_job_ends_once_its_steps_were_seen(armed: Armed) -> None:
    """After enough steady steps the process ends with code 0; no finally and no exit handler runs; the log is whole."""
    trial = run(armed, ENDLESS, seconds=0.5, steps=300)
    assert (trial.output, trial.code) == ("200 steps\n", 0), trial.errors
    assert isinstance(trial.lines[-1], ProcessEnded)
    assert trial.lines[-1].records >= 300


def test_without_seconds_a_job_goes_on_to_its_own_end(armed: Armed) -> None:
    """With 0 seconds many more steady steps than are asked for do not end the job."""
    program = ENDLESS.replace("while True:", "while steps < 4000:")
    trial = run(armed, program, seconds=0.0, steps=20)
    assert (trial.output, trial.code) == ("200 steps\nfinally\nat exit\n", 0), trial.errors


def test_the_steps_are_those_of_the_fit_that_follows(armed: Armed) -> None:
    """The 200 steps of a warm-up fit do not count: the job ends after 250 of the next one."""
    trial = run(armed, TWO_FITS, seconds=0.1, steps=250)
    assert (trial.output, trial.code) == ("440 steps\n", 0), trial.errors


def test_a_job_that_ends_by_itself(armed: Armed) -> None:
    """A job that ends before that ends as it does without us, its own exit code included."""
    program = "import sys, atexit, tensorflow\natexit.register(lambda: print('at exit'))\nsys.exit(3)"
    trial = run(armed, program, "compute-only")
    assert (trial.output, trial.code) == ("at exit\n", 3)
    assert trial.outcome("compute-only")[0] == "not-reached"
