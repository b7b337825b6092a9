"""Which values that are read have records of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepscope.agent.probes.reads import QUIET_NS, Reads
from stepscope.agent.probes.support import SHORT_NS
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.agent.state import AgentState

START = 1_000_000_000


def wrote(state: AgentState, kind: Kind, records: int) -> None:
    """Write so many records."""
    for _ in range(records):
        state.write(1, 1, 0, 1, int(kind), 0, 1)


@pytest.mark.parametrize("kind", [Kind.FUNCTION, Kind.LOOP, Kind.NEXT, Kind.GRADIENT, Kind.APPLY, Kind.HOOK])
def test_only_long_reads_are_recorded_where_something_else_repeats(opened: AgentState, kind: Kind) -> None:
    """A call of any kind that shows a loop is enough, however much garbage is collected in it."""
    reads = Reads(opened)
    wrote(opened, kind, 1)
    wrote(opened, Kind.GC, 1000)
    reads.tick(START)
    assert reads.least_ns == SHORT_NS


def test_each_read_is_recorded_where_nothing_else_repeats(opened: AgentState) -> None:
    """Also once the other calls are over: the program has changed its phase."""
    reads = Reads(opened)
    wrote(opened, Kind.FUNCTION, 1)
    reads.tick(START)
    wrote(opened, Kind.SYNC, 10)
    reads.tick(START + QUIET_NS)
    assert reads.least_ns == 0


def test_a_gap_is_not_quiet(opened: AgentState) -> None:
    """While calls are only counted, and right after, no read is recorded that was not before."""
    reads = Reads(opened)
    wrote(opened, Kind.FUNCTION, 1)
    reads.tick(START)
    opened.duty_cycle.detached = True
    reads.tick(START + 10 * QUIET_NS)
    opened.duty_cycle.detached = False
    reads.tick(START + 11 * QUIET_NS - 1)
    assert reads.least_ns == SHORT_NS
