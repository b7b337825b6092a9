"""What wrapped calls cost: their number, and how much of their code and data has left the caches between two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.wire.call_cost import COOLING_NS, LIGHT_NS, MISSES_NS, WARM_LIGHT_NS, executed_ns
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.model.records import F64, I64, Bool, Gaps, RecordTable

KIND_SHIFT = 8
"""Flag bits from this one on hold the kind that counted calls are of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCosts:
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
    for kind in np.unique(records.kind[called]):
        starts = np.sort(records.start_ns[called & (records.kind == kind)])
        wrappers = 2 if kind == Kind.EXECUTION else 1  # the tf.function inside has one that writes nothing
        calls += wrappers * len(starts)
        cold += wrappers * (1 + _gone(np.diff(starts)).sum(axis=1))  # nothing is cached before the first
    counting = inside & (records.kind == Kind.COUNTS)
    for kind in np.unique(records.flags[counting] >> KIND_SHIFT):
        rows = records.take(counting & (records.flags >> KIND_SHIFT == kind))
        order = np.argsort(rows.start_ns)
        starts, counts = rows.start_ns[order], np.maximum(rows.arg[order], 1)
        calls += int(counts.sum())
        cold += (_gone(np.diff(starts, append=max(end_ns, int(starts[-1]) + 1)) / counts) * counts).sum(axis=1)
    low, usual, high = calls * executed_ns(calibrated_ns) + cold * np.array(MISSES_NS)
    return CallCosts(calls=calls, ns=(float(low), float(usual), float(high)))


def of_gaps(gaps: Gaps) -> CallCosts:
    """Calls that are only counted, in gaps of the duty cycle."""
    rows = gaps.take(gaps.calls > 0)
    cold = (_gone((rows.end_ns - rows.start_ns) / rows.calls) * rows.calls).sum(axis=1)
    calls = int(rows.calls.sum())
    warm = np.minimum(WARM_LIGHT_NS, LIGHT_NS)
    low, usual, high = calls * warm + cold * (np.array(LIGHT_NS) - warm)
    return CallCosts(calls=calls, ns=(float(low), float(usual), float(high)))


def _gone(apart_ns: F64 | I64) -> F64:
    """Share of a call's cache lines that other work has driven out. float64[at least, usually, at most; call]."""
    apart = np.asarray(apart_ns, np.float64)
    share: F64 = apart / (apart + np.array(COOLING_NS)[:, None])
    return share
