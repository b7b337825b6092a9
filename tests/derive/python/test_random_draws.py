"""Functions that draw at random are known by their source."""

from __future__ import annotations

import textwrap

import pytest

from stepscope.derive.python import random_draws

HEAD = """
import random
import random as rnd
from random import choice
import numpy as np
from numpy import random as npr
from numpy.random import default_rng
import tensorflow as tf
from tensorflow.keras import layers
import keras
import albumentations as A
state = np.random.default_rng(3)
flip = layers.RandomFlip("horizontal")
both = tf.keras.Sequential([tf.keras.layers.RandomRotation(0.1), tf.keras.layers.Rescaling(1.0)])
pipeline = A.Compose([A.HorizontalFlip()])
gen = tf.random.Generator.from_seed(1)
fixed = np.random.default_rng(0).normal(size=9)
class Maker:
    def __init__(self):
        self.rng = np.random.RandomState(1)
    def method(self, x):
        return self.helper(x)
    def helper(self, x):
        return x[self.rng.permutation(3)]
def helper(x):
    return x + np.random.rand()
"""


def draw(body: str, name: str = "f") -> random_draws.Draw | None:
    """What the function ``name`` of a file draws with."""
    source = HEAD + textwrap.dedent(body)
    begins = (f"def {name}(", f"{name} = lambda")
    line = next(n for n, text in enumerate(source.splitlines(), 1) if any(word in text for word in begins))
    return random_draws.of_function(source, line)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("def f(x): return x + np.random.randint(3)", "np.random.randint"),
        ("def f(x): return rnd.random() * x", "rnd.random"),
        ("def f(x): return choice(x)", "choice"),
        ("def f(x): return npr.permutation(x)", "npr.permutation"),
        ("def f(x): return state.normal() + x", "state.normal"),
        ("def f(x): return default_rng().normal() + x", "default_rng().normal"),
        ("def f(x):\n    r = default_rng()\n    return r.normal() + x", "r.normal"),
        ("def f(x, rng): return rng.choice(x)", "rng.choice"),
        ("def f(x): return tf.image.random_flip_left_right(x)", "tf.image.random_flip_left_right"),
        ("def f(x, s): return tf.image.stateless_random_crop(x, (2, 2, 3), s)", "tf.image.stateless_random_crop"),
        ("def f(x): return x + tf.random.uniform(())", "tf.random.uniform"),
        ("def f(x): return x + gen.normal(())", "gen.normal"),
        ("def f(x): return x + keras.random.normal(())", "keras.random.normal"),
        ("def f(x): return flip(x, training=True)", "flip"),
        ("def f(x): return both(x, training=True)", "both"),
        ("def f(x): return layers.RandomZoom(0.1)(x)", "layers.RandomZoom(0.1)"),
        ("def f(x): return helper(x)", "np.random.rand"),
        ("def f(x): return tf.numpy_function(helper, [x], tf.float32)", "np.random.rand"),
        ("f = lambda x: helper(x)", "np.random.rand"),
    ],
)
def test_what_draws(body: str, name: str) -> None:
    """By module, by a generator whose state goes on, by a layer, in helpers that are called or handed on."""
    found = draw(body)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "body",
    [
        "def f(x): return np.percentile(x, 3) + fixed[0]",
        "def f(x):\n    r = default_rng(x)\n    return r.normal()",
        "def f(x):\n    np.random.seed(1)\n    return x",
        "def f(x): return tf.image.resize(x, (3, 3))",
        "def f(x): return x.random()",
        "def other(x): return helper(x)\ndef f(x): return x",
        "def f(x): return layers.Rescaling(2.0)(x)",
    ],
)
def test_what_does_not(body: str) -> None:
    """Seeds, generators that a call makes anew with a seed, arrays that were drawn once, other people's methods."""
    assert draw(body) is None


def test_methods_of_the_same_object_are_followed() -> None:
    """A PyDataset's ``__getitem__`` draws in a helper, from a generator that the object keeps."""
    found = draw("", "method")
    assert found is not None
    assert found.name == "self.rng.permutation"


def test_what_does_not_parse_is_not_known() -> None:
    """Nothing is claimed of Python of another version."""
    assert random_draws.of_function("def f(:", 1) is None


@pytest.mark.parametrize(
    ("body", "works"),
    [
        ("def f(x):\n    x = np.random.normal(x)\n    return np.sort(x)", False),
        ("def f(x):\n    x = np.sort(x)\n    return np.random.normal(x)", True),
        ("def f(x): return tf.image.random_flip_left_right(tf.io.decode_png(x))", True),
        ("def f(x): return tf.image.random_flip_left_right(x)", False),
        ("def f(x):\n    x = np.sort(x)\n    return helper(x)", True),
        ("def f(x): return helper(np.sort(x))", True),
        ("def f(x): return helper(x)", False),
        ("def f(x):\n    t = time.perf_counter()\n    r = default_rng()\n    return r.normal(len(x))", False),
        ("def f(x):\n    for i in x:\n        i += 1\n    return state.normal()", True),
        ("def f(x):\n    for i in x:\n        yield state.normal()\n        np.sort(x)", False),
        ("def f(x):\n    def later(y):\n        return np.sort(y)\n    return later(state.normal())", False),
    ],
)
def test_work_before_what_is_drawn(body: str, *, works: bool) -> None:
    """Calls and loops above it or in what it is given, in its callers too; clocks and generators are none."""
    found = draw(f"import time\n{body}")
    assert found is not None
    assert found.after_work is works


def test_work_before_an_op_of_a_graph_is_known_by_its_line() -> None:
    """None without a source, or without a line."""
    source = "def f(x):\n    x = g(x)\n    return h(x)\n"
    assert [random_draws.works_before(source, 1, line) for line in (0, 2, 3)] == [None, False, True]
    assert random_draws.works_before("", 1, 3) is None
