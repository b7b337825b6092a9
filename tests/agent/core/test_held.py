"""What the agent says of the values that a program's variables lead to.

PYTEST_DONT_REWRITE: a rewritten assertion makes its function ask for ``locals``, and such functions are passed over.
"""

from __future__ import annotations

import gc
import itertools
import sys
import time
import weakref
from collections import deque
from pathlib import Path
from types import FrameType

import msgspec
import numpy as np
import pytest

from stepscope.agent.core import frames, held, look_budget
from stepscope.agent.core.look_budget import MOST_OBJECTS, Budget
from stepscope.model.log.memory import HeldValue

MB = 1 << 20


class Kept:
    """An object of the user's class."""

    def __init__(self, parts: list[object]) -> None:
        self.parts = parts
        self.small = 1


def rows(frame: FrameType | None = None) -> dict[str, HeldValue]:
    """The rows of a stack, by name."""
    found = msgspec.convert(held.rows([frame or sys._getframe(1)]), list[HeldValue])
    return {row.name: row for row in found}


def test_an_array_counts_once_for_the_outermost_variable() -> None:
    """A function is handed what another holds: the holder is told, with type, shape and function."""
    images = np.ones((8, MB // 4, 1), np.float32)

    def inner(given: object) -> dict[str, HeldValue]:
        half = images[:4]
        return {} if half.base is not given else rows()

    found = inner(images)
    assert found["images"].bytes == 8 * MB
    assert (found["images"].dtype, found["images"].shape) == ("float32", (8, MB // 4, 1))
    assert found["images"].function.endswith("test_an_array_counts_once_for_the_outermost_variable")
    assert "given" not in found
    assert "half" not in found


def test_a_view_keeps_the_whole_array() -> None:
    """Rows cut out of a large array keep all of it alive, and it is counted."""
    first = np.ones(16 * MB, np.uint8)[:10]
    assert rows()["first"].bytes == 16 * MB
    assert len(first) == 10


def test_containers_are_sampled() -> None:
    """Of a long list some entries stand for all; the largest array describes it."""
    history = [(1.0, np.zeros(MB // 8)) for _ in range(200)]
    queue = deque(np.zeros(MB // 8) for _ in range(6))
    found = rows()
    assert abs(found["history"].bytes - 200 * MB) < 2 * MB
    assert (found["history"].count, found["history"].kind) == (200, "list")
    assert found["history"].shape == (MB // 8,)
    assert found["queue"].count == 6
    assert len(history) + len(queue) == 206


def test_attributes_of_objects_have_their_own_rows() -> None:
    """What an object of the user's class keeps is told by attribute."""
    kept = Kept([np.zeros(MB) for _ in range(3)])
    assert rows()["kept.parts"].bytes > 24 * MB
    assert kept.small == 1


def test_the_same_entry_twice_counts_once() -> None:
    """Entries that are one object take its memory once."""
    one = np.zeros(MB)
    many = [one] * 10
    found = rows()
    assert found["one"].bytes == 8 * MB
    assert "many" not in found
    assert len(many) == 10


def test_mapped_files_are_no_memory(tmp_path: Path) -> None:
    """A mapped file is the kernel's to take back."""
    mapped = np.memmap(tmp_path / "data", np.uint8, "w+", shape=(8 * MB,))
    part = np.asarray(mapped)
    found = rows()
    assert "mapped" not in found
    assert "part" not in found
    assert len(part) == 8 * MB


def test_a_look_keeps_nothing_alive() -> None:
    """What a variable held before it was set anew dies as it does without a look."""
    value: object = Kept([])
    gone = weakref.ref(value)
    rows()
    value = None
    gc.collect()
    assert gone() is None


def test_a_function_that_asks_for_its_locals_is_left_alone() -> None:
    """The dictionary that ``locals`` gave stays as it was."""

    def asks() -> dict[str, object]:
        big = np.zeros(MB)
        mine = locals()
        held.rows([sys._getframe()])
        assert big is mine["big"]
        return mine

    assert set(asks()) == {"big"}


def test_no_code_of_the_job_runs() -> None:
    """Attributes are read past the class."""

    class Odd:
        def __init__(self) -> None:
            self.data = np.zeros(MB)

        def __getattribute__(self, name: str) -> object:
            raise RuntimeError(name)

        def __len__(self) -> int:
            raise RuntimeError

    odd = Odd()
    assert rows()["odd.data"].bytes == 8 * MB
    assert type(odd) is Odd


def test_a_list_that_grows_meanwhile_has_as_many_elements_as_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread appends to it while the look is taken."""
    history = [np.ones(MB, np.uint8) for _ in range(8)]
    measure = held._array

    def growing(value: np.ndarray, size: held.Size, budget: Budget) -> None:
        measure(value, size, budget)
        history.append(np.ones(MB, np.uint8))

    monkeypatch.setattr(held, "_array", growing)
    monkeypatch.setattr(look_budget, "MOST_NS", 10**12)  # what is appended takes time of the look
    found = rows()["history"]
    assert len(history) > 8
    assert (found.count, found.bytes // MB) == (8, 8)


def test_a_look_is_bounded() -> None:
    """A list of a million objects is not walked through."""
    budget = Budget(0)
    deep = [[[[i]] for i in range(100)] for _ in range(10_000)]
    held._size(deep, held.DEPTH, budget)
    assert budget.left > MOST_OBJECTS - 10_000
    assert frames.is_own(__file__)


def test_a_look_is_not_cut_by_what_is_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that lets the thread wait does not end it."""
    monkeypatch.setattr(time, "monotonic_ns", itertools.count(1 << 60).__next__)
    budget = Budget(time.thread_time_ns())
    assert not any(budget.spent() for _ in range(600))


def test_a_dictionary_that_somebody_else_holds_stays() -> None:
    """A library that has asked for a caller's variables keeps them through a look."""

    def calls() -> tuple[dict[str, object], int]:
        big = np.zeros(MB)
        mine = caller_variables()
        rows()
        return mine, len(big)

    def caller_variables() -> dict[str, object]:
        return sys._getframe(1).f_locals

    mine, _ = calls()
    assert "big" in mine
