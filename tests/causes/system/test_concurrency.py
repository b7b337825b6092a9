"""How many CPUs a step's work could use: by the ops that are in flight at once, and by how long they take."""

from __future__ import annotations

import pytest
from tests.derive.op_traces import Maker

from stepscope.causes.system.concurrency import of_ops

STEP = 10_000.0
CPUS = 4.0


def traced(ops: dict[str, list[tuple[str, float, float]]], steps: int = 10, delayed: int = 0) -> float:
    """Of steps of 10 ms whose threads run these ops (name, start, us); the last ``delayed`` steps have one CPU only."""
    maker = Maker()
    lines = {thread: maker.thread(thread) for thread in ops}
    at = 0.0
    for number in range(steps):
        slow = 2 if number >= steps - delayed else 1
        maker.step(at, slow * STEP, number)
        maker.call(at + 10, slow * STEP - 20, number + 1)
        for index, (thread, mine) in enumerate(ops.items()):
            for name, start, dur in mine:
                maker.op(lines[thread], name, at + 20 + start + (slow - 1) * index * STEP, dur, number + 1)
        at += slow * STEP + 5
    found, low = of_ops(maker.view(), CPUS)
    assert 1 <= low <= found <= CPUS
    return found


def chain(thread: int, *, count: int = 90, gap: float = 100.0) -> list[tuple[str, float, float]]:
    """Short ops one after the other."""
    return [(f"op{thread}/{i}:Tanh", i * gap, 40.0) for i in range(count)]


def test_ops_one_after_the_other_use_one_cpu() -> None:
    """However many threads the executor hands them to."""
    ops = chain(0)
    assert traced({"one": ops[::2], "two": ops[1::2]}) == pytest.approx(1.0)


def test_ops_at_once_use_a_cpu_each() -> None:
    """Independent chains of short ops run on a CPU each."""
    assert traced({"one": chain(0), "two": chain(1)}) == pytest.approx(2.0)


def test_a_long_op_is_shared_out() -> None:
    """An op of milliseconds uses all CPUs, a short one does not."""
    found = traced({"one": [("product:MatMul", 0.0, 5_000.0), *((n, 5_000 + s, d) for n, s, d in chain(0, count=40))]})
    assert found == pytest.approx(1 + 0.5 * (CPUS - 1), abs=0.01)


def test_steps_that_had_one_cpu_say_nothing() -> None:
    """What could run at once does not where others have the other CPU: the fastest steps are looked at."""
    assert traced({"one": chain(0), "two": chain(1)}, delayed=6) == pytest.approx(2.0)


def test_a_short_op_that_was_taken_off_its_cpu_is_not_long() -> None:
    """One of many that lasts as long as a scheduler's slice was interrupted, and what runs beside it says nothing."""
    first = [("loop/op:Tanh", start, dur) for _, start, dur in chain(0)]
    ops = {"one": [*first[:45], ("loop/op:Tanh", 5_000.0, 3_900.0)], "two": first[51:]}
    assert traced(ops) == pytest.approx(1.0)
