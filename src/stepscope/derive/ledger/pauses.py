"""Pauses: when the thread of the steps turned to something else for much longer than a step, in gaps as well.

While steps are recorded, a pause lies between the own end of one and the start of the next. In a gap of the duty cycle
calls are only counted; there the agent's thread looks every 90 ms whether any were, and samples the thread where none
was (``agent.sampling.sampler``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.ledger import own_steps
from stepscope.derive.ledger.life import main_thread
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import gaps, totals
from stepscope.derive.steps.step_candidates import LONG_GAP_FACTOR, RECURRING
from stepscope.derive.steps.steps import names_of
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.ledger.own_steps import OwnSteps
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.session.session import Worker
    from stepscope.tables.records import I64, RecordTable

LATE_NS = 20_000_000
"""By how much a look may come late: neighbouring looks without a call are one time without calls."""
LOOK_NS = 100_000_000
"""Longest time from one look to the next, and a little more: what a gap hides of a pause at either end."""
_STAYING = tuple(kind for kind in kinds_with(Trait.STAYS) if kind in kinds_with(Trait.STEP))
BATCH = "_batch_"
"""Part of the names of those of Keras' hooks that belong to a step."""


def looked_at(worker: Worker, thread: int) -> bool:
    """Whether the agent looks at a thread in gaps: at the main thread, where stacks are sampled."""
    records = worker.with_gaps()
    sampled = (records.kind == Kind.SAMPLE) & (records.thread == thread)
    return bool(sampled.any()) and main_thread(worker) == thread


def in_gaps(worker: Worker, threads: tuple[int, ...]) -> Intervals:
    """When no call was counted in a gap, from look to look, disjoint and sorted."""
    apart = worker.in_gaps
    mine = (apart.kind == Kind.SAMPLE) & np.isin(apart.thread, threads) & (apart.dur_ns > 0)
    ends, durs = apart.start_ns[mine], apart.dur_ns[mine]
    calls = _recorded(worker, threads)
    none = np.searchsorted(calls, ends - durs) == np.searchsorted(calls, ends)
    joined = intervals.merge((ends - durs)[none] - LATE_NS, ends[none])
    return intervals.clip((joined[0] + LATE_NS, joined[1]), gaps.periods(worker.gaps))


def _recorded(worker: Worker, threads: tuple[int, ...]) -> I64:
    """Calls in gaps that were recorded, so that no look saw them counted (``store.gaps``), those of steps that gaps
    record as everywhere included. int64[call], in order.
    """
    apart, holes, records = worker.in_gaps, worker.gaps, worker.records
    calls = np.zeros(len(apart), bool)
    for kind in np.unique(holes.kind):
        calls |= (apart.kind == kind) & (holes.row_of(int(kind), apart.start_ns) >= 0)
    steps = np.isin(records.kind, _STAYING) & np.isin(records.thread, threads)
    mine = apart.start_ns[calls & np.isin(apart.thread, threads)]
    at: I64 = np.sort(np.concatenate((mine, records.start_ns[steps])))
    return at


def counted_none(own: OwnSteps) -> Intervals:
    """Times in gaps without a counted call that are too long for a step, and at either end the half of a look in which
    calls ended, or began again.
    """
    starts, ends = _longer(in_gaps(own.steps.worker, (own.steps.thread,)), least_ns(own))
    half = LOOK_NS // 2
    return intervals.clip(intervals.merge(starts - half, ends + half), gaps.periods(own.steps.worker.gaps))


def hooks(own: OwnSteps, records: RecordTable) -> Intervals:
    """Keras' hooks between two steps, such as those of epochs. Gaps record them, too."""
    between = [name.id for name in names_of(own.steps.worker).values() if name.hook and BATCH not in name.hook]
    mine = (records.kind == Kind.HOOK) & (records.thread == own.steps.thread) & np.isin(records.name, between)
    return intervals.merge(records.start_ns[mine], (records.start_ns + records.dur_ns)[mine])


def calls_of_keras(own: OwnSteps) -> Intervals:
    """Calls of Keras within the one that makes the steps, such as those of ``predict`` by a callback; none if they are
    parts of the observed steps.
    """
    records, steps = own.steps.worker.records, own.steps
    mine = (records.kind == Kind.LOOP) & (records.thread == steps.thread) & ((records.flags & Flag.NESTED) != 0)
    starts = records.start_ns[mine]
    step = np.maximum(np.searchsorted(steps.starts, starts, side="right") - 1, 0)
    seen, inside = own.seen[step], own.seen[step] & (starts < own.ends[step])
    if 2 * int(inside.sum()) > int(seen.sum()):
        return intervals.empty()
    return intervals.merge(starts, starts + records.dur_ns[mine])


def hidden(own: OwnSteps, between: Intervals) -> Intervals:
    """What of observed time between steps a gap would neither record nor show to a look."""
    spans = intervals.without(between, hooks(own, own.steps.worker.records))
    keep = spans[1] - spans[0] <= max(LOOK_NS, least_ns(own))
    return spans[0][keep], spans[1][keep]


def recur(own: OwnSteps) -> bool:
    """Whether pauses were observed often enough that short ones stand for those in gaps."""
    return int((own.later & (own.ends < own.steps.ends)).sum()) >= RECURRING


def of(own: OwnSteps) -> Intervals:
    """All pauses from the first step on, disjoint and sorted; what a gap's edge parts is one pause."""
    steps = own.steps
    seen = own.seen & (own.ends < steps.ends)
    edges = _beside_gaps(own)
    hidden = in_gaps(steps.worker, (steps.thread,))
    after = hidden[0] >= int(steps.starts[0])
    starts = np.concatenate([own.ends[seen], edges[0], hidden[0][after]])
    ends = np.concatenate([steps.ends[seen], edges[1], hidden[1][after]])
    holes = gaps.periods(steps.worker.gaps)
    return _joined(intervals.merge(*_kept((starts, ends), least_ns(own))), np.sort(np.concatenate(holes)))


def beside_gaps(own: OwnSteps) -> Intervals:
    """Times that are too long for a step, before or after a gap that a step's call began before: calls were recorded
    then, and there was none.
    """
    return intervals.merge(*_kept(_beside_gaps(own), least_ns(own)))


def _beside_gaps(own: OwnSteps) -> tuple[I64, I64]:
    """From the call of each step that holds gaps to the first of them, and from the last to the next step."""
    steps = own.steps
    holes = gaps.periods(steps.worker.gaps)
    begun, calls, over = (side[steps.unobserved] for side in (steps.starts, steps.call_ends, steps.ends))
    first, last = np.searchsorted(holes[1], begun, side="right"), np.searchsorted(holes[0], over) - 1
    holds = first <= last
    begun, calls, over, first, last = (side[holds] for side in (begun, calls, over, first, last))
    starts = np.concatenate([calls, np.minimum(holes[1][last], over)])
    ends = np.concatenate([np.maximum(holes[0][first], begun), over])
    return starts, ends


def _joined(pieces: Intervals, edges: I64) -> Intervals:
    """The pieces; neighbours with an edge of a gap between them, which hides so little, are one."""
    before, after = pieces[1][:-1], pieces[0][1:]
    parted = np.searchsorted(edges, before, side="left") < np.searchsorted(edges, after, side="right")
    apart = ~(parted & (after - before <= LOOK_NS))
    return pieces[0][np.append(True, apart)[: len(pieces[0])]], pieces[1][np.append(apart, True)[: len(pieces[1])]]


LONG = 0.1
"""Share of the time of the steps from which a pause that does not recur makes rates over that time say little."""


def busy_span(steps: Steps) -> tuple[int, int]:
    """``steps.span``, or its longest part without a long pause: for rates of what is sampled by time."""
    low, high = steps.span
    own = own_steps.of(steps)
    if recur(own):
        return low, high
    apart = intervals.clip(of(own), (np.array([low]), np.array([high])))
    long = apart[1] - apart[0] >= LONG * (high - low)
    parts = intervals.without((np.array([low]), np.array([high])), (apart[0][long], apart[1][long]))
    longest = int((parts[1] - parts[0]).argmax())
    return int(parts[0][longest]), int(parts[1][longest])


def mean_ns(steps: Steps) -> float:
    """Time of the mean step: of all of them, where some were only counted, without pauses that do not recur.

    Timed steps are few in a fast job, and which of them hold something rare and long, such as a callback of every
    twentieth batch, is chance.
    """
    total = totals.of(steps) if steps.skipped else None
    if total is None:
        return steps.steady_ns / steps.steady_count
    own = own_steps.of(steps)
    hidden = steps.starts[steps.unobserved], steps.ends[steps.unobserved]
    paused = 0 if recur(own) else intervals.total(intervals.clip(of(own), intervals.merge(*hidden)))
    return max(1.0, total.ns - paused) / total.count


def least_ns(own: OwnSteps) -> int:
    """Length from which something is no step: many of them."""
    if not own.seen.any():
        return LOOK_NS
    return max(own_steps.LEAST_NS, int(LONG_GAP_FACTOR * np.median((own.ends - own.steps.starts)[own.seen])))


def _longer(spans: Intervals, least: int) -> Intervals:
    keep = spans[1] - spans[0] > least
    return spans[0][keep], spans[1][keep]


def _kept(spans: tuple[I64, I64], least: int) -> tuple[I64, I64]:
    """The spans that are long, in order of time."""
    starts, ends = _longer(spans, least)
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order]
