"""Rests: times in which hot wrappers were detached, because steps are so short that wrappers would cost too much.

What is said about steps is said of the times between rests. So that nothing of a rest is divided by steps that were not
recorded, the records of all that happens in steps are left out there; loops, traces and what the agent says of itself
stay, and so do runs of sessions and the user's own steps, which never rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.numeric import intervals
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.model.records import I64, Bool, RecordTable
    from stepscope.model.session.session import Worker

BEFORE = 128
"""Newest calls before a rest that say whose the calls in it are."""
_STEP_FUNCTIONS = kinds_with(Trait.COMPILED)
_ONE_OF = kinds_with(Trait.LIGHT)
"""Of these one kind is counted in a rest, the one that repeated (``agent.duty_cycle``): the others, and what updates
weights, are as many as there were to each of its calls."""
_BESIDE = (*_ONE_OF, Kind.APPLY)
STAY = kinds_with(Trait.STAYS)


def periods(records: RecordTable) -> Intervals:
    """When wrappers were detached, disjoint and sorted."""
    mine = records.kind == Kind.REST
    starts = records.start_ns[mine]
    return intervals.merge(starts, starts + records.dur_ns[mine])


def skipped(records: RecordTable, kind: Kind) -> tuple[I64, I64]:
    """(start of a rest, calls in it that were only counted): int64[rest] each.

    A step function of Keras 2 is counted as the tf.function that it is.
    """
    if kind == Kind.EXECUTION and not counts_itself(records):
        return skipped(records, Kind.FUNCTION)
    rests = (records.kind == Kind.REST) & (records.flags >> 8 == kind)
    return records.start_ns[rests], records.arg[rests]


def counts_itself(records: RecordTable) -> bool:
    """Whether Keras' step function is a plain one, which counts its calls in rests."""
    return bool(records.arg[(records.kind == Kind.REST) & (records.flags >> 8 == Kind.EXECUTION)].any())


def counted_until(records: RecordTable, kind: Kind) -> int:
    """End of the last part of a rest in which calls of the kind were counted, 0 for none."""
    kinds = _ONE_OF if kind in _BESIDE else (kind,)
    mine = (records.kind == Kind.REST) & np.isin(records.flags >> 8, kinds) & (records.arg > 0)
    if kind == Kind.EXECUTION and not mine.any():
        return counted_until(records, Kind.FUNCTION)
    return int((records.start_ns + records.dur_ns)[mine].max()) if mine.any() else 0


def share(records: RecordTable, kind: Kind, index: I64) -> int:
    """How many calls in rests belong to the records at ``index``, all of one kind.

    Of the calls of this kind that were only counted the share that these had just before the rest, or where loops run
    inside of others (validation), in such loops and outside of them; where another kind was counted instead, as many as
    there were to each of its calls just before the rest.
    """
    others = (other for other in _ONE_OF if other != kind) if kind in _BESIDE else ()
    return _own_share(records, kind, index) + sum(_beside(records, other, index) for other in others)


def _beside(records: RecordTable, counted: Kind, index: I64) -> int:
    """Calls at ``index`` that went with those of another kind that were counted."""
    rests = (records.kind == Kind.REST) & (records.flags >> 8 == counted) & (records.arg > 0)
    of_kind = np.flatnonzero((records.kind == counted) & ((records.flags & Flag.NESTED) == 0))
    if not rests.any() or not len(of_kind):
        return 0
    starts, calls = records.start_ns[rests], records.arg[rests]
    theirs, mine = records.start_ns[of_kind], records.start_ns[index]
    before = np.searchsorted(theirs, starts)
    first = np.searchsorted(mine, theirs[np.maximum(before - BEFORE, 0)])
    made = np.searchsorted(mine, starts) - first
    beside = before - np.searchsorted(
        theirs, mine[np.minimum(first, len(mine) - 1)]
    )  # whole rounds, from one of mine on
    return round(float((np.where(beside > 0, made / np.maximum(beside, 1), 0.0) * calls).sum()))


def _own_share(records: RecordTable, kind: Kind, index: I64) -> int:
    """Of the calls of this kind that were only counted."""
    starts, calls = skipped(records, kind)
    alone = kind not in _STEP_FUNCTIONS or (kind == Kind.EXECUTION and counts_itself(records))
    kinds = (kind,) if alone else _STEP_FUNCTIONS
    of_kind = np.flatnonzero(np.isin(records.kind, kinds) & ((records.flags & Flag.NESTED) == 0))
    if len(of_kind) == 0 or len(starts) == 0:
        return 0
    nested = (records.kind == Kind.LOOP) & ((records.flags & Flag.NESTED) != 0)
    if nested.any():
        begun = records.start_ns[nested]
        loops = intervals.merge(begun, begun + records.dur_ns[nested])
        return _share_by_phase(records, loops, of_kind, np.isin(of_kind, index), (starts, calls))
    mine = np.concatenate(([0], np.cumsum(np.isin(of_kind, index))))
    before = np.searchsorted(records.start_ns[of_kind], starts)
    since = np.maximum(before - BEFORE, 0)
    part = (mine[before] - mine[since]) / np.maximum(before - since, 1)
    return round(float((part * calls).sum()))


def _share_by_phase(records: RecordTable, loops: Intervals, of_kind: I64, mine: Bool, rests: tuple[I64, I64]) -> int:
    """Of the calls in rests (starts, calls): by the rates in and outside of ``loops`` while calls were recorded."""
    starts, calls = rests
    all_rests = periods(records)
    parts = records.kind == Kind.REST
    part_of = np.searchsorted(records.start_ns[parts], starts)
    ends = starts + records.dur_ns[parts][part_of]
    at = records.start_ns[of_kind]
    inside = between(loops, at, at)
    loop_ns = intervals.total(loops) - intervals.total(intervals.clip(loops, all_rests))
    whole = np.array([at[0]]), np.array([max(at[-1], all_rests[1][-1])])
    other_ns = intervals.total(whole) - intervals.total(intervals.clip(intervals.union(all_rests, loops), whole))
    rate_in, rate_out = int(inside.sum()) / max(1, loop_ns), int((~inside).sum()) / max(1, other_ns)
    in_loops = intervals.clipped_sum(starts, ends, loops)
    expected_in, expected_out = in_loops * rate_in, (ends - starts - in_loops) * rate_out
    made_in = float((calls * expected_in / np.maximum(expected_in + expected_out, 1e-12)).sum())
    whole_parts = in_loops == ends - starts
    if whole_parts.any():  # rests tell the rate themselves, and without what recording costs
        rate_in = float(calls[whole_parts].sum()) / max(1, int(in_loops[whole_parts].sum()))
        made_in = min(float(calls.sum()), rate_in * int(in_loops.sum()))
    mine_in = float(mine[inside].mean()) if inside.any() else 0.0
    mine_out = float(mine[~inside].mean()) if not inside.all() else 0.0
    return round(made_in * mine_in + (float(calls.sum()) - made_in) * mine_out)


def attached(worker: Worker) -> Worker:
    """The worker without what was recorded in its rests."""
    starts, ends = periods(worker.records)
    if len(starts) == 0:
        return worker
    records = worker.records
    at = np.searchsorted(starts, records.start_ns, side="right") - 1
    inside = (at >= 0) & (records.start_ns < ends[np.maximum(at, 0)])
    return replace(worker, records=records.take(~inside | np.isin(records.kind, STAY)))


def between(rests: Intervals, starts: I64, ends: I64) -> Bool:
    """Whether [start, end) and a rest have a moment in common. bool[interval]."""
    begun = np.searchsorted(rests[0], ends, side="left")
    over = np.searchsorted(rests[1], starts, side="right")
    found: Bool = begun > over
    return found
