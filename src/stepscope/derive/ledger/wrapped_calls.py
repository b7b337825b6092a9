"""What wrapped calls cost: their number, and how much of their code and data has left the caches between two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.model.log.events import AgentCost
from stepscope.wire.call_cost import COOLING_NS, HOOK_LIGHTS, LIGHT_NS, MISSES_NS, WARM_LIGHT_NS, executed_ns
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.model.session.session import Worker
    from stepscope.tables.records import F64, I64, Bool, Gaps, RecordTable

DEFAULT_CALL_NS = 700
"""Time of a wrapped call in a loop that does nothing else, if the process did not measure it (``wire.call_cost``)."""
KIND_SHIFT = 8
"""Flag bits from this one on hold the kind that counted calls are of."""


class CallCosts(Struct, frozen=True, kw_only=True):
    """Calls and what their wrappers cost, all together."""

    calls: int
    ns: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Nanoseconds: at least, usually, at most."""


def of_records(records: RecordTable, inside: Bool, end_ns: int, calibrated_ns: float) -> CallCosts:
    """Calls that have a record, and those that a record counts.

    Args:
        records: of one process.
        inside: which of them are meant. bool[record].
        end_ns: end of the time that is meant.
        calibrated_ns: time of a wrapped call in a loop that does nothing else.
    """
    calls, cold = 0, np.zeros(len(COOLING_NS))
    called = inside & ~np.isin(records.kind, kinds_with(Trait.OURS))
    counting = inside & (records.kind == Kind.COUNTS)
    of = records.flags >> KIND_SHIFT
    for kind in np.unique(np.concatenate((records.kind[called], of[counting]))):
        rows, counts = records.take(called & (records.kind == kind)), records.take(counting & (of == kind))
        wrappers = 2 if kind == Kind.EXECUTION else 1  # the tf.function inside has one that writes nothing
        calls += wrappers * len(rows) + int(np.maximum(counts.arg, 1).sum())
        if len(rows):
            cold += wrappers * _cold(rows, counts)
        if len(counts) and not _thinned(rows).any():
            cold += _cold_counted(counts, end_ns)
    low, usual, high = calls * executed_ns(calibrated_ns) + cold * np.array(MISSES_NS)
    return CallCosts(calls=calls, ns=(float(low), float(usual), float(high)))


def _thinned(rows: RecordTable) -> Bool:
    found: Bool = (rows.flags & Flag.THINNED) != 0
    return found


def _cold(rows: RecordTable, counts: RecordTable) -> F64:
    """Calls of one kind with a record, in calls that find nothing cached. A thinned one stands for its share of the
    counted ones. float64[at least, usually, at most].
    """
    order = np.argsort(rows.start_ns)
    thinned = _thinned(rows)
    each = 1 + int(counts.arg.sum()) / max(1, int(thinned.sum()))
    stands_for = np.where(thinned, each, 1.0)[order][1:]
    found: F64 = 1 + (_gone(np.diff(rows.start_ns[order]) / stands_for) * stands_for).sum(axis=1)  # the first is cold
    return found


def _cold_counted(counts: RecordTable, end_ns: int) -> F64:
    """The same for calls too short for a record of their own."""
    order = np.argsort(counts.start_ns)
    starts, number = counts.start_ns[order], np.maximum(counts.arg[order], 1)
    apart = np.diff(starts, append=max(end_ns, int(starts[-1]) + 1))
    found: F64 = (_gone(apart / number) * number).sum(axis=1)
    return found


def in_steps(worker: Worker, windows: Intervals) -> CallCosts:
    """Calls of the process that begin in its timed steps, those included that were only counted."""
    records = worker.records
    inside = intervals.overlapping(windows, records.start_ns, records.start_ns + 1)
    costs = worker.all(AgentCost)
    each = float(np.median([cost.record_ns + cost.wrapper_ns for cost in costs])) if costs else DEFAULT_CALL_NS
    return of_records(records, inside, int(windows[1][-1]), each)


def of_gaps(gaps: Gaps, in_gaps: RecordTable) -> CallCosts:
    """Calls that are counted by a light wrapper, or by PyTorch's hook, in gaps of the duty cycle; other kinds are
    ``in_gaps``: recorded there.
    """
    hooked = (gaps.kind == Kind.APPLY) & ~(in_gaps.kind == Kind.APPLY).any()
    rows = gaps.take((gaps.calls > 0) & (np.isin(gaps.kind, kinds_with(Trait.HOT)) | hooked))
    work = rows.calls * np.where(rows.kind == Kind.APPLY, HOOK_LIGHTS, 1)
    cold = (_gone((rows.end_ns - rows.start_ns) / rows.calls) * work).sum(axis=1)
    calls = int(rows.calls.sum())
    warm = np.minimum(WARM_LIGHT_NS, LIGHT_NS)
    low, usual, high = work.sum() * warm + cold * (np.array(LIGHT_NS) - warm)
    return CallCosts(calls=calls, ns=(float(low), float(usual), float(high)))


def _gone(apart_ns: F64 | I64) -> F64:
    """Share of a call's cache lines that other work has driven out. float64[at least, usually, at most; call]."""
    apart = np.asarray(apart_ns, np.float64)
    share: F64 = apart / (apart + np.array(COOLING_NS)[:, None])
    return share
