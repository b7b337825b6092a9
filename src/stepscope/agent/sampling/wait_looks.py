"""Looks at what the threads of the steps wait for: at most ten times a second, and only where that can say something.

A look costs 25 to 65 us of CPU time with cold caches, as much as a sample. So there is one in every other tick at most,
none at a thread that used the CPU for its whole period, none at one that waits inside of the framework for its ops, and
at most a few other threads than the main one are looked at: those that write records. In a second in which a thread was
seen to wait, its counters are read too: they say how often it waits, and how much it reads and writes with each call.
Those of the main thread are read as well, ever more rarely: what reads from the page cache never waits.
"""

from __future__ import annotations

from stepscope.agent.core import frames
from stepscope.agent.core.threads import native_of
from stepscope.agent.sampling.wait_table import WaitTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from stepscope.agent.sampling.lock_watch import LockWatch
    from stepscope.agent.state import AgentState

_EVERY_NS = 100_000_000
MOST_THREADS = 4
"""Other threads than the main one that are looked at in one tick."""
_LEAST_PART = 8
"""A thread that waited for less than one part in so many of its period is not looked at."""
_MOST_CODES = 10_000
_PER_DOUBLING = 3
"""Bits: the main thread's counters are read in each of the first 8 seconds, then four times until twice as many."""
_FRAMEWORK = ("/tensorflow/", "/keras/", "/tf_keras/")
_COUNTERS = {
    b"voluntary_ctxt_switches": "waits",
    b"syscr": "reads",
    b"syscw": "writes",
    b"rchar": "read_bytes",
    b"wchar": "written_bytes",
}
"""Names in ``status`` and ``io`` of a thread, and ours. Source: proc(5)."""


class WaitLooks:
    """Who is looked at when; used by the agent's thread only."""

    def __init__(self, state: AgentState, locks: LockWatch) -> None:
        self._state = state
        self._locks = locks
        self._table = WaitTable(state)
        self._due = 0
        self._rests = False
        """Whether the last tick looked."""
        self._framework: dict[int, bool] = {}
        """Whether a code object, by identity, is the framework's; one that takes another's place costs a look."""
        self._waiting: set[int] = set()
        """Threads seen since the last second in a call of which counters say more."""
        self._second = 0

    def due(self, now: int) -> bool:
        """Whether this tick looks. The next one never does: where ticks are rare, looks would make them rarer."""
        self._rests = not self._rests and now >= self._due
        if self._rests:
            self._due = now + _EVERY_NS
        return self._rests

    def worth(self, frame: FrameType, waited: int, period: int) -> bool:
        """Whether a look at the thread of ``frame`` can say what it waits for outside of the framework."""
        if waited * _LEAST_PART < period:
            return False
        code = frame.f_code
        known = self._framework.get(id(code))
        if known is None:
            if len(self._framework) >= _MOST_CODES:
                self._framework.clear()
            file = code.co_filename
            known = self._framework[id(code)] = any(part in file for part in _FRAMEWORK) and not frames.is_own(file)
        return not known

    def look(self, ident: int, now: int) -> tuple[int, int]:
        """(``LockState``, id of the ``wait`` line) of a thread."""
        lock = self._locks.look(ident)
        if not lock:
            return 0, 0
        wait = self._table.id_of(lock, self._locks.text, now)
        if self._table.counts:
            self._waiting.add(ident)
        return lock, wait

    def tick(self, main: int) -> None:
        """Once a second: log the counters of threads that were seen to wait; at times those of ``main``, an ident."""
        waiting, self._waiting = self._waiting, set()
        self._second += 1
        if self._second % (1 << max(0, self._second.bit_length() - _PER_DOUBLING)) == 0:
            waiting.add(main)
        for ident in list(waiting)[:MOST_THREADS]:
            native = native_of(ident)
            found = _counters(native) if native else {}
            if found:
                line: dict[str, object] = {"t": "thread_counts", "at": self._state.now()}
                line.update(thread=self._state.threads.of(ident), **found)
                self._state.log(line)


def _counters(native: int) -> dict[str, int]:
    """The counters of one thread; empty if it has ended."""
    found = {}
    for name in ("io", "status"):
        try:
            with open("/proc/self/task/%d/%s" % (native, name), "rb") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, value = line.partition(b":")
            if key in _COUNTERS:
                found[_COUNTERS[key]] = int(value)
    return found
