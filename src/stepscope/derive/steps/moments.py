"""When a condition of ``stepscope trace --when`` held: its moments among the records of one process.

A capture is kept if a moment lies within its window. Steps are counted as the capture counts them: from the end of one
call that makes a step to the end of the next, so what follows a call belongs to the step of the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import outliers
from stepscope.derive.steps.epochs import EPOCH_END as EPOCH_END_HOOK
from stepscope.derive.steps.steps import names_of
from stepscope.model.api.capture_when import EPOCH_END, RETRACE, SAVING, SLOW_STEP
from stepscope.model.log.events import Traced
from stepscope.tables.units import format_ns
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.model.api.capture_when import When
    from stepscope.model.session.session import Worker
    from stepscope.tables.records import F64, I64, Bool, RecordTable

MATTERS_RATIO = 0.5
"""Of the time that slow steps lost: as much as the slowest of them, which are looked for, make up."""
FEWEST_STEPS = 16
"""Steps without which none counts as slow."""


class StepCalls(Struct, frozen=True, kw_only=True):
    """The calls that make the steps of a process."""

    anchors: frozenset[tuple[int, int]]
    """(kind, name) of their records."""
    thread: int
    """0: any."""


class Moments(Struct, frozen=True, kw_only=True):
    """Moments at which a condition held, by time. Shapes: int64[moment], ns since session start."""

    start_ns: I64
    end_ns: I64
    texts: tuple[str, ...]
    """What happened at each."""
    pairs: frozenset[tuple[int, int]] = frozenset()
    """(kind, name) of the records that are moments."""
    flag: int = 0
    """That these records must have to be moments."""
    longer_ns: int = 0
    """Steps longer than this are moments; 0: it is not about the length of steps."""

    def __len__(self) -> int:
        """Number of moments."""
        return len(self.start_ns)

    def within(self, begin_ns: int, end_ns: int) -> str:
        """What happened wholly within a window; "" if nothing did."""
        inside = np.flatnonzero((self.start_ns >= begin_ns) & (self.end_ns <= end_ns))
        if not len(inside):
            return ""
        more = f" and {len(inside) - 1} more" if len(inside) > 1 else ""
        return f"{self.texts[int(inside[0])]}{more}"


NONE = Moments(start_ns=np.empty(0, np.int64), end_ns=np.empty(0, np.int64), texts=())


def step_ends(worker: Worker, calls: StepCalls) -> I64:
    """Ends of the calls that make the steps, in order: int64[call]."""
    rows = worker.records.take(_steps(worker.records, calls))
    ends: I64 = np.sort(rows.start_ns + rows.dur_ns)
    return ends


def find(when: When, worker: Worker, calls: StepCalls) -> Moments:
    """The moments of a condition among the records that a process's recent past, or its session, holds."""
    search = _SEARCHES.get(when.word)
    return search(worker, calls) if search is not None and len(worker.records) else NONE


def _steps(records: RecordTable, calls: StepCalls) -> Bool:
    mine = np.zeros(len(records), np.bool_)
    for kind, name in calls.anchors:
        mine |= (records.kind == kind) & (records.name == name)
    mine &= (records.flags & Flag.END) == 0
    return mine & (records.thread == calls.thread) if calls.thread else mine


def _saves(worker: Worker, _: StepCalls) -> Moments:
    records = worker.with_gaps()
    return _of_records(worker, records, np.isin(records.kind, kinds_with(Trait.WRITES)))


def _epoch_ends(worker: Worker, calls: StepCalls) -> Moments:
    """Ends of Keras' epochs; without them, those of the iterator that the thread pulls most from."""
    records = worker.with_gaps()
    hooks = [name.id for name in names_of(worker).values() if name.hook == EPOCH_END_HOOK]
    thread = (records.thread == calls.thread) if calls.thread else np.ones(len(records), np.bool_)
    ends = thread & (records.kind == Kind.HOOK) & np.isin(records.name, hooks)
    if ends.any():
        return _of_records(worker, records, ends)
    pulls = thread & (records.kind == Kind.NEXT)
    if not pulls.any():
        return NONE
    sites, counts = np.unique(records.name[pulls], return_counts=True)
    mine = pulls & (records.name == sites[int(counts.argmax())]) & ((records.flags & Flag.END) != 0)
    return _of_records(worker, records, mine, flag=int(Flag.END))


def _retraces(worker: Worker, calls: StepCalls) -> Moments:
    """Traces of functions that had been traced before."""
    records = worker.records
    again = [event.id for event in worker.all(Traced) if event.cause not in {"", "first"}]
    mine = (records.kind == Kind.TRACE) & np.isin(records.arg, again)
    return _of_records(worker, records, mine & (records.thread == calls.thread) if calls.thread else mine)


def _slow_steps(worker: Worker, calls: StepCalls) -> Moments:
    """Steps that are outliers among those of the recent past. A step in which a gap lies is none."""
    ends = step_ends(worker, calls)
    durations = np.diff(ends)
    gaps = worker.gaps
    hidden = np.searchsorted(gaps.start_ns, ends[1:]) > np.searchsorted(gaps.end_ns, ends[:-1])
    if len(durations) < FEWEST_STEPS or hidden.all():
        return NONE
    longer = _matters_from_ns(durations[~hidden].astype(np.float64))
    slow = np.flatnonzero((durations >= longer) & ~hidden)
    return Moments(
        start_ns=ends[slow],
        end_ns=ends[slow + 1],
        texts=tuple(f"a step of {format_ns(ns)} (slow from {format_ns(longer)})" for ns in durations[slow].tolist()),
        longer_ns=int(longer),
    )


def _matters_from_ns(durations: F64) -> float:
    """Duration from which a step is slow and matters: the slowest outliers that make up half of the time that all of
    them lost. On a busy machine many steps are a little slow; those that are much slower are looked for.
    """
    longer = outliers.slow_from_ns(durations)
    slow = np.sort(durations[durations >= longer])[::-1]
    if not len(slow):
        return longer
    lost = np.cumsum(slow - np.median(durations))
    return float(slow[int(np.searchsorted(lost, MATTERS_RATIO * lost[-1]))])


def _of_records(worker: Worker, records: RecordTable, mask: Bool, *, flag: int = 0) -> Moments:
    rows, names = records.take(mask), names_of(worker)
    texts = []
    for kind, number, took in zip(rows.kind.tolist(), rows.name.tolist(), rows.dur_ns.tolist(), strict=True):
        name = names.get(number)
        words = (name.text or name.role) if name is not None else ""
        texts.append(f"{words or Kind(kind).name.lower()} ({format_ns(took)})")
    return Moments(
        start_ns=rows.start_ns,
        end_ns=rows.start_ns + rows.dur_ns,
        texts=tuple(texts),
        pairs=frozenset(zip(rows.kind.tolist(), rows.name.tolist(), strict=True)),
        flag=flag,
    )


_SEARCHES: dict[str, Callable[[Worker, StepCalls], Moments]] = {
    SAVING: _saves,
    EPOCH_END: _epoch_ends,
    RETRACE: _retraces,
    SLOW_STEP: _slow_steps,
}
