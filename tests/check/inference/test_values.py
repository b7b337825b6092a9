"""Values: tags through assignments, arms, loops, attributes, arguments and results."""

from __future__ import annotations

import pytest
from tests.check.asking import Asked

HEAD = """
import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from tensorflow import keras
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ask(1)\nask(1.5)\nask('x')\nask(True)\nask(None)", ["Python number", "Python number", "Python string", "bool", "None"]),
        ("ask(tf.zeros([1]) + 1)\nask(np.ones(2) * 2)\nask(2 * 3)\nask('a' % 1)", ["Tensor", "NumPy", "Python number", "Python string"]),
        ("ask(tf.data.Dataset.range(3).map(f).batch(2))", ["Dataset"]),
        ("ask(tfds.load('mnist', split='train'))\nask(tfds.load('x')['train'])", ["Dataset", "Dataset"]),
        ("(a, b), info = tfds.load('x', split=['a', 'b'], with_info=True)\nask(a)\nask(info)", ["Dataset", "unknown"]),
        ("(x, y), _ = keras.datasets.mnist.load_data()\nask(x)", ["NumPy"]),
        ("ask(keras.utils.image_dataset_from_directory('x'))", ["Dataset"]),
        ("m = keras.Sequential()\nask(m)\nask(m(1))\nask(m.predict(1))", ["Model", "Tensor", "NumPy"]),
        ("ask(keras.layers.Dense(3))\nask(keras.optimizers.Adam())\nask(tf.Variable(1.0))", ["Layer", "Optimizer", "Variable"]),
        ("it = iter(tf.data.Dataset.range(3))\nask(it)\nask(next(it))", ["Iterator", "Tensor"]),
        ("for i, x in enumerate(tf.data.Dataset.range(3)):\n    ask(i)\n    ask(x)", ["Python number", "Tensor"]),
        ("for a, b in zip([1, 2], ['x', 'y']):\n    ask(a)\n    ask(b)", ["Python number", "Python string"]),
        ("for x in tf.data.Dataset.range(3).as_numpy_iterator():\n    ask(x)", ["NumPy"]),
        ("@tf.function\ndef f(x): return x\nask(f)\nask(f(1))", ["Function", "Tensor"]),
        ("@tf.function(jit_compile=True)\ndef f(x): return x\nask(f)", ["Function"]),
        ("g = tf.function(lambda x: x)\nask(g)", ["Function"]),
        ("k = 0\nwhile k < 10:\n    ask(k)\n    k += 1", ["Python number"]),
        ("x = None\nif c:\n    x = keras.Model()\nask(x)", ["Model"]),
        ("x = 1\nif c:\n    x = keras.Model()\nask(x)", ["unknown"]),
        ("x = keras.Model()\nx = 1\nask(x)", ["Python number"]),
        ("ask([1, 2])\nask((1, 'x')[1])\nask([keras.Model() for _ in y][0])", ["many Python number", "Python string", "Model"]),
        ("def f(x: tf.Tensor, n: int = 3, d: 'float' = 0):\n    ask(x)\n    ask(n)\n    ask(d)", ["Tensor", "Python number", "Python number"]),
        ("def f(x):\n    ask(x)\nf(tf.zeros([]))", ["Tensor"]),
        ("def f(x=5):\n    ask(x)", ["Python number"]),
        ("def make():\n    return keras.Sequential()\nask(make())", ["Model"]),
        ("def rows():\n    yield 1\nfor r in rows():\n    ask(r)", ["Python number"]),
        ("lr = np.float32(0.1)\nask(lr)\nask(float(lr))", ["NumPy", "Python number"]),
        ("ask(tf.io.gfile.glob('x'))\nask(tf.config.list_physical_devices())", ["many Python string", "unknown"]),
        ("from tensorflow.examples.tutorials.mnist import input_data\nask(input_data.read_data_sets('x'))", ["unknown"]),
        ("ask(f'{x}')\nask(not x)\nask(1 < 2)\nask(tf.zeros([]) < 2)", ["Python string", "bool", "bool", "Tensor"]),
    ],
)  # fmt: skip
def test_tags(text: str, expected: list[str]) -> None:
    """Tags of expressions where they stand."""
    assert Asked(HEAD + text).tags == expected


def test_attributes_and_methods() -> None:
    """Attributes of self, of instances, inherited ones, and what methods give."""
    asked = Asked(
        HEAD
        + """
class Base:
    def __init__(self, data):
        self.data = data
        self.net = self.build()

    def build(self):
        return keras.Sequential()

class Trainer(Base):
    rate = 0.1

    def run(self):
        ask(self.net)
        ask(self.data)
        ask(self.missing)

t = Trainer(tf.data.Dataset.range(3))
ask(t.net)
ask(t.build())
"""
    )
    assert asked.tags == ["Model", "Dataset", "unknown", "Model", "Model"]


def test_across_files() -> None:
    """Classes, results and globals of other modules."""
    asked = Asked(
        {
            "main.py": """
            import config
            from nets import Net, make
            ask(Net())
            ask(make(True))
            ask(config.RATE)
            from config import NAME
            ask(NAME)
            """,
            "nets.py": """
            import tensorflow as tf
            class Net(tf.keras.Model):
                pass
            def make(big):
                if big:
                    return Net()
                return tf.keras.Sequential()
            """,
            "config.py": "RATE = 0.1\nNAME = 'x'\n",
        }
    )
    assert asked.tags == ["Model", "Model", "Python number", "Python string"]


def test_circles_end_and_do_not_matter() -> None:
    """Functions that call each other: what is known does not depend on what is asked first."""
    text = """
def even(n):
    if n == 0:
        return 1
    return odd(n - 1)

def odd(n):
    return even(n - 1)

ask(even(3))
ask(odd(3))
"""
    turned = text.replace("ask(even(3))\nask(odd(3))", "ask(odd(3))\nask(even(3))")
    assert Asked(text).tags == Asked(turned).tags == ["Python number", "Python number"]
