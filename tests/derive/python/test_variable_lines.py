"""Which line of a program fills a variable."""

import pytest

from stepscope.derive.python.variable_lines import copy_at, is_copied, line_of

SOURCE = """import numpy as np
cache = {}
class Reader:
    def __init__(self):
        self.images = []
    def read(self):
        self.images.append(1)
        total = 0
        total += 1
def load(count):
    images = []
    for i in range(count):
        images.append(i)
    whole: object = np.array(images)
    first, last = images[0], images[-1]
    return whole
def store(key):
    cache[key] = 1
"""


@pytest.mark.parametrize(
    ("function", "name", "line"),
    [
        ("load", "images", 13),
        ("load", "whole", 14),
        ("load", "last", 15),
        ("Reader.read", "total", 9),
        ("main", "reader.images", 7),
        ("<module>", "cache", 18),
        ("load", "nothing", 0),
    ],
)
def test_line_of(function: str, name: str, line: int) -> None:
    """What adds to it comes before what makes it; attributes count wherever they stand."""
    assert line_of(SOURCE, function, name) == line


def test_damaged_source() -> None:
    """Text that is no Python has no line."""
    assert line_of("def (", "load", "images") == 0
    assert not is_copied("def (", "load", "images")


def test_is_copied() -> None:
    """A list of which one array is made takes as much again."""
    assert is_copied(SOURCE, "load", "images")
    assert not is_copied(SOURCE, "Reader.read", "self.images")


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("y = tf.Variable(x)", "tf.Variable(x)"),
        ("model.fit(tf.convert_to_tensor(self.x), batch_size=8)", "tf.convert_to_tensor(self.x)"),
        ("model.fit(x, y)", ""),
        ("y = tf.Variable(other)", ""),
        ("y = (x", ""),
    ],
)
def test_a_tensor_of_all_data_of_a_variable(line: str, made: str) -> None:
    """A call that makes a tensor of the variable itself is one; what a function does with it is not known."""
    assert copy_at(f"import tensorflow as tf\n{line}\n", 2, {"x"}) == made
    assert copy_at(f"import tensorflow as tf\n{line}\n", 1, {"x"}) == ""
