"""checks-off, determinism-off and without-stage, on real programs."""

from __future__ import annotations

import pytest
from tests.agent.conftest import Armed
from tests.agent.trials.run_trial import run

pytestmark = pytest.mark.tf

CHECKED = """
import tensorflow as tf
tf.debugging.enable_check_numerics()
tf.config.experimental.enable_op_determinism()
print(bool(tf.math.is_nan(tf.constant(0.0) / tf.constant(0.0))), tf.config.experimental.is_op_determinism_enabled())
"""
STAGES = """
import tensorflow as tf
data = (
    tf.data.Dataset.range(4)
    .map(lambda x: x + 1)
    .map(lambda x: x * 10)
    .shuffle(4)
)
wide = tf.data.Dataset.range(2).map(lambda x: tf.cast(x, tf.float32))
print(sorted(int(x) for x in data), wide.element_spec.dtype.name)
"""


def test_number_checks_stay_off(armed: Armed) -> None:
    """A program that turns number checks on computes on with a NaN; determinism stays as it is."""
    trial = run(
        armed,
        CHECKED.replace("is_op_determinism_enabled()", "enable_op_determinism() is None"),
        "checks-off",
        own_import=True,
    )
    assert trial.output.splitlines() == ["True True"], trial.errors
    assert trial.outcome("checks-off") == ("in-effect", 1, "")


def test_determinism_stays_off(armed: Armed) -> None:
    """A program that asks for determinism does not get it."""
    program = """
import tensorflow as tf
from tensorflow.python.framework import config
tf.config.experimental.enable_op_determinism()
print(config.is_op_determinism_enabled())
"""
    trial = run(armed, program, "determinism-off", own_import=True)
    assert trial.output.splitlines() == ["False"], trial.errors
    assert trial.outcome("determinism-off") == ("in-effect", 1, "")


def test_the_program_collects_no_garbage_itself(armed: Armed) -> None:
    """Its calls do nothing; Python collects by itself as before."""
    program = """
import gc
import tensorflow as tf
print(gc.collect(), gc.isenabled(), gc.get_threshold()[0] > 0)
"""
    trial = run(armed, program, "gc-calls-off", own_import=True)
    assert trial.output.splitlines() == ["0 True True"], trial.errors
    assert trial.outcome("gc-calls-off")[0] == "in-effect"


def test_keras_stays_in_single_precision(armed: Armed) -> None:
    """A program that sets another type for all layers gets single precision; what it sets to float32 is set."""
    program = """
import keras
keras.config.set_floatx("float64")
print(keras.layers.Dense(1).compute_dtype, keras.config.floatx())
keras.config.set_dtype_policy("float64")
print(keras.layers.Dense(1).compute_dtype)
keras.config.set_dtype_policy("mixed_float16")
keras.config.set_floatx("float32")
print(keras.layers.Dense(1).compute_dtype)
"""
    trial = run(armed, program, "float32", own_import=True)
    assert trial.output.splitlines() == ["float32 float32", "float32", "float32"], trial.errors
    assert trial.outcome("float32") == ("in-effect", 3, "")


def test_predictions_take_larger_batches(armed: Armed) -> None:
    """The batch of predict and evaluate grows as that of a fit; a fit's validation grows once."""
    program = """
import keras, numpy as np
seen = []
class Sizes(keras.layers.Layer):
    def call(self, x):
        import tensorflow as tf
        tf.py_function(lambda n: seen.append(int(n)), [tf.shape(x)[0]], [])
        return x
model = keras.Sequential([keras.Input((2,)), Sizes(), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.ones((24, 2), "float32")
model.predict(x, batch_size=2, verbose=0)
model.evaluate(x, x[:, :1], batch_size=3, verbose=0)
model.fit(x, x[:, :1], batch_size=4, validation_data=(x, x[:, :1]), verbose=0, shuffle=False)
print(seen)
"""
    trial = run(armed, program, "batch:4")
    assert trial.output.splitlines() == [str([8] * 3 + [12] * 2 + [16, 8] * 2)], trial.errors


def test_a_line_is_left_out(armed: Armed) -> None:
    """Only the transformation of that line is left out."""
    trial = run(armed, f"{STAGES}print(type(data).__name__)", "without-stage:<string>:6")
    assert trial.output.splitlines() == ["[1, 2, 3, 4] float32", "_ShuffleDataset"], trial.errors
    assert trial.outcome("without-stage") == ("in-effect", 1, "")


def test_what_changes_its_elements_stays(armed: Armed) -> None:
    """Maps that keep the type are left out; one that changes it stays."""
    trial = run(armed, STAGES, "without-stage:map")
    assert trial.output.splitlines() == ["[0, 1, 2, 3] float32"], trial.errors
    assert trial.outcome("without-stage") == ("in-effect", 2, "")


def test_fewer_traces(armed: Armed) -> None:
    """With relaxed shapes a function is traced twice for four shapes, and with reuse a function is made once."""
    program = """
import tensorflow as tf
traces = []
@tf.function
def step(x):
    traces.append(x.shape)
    return tf.reduce_sum(x)
print([float(step(tf.ones((n,)))) for n in (1, 2, 3, 4)], len(traces))
made = []
for n in range(3):
    @tf.function
    def again(x):
        made.append(n)
        return x + 1.0
    again(tf.constant(1.0))
print(len(made))
"""
    relaxed = run(armed, program, "reduce-retracing")
    assert relaxed.output.splitlines() == ["[1.0, 2.0, 3.0, 4.0] 2", "3"], relaxed.errors
    assert relaxed.outcome("reduce-retracing") == ("in-effect", 4, "")


def test_functions_are_reused(armed: Armed) -> None:
    """A function that is made in a loop is traced once."""
    program = """
import tensorflow as tf
made = []
for n in range(3):
    @tf.function
    def again(x):
        made.append(n)
        return x + 1.0
    print(float(again(tf.constant(1.0))), len(made))
"""
    trial = run(armed, program, "functions-reused")
    assert trial.output.splitlines() == ["2.0 1", "2.0 1", "2.0 1"], trial.errors
    assert trial.outcome("functions-reused") == ("in-effect", 2, "")


def test_a_feeder_of_a_session_is_stubbed(armed: Armed) -> None:
    """A program that turned eager execution off runs its Python outside of traces all the same."""
    program = """
import time, tensorflow as tf
tf.compat.v1.disable_eager_execution()
calls = 0
def load():
    global calls
    calls += 1
    return 2.0
before, ends = load.__code__, time.monotonic() + 60
while load.__code__ is before and time.monotonic() < ends: pass
x = tf.compat.v1.placeholder(tf.float32)
with tf.compat.v1.Session() as session:
    print([float(session.run(x + 1.0, {x: load()})) for _ in range(7)][-1], calls)
"""
    trial = run(armed, program, "stub:load")
    assert trial.output.splitlines() == ["3.0 5"], trial.errors
    assert trial.outcome("stub") == ("in-effect", 2, "")
