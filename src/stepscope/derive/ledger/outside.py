"""Parts of the ledger outside of the steps: what records show, and Python that stack samples see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive import unmeasured
from stepscope.derive.job_framework import SAMPLED
from stepscope.derive.ledger import pauses
from stepscope.derive.ledger.life import between
from stepscope.derive.ledger.part import LedgerPart
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import gaps
from stepscope.model.log.events import Framework
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.model.report.ledger import Phase
    from stepscope.model.session.session import Worker
    from stepscope.tables.records import RecordTable

SHOWN: tuple[tuple[Phase, tuple[Kind, ...]], ...] = (
    ("saving", kinds_with(Trait.WRITES)),
    ("tracing", (Kind.TRACE,)),
    ("building", (Kind.BUILD,)),
)
"""Phases outside of steps that records show by their kind, topmost first."""


class Layer(Struct, frozen=True, kw_only=True):
    """A phase with the times at which records show it."""

    phase: Phase
    spans: Intervals
    count: int = 0


def layers(worker: Worker, threads: tuple[int, ...]) -> list[Layer]:
    """What records on these threads show outside of steps, topmost first."""
    records = on_threads(worker, threads)
    found = []
    for phase, kinds in SHOWN:
        mine = records.take(np.isin(records.kind, kinds))
        spans = spans_of(mine)
        if phase == "tracing":
            spans = intervals.union(spans, _first_runs(worker, threads, records))
        found.append(Layer(phase=phase, spans=spans, count=len(mine)))
    return found


def _first_runs(worker: Worker, threads: tuple[int, ...], records: RecordTable) -> Intervals:
    """The rest of the calls of Keras that traced in gaps: no call was counted from the trace on, and the loop went on.

    A traced graph is optimised in its first run, which lasts as long as the trace or longer (``anatomy``'s tracing
    contains it where calls are recorded).
    """
    runs = pauses.in_gaps(worker, threads)
    traced = np.sort((records.start_ns + records.dur_ns)[records.kind == Kind.TRACE])
    loops = spans_of(records.take(records.kind == Kind.LOOP))
    last = np.searchsorted(traced, runs[1], side="left") - 1
    inside = last >= 0
    inside[inside] = traced[last[inside]] >= runs[0][inside]
    begun = traced[last[inside]]
    return intervals.clip(intervals.merge(begun, runs[1][inside]), loops)


def on_threads(worker: Worker, threads: tuple[int, ...]) -> RecordTable:
    """All calls that were recorded on these threads, in gaps as well."""
    records = worker.with_gaps()
    mine = np.isin(records.thread, threads) & ~np.isin(records.kind, (*kinds_with(Trait.OURS), Kind.METRIC))
    return records.take(mine)


def spans_of(records: RecordTable) -> Intervals:
    """Time in these records, disjoint and sorted."""
    return intervals.merge(records.start_ns, records.start_ns + records.dur_ns)


def sampled(worker: Worker, threads: tuple[int, ...]) -> Intervals:
    """When the threads were sampled: from the first sample to the last; in gaps only while no calls were counted.

    A thread that computes without the interpreter's lock for long is not sampled meanwhile; the sample that follows
    shows where it was.
    """
    records = worker.records
    found = intervals.empty()
    for thread in threads:
        mine = (records.kind == Kind.SAMPLE) & (records.thread == thread)
        if mine.any():
            at = records.start_ns[mine]
            found = intervals.union(found, between(int(at[0] - records.dur_ns[mine][0]), int(at[-1])))
    apart = worker.in_gaps
    paused = (apart.kind == Kind.SAMPLE) & np.isin(apart.thread, threads)
    pauses = intervals.merge((apart.start_ns - apart.dur_ns)[paused], apart.start_ns[paused])
    return intervals.union(intervals.without(found, gaps.periods(worker.gaps)), pauses)


def counted(worker: Worker, threads: tuple[int, ...]) -> Intervals:
    """When calls were counted in gaps, if the agent looked at a thread meanwhile: the program ran as it does between
    such calls elsewhere, or a sample says what else it did.
    """
    if not any(pauses.looked_at(worker, thread) for thread in threads):
        return intervals.empty()
    return gaps.periods(worker.gaps.take(worker.gaps.calls > 0))


def is_sampled(worker: Worker) -> bool:
    """Whether the stacks of the process are sampled, whatever of them was seen. Of a framework that is timed at few
    points only a sample says it: an older agent took none.
    """
    if any(line.name in SAMPLED and line.name not in unmeasured.NAMES for line in worker.all(Framework)):
        return True
    return any(bool((records.kind == Kind.SAMPLE).any()) for records in (worker.records, worker.in_gaps))


def painted(found: list[Layer], room: Intervals) -> tuple[list[LedgerPart], Intervals]:
    """A part for each layer within ``room``, where none above covers it; and the room that is left."""
    parts = []
    for layer in found:
        spans = intervals.clip(layer.spans, room)
        room = intervals.without(room, spans)
        if len(spans[0]):
            count = min(layer.count, len(spans[0])) if layer.count else 0
            parts.append(LedgerPart(phase=layer.phase, ns=intervals.total(spans), count=count, spans=spans))
    return parts, room
