"""A job that faults memory in again is noticed within seconds; one that starts up is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
from tests.derive.sessions import S, filled

from stepscope.collector import recorder as collector
from stepscope.model.session.session import Manifest
from stepscope.sidecar.triggers.page_faults import GOING_ON, LOOKS, MAX_TIMES, PageFaults
from stepscope.sidecar.triggers.trigger import AGAIN_NS, LastAnalysis
from stepscope.tables.records import MemoryTable, ProcessTable, Table
from stepscope.wire.kinds import Kind

FAULT_NS = 1_600


class Recording:
    """A recording of one process, as far as it is looked at."""

    def __init__(self) -> None:
        self.at = 0
        self.manifest = Manifest(mode="run")
        self.faults = [0]
        self.huge_per_second = 0
        self.counts: dict[tuple[int, int], int] = {}
        recent = SimpleNamespace(counts=self.counts)
        self.drainer = SimpleNamespace(workers={"w": SimpleNamespace(key="w", pid=100, closed=False, recent=recent)})
        self.sampling = SimpleNamespace(tables=self.tables, processes=lambda: self.tables()["process"])

    def tables(self) -> dict[str, list[Table]]:
        at = np.arange(len(self.faults), dtype=np.int64) * S
        faults = np.array(self.faults, np.int64)
        process = filled(ProcessTable, len(at), at_ns=at, pid=at * 0 + 100, minor_faults=faults, cpu_user_ns=at)
        cost = filled(
            MemoryTable,
            len(at) + 5,
            at_ns=np.arange(len(at) + 5, dtype=np.int64) * S,
            fault_ns=np.full(len(at) + 5, FAULT_NS),
            huge_faults=np.arange(len(at) + 5) * self.huge_per_second,
            huge_fault_ns=np.full(len(at) + 5, 400_000),
        )
        return {"process": [process], "memory": [cost]}

    def second(self, *, share: float, calls: int) -> None:
        """A second with so much of its CPU time in faults, and so many calls of a function."""
        self.faults.append(self.faults[-1] + round(share * S / FAULT_NS))
        key = (int(Kind.FUNCTION), 1)
        self.counts[key] = self.counts.get(key, 0) + calls


def seen_after(recording: Recording, seconds: list[tuple[float, int]], *, last_ns: int = 0) -> list[bool]:
    trigger = PageFaults(cast("collector.Recording", recording))
    found = []
    for second, (share, calls) in enumerate(seconds):
        recording.second(share=share, calls=calls)
        found.append(trigger.tick(second * S, LastAnalysis(at_ns=last_ns)))
    return found


def test_faults_of_every_second_are_seen_soon() -> None:
    """After as many looks as it takes, again soon as the analysis may want more steady steps, then more rarely."""
    found = seen_after(Recording(), [(0.1, 10)] * 40)
    assert [second for second, seen in enumerate(found) if seen] == [GOING_ON, GOING_ON + LOOKS, GOING_ON + 3 * LOOKS]
    assert sum(found) == MAX_TIMES


def test_huge_pages_are_seen_by_what_they_cost() -> None:
    """A hundred faults a second are nothing, unless each is given a huge page."""
    for given, seen in ((0, False), (100, True)):
        recording = Recording()
        recording.huge_per_second = given
        assert any(seen_after(recording, [(100 * FAULT_NS / S, 10)] * 20)) == seen


def test_a_start_without_steps_is_not() -> None:
    """Imports fault, too; they make no steps."""
    assert not any(seen_after(Recording(), [(0.3, 0)] * 20))


def test_one_quiet_second_ends_it() -> None:
    """Bursts are not faults of every step."""
    assert not any(seen_after(Recording(), [(0.3, 10), (0.3, 10), (0.0, 10)] * 8))


def test_few_faults_are_not() -> None:
    """Below the detector's threshold nothing is to be analysed early."""
    assert not any(seen_after(Recording(), [(0.02, 10)] * 20))


def test_what_an_analysis_has_just_seen_is_not_asked_for_again() -> None:
    """The first seconds after an analysis are not looked at, and under another mode than ``run`` none is."""
    quiet = seen_after(Recording(), [(0.1, 10)] * 20, last_ns=1)
    assert quiet.index(True) == AGAIN_NS // S + 1 + GOING_ON
    enabled = Recording()
    enabled.manifest = Manifest(mode="enable")
    assert not any(seen_after(enabled, [(0.1, 10)] * 20))
