"""Calls that are counted instead of recorded, folded into COUNTS records about once a second.

Two reasons: the call was too short to be worth a record (``add``), or there are too many records (``wire.ring`` counts
into the same table, see ``agent.sampling.governor``). The calling thread only ever adds to the entry of its own name,
kind and thread. The amount already reported is kept separately, so no lock is needed and a call that arrives during a
report goes into the next one.
"""

from __future__ import annotations

from stepscope.wire.kinds import Kind
from stepscope.wire.ring import count_key, new_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.wire.ring import CountedCalls, Write

_PERIOD_NS = 1_000_000_000
_MAX_ENTRIES = 4_096
"""Number of entries above which those idle for a second are removed: a job may make a thread for every batch."""
_COUNTS = int(Kind.COUNTS)


class ShortCalls:
    """The accumulators of one process."""

    def __init__(self, write: Write, thread: Callable[[], int]) -> None:
        self._write = write
        self._thread = thread
        self.entries: dict[int, CountedCalls] = {}
        """Entries by ``wire.ring.count_key``; always the same object."""
        self.ticking = False
        """Whether the agent's thread flushes. Without it callers do, once a second."""

    def reset(self) -> None:
        """Forget all entries: in a forked child, the parent reports the earlier calls."""
        self.entries.clear()
        self.ticking = False

    def add(self, name: int, kind: int, start_ns: int, dur_ns: int) -> None:
        """Count one call."""
        key = count_key(name, kind, self._thread())
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = new_entry(key)
        if entry.counted == entry.reported:
            entry.first_ns = start_ns
        entry.counted += 1
        entry.total_ns += dur_ns
        if not self.ticking and start_ns - entry.first_ns > _PERIOD_NS:
            self._report(entry)

    def thinnable(self) -> int:
        """Number of calls subject to thinning so far, written or counted."""
        return sum(entry.calls for entry in list(self.entries.values()))

    def counted(self) -> int:
        """Number of calls counted so far instead of written."""
        return sum(entry.counted for entry in list(self.entries.values()))

    def flush(self) -> None:
        """Write what was added since the last flush. Only one thread at a time may call this."""
        crowded = len(self.entries) > _MAX_ENTRIES
        for key, entry in list(self.entries.items()):
            if entry.counted != entry.reported:
                self._report(entry)
            elif crowded:
                self.entries.pop(key, None)

    def _report(self, entry: CountedCalls) -> None:
        count, total, first = entry.counted, entry.total_ns, entry.first_ns
        calls, dur = count - entry.reported, total - entry.reported_ns
        entry.reported, entry.reported_ns = count, total
        self._write(first, dur, calls, entry.name, _COUNTS, entry.kind << 8, entry.thread)
