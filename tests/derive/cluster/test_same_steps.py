"""Which traced steps of several tasks are the same step of the job."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stepscope.derive.cluster import same_steps

MS = 1_000_000


def ends(first: int, count: int, *, late_ms: float = 0.0) -> npt.NDArray[np.int64]:
    """Begin of step ``first`` and ends of so many, of a job whose steps take 10 ms, left so much later by this task."""
    return ((np.arange(first, first + count + 1) * 10 + late_ms) * MS).astype(np.int64)


def test_who_began_a_step_earlier_has_one_less_in_common() -> None:
    """A moment between the two tasks' ends of one step puts them a step apart; the rest is the same."""
    found = same_steps.of({"worker 0": ends(100, 11, late_ms=1.0), "worker 1": ends(99, 11)})
    assert (found.count, found.first, found.apart) == (10, {"worker 0": 0, "worker 1": 1}, ())


def test_the_clock_of_a_task_may_end_its_steps_later_but_not_by_a_step() -> None:
    """Ends of the same step differ by how late a task leaves it."""
    found = same_steps.of({"a": ends(5, 6), "b": ends(5, 6, late_ms=2.0), "c": ends(7, 6, late_ms=-2.0)})
    assert (found.count, found.first) == (4, {"a": 2, "b": 2, "c": 0})


def test_steps_that_end_in_between_are_not_the_same() -> None:
    """A task whose ends lie half a step away does not wait for the others."""
    found = same_steps.of({"a": ends(5, 6), "b": ends(5, 6, late_ms=4.5)})
    assert (found.count, found.first, found.apart) == (6, {"a": 0}, ("b",))


def test_a_task_that_came_too_late_has_none_in_common() -> None:
    """It steps with the others, and traced other steps."""
    found = same_steps.of({"a": ends(5, 6), "b": ends(50, 6)})
    assert (found.count, found.apart) == (0, ())


def test_without_whole_steps_there_is_nothing_to_compare() -> None:
    """Tasks that only serve trace none."""
    assert same_steps.of({"ps 0": np.empty(0, np.int64)}).count == 0


def test_on_a_full_machine_the_order_of_the_ends_tells() -> None:
    """One task leaves each step much later than the other, by less than the step after it takes; steps vary."""
    one = np.cumsum([0, 70, 300, 40, 180, 60, 90]) * MS
    late = np.array([30, 60, 20, 30, 55, 35, 50]) * MS
    assert same_steps.of({"a": one, "b": one + late}).first == {"a": 0, "b": 0}
    other = np.cumsum([35, 100, 100, 100, 100, 100, 100]) * MS
    assert same_steps.of({"a": one, "b": other}).apart == ("b",)
