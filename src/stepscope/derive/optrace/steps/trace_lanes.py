"""The threads and streams of an op trace as lanes: who worked when, for whom, and who waited."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.device import device_work
from stepscope.derive.optrace.host import event_nesting, thread_pieces
from stepscope.derive.optrace.host.activity import Activity
from stepscope.tables.optrace import Category, LineKind, PlaneKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.device.launch_times import Launches
    from stepscope.derive.optrace.host.activity import Domain
    from stepscope.derive.optrace.host.thread_pieces import Pieces
    from stepscope.tables.optrace import Line, OpTrace
    from stepscope.tables.records import Bool


class Side(Enum):
    """For whom a lane works."""

    STEP = "step"
    INPUT = "input"
    DEVICE = "device"


class Lane(Struct, frozen=True, kw_only=True):
    """One thread's work for one side, or one stream. Lists are by time; pieces do not overlap."""

    line: int
    plane: int
    side: Side
    starts: list[int]
    ends: list[int]
    events: list[int]
    waits: list[bool]
    """Whether each piece is a wait for work elsewhere."""
    work_ends: list[int]
    """Ends of pieces for which others may wait: of work, and of waits for a batch."""

    def at(self, time: int) -> int:
        """Position of the last piece that begins before ``time``; -1 for none."""
        return bisect_left(self.starts, time) - 1

    def finished(self, time: int) -> int:
        """End of the last piece of work that ended until ``time``; -1 for none."""
        i = bisect_right(self.work_ends, time) - 1
        return self.work_ends[i] if i >= 0 else -1


class Lanes(Struct, frozen=True, kw_only=True):
    """All lanes of a trace used by the steps or their input."""

    lanes: tuple[Lane, ...]
    main: Lane | None
    """The thread that makes the steps; None if a device's line shows them."""
    get_next: frozenset[int]
    """Events that wait for a batch."""
    launched: Mapping[int, tuple[int, int]]
    """Host line of the launch of each piece of device work, and the time at which the call returned."""

    def of(self, *sides: Side) -> tuple[Lane, ...]:
        """Lanes of some sides."""
        return tuple(lane for lane in self.lanes if lane.side in sides)

    def host(self, line: int) -> Lane | None:
        """The step's work on a host thread."""
        return next((lane for lane in self.lanes if lane.line == line and lane.side is Side.STEP), None)


def build(
    trace: OpTrace, domain: Domain, windows: Intervals, line: int, *, waiting: Bool, launches: Launches | None
) -> Lanes:
    """The lanes of a trace within some of its steps.

    Args:
        trace: the trace.
        domain: the activities of its host events.
        windows: the steps, disjoint and sorted.
        line: index of the line that holds them.
        waiting: bool[event], own times that are no work, in addition to ``domain.blocked``: calls of stages that only
            hand over what their own threads make.
        launches: the device work that makes up the steps, if there is any.
    """
    starts, ends = trace.events.start_ns, trace.events.end_ns
    marks = np.isin(trace.categories(), (Category.STEP, Category.MEMORY))
    inside = (intervals.clipped_sum(starts, ends, windows) > 0) & ~marks
    asks = domain.host & (domain.activity == Activity.GET_NEXT)
    found: list[Lane] = []
    for side, of_input in ((Side.STEP, False), (Side.INPUT, True)):
        rows = np.flatnonzero(domain.host & (domain.of_input == of_input) & inside)
        pieces = thread_pieces.build(trace, rows, domain.parent)
        found += _split(trace, side, pieces, domain.blocked | waiting, asks)
    found += _device_lanes(trace, inside)
    return Lanes(
        lanes=tuple(found),
        main=next((lane for lane in found if lane.line == line and lane.side is Side.STEP), None),
        get_next=frozenset(np.flatnonzero(asks & inside).tolist()),
        launched=_launched(trace, launches) if launches is not None else {},
    )


def _launched(trace: OpTrace, launches: Launches) -> dict[int, tuple[int, int]]:
    known = launches.known
    lines = trace.events.line[launches.call[known]].tolist()
    calls = zip(lines, launches.returned_ns[known].tolist(), strict=True)
    return dict(zip(launches.work[known].tolist(), calls, strict=True))


def _split(trace: OpTrace, side: Side, pieces: Pieces, waits: Bool, asks: Bool) -> Iterator[Lane]:
    for line in np.unique(pieces.line).tolist():
        mine = pieces.take(pieces.line == line)
        yield _lane(trace.lines[line], side, mine, waits, asks)


def _lane(line: Line, side: Side, pieces: Pieces, waits: Bool, asks: Bool) -> Lane:
    idle = waits[pieces.event]
    return Lane(
        line=line.index,
        plane=line.plane,
        side=side,
        starts=pieces.start_ns.tolist(),
        ends=pieces.end_ns.tolist(),
        events=pieces.event.tolist(),
        waits=idle.tolist(),
        work_ends=pieces.end_ns[~idle | asks[pieces.event]].tolist(),
    )


def _device_lanes(trace: OpTrace, inside: Bool) -> Iterator[Lane]:
    none = np.zeros(len(trace.events), np.bool_)
    for line in trace.lines_of(LineKind.STREAM, LineKind.XLA_OPS):
        if line.derived or trace.planes[line.plane].kind is PlaneKind.HOST:
            continue
        wanted = np.isin(trace.metas.category[trace.events.meta[line.slice]], device_work.WORK) & inside[line.slice]
        rows = line.first + np.flatnonzero(wanted)
        above = event_nesting.parents(trace.events.start_ns[line.slice], trace.events.dur_ns[line.slice])
        parent = np.full(len(trace.events), -1, np.int32)
        parent[line.slice] = np.where(above >= 0, above + line.first, -1)
        pieces = thread_pieces.build(trace, rows, parent)
        if len(pieces):
            yield _lane(line, Side.DEVICE, pieces, none, none)
