"""Calls that are counted instead of recorded, folded into COUNTS records about once a second.

The calling thread only ever adds to the entry of its own (name, kind, thread); what was reported already is kept
beside it, so that no lock is needed and a call that arrives during a report is in the next one.
"""

from __future__ import annotations

from stepscope.wire.kinds import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.state import AgentState

_PERIOD_NS = 1_000_000_000
_COUNTS = int(Kind.COUNTS)


class ShortCalls:
    """The accumulators of one process."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self.reset()

    def reset(self) -> None:
        """Forget all; in a forked child, where the parent reports what was counted so far."""
        self._entries: dict[tuple[int, int, int], list[int]] = {}
        self._reported: dict[tuple[int, int, int], tuple[int, int]] = {}
        self.ticking = False
        """Whether the agent's thread flushes. Where there is none, callers do, once a second."""

    def add(self, name: int, kind: int, start_ns: int, dur_ns: int) -> None:
        """Count one call. Entry: calls, summed time, start of the first since the last report, fresh."""
        key = (name, kind, self._state.thread())
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = [0, 0, start_ns, 0]
        if entry[3]:
            entry[2] = start_ns
            entry[3] = 0
        entry[0] += 1
        entry[1] += dur_ns
        if not self.ticking and start_ns - entry[2] > _PERIOD_NS:
            self._report(key, entry)

    def flush(self) -> None:
        """Write what was added since the last flush; one thread at a time calls this."""
        for key, entry in list(self._entries.items()):
            self._report(key, entry)

    def _report(self, key: tuple[int, int, int], entry: list[int]) -> None:
        count, total, first = entry[0], entry[1], entry[2]
        old_count, old_total = self._reported.get(key, (0, 0))
        if count == old_count:
            return
        self._reported[key] = (count, total)
        entry[3] = 1
        name, kind, thread = key
        self._state.write(first, total - old_total, count - old_count, name, _COUNTS, kind << 8, thread)
