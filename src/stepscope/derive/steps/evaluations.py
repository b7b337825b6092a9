"""Evaluations inside of a fit: they are a part of its work, and are no steps of their own.

They often take most of the time. In a job with gaps (``derive.steps.gaps``) most of them lie in gaps, where only their
loops are on record. The steady steps shall hold the same share of evaluations as the whole run. So some of the gaps'
evaluations count as steady: as large a part of them as observed steps are steady.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.derive.numeric import intervals
from stepscope.derive.steps import gaps
from stepscope.derive.steps.candidate import EVALUATIONS
from stepscope.model.log.events import Name
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.steps import Steps

_CALLS = {"train": "fit", "test": "evaluate", "predict": "predict"}
"""Which call of Keras holds the steps."""
_ON_BATCH = {"train": "train_on_batch", "test": "test_on_batch", "predict": "predict_on_batch"}
"""Which call of Keras holds one step each."""


def counted(steps: Steps) -> Steps:
    """The steps of a fit with as much of its evaluations as the recorded steps are of all."""
    made = loops(steps)
    if steps.kind != Kind.EXECUTION or not len(steps.worker.gaps):
        return steps
    alone = _on_batch(steps)
    if alone is not None:
        steps = replace(steps, skipped=max(0, alone - len(steps)))
    elif steps.steady.any():
        steps = replace(steps, skipped=_skipped(steps))
    if not len(made[0]) or not steps.steady.any():
        return steps
    steps = _to_the_end(steps)
    hidden = intervals.clip(made, (steps.starts[steps.unobserved], steps.ends[steps.unobserved]))
    known = intervals.total(intervals.clip(made, steps.windows))
    wanted = round(steps.steady_count / steps.count * (intervals.total(hidden) + known)) - known
    pieces = []
    for start, end in zip(*(side.tolist() for side in hidden), strict=True):
        if wanted <= 0:
            break
        at = int(np.searchsorted(steps.starts, start, "right")) - 1
        until = min(end, start + wanted)
        if at >= 0 and steps.unobserved[at] and steps.starts[at] < start and until < steps.ends[at]:
            pieces.append((at, start, until))
            wanted -= until - start
    return _split(steps, pieces)


def loops(steps: Steps) -> Intervals:
    """Evaluations inside of the thread's fits."""
    records = steps.worker.records
    roles = [name.id for name in steps.worker.all(Name) if name.role in EVALUATIONS]
    mine = (records.kind == Kind.LOOP) & (records.thread == steps.thread) & ((records.flags & Flag.NESTED) != 0)
    mine &= np.isin(records.name, roles)
    starts = records.start_ns[mine]
    return intervals.merge(starts, starts + records.dur_ns[mine])


def _skipped(steps: Steps) -> int:
    """Number of steps that were only counted. Gaps count them together with those of evaluations and predictions. Where
    the calls of Keras that hold the steps are over, the number of samples that they worked on says how many there were:
    at most as many as were counted, as the last batch of an epoch may be smaller than those that were observed.
    """
    records = steps.worker.records
    role = steps.call.role if steps.call else ""
    holds = [name.id for name in steps.worker.all(Name) if name.role == _CALLS.get(role)]
    mine = (records.kind == Kind.LOOP) & (records.thread == steps.thread) & np.isin(records.name, holds)
    begun, worked = records.start_ns[mine], records.arg[mine]
    over = begun + records.dur_ns[mine]
    usual = float(steps.samples[steps.steady].mean())
    if not len(begun) or usual <= 0 or not (worked > 0).all():
        return steps.skipped
    at = np.searchsorted(begun, steps.starts, side="right") - 1
    if (at < 0).any() or (steps.starts >= over[at]).any():
        return steps.skipped
    first = np.minimum(np.searchsorted(steps.starts, begun), len(steps) - 1)
    seen = (steps.starts[first] >= begun) & (steps.starts[first] < over) & (steps.samples[first] > 0)
    each = np.where(seen, steps.samples[first], usual)
    calls = int(gaps.counted(steps.worker.gaps, steps.kind).calls.sum())
    return min(max(0, int(np.rint(worked / each).sum()) - len(steps)), calls)


def _on_batch(steps: Steps) -> int | None:
    """Calls of Keras that hold one step each, all of which are on record; None where others hold some of the steps."""
    records = steps.worker.records
    role = steps.call.role if steps.call else ""
    holds = [name.id for name in steps.worker.all(Name) if name.role == _ON_BATCH.get(role)]
    mine = (records.kind == Kind.LOOP) & (records.thread == steps.thread) & np.isin(records.name, holds)
    begun = records.start_ns[mine]
    at = np.searchsorted(begun, steps.starts, side="right") - 1
    held = (at >= 0).all() and (steps.starts <= (begun + records.dur_ns[mine])[at]).all() if len(begun) else False
    return len(begun) if held else None


def _to_the_end(steps: Steps) -> Steps:
    """With an unobserved step for the gap after the last recorded step, where steps were still counted."""
    end, until = int(steps.ends[-1]), steps.span[1]
    if until <= end:
        return steps
    return replace(
        steps,
        starts=np.append(steps.starts, end),
        ends=np.append(steps.ends, until),
        call_ends=np.append(steps.call_ends, end),
        samples=np.append(steps.samples, 0),
        steady=np.append(steps.steady, np.False_),
        recurring=np.append(steps.recurring, np.False_),
        unobserved=np.append(steps.unobserved, np.True_),
        skipped=steps.skipped - 1,
    )


def _split(steps: Steps, pieces: Sequence[tuple[int, int, int]]) -> Steps:
    """Cut unobserved steps, so that the parts (step, start, end) stand alone and are steady."""
    if not pieces:
        return steps
    cuts = np.array([edge for _, start, end in pieces for edge in (start, end)], np.int64)
    owner = np.array([at for at, _, _ in pieces for _ in range(2)], np.int64)
    place = owner + 1
    starts = np.insert(steps.starts, place, cuts)
    is_piece = np.insert(np.zeros(len(steps.starts), np.bool_), place, np.tile([True, False], len(pieces)))
    fresh = np.insert(np.zeros(len(steps.starts), np.bool_), place, np.ones(len(cuts), np.bool_))
    ends = np.append(starts[1:], steps.ends[-1])
    return replace(
        steps,
        starts=starts,
        ends=ends,
        call_ends=np.where(fresh, starts, np.insert(steps.call_ends, place, cuts)),
        samples=np.insert(steps.samples, place, np.zeros(len(cuts), np.int64)),
        steady=np.insert(steps.steady, place, np.zeros(len(cuts), np.bool_)) | is_piece,
        recurring=np.insert(steps.recurring, place, np.zeros(len(cuts), np.bool_)),
        unobserved=np.insert(steps.unobserved, place, np.ones(len(cuts), np.bool_)) & ~is_piece,
        skipped=steps.skipped - len(cuts),
    )
