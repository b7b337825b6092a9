"""Measures the cost of a record once, in the job's own process, so that the session can account for it.

Runs in the agent's thread after two seconds and writes into a private buffer of the ring's layout. It measures the
thread's CPU time, not wall time: other threads may hold the GIL meanwhile. The lowest of several short rounds counts,
because every disturbance makes a round longer.

That is the cost in a loop that does nothing else. In a training step, whose data and code have taken the caches, a call
costs ten times as much and more; ``report.sections.overhead`` says how that is accounted for.
"""

from __future__ import annotations

import itertools
import time

from stepscope.wire.ring import HEADER_BYTES, RECORD_BYTES, make_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.state import AgentState

AFTER_NS = 2_000_000_000
_ROUNDS = 5
_CALLS = 150
"""Calls per round: about 0.1 ms, far below the interval in which the GIL changes hands (5 ms)."""
_SLOTS = 4096


class Calibration:
    """Waits for its time, measures once, logs the ``cost`` line."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._done = False

    def tick(self, now_ns: int) -> None:
        """Measure if it is time and has not been done."""
        if self._done or now_ns - self._state.lines.started_ns < AFTER_NS:
            return
        self._done = True
        record, wrapped = measure(self._state)
        self._state.duty_cycle.calibrated(wrapped)
        line: dict[str, object] = {"t": "cost", "at": self._state.now(), "record_ns": record}
        line.update(wrapper_ns=max(0, wrapped - record), samples=_ROUNDS * _CALLS)
        self._state.log(line)


def measure(state: AgentState) -> tuple[int, int]:
    """(one write; one wrapped call with its two clock readings, thread id and write) in ns of CPU time each."""
    buffer = bytearray(HEADER_BYTES + _SLOTS * RECORD_BYTES)
    write, _ = make_write(buffer, _SLOTS, itertools.count().__next__)
    now = state.now
    thread = state.thread

    def call() -> None:
        return None

    def wrapped() -> None:
        start = now()
        try:
            return call()
        finally:
            write(start, now() - start, 0, 1, 1, 0, thread())

    clock = time.thread_time_ns
    best = [1 << 60] * 3
    calls = range(_CALLS)
    for _ in range(_ROUNDS):
        t0 = clock()
        for _call in calls:
            call()
        t1 = clock()
        for _call in calls:
            write(t0, 5, 0, 1, 1, 0, 1)
        t2 = clock()
        for _call in calls:
            wrapped()
        t3 = clock()
        best = [min(best[0], t1 - t0), min(best[1], t2 - t1), min(best[2], t3 - t2)]
    return best[1] // _CALLS, max(0, best[2] - best[0]) // _CALLS
