"""Keeps the record rate within its budget: above it, most records of fast kinds are counted instead of written.

A record with its wrapper costs about 0.7 us; 4,000 a second are 0.3 % of one core. Records that carry the shape of the
run (steps, loops, traces, saves, samples) are always written. Of every other name one record in k is written, with
``Flag.THINNED``, and the others go to COUNTS. Flagged calls (raised, traced, end, first) are always written.
"""

from __future__ import annotations

from stepscope.wire.kinds import Flag, Trait, kinds_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.state import AgentState

LIMIT_PER_S = 4_000
"""Records a second above which thinning starts; it ends below half of it. Source: decision 0004, level 0."""
THINNABLE = frozenset(map(int, kinds_with(Trait.THINNABLE)))
_ALWAYS = int(Flag.TRACED | Flag.RAISED | Flag.END | Flag.FIRST)
_THINNED = int(Flag.THINNED)
_PERIOD_NS = 1_000_000_000


class Governor:
    """Watches the rate, once a second, from the agent's thread."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._at = state.now()
        self._written = state.records.written()
        self._thinnable = 0
        self.every = 1
        """Interval k at present: one in k records is written."""

    def tick(self, now_ns: int) -> None:
        """Check the rate of the last second; start or end thinning."""
        elapsed = now_ns - self._at
        if elapsed < _PERIOD_NS:
            return
        written, thinnable = self._state.records.written(), self._state.records.thinnable()
        counted = (thinnable - self._thinnable) * (self.every - 1) // self.every
        rate = (written - self._written + counted) * _PERIOD_NS // elapsed
        self._at, self._written, self._thinnable = now_ns, written, thinnable
        every = self.every
        if rate > LIMIT_PER_S:
            every = max(every, 2 + rate // LIMIT_PER_S)
        elif rate < LIMIT_PER_S // 2:
            every = 1
        if every != self.every:
            self._set(every, rate)

    def _set(self, every: int, rate: int) -> None:
        if self.every == 1:
            text = "the record rate is %d per second: one in %d fast calls is recorded, the others are counted" % (
                rate,
                every,
            )
            self._state.lines.diagnostic("DX910", text)
        self.every = every
        self._state.records.thin(every, THINNABLE, _ALWAYS, _THINNED)
