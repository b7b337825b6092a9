"""KER003, KER004, KER005 where the loop needs what it makes, starts again on purpose, or is only a test's."""

from __future__ import annotations

import pytest
from tests.check.checking import assert_expected, codes

HEAD = """
import keras
import tensorflow as tf
from keras import layers

"""
KINDS = """
class Small:
    def __init__(self):
        self.model = keras.Model(i, layers.Dense(1)(i))

class Large:
    def __init__(self):
        self.model = keras.Model(i, layers.Dense(9)(i))

def get_model(kind):
    if kind == "small":
        return Small()
    return Large()

"""


@pytest.mark.parametrize(
    "keep", ["kept.append(m)", "if n: kept.append(m)", "kept[f] = m", "m = train(m); kept.append(m)"]
)
def test_models_in_objects_that_are_kept(keep: str) -> None:
    """Folds whose models are all kept, in whatever object, are needed at once."""
    text = f"{HEAD}{KINDS}for f in range(n):\n    m = get_model(kind)\n    {keep}\n"
    assert "KER004" not in codes(text)


def test_a_loop_is_reported_once() -> None:
    """However many classes a function may make: one loop, one finding."""
    assert codes(f"{HEAD}{KINDS}for f in range(n):\n    m = get_model(kind)\n    m.fit(x)\n") == ["KER004"]


def test_parts_of_one_model() -> None:
    """Blocks that are called while a larger model is built; a search that trains each one is another matter."""
    blocks = """
def ff(n):
    return keras.Sequential([layers.Dense(n), layers.ReLU()])

i = keras.Input((8,))
outs = []
y = i
for _ in range(n):
    outs.append(ff(8)(i))
for _ in range(n):
    y = ff(8)(y)
whole = keras.Model(i, y)
"""
    assert "KER004" not in codes(HEAD + blocks)
    searched = (
        HEAD + blocks + "for n in sizes:\n    net = ff(n)\n    net.compile('adam', 'mse')\n    net.fit(x, net(x))\n"
    )
    assert codes(searched).count("KER004") == 1


def test_retries_repeat_nothing() -> None:
    """A loop that ends with its first success runs once; without the break it is a loop."""
    retry = """
def main():
    while True:
        try:
            model = keras.Sequential([layers.Dense(8)])
            model.fit(x, y)
            break
        except tf.errors.UnavailableError:
            continue
"""
    assert "KER004" not in codes(HEAD + retry)
    assert "KER004" in codes(HEAD + retry.replace("            break\n", ""))


def test_restarts_on_purpose() -> None:
    """From given weights, or as a comment says; elsewhere a compile in the loop is reported."""
    assert_expected(
        HEAD
        + """
model = keras.Sequential([layers.Dense(1)])
for key, x in parts.items():
    model.load_weights("init.weights.h5")
    model.compile("adam", "mse")
    model.fit(x, y)
for key, x in parts.items():
    # a fresh optimizer for each part
    model.compile("adam", "mse")
    model.fit(x, y)
for key, x in parts.items():
    model.compile("adam", "mse")  # expect: KER005
    model.fit(x, y)
""",
        only="KER005",
    )


def test_loops_of_tests_are_no_loops_of_the_program() -> None:
    """A constructor that loads, looped over only by a test; a loop of the program is reported."""
    library = (
        HEAD + "class Net:\n    def __init__(self, path):\n        self.model = keras.models.load_model('m.keras')\n"
    )
    loop = "from model import Net\nfor t in range(9):\n    Net('m').model.predict(x)\n"
    test = loop.replace("for t in", "def test_it():\n  for t in")
    assert "KER003" not in codes({"model.py": library, "tests/test_model.py": test})
    assert "KER003" in codes({"model.py": library, "main.py": loop})
