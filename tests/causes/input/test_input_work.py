"""What the input's threads may hold up outside of the wait."""

from __future__ import annotations

import pytest

from stepscope.causes.input import input_work


@pytest.mark.parametrize(
    ("threads", "usable", "held_up"), [(1, 1, 0.2), (3, 1, 0.3), (1, 2, 0.0)], ids=["one", "three", "room"]
)
def test_threads_that_fill_the_cpus_take_turns_with_the_step(threads: float, usable: float, held_up: float) -> None:
    """Of 40 % outside of the wait the step has its turn among the threads; with a CPU to spare it is not held up."""
    assert input_work.held_up(0.6, 1.0, threads, usable) == pytest.approx(held_up)
    assert input_work.held_up(0.6, 0.5, threads, usable) == pytest.approx(held_up / 2)
