"""What a hot line does: the library function below it, else the calls that its source has."""

from __future__ import annotations

import pytest

from stepscope.derive.python import doing

SOURCE = """\
import copy
import numpy as np

def settings(layout):
    return copy.deepcopy(layout)["settings"]

def score(values, table):
    total = np.sort(values).cumsum()[len(values) - 1]
    for value in sorted(values):
        total += value * 2
    return (
        np.linalg.norm(total)
    )
"""


@pytest.mark.parametrize(
    ("line", "called", "ratio", "expected"),
    [
        (5, "deepcopy", 0.9, "copy.deepcopy"),
        (6, "deepcopy", 0.9, "deepcopy"),
        (5, "Module.run", 0.6, "run"),
        (5, "NpzFile.__getitem__", 0.6, "NpzFile.__getitem__"),
        (5, "wrap.<locals>.wrapper", 0.9, ""),
        (5, "", 0.0, "copy.deepcopy"),
        (5, "deepcopy", 0.3, "copy.deepcopy"),
        (8, "", 0.0, "np.sort, cumsum"),
        (9, "", 0.0, "sorted"),
        (10, "", 0.0, ""),
        (12, "", 0.0, "np.linalg.norm"),
        (99, "", 0.0, ""),
    ],
)
def test_names(line: int, called: str, ratio: float, expected: str) -> None:
    """A callee with most of the time is named; without one the calls of the line, but for those that cost nothing."""
    found = doing.build("train.py", line, called, ratio, {"train.py": SOURCE}.get)
    assert sorted(found.split(", ")) == sorted(expected.split(", "))


def test_without_source() -> None:
    """A file whose source is not known, or does not parse, names nothing."""
    assert doing.build("other.py", 5, "", 0.0, {"train.py": SOURCE}.get) == ""
    assert doing.build("train.py", 1, "", 0.0, {"train.py": "def ("}.get) == ""
