"""How long the step's thread waits for the interpreter lock, and which threads hold it meanwhile.

The kernel counts how long a thread ran and was ready to run; the rest of the time it was blocked. The agent's looks
(``agent.sampling.lock_watch``) show how often something other than the lock blocked it. The difference is its wait for
the lock.

Looks that find it waiting are not counted: the observing thread has just been given the lock, perhaps by the very
thread it looks at, which then waits because of the look. The lock does not affect a thread that is blocked elsewhere,
so such looks are unbiased. Other threads cannot have held the lock for longer than they ran or were ready to.

A thread that waits for the lock wakes up every 5 ms to ask for it, and is then ready for a CPU: if CPUs are scarce,
part of the wait appears as such. Of its ready time the fraction counts that lock waits have among the looks that do
not find it blocked elsewhere; the interval runs from none of its ready time to all.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct

from stepscope.causes.job import busy_span
from stepscope.causes.system.contention import MIN_SPAN_NS
from stepscope.derive.machine import thread_cpu
from stepscope.derive.numeric import proportion
from stepscope.derive.python import line_weights, stack_samples
from stepscope.model.log.events import ThreadSeen
from stepscope.wire.kinds import Flag, Kind, LockState

if TYPE_CHECKING:
    from stepscope.derive.machine.thread_cpu import Use
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.view import SessionView
    from stepscope.model.report.components import ComponentName


class GilHolder(Struct, frozen=True, kw_only=True):
    """Threads of the process, other than the step's, that run the same Python function."""

    threads: tuple[str, ...]
    """Their names."""
    cores: float
    """CPUs that they ran on."""
    wanted: float
    """CPUs that they ran on or were ready for."""
    waits: int
    """Looks that found them waiting for the lock."""
    spot: Spot
    """Where they are sampled most often."""
    lines: tuple[int, ...]
    """The fewest lines of that function that have most of its samples, the most sampled first."""
    samples: int
    """Number of samples on that function."""
    in_pipeline: bool
    """Whether the input pipeline calls what they run."""


class LockWaits(Struct, frozen=True, kw_only=True):
    """The step's thread and the interpreter lock. Shares of the wall time from the first to the last steady step."""

    blocked: float
    """Share in which it neither ran nor was ready to."""
    ready: float
    """Share in which it waited for a CPU."""
    elsewhere: float
    """Share in which something other than the lock blocked it."""
    elsewhere_low: float
    elsewhere_high: float
    looks: int
    waiting: float
    """Of the looks that did not find it blocked elsewhere, the share that found it waiting for the lock."""
    waiting_at: Spot | None
    """The line of user code where it waits most often."""
    component: ComponentName | Literal[""]
    """Component of the step in which it waits most often; "" if no look found it waiting."""
    holders: tuple[GilHolder, ...]
    """The most likely holder of the lock first."""

    @property
    def held(self) -> float:
        """The longest time that others can have held the lock."""
        return min(1.0, sum(holder.wanted for holder in self.holders))

    @property
    def ratio(self) -> float:
        """Time that the step's thread waited for the lock while others held it."""
        return self._within(self.blocked - self.elsewhere + self.ready * self.waiting)

    @property
    def low(self) -> float:
        """Lower end of its interval at 95 %."""
        return self._within(self.blocked - self.elsewhere_high)

    @property
    def high(self) -> float:
        """Upper end of its interval at 95 %."""
        return self._within(self.blocked - self.elsewhere_low + (self.ready if self.waiting else 0.0))

    def _within(self, waited: float) -> float:
        return max(0.0, min(waited, self.held))


MIN_LOOKS, MIN_HOLDER_CORES = 15, 0.02
"""Fewer looks are too few to conclude from; a thread that takes less of a CPU does not hold the lock."""


def known(view: SessionView) -> LockWaits | None:
    """For causes and detectors of other things: None where there are too few looks, or nothing waits."""
    waits = build(view, MIN_HOLDER_CORES)
    return waits if waits is not None and waits.looks >= MIN_LOOKS and waits.ratio else None


def build(view: SessionView, min_cores: float) -> LockWaits | None:
    """None if the samples of threads do not cover the steady steps.

    A thread that takes less than ``min_cores`` of a CPU does not count as a holder.
    """
    steps = view.steps
    if steps is None:
        return None
    lo, hi = view.get(busy_span.build)
    pid = steps.worker.info.pid
    at = view.session.process.at_ns[view.session.process.pid == pid]
    at = at[(at >= lo) & (at <= hi)]
    if len(at) == 0 or int(at[-1] - at[0]) < MIN_SPAN_NS:
        return None
    window = int(at[0]), int(at[-1])
    table = view.session.threads
    used = thread_cpu.used(table.take(table.pid == pid), window)
    natives = {t.id: t.native for t in steps.worker.all(ThreadSeen)}
    mine = used.get(natives.get(steps.thread, 0))
    if mine is None:
        return None
    # Gaps are looked at too: neither wrappers nor their absence change who has the lock.
    records = next((w for w in view.session.workers if w.info == steps.worker.info), steps.worker).with_gaps()
    looked = (records.kind == Kind.SAMPLE) & (records.arg != LockState.NOT_LOOKED) & ((records.flags & Flag.CPU) == 0)
    looked &= (records.start_ns >= window[0]) & (records.start_ns <= window[1])
    states = records.arg[looked & (records.thread == steps.thread)]
    elsewhere = float((states == LockState.ELSEWHERE).mean()) if len(states) else 1.0
    low, high = proportion.interval(elsewhere, len(states))
    waits = looked & (records.arg == LockState.WAITS)
    spot, component = _waiting_at(view, set(records.start_ns[waits & (records.thread == steps.thread)].tolist()))
    return LockWaits(
        blocked=max(0.0, 1.0 - mine.run - mine.ready),
        ready=mine.ready,
        elsewhere=elsewhere,
        elsewhere_low=low,
        elsewhere_high=high,
        looks=len(states),
        waiting=float((states[states != LockState.ELSEWHERE] == LockState.WAITS).mean()) if elsewhere < 1 else 0.0,
        waiting_at=spot,
        component=component,
        holders=_holders(
            view,
            window,
            {t: used[n] for t, n in natives.items() if n in used and t != steps.thread},
            Counter(records.thread[waits].tolist()),
            min_cores,
        ),
    )


def _waiting_at(view: SessionView, times: set[int]) -> tuple[Spot | None, ComponentName | Literal[""]]:
    """The line and the part of the step in which the samples at these times lie most often."""
    taken = [s for s in view.samples if s.at in times]
    spots = Counter(s.culprit for s in taken if s.culprit is not None)
    components = Counter(s.component for s in taken)
    spot = spots.most_common(1)[0][0] if spots else None
    return spot, components.most_common(1)[0][0] if components else ""


def _holders(
    view: SessionView, window: tuple[int, int], used: dict[int, Use], waits: Counter[int], min_cores: float
) -> tuple[GilHolder, ...]:
    """Threads that are sampled in Python and use a CPU, by the function that they run."""
    steps = view.steps
    if steps is None:
        return ()
    names = {t.id: t.name for t in steps.worker.all(ThreadSeen)}
    groups: dict[tuple[str, str], list[tuple[int, list[Sample]]]] = {}
    for thread, use in used.items():
        every = [s for s in stack_samples.thread_samples(steps.worker, [thread]) if window[0] <= s.at <= window[1]]
        taken = [s for s in every if s.weight_ns] or every  # at work, if ever seen so
        if taken and use.run + use.ready >= min_cores:
            functions = Counter((s.file, s.function) for s in map(_spot, taken))
            groups.setdefault(functions.most_common(1)[0][0], []).append((thread, taken))
    found = []
    for key, members in groups.items():
        spots = [spot for _, taken in members for s in taken if ((spot := _spot(s)).file, spot.function) == key]
        lines = line_weights.most(line_weights.ranked((spot.line, 1) for spot in spots)) or (0,)
        threads = [thread for thread, _ in members]
        found.append(
            GilHolder(
                threads=tuple(sorted(names.get(t, "") for t in threads)),
                cores=sum(used[t].run for t in threads),
                wanted=sum(used[t].run + used[t].ready for t in threads),
                waits=sum(waits[t] for t in threads),
                spot=stack_samples.Spot(file=key[0], function=key[1], line=lines[0], own=spots[0].own),
                lines=lines,
                samples=len(spots),
                in_pipeline=_in_pipeline(view, threads),
            )
        )
    return tuple(sorted(found, key=lambda h: (-h.waits * h.cores, -h.cores)))


def _spot(sample: Sample) -> Spot:
    return sample.culprit or sample.leaf


def _in_pipeline(view: SessionView, threads: list[int]) -> bool:
    """Whether most samples of these threads lie in calls made by the input pipeline."""
    steps = view.steps
    if steps is None:
        return False
    records = steps.worker.records
    mine = np.isin(records.thread, threads)
    calls = mine & (records.kind == Kind.PYFUNC)
    at = records.start_ns[mine & (records.kind == Kind.SAMPLE)]
    starts = np.sort(records.start_ns[calls])
    ends = np.sort((records.start_ns + records.dur_ns)[calls])
    inside = np.searchsorted(starts, at, side="right") > np.searchsorted(ends, at, side="right")
    return bool(len(at) and inside.mean() > 0.5)  # noqa: PLR2004 - most of them
