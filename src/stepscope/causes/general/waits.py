"""What the thread of the steps waits for outside of the framework: by line, and what else happens meanwhile.

How long the thread waits in a component of the step is measured: the component's time, without the thread's CPU time
there (samples of its CPU clock, and the time for which it was ready and others had the CPU, in proportion). Looks of
the agent (``agent.sampling.wait_looks``) say on which lines, and for what. A thread without a CPU clock waits for the
share of looks that find it blocked.

A look that finds it running says nothing of its waits there: the time for which it did not run in that period lies
somewhere else. Looks that find it waiting for the interpreter lock are left out, because the look itself may be the
reason (``causes.host.gil_contention``). Waits inside of the framework are not examined: that time is compute, or input.

For a lock or a queue, samples of the other threads at the same moments say who makes the thread wait.

Serves the general detector of waits, and the detectors whose time a wait may explain.
"""

from __future__ import annotations

import os.path
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.general import wait_partners
from stepscope.causes.job import busy_span
from stepscope.derive.machine import thread_cpu
from stepscope.derive.numeric import concentration, proportion
from stepscope.derive.python import stack_samples, wait_reasons
from stepscope.model.log.waits import ThreadCounts
from stepscope.model.report.components import COMPONENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.causes.general.wait_partners import Partners
    from stepscope.derive.numeric.concentration import Few
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.python.wait_reasons import Reason
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.report.components import ComponentName

INPUT: ComponentName = "input-wait"
"""The component that is left out: waits for input have findings of their own."""
NAMED: frozenset[Reason] = frozenset({"lock", "sleep", "file", "pipe", "socket", "client", "process", "events"})
"""Reasons that have a name. Native code that waits for its own threads computes."""
SURE_RATIO = 0.10
"""Of the steady wall time, from which a wait is a loss with a place; the same as for slow Python in the loop."""
SURE_LOW = 0.03
"""Lower end of its interval; the least that a report calls low."""
MIN_LOOKS = 5
"""Looks that found the thread waiting there; fewer name no line."""
LOOKS_OF_ONE = 5
"""Looks in one step from which its wait is known to be long."""
ONE_TARGET = 0.8
"""Share of looks from which a target stands for all."""


class WaitOn(Struct, frozen=True, kw_only=True):
    """What the thread waits for in one function. Shares are of the steady wall time."""

    component: ComponentName
    reason: Reason
    spot: Spot
    """The line of the user's code, of those of its function that on which it waits most often."""
    statement: Spot | None
    """The line of the loop that reaches it."""
    ratio: float
    low: float
    high: float
    looks: int
    """Looks that found it so."""
    call: str
    """The system call."""
    target: str
    """File, peer or process; "" where it is not known."""
    size: int
    """Bytes that most calls were given; 0: not known."""
    timed: bool
    """Whether most of these waits end by themselves."""
    partners: Partners | None = None
    """For locks: what other threads do meanwhile."""
    few: Few | None = None
    """The steps that have most of it, in ns, if they are few and were looked at often enough to know."""

    @property
    def handed_over(self) -> bool:
        """Whether the other threads wait in turn."""
        return self.partners is not None and self.partners.holder is None and bool(self.partners.waiting)

    @property
    def direct(self) -> bool:
        """Whether what is waited for is known, and no part of the step's own work."""
        if self.reason == "lock":
            holder = self.partners.holder if self.partners is not None else None
            return holder is not None or (self.handed_over and self.timed)
        return self.reason == "sleep" or (self.reason in {"file", "socket", "process"} and bool(self.target))


class Rates(Struct, frozen=True, kw_only=True):
    """Counters of the thread per steady step."""

    waits: float
    """Times that it gave up its CPU, for whatever reason."""
    calls: float
    """Calls that read or write, except of sockets."""
    bytes_per_call: float


class _Piece(Struct, frozen=True, kw_only=True):
    """Looks at one line that found one reason."""

    sample: Sample
    reason: Reason
    part: float
    """Its share of the component's waits."""


def build(view: StepsView) -> tuple[WaitOn, ...]:
    """The waits with a name, the longest first."""
    if not any(sample.wait is not None for sample in view.samples):
        return ()
    found = [wait for component in COMPONENTS if component != INPUT for wait in _of_component(view, component)]
    return tuple(sorted(found, key=lambda wait: -wait.ratio))


def known(view: StepsView) -> tuple[WaitOn, ...]:
    """The waits that enough looks found, whatever it is that is waited for."""
    return tuple(wait for wait in view.get(build) if wait.looks >= MIN_LOOKS)


def sure(view: StepsView) -> tuple[WaitOn, ...]:
    """The waits that are losses with a place."""
    return tuple(w for w in known(view) if w.direct and w.ratio >= SURE_RATIO and w.low >= SURE_LOW)


def part_of(view: StepsView, component: ComponentName, some: Iterable[WaitOn]) -> float:
    """Part of a component's time that some waits explain."""
    whole = view.anatomy.ratio(component)
    explained = sum(wait.ratio for wait in some if wait.component == component)
    return min(1.0, explained / whole) if whole else 0.0


def functions(view: StepsView, component: ComponentName) -> dict[tuple[str, str], float]:
    """Parts of a component's time that waits explain, by (file, function) that waits.

    Waits for a pipe are left out: what the other process does for the step may be the loop's own work.
    """
    whole = view.anatomy.ratio(component)
    found: dict[tuple[str, str], float] = defaultdict(float)
    for wait in known(view):
        if wait.component == component and whole and wait.reason != "pipe":
            found[wait.spot.file, wait.spot.function] += wait.ratio / whole
    return found


def rates(view: StepsView) -> Rates | None:
    """Counters of the thread of the steps; None where fewer than two readings lie within the steady steps."""
    steps = view.steps
    lo, hi = view.get(busy_span.build)
    read = [c for c in view.worker.all(ThreadCounts) if c.thread == steps.thread and lo <= c.at <= hi]
    if len(read) <= 1 or read[-1].at <= read[0].at:
        return None
    first, last = read[0], read[-1]
    count = (last.at - first.at) * steps.steady_count / steps.steady_ns
    calls = last.reads + last.writes - first.reads - first.writes
    moved = last.read_bytes + last.written_bytes - first.read_bytes - first.written_bytes
    return Rates(
        waits=(last.waits - first.waits) / count, calls=calls / count, bytes_per_call=moved / calls if calls else 0.0
    )


def blocked_ratio(view: StepsView, component: ComponentName) -> float | None:
    """Share of the steady wall time for which the thread waits in a component; None if it has no CPU clock."""
    every = stack_samples.weight_of(view.samples)
    if not every or not any(sample.on_cpu for sample in view.samples):
        return None
    ran = stack_samples.weight_of(s for s in view.samples if s.on_cpu and s.component == component) / every
    ready = thread_cpu.ready_per_run(view.session, view.steps) or 0.0
    return max(0.0, view.anatomy.ratio(component) - ran * (1.0 + ready))


def _of_component(view: StepsView, component: ComponentName) -> list[WaitOn]:
    taken = [s for s in view.samples if s.component == component and not s.on_cpu and s.culprit is not None]
    pieces = _pieces(view, taken)
    waited = blocked_ratio(view, component)
    if waited is None:
        weight = stack_samples.weight_of(taken)
        blocked = sum(piece.part for piece in pieces if piece.reason not in {"runs", "gil"})
        waited = view.anatomy.ratio(component) * blocked / weight if weight else 0.0
    whole = sum(piece.part for piece in pieces if piece.reason not in {"runs", "gil"})
    groups: dict[tuple[Reason, str, str], list[_Piece]] = defaultdict(list)
    for piece in pieces:
        spot = piece.sample.culprit
        if piece.reason in NAMED and spot is not None and _by_itself(view, piece.sample):
            groups[piece.reason, spot.file, spot.function].append(piece)
    looks = sum(1 for piece in pieces if piece.reason not in {"runs", "gil", "unknown"})
    return [_wait(view, group, waited / whole, looks, waited) for group in groups.values() if whole > 0]


def _by_itself(view: StepsView, sample: Sample) -> bool:
    """Whether the user's code waits, not the framework that it calls. In a call of the step, only code called by it."""
    if sample.in_tensorflow or sample.in_agent:
        return False
    return sample.component != "call" or stack_samples.inside_call(sample, view.loop)


def _pieces(view: StepsView, taken: Sequence[Sample]) -> list[_Piece]:
    """Looks with the weight of the samples on their line, those without a look included."""
    lines: dict[tuple[str, str, int, bool], list[tuple[Sample, Reason]]] = defaultdict(list)
    for sample in taken:
        spot = sample.culprit or sample.leaf
        key = (spot.file, spot.function, spot.line, sample.in_tensorflow)
        lines[key].append((sample, wait_reasons.reason(sample, view.source_of)))
    found = []
    for members in lines.values():
        looked = [one for one in members if one[1] != "unknown"] or members
        weight = stack_samples.weight_of(sample for sample, _ in members) / len(looked)
        found += [_Piece(sample=sample, reason=reason, part=weight) for sample, reason in looked]
    return found


def _wait(view: StepsView, group: Sequence[_Piece], scale: float, looks: int, waited: float) -> WaitOn:
    """The wait of one function; ``scale``: wall-time share per part, ``waited``: that of the whole component."""
    ratio = min(waited, sum(piece.part for piece in group) * scale)
    low, high = proportion.interval(ratio / waited if waited else 0.0, looks)
    samples = [piece.sample for piece in group]
    spots = Counter(spot for s in samples if (spot := s.culprit) is not None)
    waits = [s.wait for s in samples if s.wait is not None]
    found = WaitOn(
        component=samples[0].component or "other-python",
        reason=group[0].reason,
        spot=spots.most_common(1)[0][0],
        statement=stack_samples.statement_of(samples[0], view.loop),
        ratio=ratio,
        low=min(ratio, low * waited),
        high=max(ratio, high * waited),
        looks=len(samples),
        call=Counter(wait.call for wait in waits).most_common(1)[0][0],
        target=_target([wait.target for wait in waits]),
        size=Counter(wait.bytes for wait in waits).most_common(1)[0][0],
        timed=sum(wait.timed for wait in waits) * 2 > len(waits),
        few=_few(view, group, ratio),
    )
    return replace(found, partners=wait_partners.of(view, samples)) if found.reason == "lock" else found


def _few(view: StepsView, group: Sequence[_Piece], ratio: float) -> Few | None:
    """The steps with most of a wait. Looks are many a second, and a short wait of each step is seen in few of them."""
    steps = view.steps
    mine = np.array([piece.sample.at for piece in group], np.int64)
    held = np.zeros(len(steps))
    np.add.at(held, np.clip(np.searchsorted(steps.starts, mine, side="right") - 1, 0, len(steps) - 1), 1.0)
    held = held[steps.steady]
    found = concentration.few(held)
    if found is None or found.each < LOOKS_OF_ONE:
        return None
    return replace(found, each=found.each / held.sum() * ratio * steps.steady_ns)


def _target(targets: Iterable[str]) -> str:
    """One name for what is waited for: the only or usual one, else what the files have in common."""
    seen = Counter(filter(None, targets))
    if not seen:
        return ""
    first, count = seen.most_common(1)[0]
    if count >= ONE_TARGET * seen.total():
        return first
    if all(target.startswith("/") for target in seen):
        return f"{len(seen)} files below {os.path.commonpath(list(seen))}"
    return f"{first} and {len(seen) - 1} more"
