"""Which arrays TFF015 reports as constants of a graph: variants and near-misses."""

from __future__ import annotations

import pytest
from tests.check.checking import hits

HEAD = """
import numpy as np
import tensorflow as tf

(x, y), _ = tf.keras.datasets.mnist.load_data()
mean = np.zeros(3)

"""
STEP = "@tf.function\ndef step(index):\n    return {}\n"


def found(text: str) -> list[tuple[str, str]]:
    """Messages and levels of the rule."""
    return [(hit.message, hit.severity) for hit in hits(HEAD + text) if hit.code == "TFF015"]


@pytest.mark.parametrize(
    "text",
    [
        STEP.format("tf.gather(x, index)"),
        STEP.format("tf.gather(params=x, indices=index)"),
        STEP.format("tf.constant(x)[index]"),
        "x = x.astype('float32') / 255.0\n" + STEP.format("tf.gather(x, index)"),
        "rows = np.random.rand(20000, 64)\n" + STEP.format("tf.gather(rows, index)"),
        "rows = np.random.normal(size=(20000, 64))\n" + STEP.format("tf.gather(rows, index)"),
        "tf.data.Dataset.range(9).map(lambda i: tf.gather(x, i))\n",
        "class Net(tf.keras.Model):\n    def call(self, index):\n        return tf.gather(x, index)\n",
        "def train():\n  rows = np.zeros((2000, 640))\n  @tf.function\n  def step(i):\n    return tf.gather(rows, i)\n",
    ],
)
def test_data_that_become_a_constant(text: str) -> None:
    """tf.functions, functions of map, layers; data sets, also scaled, and shapes in the source; closures."""
    ((message, severity),) = found(text)
    assert "constant of the graph" in message
    assert severity == "warning"


def test_an_array_from_a_file_may_be_small() -> None:
    """Its size is unknown: info."""
    assert [level for _, level in found("t = np.load('t.npy')\n" + STEP.format("tf.gather(t, index)"))] == ["info"]


@pytest.mark.parametrize(
    "text",
    [
        "x = tf.constant(x)\n" + STEP.format("tf.gather(x, index)"),
        STEP.format("tf.subtract(index, mean)"),
        "rows = np.zeros((20, 64))\n" + STEP.format("tf.gather(rows, index)"),
        "rows = np.zeros(shape)\n" + STEP.format("tf.gather(rows, index)"),
        "def step(index):\n    return tf.gather(x, index)\n",
        "@tf.function\ndef step(x, index):\n    return tf.gather(x, index)\nstep(x, 3)\n",
        "@tf.function\ndef step(index):\n    z = np.zeros((2000, 640))\n    return tf.gather(z, index)\n",
        "tf.data.Dataset.from_tensor_slices(x).map(lambda row: tf.cast(row, tf.float32))\n",
    ],
)
def test_what_is_left_alone(text: str) -> None:
    """Tensors, small or unknown arrays, eager code, parameters, arrays made inside."""
    assert found(text) == []
