"""VEC002 and VEC004 where what is looped over is no tensor, or the loop is no Python loop."""

from __future__ import annotations

from tests.check.checking import codes

CACHES = """
import keras
from keras import ops

class LM(keras.Model):
    def call(self, x):
        caches = [x]
        return RETURNED

lm = LM()
RESULT = lm(x)
rows = [ops.reshape(c, (1, -1)) for c in caches]
"""


def test_lists_of_layers_results() -> None:
    """A model of the project that returns several things gives no tensor; one that returns one does."""
    several = CACHES.replace("RETURNED", "x, caches").replace("RESULT", "h, caches")
    assert "VEC002" not in codes(several)
    assert "VEC002" not in codes(several.replace("return x, caches", "return (x, caches) if self.cached else x"))
    assert "VEC002" in codes(CACHES.replace("RETURNED", "x").replace("RESULT", "caches"))


def test_arrays_and_names() -> None:
    """Rows after convert_to_numpy are no tensors, and no tensor op chooses between strings."""
    looked = """
    from keras import ops

    s = CONVERTED
    for i in range(n):
        found.append([names[l] if l < len(names) else "x" for l in s[i]])
    """
    assert "VEC004" not in codes(looked.replace("CONVERTED", "ops.convert_to_numpy(x)"))
    assert "VEC004" not in codes(looked.replace("CONVERTED", "ops.softmax(x)"))
    assert "VEC004" in codes(looked.replace("CONVERTED", "ops.softmax(x)").replace('"x"', "0").replace("names[l]", "l"))


def test_loops_that_autograph_makes() -> None:
    """A loop in a function that map is given is traced, although tests call the function eagerly."""
    traced = """
    import tensorflow as tf

    def maps(points):
        cms = tf.zeros((64, 64))
        for point in tf.boolean_mask(points, points > 0):
            cms = tf.maximum(cms, tf.exp(point))
        return cms

    def make(data):
        def one(example):
            return maps(example)
        return data.map(one)
    """
    test = "from main import maps\n\ndef test_maps():\n    assert maps(points) is not None\n"
    assert "VEC002" not in codes(
        {"main.py": traced + "\n    made = make(tf.data.Dataset.range(9))\n", "tests/test_maps.py": test}
    )
