"""When calls that may be steps, or parts of steps, were last recorded: asked now and then on the agent's thread."""

from __future__ import annotations

from stepscope.wire.kinds import Kind, Trait, kinds_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.agent.state import AgentState

MOST = 4_096
"""Newest records looked at: more in half a second are of a loop that is recorded."""
CALLS = frozenset(
    (*kinds_with(Trait.STEP), *kinds_with(Trait.MAKER), *kinds_with(Trait.DETACHED), *kinds_with(Trait.HOT))
)
"""Kinds of calls that show a loop."""


class Quiet:
    """How long no such call has been recorded."""

    __slots__ = ("_kinds", "_seen_ns", "_state", "_written")

    def __init__(self, state: AgentState, but: Iterable[Kind] = ()) -> None:
        """``but``: kinds that do not count."""
        self._state = state
        self._kinds = frozenset(map(int, CALLS - set(but)))
        self._written = 0
        self._seen_ns = 0

    def last(self, now_ns: int) -> int:
        """When a look last found such a record among those since the look before, 0: never. In gaps calls go on."""
        records = self._state.records
        written = records.written()
        new = max(0, min(written - self._written, MOST))
        self._written = written
        in_gap = self._state.duty_cycle.detached and self._seen_ns
        if in_gap or not self._kinds.isdisjoint(records.newest_kinds(new)):
            self._seen_ns = now_ns
        return self._seen_ns
