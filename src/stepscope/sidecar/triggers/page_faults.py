"""Notices within seconds, from counters alone, that a running job faults its memory in again and again.

The analysis decides what faults cost.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from stepscope.causes.system import steady_page_faults
from stepscope.model.session.session import ASKED
from stepscope.sidecar.triggers import repeated_calls
from stepscope.sidecar.triggers.trigger import AGAIN_NS
from stepscope.tables.records import MemoryTable, ProcessTable

if TYPE_CHECKING:
    from stepscope.causes.system.steady_page_faults import FaultCost
    from stepscope.collector.recorder import Recording
    from stepscope.collector.recording.drain import WorkerDrain
    from stepscope.sidecar.triggers.trigger import LastAnalysis, Wish

LOOKS = 3
"""About a second each; the counters are looked at after so many: a window takes eight seconds more, jobs are short."""
MIN_RATIO = 0.03
"""Share of the CPU time in each interval between looks. The detector's threshold is a share of the steps' time."""
GOING_ON = LOOKS + 1
"""Intervals in which it must have made steps: the first of them is warm-up, and the analysis wants as many as ``LOOKS``
of steady steps."""
MIN_CALLS = 4
MAX_TIMES = 3
"""The analysis may see it otherwise: then it is not run for this again and again."""


class PageFaults:
    """Looks at the newest samples of each measured process, under ``run``."""

    what = "watching page faults"

    def __init__(self, recording: Recording) -> None:
        """Nothing was seen yet."""
        self._recording = recording
        self._calls: dict[str, deque[int]] = {}
        self._times = 0
        self._wait = 0
        """Looks until the next at the counters."""
        self.wanted: tuple[Wish, ...] = ()
        """None: the analysis asks."""

    def tick(self, now_ns: int, last: LastAnalysis) -> bool:
        """Whether a process that makes steps has faulted in each of the last looks, and no new analysis has seen it."""
        new = bool(last.at_ns) and now_ns - last.at_ns < AGAIN_NS
        if new or self._recording.manifest.mode not in ASKED or self._times >= MAX_TIMES:
            return False
        going_on = [w.pid for w in self._recording.drainer.workers.values() if self._goes_on(w) and not w.closed]
        self._wait -= 1
        if not going_on or self._wait > 0:
            return False
        tables = self._recording.sampling.tables()
        memory = MemoryTable.concat(t for t in tables.get("memory", []) if isinstance(t, MemoryTable))
        cost = steady_page_faults.cost_of(memory)
        processes = [t for t in tables.get("process", []) if isinstance(t, ProcessTable)]
        found = cost is not None and any(_faults(processes, pid, memory, cost) for pid in going_on)
        self._times += found
        # The tables are made of the rows again for each look at them. Steps may be steady later than is thought here.
        self._wait = LOOKS << max(0, self._times - 1)
        return found

    def _goes_on(self, worker: WorkerDrain) -> bool:
        """Whether it has made steps in each of the last intervals."""
        history = self._calls.setdefault(worker.key, deque(maxlen=GOING_ON + 1))
        history.append(repeated_calls.count(worker))
        return len(history) > GOING_ON and history[0] >= MIN_CALLS and history[-1] > history[0]


def _faults(processes: list[ProcessTable], pid: int, memory: MemoryTable, cost: FaultCost) -> bool:
    """Whether each of the newest intervals spent its share in faults."""
    parts: list[ProcessTable] = []
    for part in reversed(processes):
        parts.insert(0, part.take(part.pid == pid))
        if sum(map(len, parts)) > LOOKS:
            break
    rows = ProcessTable.concat(parts)
    if len(rows) <= LOOKS:
        return False
    newest = rows.take(slice(len(rows) - LOOKS - 1, None))
    spent = steady_page_faults.faulting_ns(newest, steady_page_faults.huge_faults(newest, memory, cost), cost)
    used = np.maximum(1, np.diff(newest.cpu_user_ns + newest.cpu_system_ns))
    return bool((spent >= MIN_RATIO * used).all())
