"""Waits in which a thread lets go of a tf.data iterator until its pipeline's tuning thread looks up.

That thread tunes, sleeps 10 ms, tunes, sleeps 20 ms, and so on, twice as long each time and at most a minute. Deleting
the iterator wakes it and waits for its end. But the mark that the iterator is cancelled is set only after it was woken:
if it looks before, it sleeps its time out. So such a wait ends at one of few times after the iterator's first element,
and the thread that waits never runs meanwhile. (TensorFlow 2.15 to 2.21: ``Model::OptimizeLoop`` in model.cc,
``CancellationManager::StartCancel`` in cancellation.cc; findings/tf-data-iterator-deletion-sleeps-out-autotuning.sh.)

All of it must hold here: one stack, off the CPU, from sample to sample; no call of a step and no other wait that is
known; an iterator is made as it begins or ends, or a loop of Keras has only its end left to do; and it ends at such a
time of one of the iterators before.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.ledger import loop_edges
from stepscope.derive.numeric import intervals
from stepscope.derive.python import stack_samples, wait_reasons
from stepscope.model.log.events import IteratorMade
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.steps_view import StepsView

FIRST_NS, LONGEST_NS = 10_000_000, 60_000_000_000
"""The tuning thread's first and longest sleep."""
SHORTEST_NS = 1_000_000_000
"""Shorter waits look like others: the times at which they could end lie close together."""
LATE_NS = 400_000_000
"""What tuning itself may add to all sleeps together."""
EARLY_NS = 50_000_000
EXCHANGE_NS = 1_000_000_000
"""Between the making of an iterator and such a wait: the old one is let go of when the new one takes its place."""
CANDIDATES = 4
"""Iterators made last before a wait: Keras makes two for each epoch, one of which is not read."""
_DELETES = "delete_iterator"
"""TensorFlow's function that runs the op, where Python runs it."""
_CALLS = (*kinds_with(Trait.COMPUTES), Kind.NEXT)
_QUIET = frozenset({"native", "unknown"})
"""Reasons of a wait inside of native code."""


class Deletion(Struct, frozen=True, kw_only=True):
    """One such wait. Times in nanoseconds since session start; both ends lie between two samples."""

    begin: int
    end: int
    spot: Spot
    """The user's line that lets go of the iterator, or calls what does."""
    least_ns: int
    most_ns: int
    """Its length at least and at most: samples lie on both sides of each end."""
    ends_loop: bool
    """Whether a loop of Keras ends with it: no iterator takes the place of the old one."""
    after_ns: int
    """Sleeps of the tuning thread since the iterator's first element, at the end of which the wait ends."""

    @property
    def long_ns(self) -> int:
        """Its length."""
        return self.end - self.begin


class _Pause(Struct, frozen=True, kw_only=True):
    """Samples that follow each other with one stack, off the CPU."""

    before: int
    """When the sample before was taken."""
    first: int
    last: int
    after: int
    """When the next sample was taken."""
    samples: tuple[Sample, ...]


def build(view: StepsView) -> tuple[Deletion, ...]:
    """The waits of the thread that makes the steps, in order of time."""
    made = sorted(one.at for one in view.worker.all(IteratorMade))
    if not made:
        return ()
    edges = loop_edges.build(view.worker, (view.steps.thread,))
    ends = next((edge.spans for edge in edges if edge.what == loop_edges.DROPPING), intervals.empty())
    found: list[Deletion] = []
    for pause in _pauses(list(stack_samples.thread_samples(view.worker, [view.steps.thread], gaps=True))):
        spot = pause.samples[0].culprit
        near = any(pause.before - EXCHANGE_NS <= at <= pause.after + EXCHANGE_NS for at in made)
        ends_loop = not near and bool(((ends[0] <= pause.first) & (pause.last <= ends[1])).any())
        if spot is None or not (near or ends_loop) or not _quiet(view, pause) or _computes(view, pause):
            continue
        before = [at for at in made if at < pause.before - EXCHANGE_NS][-CANDIDATES:]
        old = [max(_traced(view, at), _first_read(at, found)) for at in before]
        slept = _slept(pause, old)
        if slept is not None:
            began, after_ns = slept
            found.append(
                Deletion(
                    begin=pause.first,
                    end=min(max(began + after_ns, pause.last), pause.after),
                    spot=spot,
                    least_ns=pause.last - pause.first,
                    most_ns=pause.after - pause.before,
                    ends_loop=ends_loop,
                    after_ns=after_ns,
                )
            )
    return tuple(found)


def _pauses(samples: Sequence[Sample]) -> list[_Pause]:
    """Those that may be long enough."""
    numbered = groupby(range(len(samples)), key=lambda i: (samples[i].frames, samples[i].on_cpu))
    found = []
    for (_, on_cpu), members in numbered:
        inside = list(members)
        first, last = inside[0], inside[-1]
        if on_cpu or samples[last].at - samples[first].at < SHORTEST_NS:
            continue
        found.append(
            _Pause(
                before=samples[max(0, first - 1)].at,
                first=samples[first].at,
                last=samples[last].at,
                after=samples[min(len(samples) - 1, last + 1)].at,
                samples=tuple(samples[first : last + 1]),
            )
        )
    return found


def _quiet(view: StepsView, pause: _Pause) -> bool:
    """Whether native code waits, of which nothing more is known."""
    one = pause.samples[0]
    op = one.in_op and all(frame.function != _DELETES for frame in one.below_user())
    return not op and all(wait_reasons.reason(sample, view.source_of) in _QUIET for sample in pause.samples)


def _computes(view: StepsView, pause: _Pause) -> bool:
    """Whether a call of a step, or a pull of a batch, lies in it: its stack is the call's, or the same by chance."""
    records, gaps = view.worker.records, view.worker.gaps
    calls = np.isin(records.kind, _CALLS) & (records.thread == view.steps.thread)
    inside = (records.start_ns[calls] < pause.last) & (records.start_ns[calls] + records.dur_ns[calls] > pause.first)
    counted = (gaps.start_ns >= pause.first) & (gaps.end_ns <= pause.last) & (gaps.calls > 0)
    return bool(inside.any() or counted.any())


def _first_read(made: int, found: Sequence[Deletion]) -> int:
    """When an iterator gave its first element: at once, or after the wait in which its predecessor was let go of."""
    return max([made, *(one.end for one in found if one.begin - EXCHANGE_NS <= made <= one.end)])


def _traced(view: StepsView, made: int) -> int:
    """When the first call after an iterator was made had traced what pulls from it: only then does it give elements. A
    loop of the user's pulls before it calls: at once.
    """
    records = view.worker.records
    starts, ends = records.start_ns, records.start_ns + records.dur_ns
    mine = (records.thread == view.steps.thread) & (starts >= made)
    calls = np.flatnonzero(mine & np.isin(records.kind, _CALLS))
    if not len(calls):
        return made
    first = calls[np.argmin(starts[calls])]
    return int(ends[mine & (records.kind == Kind.TRACE) & (ends <= ends[first])].max(initial=made))


def _slept(pause: _Pause, began: Sequence[int]) -> tuple[int, int] | None:
    """(first element, sleeps until then) of the iterator whose tuning thread looks up as the pause ends."""
    for start in reversed(began):
        slept, sleep = 0, FIRST_NS
        while start + slept < pause.after:
            slept, sleep = slept + sleep, min(2 * sleep, LONGEST_NS)
            if sleep >= SHORTEST_NS and pause.last - LATE_NS <= start + slept <= pause.after + EARLY_NS:
                return start, slept
    return None
