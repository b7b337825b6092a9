"""Which line of a program fills a variable."""

import pytest

from stepscope.derive.python.variable_lines import is_copied, line_of

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
