"""What happened in a step and usually does not: records of its thread that most steps lack, or that lasted much longer.

Records of one thread nest: a save in a callback is listed as well as the callback. Records of other threads count where
the step waits for input: the user's Python in the input pipeline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.kinds import KINDS
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import rare
from stepscope.model.log.events import Traced
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.one_step.step_table import StepTable
    from stepscope.derive.steps.steps import Steps
    from stepscope.tables.records import F64, I64, Bool, RecordTable

USUAL_RATIO = 0.5
"""What at least this share of the steady steps holds is usual."""
LONGER_FACTOR = 3.0
"""A usual record is listed when it lasted at least so many times its median."""
SMALL_RATIO = 0.02
"""Of the step's extra time: what lasted less longer than usual is not listed."""
RARE_RATIO = 0.005
"""Of the step's time: what most steps lack and took less is not listed, unless it made a graph."""
_LISTED = [kind for kind, about in KINDS.items() if about.happens not in {None, "pipeline"}]
_CALLS = [kind for kind, about in KINDS.items() if about.happens == "function call"]
_PIPELINE = [kind for kind, about in KINDS.items() if about.happens == "pipeline"]


class Happening(Struct, frozen=True, kw_only=True):
    """Records of one kind and name within one step."""

    kind: Kind
    name: int
    """Id of the name line; 0 where the kind has none."""
    calls: int
    at_ns: int
    """Start of the first, since session start."""
    time_ns: int
    """Time within the step."""
    component: str
    """Component of the step in the middle of the longest."""
    usual_calls_ratio: float
    """Share of the steady steps that hold such a record."""
    usual_ns: float
    """Median time of it in the steady steps that hold it; 0: none does."""
    traced: Traced | None = None
    """Of a trace: why it was made."""
    other_thread: bool = False
    """It ran on another thread than the step's."""


def build(table: StepTable, row: int, least_ns: float) -> tuple[Happening, ...]:
    """What is unusual in the step of a row, the longest beyond the usual first.

    Args:
        table: the observed steps.
        row: row of the step in the table.
        least_ns: time beyond the usual that matters.
    """
    steps = table.steps
    records = steps.worker.records
    mine = (records.thread == steps.thread) & np.isin(records.kind, _LISTED)
    other = (records.thread != steps.thread) & np.isin(records.kind, _PIPELINE)
    found = [
        *_unusual(table, row, records.take(mine), other=False),
        *_unusual(table, row, records.take(other), other=True),
    ]
    whole = RARE_RATIO * float(table.durations[row])
    listed = [one for one in found if _extra(one) >= least_ns or (_rare(one) and one.time_ns >= whole)]
    listed += [one for one in found if one.kind == Kind.TRACE and one not in listed]
    return tuple(sorted(listed, key=lambda one: -_extra(one)))


def _extra(one: Happening) -> float:
    """Time beyond that of a usual step."""
    return one.time_ns - (one.usual_ns if one.usual_calls_ratio >= USUAL_RATIO else 0.0)


def _rare(one: Happening) -> bool:
    return one.usual_calls_ratio < USUAL_RATIO and one.kind not in _CALLS


def _unusual(table: StepTable, row: int, records: RecordTable, *, other: bool) -> list[Happening]:
    """Groups of records in a step that other steps lack, or in which they are much shorter."""
    steps = table.steps
    start, end = int(steps.starts[table.index[row]]), int(steps.ends[table.index[row]])
    within = _within(records, start, end, whole=not other)
    traced = {event.id: event for event in steps.worker.all(Traced)}
    found = []
    for kind, name in sorted(set(zip(records.kind[within].tolist(), records.name[within].tolist(), strict=True))):
        same = (records.kind == kind) & (records.name == name)
        here = within & same
        ratio, usual = _in_usual_steps(table, row, records.take(same))
        often = None if other else rare.counted(steps, _same(steps, kind, name))
        if often is not None and often.every > 1.0 and usual:  # timed steps hold few of them, by chance
            ratio, usual = 1.0 / often.every, often.usual_ns
        time = _clipped(records.take(here), start, end)
        if ratio >= USUAL_RATIO and time < LONGER_FACTOR * usual:
            continue
        rows = np.flatnonzero(here)
        first, longest = int(rows[0]), int(rows[np.argmax(records.dur_ns[rows])])
        middle = records.start_ns[longest] + records.dur_ns[longest] // 2
        found.append(
            Happening(
                kind=Kind(kind),
                name=int(name),
                calls=int(here.sum()),
                at_ns=int(records.start_ns[first]),
                time_ns=time,
                component=table.anatomy.component_at(np.array([middle]))[0],
                usual_calls_ratio=ratio,
                usual_ns=usual,
                traced=traced.get(int(records.arg[first])) if kind == Kind.TRACE else None,
                other_thread=other,
            )
        )
    return found


def _same(steps: Steps, kind: int, name: int) -> Bool:
    """Records of the kind and name on the steps' thread."""
    records = steps.worker.records
    found: Bool = (records.thread == steps.thread) & (records.kind == kind) & (records.name == name)
    return found


def _within(records: RecordTable, start: int, end: int, *, whole: bool) -> Bool:
    """Records that belong to the step: begun in it, and over in it; of other threads those that overlap it."""
    ends = records.start_ns + records.dur_ns
    before = records.start_ns < end
    found: Bool = before & ((records.start_ns >= start) & (ends <= end) if whole else ends > start)
    return found


def _clipped(records: RecordTable, start: int, end: int) -> int:
    """Time of records within an interval; where they overlap, it counts once."""
    spans = intervals.merge(records.start_ns, records.start_ns + records.dur_ns)
    return intervals.total(intervals.clip(spans, (np.array([start]), np.array([end]))))


def _in_usual_steps(table: StepTable, row: int, records: RecordTable) -> tuple[float, float]:
    """Share of the other steady steps that hold one of these records, and the median of their time in those."""
    usual = table.usual.copy()
    usual[row] = False
    starts = table.steps.starts[table.index]
    step: I64 = np.searchsorted(starts, records.start_ns, side="right") - 1
    sums: F64 = np.zeros(len(starts))
    held = np.zeros(len(starts), np.bool_)
    good = (step >= 0) & (records.start_ns < table.steps.ends[table.index][step])  # not in a gap after it
    np.add.at(sums, step[good], records.dur_ns[good])
    held[step[good]] = True
    held &= usual
    if not held.any():
        return 0.0, 0.0
    return float(held.sum() / usual.sum()), float(np.median(sums[held]))
