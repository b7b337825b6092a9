"""Finds the call that repeats once per step, where steps begin and end, and which of them are steady.

A step lasts from one start of this call to the next. The call is the one whose repetition covers most of the job's wall
time; among those that cover about the same, the one that says most about a step wins (an explicit ``stepscope.step()``
before Keras' train function before ``Session.run`` before a tf.function ...). Steady steps exclude the warm-up (first
traces, first iterator fill), single pauses between two training loops and those of ``lone_pauses``; whatever recurs
(epoch ends, validation, checkpoints) stays in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.derive.kinds import KINDS
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import call_sizes, choice, evaluations, gaps, lone_pauses, step_candidates, thinned
from stepscope.derive.steps.candidate import TRAIN_ROLES
from stepscope.derive.steps.step_candidates import LONG_GAP_FACTOR
from stepscope.derive.steps.steps import Steps
from stepscope.model.log.events import BatchSeen, IteratorMade, IteratorModel, Traced
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.candidate import Candidate
    from stepscope.model.session.session import Worker
    from stepscope.tables.records import F64, I64, Bool, RecordTable

PAUSE_FACTOR = 5
"""Length in median steps from which a gap between two training loops is a pause, unless it recurs."""
MAX_PAUSES = 2
"""Maximum number of gaps that count as pauses; more of them belong to the work (fit called again and again)."""
SLOW_FACTOR = 3
"""Length in median steps above which an early step is warm-up."""

_VERBS = {"train": "fit", "test": "evaluate"}


def find(workers: Sequence[Worker]) -> Steps | None:
    """The steps of the job, or None when nothing repeats."""
    candidates = tuple(candidate for worker in workers for candidate in step_candidates.of(worker))
    chosen = choice.choose(candidates)
    if not chosen.candidates:
        return None
    first, *others = chosen.candidates
    steps = evaluations.counted(build(first))
    if steps.unobserved.any() and not steps.steady.any():
        # Long steps that each contain a gap: calls inside them have steady steps, be it predictions in a training.
        inner = (evaluations.counted(build(other)) for other in [*others, *choice.left_out(chosen.why)])
        steps = next((one for one in inner if one.steady.any()), steps)
    return replace(steps, candidates=candidates, why=choice.without(chosen.why, steps.candidate))


def build(candidate: Candidate) -> Steps:
    """The steps that a candidate's calls make."""
    records = candidate.worker.records
    starts = records.start_ns[candidate.index]
    call_ends = starts + records.dur_ns[candidate.index]
    ends = np.append(starts[1:], call_ends[-1])
    durations = ends - starts
    several = thinned.several(candidate)
    unseen = intervals.union(gaps.periods(candidate.worker.gaps), losses(candidate.worker))
    unobserved = intervals.overlapping(unseen, starts, ends) | several
    usual = int(np.median(durations[~unobserved])) if not unobserved.all() else 0
    steady = _steady(candidate, starts, np.where(unobserved, usual, durations)) & ~unobserved
    steady &= ~lone_pauses.after(candidate, starts, ends, ~unobserved)
    median = float(np.median(durations[steady])) if steady.any() else float(np.median(durations))
    return Steps(
        worker=candidate.worker,
        thread=candidate.thread,
        kind=candidate.kind,
        title=title_of(candidate),
        call=candidate.name,
        starts=starts,
        ends=ends,
        call_ends=call_ends,
        samples=_samples(candidate, starts),
        steady=steady,
        recurring=steady & (durations <= LONG_GAP_FACTOR * median),
        unobserved=unobserved,
        skipped=gaps.share(records, candidate.worker.gaps, candidate.kind, candidate.index)
        + thinned.counted(candidate),
        thinned_ns=int(ends[several].max(initial=0)),
        candidate=candidate,
    )


def losses(worker: Worker) -> Intervals:
    """When records were lost that may have begun or ended a step, disjoint and sorted."""
    return intervals.merge(worker.lost.start_ns, worker.lost.end_ns + 1)


def title_of(candidate: Candidate) -> str:
    """Description of a step made by these calls."""
    name = candidate.name
    role = _VERBS.get(name.role, name.role) if candidate.kind == Kind.EXECUTION else name.role
    return KINDS[candidate.kind].step.format(text=name.text, role=role)


def _loops(worker: Worker, thread: int) -> Intervals:
    """Outermost Keras loops of the thread, disjoint and sorted."""
    records = worker.records
    mine = (records.kind == Kind.LOOP) & (records.thread == thread)
    starts = records.start_ns[mine]
    return intervals.merge(starts, starts + records.dur_ns[mine])


def _steady(candidate: Candidate, starts: I64, durations: I64) -> Bool:
    count = len(starts)
    steady = np.ones(count, bool)
    steady[-1] = False  # the end of the last step is unknown
    median = float(np.median(durations))
    loop_starts, _ = _loops(candidate.worker, candidate.thread)
    loop_of = np.searchsorted(loop_starts, starts, side="right")
    changes = np.flatnonzero(np.diff(loop_of) > 0) if candidate.kind != Kind.LOOP else np.empty(0, np.int64)
    if len(changes) <= MAX_PAUSES:
        steady[changes[durations[changes] > PAUSE_FACTOR * median]] = False
        firsts = changes + 1
        steady[firsts[durations[firsts] > SLOW_FACTOR * median]] = False
    if len(loop_starts) == 0 or candidate.kind != Kind.EXECUTION:
        lone = np.flatnonzero(durations[:-1] > LONG_GAP_FACTOR * LONG_GAP_FACTOR * median)
        if len(lone) == 1:
            steady[lone] = False
    steady[: _warmup(candidate, starts, durations, median)] = False
    return steady


def _warmup(candidate: Candidate, starts: I64, durations: I64, median: float) -> int:
    """Number of leading warm-up steps: up to the last early step with a first trace, or the last of the slow ones."""
    count = len(starts)
    early = min(count - 1, max(5, count // 10))
    records = candidate.worker.records
    first = {t.id for t in candidate.worker.all(Traced) if t.cause in {"", "first"}}
    traces = (records.kind == Kind.TRACE) & (records.thread == candidate.thread)
    first_traces = records.start_ns[traces][np.isin(records.arg[traces], list(first))]
    step_of = np.searchsorted(starts, first_traces, side="right") - 1
    traced = step_of[(step_of >= 0) & (step_of < early)]
    slow = np.flatnonzero(durations[:early] > SLOW_FACTOR * median)
    leading = slow[slow == np.arange(len(slow))]  # only an unbroken run from the first step on
    last = max([-1, *traced.tolist(), *leading.tolist()])
    return min(last + 1, max(1, count // 2)) if last >= 0 else 1


def _samples(candidate: Candidate, starts: I64) -> I64:
    records = candidate.worker.records
    arg = records.arg[candidate.index]
    match candidate.kind:
        case Kind.EXECUTION:
            total: I64 = np.rint(np.maximum(arg, 1) * _batch_sizes(candidate, starts)).astype(np.int64)
            return total if total.any() else _loop_samples(candidate, starts)
        case kind if kind == Kind.LOOP or kind in kinds_with(Trait.CALLED):
            own = call_sizes.build(candidate)
            return own if own.any() else _pulled(candidate, starts)
        case _:
            return _pulled(candidate, starts)


def _batch_sizes(candidate: Candidate, starts: I64) -> F64:
    """Mean samples per batch for each execution, from the ``batch`` event of the loop it runs in."""
    sizes = np.zeros(len(starts))
    batches = sorted((b for b in candidate.worker.all(BatchSeen) if b.role in TRAIN_ROLES), key=lambda b: b.loop)
    if candidate.name.role not in TRAIN_ROLES:
        batches = sorted(
            (b for b in candidate.worker.all(BatchSeen) if b.role not in TRAIN_ROLES), key=lambda b: b.loop
        )
    for batch in batches:
        mean = batch.samples / batch.steps if batch.samples > 0 and batch.steps > 0 else float(batch.size)
        sizes[starts >= batch.loop] = mean
    return sizes


def _loop_samples(candidate: Candidate, starts: I64) -> I64:
    """Samples of the Keras call around each execution: train_on_batch knows its batch."""
    records = candidate.worker.records
    loops = (records.kind == Kind.LOOP) & (records.thread == candidate.thread)
    loop_starts, args = records.start_ns[loops], records.arg[loops]
    if len(loop_starts) == 0:
        return np.zeros(len(starts), np.int64)
    at = np.searchsorted(loop_starts, starts, side="right") - 1
    return call_sizes.filled(np.where(at >= 0, args[np.maximum(at, 0)], 0))


def _pulled(candidate: Candidate, starts: I64) -> I64:
    """Samples of the batches or calls that the step itself made: tf.data elements, else a function's argument."""
    records: RecordTable = candidate.worker.records
    sizes = {i.id: i.batch for i in candidate.worker.all(IteratorMade) if i.batch > 0}
    consumed = {m.iterator: m for m in candidate.worker.all(IteratorModel) if m.executions > 0}
    thread = records.thread == candidate.thread
    pulls = thread & (records.kind == Kind.NEXT) & ((records.flags & Flag.END) == 0)
    result = np.zeros(len(starts), np.int64)
    if pulls.any() and sizes:
        per = np.array([sizes.get(int(i), 0) for i in records.arg[pulls]], np.int64)
        at = np.searchsorted(starts, records.start_ns[pulls], side="right") - 1
        np.add.at(result, at[at >= 0], per[at >= 0])
        return call_sizes.filled(result)
    if candidate.kind == Kind.FUNCTION and len(consumed) == 1 and consumed.keys() <= sizes.keys():
        return np.full(len(starts), sizes[next(iter(consumed))], np.int64)
    for kind in kinds_with(Trait.CALLED):
        calls = thread & (records.kind == kind) & (records.arg > 0)
        if calls.any():
            at = np.searchsorted(starts, records.start_ns[calls], side="right") - 1
            good = at >= 0
            result[at[good]] = records.arg[calls][good]
            return call_sizes.filled(result)
    return result
