"""When a capture begins that is aimed at something: so many steps after its moment."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stepscope.agent.capture.orders import Aim
from stepscope.agent.capture.watch import StepWatch
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

STEP = (0, 1, 1, 7, int(Kind.EXECUTION), 0, 1)
"""A record of the anchor (2, 7) on thread 1."""


def followed(watch: StepWatch, aim: Aim, job: Callable[[], None]) -> None:
    """Let the watch wait for its aim while the job makes records."""
    waiting = threading.Thread(target=watch.follow, args=(aim,))
    waiting.start()
    while watch._aim is None and waiting.is_alive():
        waiting.join(0.001)
    job()
    waiting.join()


def aim(**fields: object) -> Aim:
    """An aim at saves, four steps after one."""
    return Aim({"pairs": [[11, 3]], "flag": 0, "longer_ns": 0, "skip": 4, "seconds": 60, **fields})


def test_an_aim_counts_steps_from_its_moment() -> None:
    """Steps before the save do not count; after it, four do."""
    watch = StepWatch(frozenset({(2, 7)}))

    def job() -> None:
        for _ in range(3):
            watch.record(*STEP)
        watch.record(0, 1, 0, 3, 11, 0, 1)
        for _ in range(4):
            watch.record(*STEP)

    followed(watch, aim(), job)
    assert (watch.ends, watch._aimed_at) == (7, 3)


def test_a_slow_step_is_the_moment_that_it_began() -> None:
    """A step longer than the aim's limit: its own end is the first that counts."""
    watch = StepWatch(frozenset({(2, 7)}))

    def job() -> None:
        for at in (0, 10, 100, 110, 120, 130):
            watch.record(at, 1, 1, 7, int(Kind.EXECUTION), 0, 1)

    followed(watch, aim(pairs=[], longer_ns=50), job)
    assert (watch._aimed_at, watch.ends) == (2, 6)


def test_a_record_without_the_aim_s_flag_is_no_moment() -> None:
    """Only the end of the iterator counts, not each of its elements."""
    watch = StepWatch(frozenset({(2, 7)}))

    def job() -> None:
        watch.record(0, 1, 0, 3, 11, 0, 1)
        watch.record(*STEP)
        watch.record(0, 1, 0, 3, 11, int(Flag.END), 1)

    followed(watch, aim(flag=int(Flag.END), skip=0), job)
    assert watch._aimed_at == 1


def test_an_aim_without_its_moment_ends_with_its_time_or_when_told() -> None:
    """The capture then begins at once."""
    watch = StepWatch(frozenset({(2, 7)}))
    watch.follow(aim(seconds=0.01))
    assert watch._aimed_at == -1
    followed(watch, aim(), watch.end)
    assert watch._aimed_at == -1


class Marker:
    """A step marked in the trace."""

    def __init__(self, _name: str, **_stats: object) -> None:
        """It begins."""

    def Stop(self) -> None:
        """It ends."""


def test_a_joint_capture_marks_from_the_moment_that_all_tasks_share() -> None:
    """Steps that begin before it are recorded and not marked; begin and end of each marked one are kept."""
    watch = StepWatch(frozenset({(2, 7)}))
    watch.mark(Marker, 2, from_ns=25)
    for at in (0, 10, 20, 30, 40, 50):
        watch.record(at, 1, 1, 7, int(Kind.EXECUTION), 0, 1)
    assert (watch.marked, watch.ends_ns) == (2, [31, 41, 51])
    watch.wait_marked(60.0, bool)


def test_a_joint_capture_whose_moment_has_passed_begins_at_once() -> None:
    """A process that was asked late records what is left."""
    watch = StepWatch(frozenset({(2, 7)}))
    watch.follow(aim(begin_ns=1, mark_ns=2))
    assert watch._aimed_at == -1
