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

def ranks(cm, rows):
    first = cm[0].mean(); order = np.argsort(cm[1])
    return _tidy(rows.join(one, two))
"""


@pytest.mark.parametrize(
    ("lines", "called", "expected"),
    [
        ((5,), "deepcopy", "copy.deepcopy"),
        ((6,), "deepcopy", "deepcopy"),
        ((5,), "Module.run", "run"),
        ((5,), "NpzFile.__getitem__", "NpzFile.__getitem__"),
        ((5,), "_Location.__getitem__", ""),
        ((5,), "__getitem__", ""),
        ((5,), "wrap.<locals>.wrapper", ""),
        ((5,), "", "copy.deepcopy"),
        ((5, 9), "", ""),
        ((5, 9), "deepcopy", "copy.deepcopy"),
        ((8,), "", "np.sort, cumsum"),
        ((9,), "", "sorted"),
        ((10,), "", ""),
        ((12,), "", "np.linalg.norm"),
        ((16,), "_mean", "mean"),
        ((16,), "_argsort_dispatcher", "np.argsort"),
        ((16,), "_wrapit", ""),
        ((16,), "", "mean, np.argsort"),
        ((17,), "_tidy", "_tidy"),
        ((9,), "_inner", "sorted"),
        ((10,), "_inner", ""),
        ((99,), "", ""),
        ((), "", ""),
    ],
)
def test_names(lines: tuple[int, ...], called: str, expected: str) -> None:
    """A callee with most of the time is named, a private one by the call that reaches it; without one the calls of the
    line with most of the time, but for those that cost nothing.
    """
    found = doing.build("train.py", lines, called, {"train.py": SOURCE}.get)
    assert sorted(found.split(", ")) == sorted(expected.split(", "))


def test_a_line_with_many_calls_names_none() -> None:
    """Which of more than two calls takes the time is not known."""
    assert doing.build("a.py", (1,), "", {"a.py": "f(g(h(x)))"}.get) == ""


def test_without_source() -> None:
    """A file whose source is not known, or does not parse, names nothing."""
    assert doing.build("other.py", (5,), "", {"train.py": SOURCE}.get) == ""
    assert doing.build("train.py", (1,), "", {"train.py": "def ("}.get) == ""
    assert doing.build("train.py", (1,), "_mean", lambda _: None) == ""


def test_private_names_are_not_public() -> None:
    """A library's name with a leading underscore is none that the user's code calls."""
    assert [doing.public(name) for name in ("Module._run", "Module.run", "_run", "run")] == ["", "run", "", "run"]
