"""What a capture cost the job: its traced steps against their untraced neighbours.

A step of a capture lasts from the end of one call to the end of the next (``agent.capture.watch``); traced steps and
neighbours are cut in the same way from the same records. Neighbours are as near in time as possible, so that a job that
slows down over time is not charged to the capture. Steps during which the trace was written are neither: their delay is
reported separately, together with the CPU time of the writing thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.steps import gaps
from stepscope.wire.kinds import Flag

if TYPE_CHECKING:
    from stepscope.model.log.events import CaptureTaken
    from stepscope.tables.records import F64, I64, Bool, Gaps, RecordTable

NEIGHBOURS = 2
"""Neighbours taken on either side, at most, as a multiple of the traced steps."""
MIN_STEPS = 3
"""Minimum number of steps of either kind: with fewer no ratio is given."""
LONG = 5.0
"""Steps longer than this many medians hold something else (an epoch's end, a checkpoint) and are left out on both
sides."""
DRAWS = 2_000
LEVEL = 0.95


class CaptureCost(Struct, frozen=True, kw_only=True):
    """The account of one capture. Ratios are None if there are too few steps."""

    ratio: float | None = None
    """Median traced step over median neighbour, minus one."""
    low: float | None = None
    high: float | None = None
    """Upper end of its 95 % bootstrap interval, widened to what the neighbours before or after alone give."""
    traced: int = 0
    neighbours: int = 0
    step_ns: int = 0
    """Median neighbour; 0 if unknown."""
    slower_ns: int = 0
    """Extra time of all traced steps; 0 if they seem faster."""
    export_delay_ns: int = 0
    """Extra time of all steps during which the trace was written."""
    cpu_ns: int = 0
    """CPU time of the thread that started, stopped and wrote the trace."""

    @property
    def cost_ns(self) -> int:
        """Time lost by the job: slower steps, and the time to write, whether or not a CPU was free for it."""
        return self.slower_ns + max(self.cpu_ns, self.export_delay_ns)


def measure(records: RecordTable, detached: Gaps, capture: CaptureTaken) -> CaptureCost:
    """Cost of one capture of the process that wrote ``records``. Times of all count from the same zero."""
    calls, starts, ends = _steps(records, detached, capture)
    plain = CaptureCost(cpu_ns=capture.cpu_ns)
    if len(ends) == 0:
        return plain
    stopped = capture.at + capture.recorded_ns
    written = stopped + capture.export_ns
    traced = (starts >= capture.at) & (ends <= stopped)
    if capture.way == "run-metadata":  # the runs themselves, which end a little after their trace
        traced = (calls <= stopped) & (ends >= capture.at)
    writing = ~traced & (ends > stopped) & (starts < written)
    free = ~traced & ~writing & ((ends <= capture.at) | (starts >= written))
    near = _nearest(starts, free, capture.at, written, NEIGHBOURS * max(int(traced.sum()), MIN_STEPS))
    durations = (ends - starts).astype(np.float64)
    mine, others = durations[traced], durations[near]
    if len(others) < MIN_STEPS:
        return CaptureCost(cpu_ns=capture.cpu_ns, traced=len(mine), neighbours=len(others))
    usual = float(np.median(others))
    others = others[others <= LONG * usual]
    usual = float(np.median(others))
    kept = mine[mine <= LONG * usual]
    late = np.minimum(durations[writing], LONG * usual) - usual
    delay = max(0, int(late.sum())) if len(late) else 0
    if len(kept) == 0:
        return CaptureCost(
            traced=len(mine),
            neighbours=len(others),
            step_ns=int(usual),
            export_delay_ns=delay,
            cpu_ns=capture.cpu_ns,
        )
    ratio = float(np.median(kept)) / usual - 1.0
    low, high = None, None
    if len(kept) >= MIN_STEPS:
        sides = [durations[near[starts[near] < capture.at]], durations[near[starts[near] >= written]]]
        low, high = _interval(kept, others, [side[side <= LONG * usual] for side in sides])
    return CaptureCost(
        ratio=ratio if low is not None else None,
        low=low,
        high=high,
        traced=len(mine),
        neighbours=len(others),
        step_ns=int(usual),
        slower_ns=max(0, round(ratio * usual * len(kept))),
        export_delay_ns=delay,
        cpu_ns=capture.cpu_ns,
    )


def _steps(records: RecordTable, detached: Gaps, capture: CaptureTaken) -> tuple[I64, I64, I64]:
    """(start of its call, start, end) of every whole step of the capture's anchors, without those that contain a
    gap.
    """
    mine = np.zeros(len(records), bool)
    for kind, name in set(capture.anchors):
        mine |= (records.kind == kind) & (records.name == name)
    mine &= (records.flags & Flag.END) == 0
    if capture.thread:
        mine &= records.thread == capture.thread
    calls = records.start_ns[mine]
    ends = calls + records.dur_ns[mine]
    order = np.argsort(ends, kind="stable")
    calls, ends = calls[order][1:], ends[order]
    starts, ends = ends[:-1], ends[1:]
    whole = ~intervals.overlapping(gaps.periods(detached), starts, ends)
    return calls[whole], starts[whole], ends[whole]


def _nearest(starts: I64, free: Bool, began_ns: int, written_ns: int, count: int) -> I64:
    """Rows of the ``count`` nearest free steps on either side."""
    rows = np.flatnonzero(free)
    before = rows[starts[rows] < began_ns][-count:]
    after = rows[starts[rows] >= written_ns][:count]
    result: I64 = np.concatenate([before, after])
    return result


def _interval(traced: F64, others: F64, sides: list[F64]) -> tuple[float, float]:
    """Percentile bootstrap of the ratio of medians, minus one, widened to what either side alone gives.

    Steps close in time are alike, which the bootstrap does not know: a machine that has become busier meanwhile shows
    as neighbours that differ before and after.

    Source: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
    """
    rng = np.random.default_rng(1)
    ours = np.median(rng.choice(traced, (DRAWS, len(traced))), axis=1)
    theirs = np.median(rng.choice(others, (DRAWS, len(others))), axis=1)
    drawn = np.quantile(ours / theirs - 1.0, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    alone = [float(np.median(traced) / np.median(side)) - 1.0 for side in sides if len(side) >= MIN_STEPS]
    return min(float(drawn[0]), *alone), max(float(drawn[1]), *alone)
