"""The critical path through a step: the chain of work that determined its duration, and the gain from a shorter op.

The path is walked backwards from the step's end. On a thread that works it stays. If a thread waits, the path continues
with the work that ended last before the wait did: for a wait of the step's call, ops of the step; for a wait for a
batch (GetNext), work of the input pipeline; for a kernel, the kernel before it or its launch. So every moment of the
step is on the path once: as work, as a hand-over from one thread to another, or as a wait without a recorded end.

At most an op's own time on the path can be saved. The certain part is bounded by the work that ended next to last
before the same wait, because the waiting thread may have waited for both. Dependences between ops are not recorded, so
the truth lies between.

Source: after Daydream (Zhu et al., USENIX ATC 2020), which asks the same of a recorded dependence graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.optrace.steps.trace_lanes import Lane, Side

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.derive.optrace.host.event_labels import Op
    from stepscope.derive.optrace.steps.step_periods import Periods
    from stepscope.derive.optrace.steps.trace_lanes import Lanes

MAX_STEPS = 8
"""Number of steps whose paths are walked: those nearest to the median step."""
MAX_SEGMENTS = 200_000
AWAITED_RATIO = 0.2
"""Work that ends in this last part of a time without events counts as awaited."""
HAND_OVER, WAIT, PYTHON, DEVICE_GAP = "hand-over", "wait", "Python", "device gap"
"""Parts of a path other than events."""


class Segment(Struct, frozen=True, kw_only=True):
    """A part of a path. Times ns."""

    start_ns: int
    end_ns: int
    event: int
    """Row of the trace's events; -1 if there is only ``what``."""
    what: str = ""
    stretch: int = 0
    """Number shared by consecutive segments of one thread."""

    @property
    def dur_ns(self) -> int:
        """Duration."""
        return self.end_ns - self.start_ns


class Path(Struct, frozen=True, kw_only=True):
    """The critical path of one step, last segment first."""

    step: int
    """Position among the periods."""
    segments: tuple[Segment, ...]
    slack_ns: tuple[int | None, ...]
    """For each stretch, how much earlier the next-to-last work had ended; None if nothing else may have been
    awaited."""


class Gain(Struct, frozen=True, kw_only=True):
    """Time the steps would save if something on their path took a share less. Ratios of the steps' time."""

    what: Op
    """Name and type."""
    path_ratio: float
    """Its share of the path."""
    low: float
    high: float


def typical(periods: Periods) -> list[int]:
    """Positions of the steps nearest to the median one, rising."""
    distance = np.abs(periods.dur_ns - np.median(periods.dur_ns)) if len(periods) else np.empty(0)
    return sorted(np.argsort(distance, kind="stable")[:MAX_STEPS].tolist())


def build(lanes: Lanes, periods: Periods) -> tuple[Path, ...]:
    """The paths of the typical steps, by time; ``lanes`` must hold those steps."""
    chosen = typical(periods)
    walks = [_Walk(lanes, int(periods.start_ns[i]), int(periods.end_ns[i])) for i in chosen]
    return tuple(
        Path(step=i, segments=tuple(walk.segments), slack_ns=tuple(walk.slack))
        for i, walk in zip(chosen, walks, strict=True)
    )


def gains(paths: tuple[Path, ...], name: Callable[[Segment], Op | None], *, less: float = 0.5) -> tuple[Gain, ...]:
    """Savings for everything on the paths, largest first.

    Args:
        paths: the paths of some steps.
        name: what a segment counts for; None: nothing that could be shortened.
        less: the share by which it gets shorter.
    """
    wall = sum(segment.dur_ns for path in paths for segment in path.segments)
    whole: dict[Op, int] = {}
    certain: dict[Op, float] = {}
    for path in paths:
        by_stretch: dict[tuple[Op, int], int] = {}
        for segment in path.segments:
            what = name(segment)
            if what is None:
                continue
            key = what, segment.stretch
            by_stretch[key] = by_stretch.get(key, 0) + segment.dur_ns
        for (what, stretch), dur in by_stretch.items():
            slack = path.slack_ns[stretch]
            whole[what] = whole.get(what, 0) + dur
            certain[what] = certain.get(what, 0.0) + (less * dur if slack is None else min(less * dur, slack))
    found = [
        Gain(what=what, path_ratio=dur / wall, low=certain[what] / wall, high=less * dur / wall)
        for what, dur in whole.items()
    ]
    return tuple(sorted(found, key=lambda gain: -gain.high))


class _Walk:
    """Walks one path."""

    def __init__(self, lanes: Lanes, start: int, end: int) -> None:
        self.lanes = lanes
        self.start = start
        self.time = end
        self.segments: list[Segment] = []
        self.slack: list[int | None] = [None]
        lane = lanes.main
        if lane is None:
            lane = self._last(lanes.of(Side.DEVICE) or lanes.lanes, self.start)
        while lane is not None and self.time > self.start and len(self.segments) < MAX_SEGMENTS:
            lane = self._back(lane)
        if self.time > self.start:
            self._add(self.start, WAIT)

    def _add(self, since: int, what: str = "", event: int = -1) -> None:
        since = max(since, self.start)
        if since < self.time:
            self.segments.append(
                Segment(start_ns=since, end_ns=self.time, event=event, what=what, stretch=len(self.slack) - 1)
            )
            self.time = since

    def _back(self, lane: Lane) -> Lane | None:
        """Moves one step back in time, or to another lane."""
        i = lane.at(self.time)
        covered = i >= 0 and lane.ends[i] >= self.time
        if covered and not lane.waits[i]:
            self._add(lane.starts[i], event=lane.events[i])
            return self._before_device_work(lane, i) if lane.side is Side.DEVICE else lane
        since = lane.starts[i] if covered else lane.ends[i] if i >= 0 else self.start
        if not covered and lane is self.lanes.main and not self._awaited(since):
            self._add(since, PYTHON)
            return lane
        return self._jump(lane, since, lane.events[i] if covered else -1)

    def _jump(self, lane: Lane, since: int, waiting: int) -> Lane:
        """Moves to the work that ended last while ``lane`` waited since ``since``."""
        found = self._last(self._ended_by(lane, waiting), since, besides=lane)
        if found is None:
            self._add(since, WAIT, event=waiting)
            return lane
        self._add(found.finished(self.time), HAND_OVER)
        return found

    def _awaited(self, since: int) -> bool:
        """Whether the step's thread, which has recorded nothing since ``since``, seems to have waited.

        That is so if work of the step ended shortly before now. JAX, for one, records nothing of ``block_until_ready``.
        """
        ended = max((lane.finished(self.time) for lane in self.lanes.of(Side.STEP, Side.DEVICE)), default=-1)
        return ended > since and self.time - ended <= AWAITED_RATIO * (self.time - since)

    def _ended_by(self, lane: Lane, waiting: int) -> tuple[Lane, ...]:
        """Lanes whose work may end a wait."""
        if waiting in self.lanes.get_next:
            return self.lanes.of(Side.INPUT)
        if lane.side is Side.INPUT:
            return self.lanes.of(Side.INPUT) if waiting >= 0 else self.lanes.of(Side.INPUT, Side.STEP)
        return self.lanes.of(Side.STEP, Side.DEVICE)

    def _last(self, lanes: tuple[Lane, ...], since: int, besides: Lane | None = None) -> Lane | None:
        """The lane whose work ended last until now, if after ``since``; opens a stretch with the slack to the next."""
        best: Lane | None = None
        first = second = since
        for lane in lanes:
            ended = lane.finished(self.time) if lane is not besides else -1
            if ended > first:
                best, first, second = lane, ended, first
            elif ended > second:
                second = ended
        if best is not None:
            self.slack.append(first - second if second > since else None)
        return best

    def _before_device_work(self, lane: Lane, i: int) -> Lane:
        """Moves from a kernel to the one before it, or to its launch, whichever ended later."""
        line, returned = self.lanes.launched.get(lane.events[i], (-1, -1))
        streams = tuple(other for other in self.lanes.of(Side.DEVICE) if other.plane == lane.plane)
        ended = max((other.finished(self.time) for other in streams), default=-1)
        host = self.lanes.host(line)
        if host is not None and ended < returned <= self.time:
            self._add(returned, HAND_OVER)
            self.slack.append(returned - ended if ended > self.start else None)
            return host
        if ended > self.start:
            self._add(ended, DEVICE_GAP)
            found = self._last(streams, ended - 1)
            return found if found is not None else lane
        return lane
