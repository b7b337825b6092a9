"""Gaps of the duty cycle: when steps were not observed, and whose the calls are that were only counted meanwhile.

``store.gaps`` splits them off the records that a session holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.numeric import intervals
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.tables.records import I64, Bool, Gaps, RecordTable

BEFORE = 128
"""Number of calls, the newest before a part of a gap, that say whose the calls counted in it are."""
_STEP_FUNCTIONS = kinds_with(Trait.COMPILED)
_ONE_OF = kinds_with(Trait.LIGHT)
"""In a gap the agent counts one of these kinds only, the one that repeats (``agent.duty_cycle``). For each counted call
we assume as many calls of the other kinds as before the gap. Optimizers' steps of PyTorch are counted in every gap."""


def periods(gaps: Gaps) -> Intervals:
    """When wrappers were detached, disjoint and sorted."""
    return intervals.merge(gaps.start_ns, gaps.end_ns)


def counted(gaps: Gaps, kind: Kind) -> Gaps:
    """The rows that count calls of this kind. A step function of Keras 2 is counted as the tf.function that it is."""
    if kind == Kind.EXECUTION and not counts_itself(gaps):
        return counted(gaps, Kind.FUNCTION)
    return gaps.take(gaps.kind == kind)


def counted_beside(gaps: Gaps) -> Gaps:
    """The rows that count calls which steps of another kind go with."""
    return gaps.take(np.isin(gaps.kind, _ONE_OF) & (gaps.calls > 0))


def counting(gaps: Gaps, kind: Kind) -> Gaps:
    """The rows that count calls of this kind, else those of calls that go with them."""
    found = counted(gaps, kind)
    return found if found.calls.any() else counted_beside(gaps)


def counts_itself(gaps: Gaps) -> bool:
    """Whether Keras' step function is a plain one, which counts its calls in gaps."""
    return bool(gaps.calls[gaps.kind == Kind.EXECUTION].any())


def counted_until(gaps: Gaps, kind: Kind) -> int:
    """End of the last part of a gap in which calls of the kind were counted, 0 for none."""
    kinds = _ONE_OF if _goes_beside(gaps, kind) else (kind,)
    mine = np.isin(gaps.kind, kinds) & (gaps.calls > 0)
    if kind == Kind.EXECUTION and not mine.any():
        return counted_until(gaps, Kind.FUNCTION)
    return int(gaps.end_ns[mine].max()) if mine.any() else 0


def share(records: RecordTable, gaps: Gaps, kind: Kind, index: I64) -> int:
    """How many counted calls belong to the records at ``index``, all of one kind.

    Where calls of this kind were counted: the share that these records had of them just before the gap. Where loops run
    inside of others (validation), that share is taken inside of such loops and outside of them. Where another kind was
    counted instead: as many as there were to each of its calls just before the gap.
    """
    others = (other for other in _ONE_OF if other != kind) if _goes_beside(gaps, kind) else ()
    return _own_share(records, gaps, kind, index) + sum(_beside(records, gaps, other, index) for other in others)


def _goes_beside(gaps: Gaps, kind: Kind) -> bool:
    """Whether counted calls of other kinds say how many of this kind there were."""
    return kind in _ONE_OF or (kind == Kind.APPLY and not (gaps.kind == kind).any())


def _beside(records: RecordTable, gaps: Gaps, other: Kind, index: I64) -> int:
    """Number of calls at ``index`` that went with counted calls of another kind."""
    parts = gaps.take((gaps.kind == other) & (gaps.calls > 0))
    of_kind = np.flatnonzero((records.kind == other) & ((records.flags & Flag.NESTED) == 0))
    if not len(parts) or not len(of_kind):
        return 0
    theirs, mine = records.start_ns[of_kind], records.start_ns[index]
    before = np.searchsorted(theirs, parts.start_ns)
    first = np.searchsorted(mine, theirs[np.maximum(before - BEFORE, 0)])
    made = np.searchsorted(mine, parts.start_ns) - first
    beside = before - np.searchsorted(
        theirs, mine[np.minimum(first, len(mine) - 1)]
    )  # whole rounds, from one of mine on
    return round(float((np.where(beside > 0, made / np.maximum(beside, 1), 0.0) * parts.calls).sum()))


def _own_share(records: RecordTable, gaps: Gaps, kind: Kind, index: I64) -> int:
    """Number of counted calls of this kind that belong to the records at ``index``."""
    parts = counted(gaps, kind)
    alone = kind not in _STEP_FUNCTIONS or (kind == Kind.EXECUTION and counts_itself(gaps))
    kinds = (kind,) if alone else _STEP_FUNCTIONS
    of_kind = np.flatnonzero(np.isin(records.kind, kinds) & ((records.flags & Flag.NESTED) == 0))
    if len(of_kind) == 0 or len(parts) == 0:
        return 0
    nested = (records.kind == Kind.LOOP) & ((records.flags & Flag.NESTED) != 0)
    if nested.any():
        begun = records.start_ns[nested]
        loops = intervals.merge(begun, begun + records.dur_ns[nested])
        return _share_by_phase(records.start_ns[of_kind], np.isin(of_kind, index), loops, parts, periods(gaps))
    mine = np.concatenate(([0], np.cumsum(np.isin(of_kind, index))))
    before = np.searchsorted(records.start_ns[of_kind], parts.start_ns)
    since = np.maximum(before - BEFORE, 0)
    part = (mine[before] - mine[since]) / np.maximum(before - since, 1)
    return round(float((part * parts.calls).sum()))


def _share_by_phase(at: I64, mine: Bool, loops: Intervals, parts: Gaps, unobserved: Intervals) -> int:
    """The same by the rates of calls in and outside of ``loops`` while calls were recorded.

    Args:
        at: when calls of the kind were made.
        mine: which of them are those that are asked for.
        loops: loops inside of others.
        parts: the rows of gaps that count calls of the kind.
        unobserved: all gaps.
    """
    calls = parts.calls
    inside = intervals.overlapping(loops, at, at)
    loop_ns = intervals.total(loops) - intervals.total(intervals.clip(loops, unobserved))
    whole = np.array([at[0]]), np.array([max(at[-1], *unobserved[1][-1:])])
    other_ns = intervals.total(whole) - intervals.total(intervals.clip(intervals.union(unobserved, loops), whole))
    rate_in, rate_out = int(inside.sum()) / max(1, loop_ns), int((~inside).sum()) / max(1, other_ns)
    lasted = parts.end_ns - parts.start_ns
    in_loops = intervals.clipped_sum(parts.start_ns, parts.end_ns, loops)
    expected_in, expected_out = in_loops * rate_in, (lasted - in_loops) * rate_out
    made_in = float((calls * expected_in / np.maximum(expected_in + expected_out, 1e-12)).sum())
    whole_parts = in_loops == lasted
    if whole_parts.any():  # gaps show the rate themselves, and without what recording costs
        rate_in = float(calls[whole_parts].sum()) / max(1, int(in_loops[whole_parts].sum()))
        made_in = min(float(calls.sum()), rate_in * int(in_loops.sum()))
    mine_in = float(mine[inside].mean()) if inside.any() else 0.0
    mine_out = float(mine[~inside].mean()) if not inside.all() else 0.0
    return round(made_in * mine_in + (float(calls.sum()) - made_in) * mine_out)
