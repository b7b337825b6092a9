"""When the collector spares memory, when it leaves, and how soon it looks again."""

from __future__ import annotations

import os
import select
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from stepscope.collector import room_watch
from stepscope.collector.room_watch import RoomWatch
from stepscope.native.cgroups.room import Room

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording

MIB = 1 << 20
OWN = 70 * MIB


class Left(BaseException):
    """The process would have ended."""


class Surroundings:
    """A group whose room the test sets, and a recording in it."""

    def __init__(self, run: Path, left: int) -> None:
        self.left = left
        self.recording = SimpleNamespace(run=run, sampling=SimpleNamespace(spare=False))

    def watch(self) -> RoomWatch:
        """A watch that has looked once; its thread does not run."""
        return RoomWatch(cast("Recording", self.recording))


@pytest.fixture
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    """Plenty of room at first."""
    found = Surroundings(tmp_path, 3000 * MIB)

    def tight(_host: Path) -> Room:
        return Room(limit_bytes=4000 * MIB, held_bytes=4000 * MIB - found.left)

    monkeypatch.setattr("stepscope.collector.room_watch.room.tightest", tight)
    monkeypatch.setattr(RoomWatch, "own_bytes", lambda _self: OWN)
    monkeypatch.setattr(
        "stepscope.collector.room_watch.threading.Thread", lambda **_more: SimpleNamespace(start=lambda: None)
    )

    def leave(_code: int) -> None:
        raise Left

    monkeypatch.setattr(os, "_exit", leave)
    return found


@pytest.mark.parametrize(
    ("left", "spares", "leaves"),
    [(2 * OWN, False, False), (2 * OWN - 1, True, False), (OWN, True, False), (OWN - 1, True, True)],
)
def test_the_limits_are_what_we_hold(around: Surroundings, left: int, *, spares: bool, leaves: bool) -> None:
    """Below twice that nothing is done that can be left out; below it, the collector leaves and its loop is woken."""
    watch = around.watch()
    around.left = left
    watch.look()
    assert (around.recording.sampling.spare, watch.leaving is not None) == (spares, leaves)
    assert bool(select.select([watch.wakes], [], [], 0)[0]) == leaves
    if watch.leaving is not None:
        assert (watch.leaving.left_bytes, watch.leaving.own_bytes) == (left, OWN)


def test_room_that_comes_back_is_used(around: Surroundings) -> None:
    """Analyses go on when the job has freed memory."""
    watch = around.watch()
    around.left = OWN + 1
    watch.look()
    around.left = 3 * OWN
    watch.look()
    assert not around.recording.sampling.spare


def test_a_job_that_is_faster_than_the_store_is_not_waited_for(around: Surroundings) -> None:
    """When half of what was to be left has gone, the process ends at once, with the mark."""
    watch = around.watch()
    around.left = OWN - 1
    watch.look()
    around.left = OWN // 2 - 1
    with pytest.raises(Left):
        watch.look()
    assert (around.recording.run / "gave-way.json").exists()


def test_looks_come_before_the_room_can_be_filled(around: Surroundings) -> None:
    """The less is left above what we hold, the sooner; at most a second, at least 50 ms."""
    watch = around.watch()
    pauses = []
    for left in (3000 * MIB, 800 * MIB, 300 * MIB, OWN + MIB):
        around.left = left
        pauses.append(watch.look())
    assert pauses[0] == room_watch.MOST_S
    assert pauses == sorted(pauses, reverse=True)
    assert pauses[-1] == room_watch.LEAST_S
    assert pauses[1] * room_watch.FIRST_TOUCH_PER_S <= 800 * MIB - OWN


def test_without_a_limit_nothing_is_watched(around: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread, no look."""
    monkeypatch.setattr("stepscope.collector.room_watch.room.tightest", lambda _host: None)
    assert around.watch().pause_s == 0


def test_what_we_hold_is_memory_and_the_files_in_memory(tmp_path: Path) -> None:
    """Rings and logs count where they are in the host's memory."""
    folder = tmp_path / "procs" / "1-1"
    folder.mkdir(parents=True)
    (folder / "ring").write_bytes(b"x" * MIB)
    in_memory = tmp_path.stat().st_dev == Path("/dev/shm").stat().st_dev
    assert room_watch._in_memory(tmp_path) == (MIB if in_memory else 0)
    watch = RoomWatch(cast("Recording", SimpleNamespace(run=tmp_path, sampling=SimpleNamespace(spare=False))))
    assert watch.own_bytes() > 10 * MIB
