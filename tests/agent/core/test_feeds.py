"""What runs of a session are fed: the same, or something else each time."""

from __future__ import annotations

import weakref
from typing import NamedTuple

import numpy as np
import pytest

from stepscope.agent.core.feeds import EVERY, FIRST, Feeds


class Key:
    """A placeholder."""

    def __init__(self, name: str) -> None:
        self.name = name


class SparseKey:
    """A placeholder of a sparse tensor."""

    def __init__(self) -> None:
        self.indices, self.values = Key("adj/indices:0"), Key("adj/values:0")


class SparseValue(NamedTuple):
    """What a sparse tensor is fed."""

    indices: object
    values: object


Line = dict[str, object]


@pytest.fixture
def lines() -> list[Line]:
    """Nothing logged yet."""
    return []


@pytest.fixture
def feeds(lines: list[Line]) -> Feeds:
    """Logs to ``lines``."""
    return Feeds(lambda: 7, lines.append)


def test_same_and_changed(feeds: Feeds, lines: list[Line]) -> None:
    """The same array, number and sparse tensor are the same; a new array is a change, and so is one filled again."""
    fixed, filled = np.arange(100.0), np.zeros(100)
    sparse = SparseValue(np.arange(6).reshape(3, 2), np.ones(3))
    x, batch, buffer, rate, adjacency = Key("x:0"), Key("batch:0"), Key("buffer:0"), Key("rate:0"), SparseKey()
    for number in range(FIRST):
        filled[:] = number
        feeds.note(3, {x: fixed, batch: np.ones(4), buffer: filled, rate: 0.5, adjacency: sparse})
    (line,) = lines
    assert (line["t"], line["name"], line["looks"]) == ("feeds", 3, FIRST)
    assert line["same"] == ["adj/indices:0", "adj/values:0", "rate:0", "x:0"]
    assert line["changed"] == ["batch:0", "buffer:0"]


def test_a_later_change_is_logged(feeds: Feeds, lines: list[Line]) -> None:
    """What changes after some looks is told at once; between the looks nothing is compared."""
    fixed, other, x = np.arange(8.0), np.ones(8), Key("x:0")
    for _ in range(FIRST + EVERY):
        feeds.note(1, {x: fixed})
    assert [line["same"] for line in lines] == [["x:0"]]
    for _ in range(EVERY):
        feeds.note(1, {x: other})
    assert [line["changed"] for line in lines] == [[], ["x:0"]]


def test_arrays_are_not_kept_alive(feeds: Feeds, lines: list[Line]) -> None:
    """An array that the program dropped is gone; the next one is another, whatever its address."""
    x = Key("x:0")
    first = np.ones(3)
    held = weakref.ref(first)
    feeds.note(1, {x: first})
    del first
    assert held() is None
    for _ in range(FIRST - 1):
        feeds.note(1, {x: np.ones(3)})
    assert lines[0]["changed"] == ["x:0"]
