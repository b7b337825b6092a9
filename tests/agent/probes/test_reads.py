"""Which values that are read have records of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepscope.agent.probes.support import SHORT_NS
from stepscope.agent.probes.tensorflow.sync import LOOK_NS, LOOKED_AT, Reads
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.agent.state import AgentState

START = 1_000_000_000


def wrote(state: AgentState, kind: Kind, records: int) -> None:
    """Write so many records."""
    for _ in range(records):
        state.write(1, 1, 0, 1, int(kind), 0, 1)


@pytest.mark.parametrize("kind", [Kind.FUNCTION, Kind.LOOP, Kind.NEXT, Kind.GRADIENT, Kind.APPLY, Kind.SESSION_RUN])
def test_only_long_reads_are_recorded_where_something_else_repeats(opened: AgentState, kind: Kind) -> None:
    """A call of any kind that may be a step among the newest records is enough."""
    reads = Reads(opened)
    wrote(opened, kind, 1)
    wrote(opened, Kind.SYNC, LOOKED_AT // 2)
    reads.tick(START)
    assert reads.least_ns == SHORT_NS


def test_each_read_is_recorded_where_nothing_else_repeats(opened: AgentState) -> None:
    """Also once the other calls are over: the program has changed its phase."""
    reads = Reads(opened)
    wrote(opened, Kind.FUNCTION, 1)
    reads.tick(START)
    wrote(opened, Kind.SAMPLE, LOOKED_AT)
    reads.tick(START + LOOK_NS)
    assert reads.least_ns == 0
