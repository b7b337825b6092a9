"""An input whose passes end within a second is known to its source all the same."""

from __future__ import annotations

import json

import pytest

from .conftest import Project, environment

pytestmark = [pytest.mark.tf, pytest.mark.slow]

PROGRAM = """
import time
import tensorflow as tf

def slowly(x):
    time.sleep(0.004)
    return x

def read(x):
    return tf.ensure_shape(tf.py_function(slowly, [x], tf.float32), [4])

rows = tf.zeros((60, 4))
data = tf.data.Dataset.from_tensor_slices(rows).map(read).batch(4).map(lambda x: (x, x[:, :1]))
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data, epochs=6, verbose=0)
"""


def test_stages_of_passes_of_half_a_second(project: Project) -> None:
    """tf.data drops the stages of a pass at its last element: what is read before that shows them."""
    project.script("train.py", PROGRAM)
    done = project.run("run", "train.py", env=environment(TF_CPP_MIN_LOG_LEVEL="2"), patience_s=200)
    assert done.returncode == 0, done.stderr
    report = json.loads(project.run("report", str(*project.sessions()), "--format", "json").stdout)
    stages = report["input_tree"]["stages"]
    assert "TensorSlice" in [stage["name"] for stage in stages]
