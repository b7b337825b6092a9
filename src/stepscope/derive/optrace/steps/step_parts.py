"""Where the steps of an op trace spend their time: parts that add up to the step, from device to interpreter.

Every moment of a step belongs to the first of ``PARTS`` that covers it, so the parts add up by construction. Work hides
a wait at the same time: a step whose device computes while the host waits for input computes. Time covered by no event
is Python between the framework's calls, or the runtime's inside Session.run (the executor, which its trace does not
show; a wait for another task). If the session holds level-0 records of the same moments, they decide: callbacks,
saving, garbage collection, other Python. There is no "all others".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.device import device_work, host_offload, launch_times
from stepscope.derive.optrace.host import activity, thread_pieces
from stepscope.derive.optrace.host.activity import Activity
from stepscope.derive.optrace.steps.traced_steps import StepKind
from stepscope.model.report.components import COMPONENTS, PAINTED
from stepscope.tables.blocks import take
from stepscope.tables.optrace import Category, LineKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.numeric.intervals import Intervals, Painting
    from stepscope.derive.optrace.device.launch_times import Launches
    from stepscope.derive.optrace.host.activity import Domain
    from stepscope.derive.optrace.host.batch_waits import Waits
    from stepscope.derive.optrace.steps.step_periods import Periods
    from stepscope.tables.optrace import I8, OpTrace
    from stepscope.tables.records import F64, I64

SESSION_RUN = "session-run"
"""Level-0 calls of Session.run. Time in them without an event is the runtime's; level 0 also counts it as the call."""
_LEVEL_0 = {about.part: about.part_means for name, _ in PAINTED if (about := COMPONENTS[name]).part_means}
"""Components of level 0 that name the host's work better than the ops in them do, topmost first: a model call inside a
callback counts as the callback."""
PARTS: dict[str, str] = {
    "device-compute": "kernels of the device",
    "collective": "exchange between devices or hosts",
    "copy-to-device": "copies from host to device",
    "copy-from-device": "copies from device to host",
    "copy-on-device": "copies within a device",
    "stage-to-device": "copying on the host, into the buffer from which the device copies",
    "stage-from-device": "copying on the host, out of the buffer to which the device copied",
    "device-gap": "the device is idle between two kernels, with the next one already queued",
    **_LEVEL_0,
    "compile": "tracing and compiling",
    "host-python": "Python that the step's ops call (py_function)",
    "host-compute": "ops on the host's CPUs",
    "input-wait": "waiting for the next batch",
    "device-wait": "a device waits for another one",
    "launch": "launching ops on the device",
    "runtime": "the framework around ops: executor, eager dispatch",
    "scheduling": "inside the step's call, while none of its threads runs",
    "framework": "Keras' own loop",
    "other-python": "Python between the framework's calls",
}
"""Parts in order of priority, and their meaning."""
TO_DEVICE = ("copy-to-device", "stage-to-device")
FROM_DEVICE = ("copy-from-device", "stage-from-device")
_HOST = {
    Activity.COLLECTIVE: "collective",
    Activity.COMPILE: "compile",
    Activity.PYTHON: "host-python",
    Activity.OP: "host-compute",
    Activity.LAUNCH: "launch",
    Activity.COPY: "launch",
}
_SAYS_MORE = np.isin(list(Activity), [Activity.OP, Activity.COLLECTIVE])
"""Activities whose events may contain unnamed events that are part of them."""
_RUNTIME, _SCHEDULING = list(PARTS).index("runtime"), list(PARTS).index("scheduling")
_PART_OF = np.array([list(PARTS).index(_HOST[a]) if a in _HOST else -1 for a in Activity], np.int8)
"""The part of each activity, -1 if it depends on the context."""
_HOST_PARTS = sorted({*_PART_OF[_PART_OF >= 0].tolist(), _RUNTIME, _SCHEDULING})


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """The split of the periods of one trace."""

    per_step: F64
    """float64[step, part] in ns, columns as PARTS; rows add up to the periods."""
    painting: Painting
    """Painting whose layers are the columns of PARTS."""
    periods: Periods
    device: int
    """Index of the device plane shown; -1: the host alone."""
    communication: Intervals
    """Times of exchange between devices or hosts, and of waits for it, hidden by computing or not."""

    @property
    def exposed_ns(self) -> F64:
        """Communication during which nothing computes: float64[step]."""
        return self.per_step_of("collective")

    @cached_property
    def hidden_ns(self) -> F64:
        """Communication at the same time as ops or kernels: float64[step]."""
        every = intervals.paint([self.communication], self.periods.windows).sums[:, 0]
        hidden: F64 = np.maximum(0.0, every - self.exposed_ns)
        return hidden

    @property
    def wall_ns(self) -> float:
        """Duration of all periods."""
        return float(self.per_step.sum())

    def per_step_of(self, part: str) -> F64:
        """One part: float64[step] in ns."""
        column: F64 = self.per_step[:, list(PARTS).index(part)]
        return column

    def mean_ns(self, part: str) -> float:
        """Time of a part in the mean step."""
        column = self.per_step_of(part)
        return float(column.mean()) if len(column) else 0.0

    def ratio(self, *parts: str) -> float:
        """Share of all periods."""
        wall = self.wall_ns
        return sum(float(self.per_step_of(part).sum()) for part in parts) / wall if wall else 0.0

    def shares(self) -> dict[str, float]:
        """Parts that occur, largest first."""
        found = {part: self.ratio(part) for part in PARTS}
        return dict(sorted(((p, r) for p, r in found.items() if r > 0), key=lambda item: -item[1]))

    def when(self, *parts: str) -> Intervals:
        """Times at which a step is in one of some parts."""
        wanted = [list(PARTS).index(part) for part in parts]
        shown = np.flatnonzero(np.isin(self.painting.layer, wanted))
        return intervals.merge(self.painting.edges[shown], self.painting.edges[shown + 1])


def build(
    trace: OpTrace,
    periods: Periods,
    domain: Domain,
    waits: Waits,
    *,
    launches: Launches | None = None,
    level_0: Mapping[str, Intervals] | None = None,
) -> Breakdown:
    """Split the periods of a trace.

    Args:
        trace: the trace.
        periods: its steps.
        domain: the activities of its host events.
        waits: times at which steps waited for their input.
        launches: the work of the device to be shown; None for the host alone.
        level_0: components of level 0 by name, on the trace's clock, if the session has them.
    """
    layers = dict.fromkeys(PARTS, intervals.empty())
    if launches is not None:
        layers |= _device_layers(trace, launches)
    for part, when in (level_0 or {}).items():
        if part in layers:
            layers[part] = when
    for part, when in _host_layers(trace, periods, domain).items():
        layers[part] = intervals.union(layers[part], when) if len(layers[part][0]) else when
    communication = layers["collective"]
    if launches is None:  # an exchange is hidden by the host's ops at the same time, as by a device's kernels
        layers["collective"] = intervals.without(layers["collective"], layers["host-compute"])
    layers["input-wait"] = waits.intervals
    calls = intervals.without(_calls(trace, periods, level_0 or {}), layers["scheduling"])
    layers["runtime"] = intervals.union(layers["runtime"], intervals.without(calls, layers["launch"]))
    *names, _ = PARTS
    painting = intervals.paint([layers[name] for name in names], periods.windows)
    device = launches.device if launches is not None else -1
    return Breakdown(
        per_step=painting.sums, painting=painting, periods=periods, device=device, communication=communication
    )


def _calls(trace: OpTrace, periods: Periods, level_0: Mapping[str, Intervals]) -> Intervals:
    """Times at which the steps' thread was in Session.run: from level 0, and each traced run."""
    calls = level_0.get(SESSION_RUN, intervals.empty())
    if periods.how is not StepKind.RUN:
        return calls
    if periods.line < 0:
        return intervals.union(calls, periods.windows)
    runs = trace.lines[periods.line].slice
    return intervals.union(calls, intervals.merge(trace.events.start_ns[runs], trace.events.end_ns[runs]))


def _device_layers(trace: OpTrace, launches: Launches) -> dict[str, Intervals]:
    device = launches.device
    found = {
        "device-gap": launch_times.queued_gaps(launches),
        "device-compute": device_work.busy(trace, device, Category.KERNEL, Category.OP),
        "collective": device_work.busy(trace, device, Category.COLLECTIVE),
        "copy-to-device": _copied(trace, device, device_work.TO_DEVICE),
        "copy-from-device": _copied(trace, device, device_work.FROM_DEVICE),
        "stage-to-device": device_work.when(trace, device_work.staged(trace, device_work.TO_DEVICE)),
        "stage-from-device": device_work.when(trace, device_work.staged(trace, device_work.FROM_DEVICE)),
        "copy-on-device": device_work.busy(trace, device, Category.COPY),
    }
    waits = [
        line.first + np.flatnonzero(trace.metas.category[trace.events.meta[line.slice]] == Category.WAIT)
        for line in trace.lines_of(LineKind.DEVICE_TRACES)
        if line.plane == device
    ]
    if waits:
        found["device-wait"] = device_work.when(trace, np.concatenate(waits))
    return found


def _copied(trace: OpTrace, device: int, way: str) -> Intervals:
    """Times of the copies that the host asks for, and of those that the program makes of arrays that it offloads."""
    made = (device_work.copies(trace, device, way), host_offload.rows(trace, device, way))
    return device_work.when(trace, np.concatenate(made))


def _host_layers(trace: OpTrace, periods: Periods, domain: Domain) -> dict[str, Intervals]:
    """Parts shown by host threads. Only work for the step counts; the pipeline's work shows as a wait for it."""
    marks = (trace.metas.category == Category.STEP) | (trace.metas.category == Category.MEMORY)
    shown = domain.host & ~domain.of_input & ~domain.beside
    shown &= ~take(marks, trace.events.meta)
    found: dict[int, tuple[list[I64], list[I64]]] = {number: ([], []) for number in _HOST_PARTS}
    for start, end, part in thread_pieces.by_code(trace, shown, domain.parent, _host_parts(trace, periods, domain)):
        by_part = np.argsort(part, kind="stable")  # small numbers are sorted by counting
        bounds = np.searchsorted(part[by_part], [*_HOST_PARTS, len(PARTS)])
        for number, first, last in zip(_HOST_PARTS, bounds, bounds[1:], strict=False):
            chosen = by_part[first:last]
            if len(chosen):
                begins, ends = _without_seams(start[chosen], end[chosen])
                found[number][0].append(begins)
                found[number][1].append(ends)
    return {list(PARTS)[number]: _together(*found.pop(number)) for number in _HOST_PARTS}


def _host_parts(trace: OpTrace, periods: Periods, domain: Domain) -> I8:
    """The part of the own time of each host event, -1 for none: int8[event]."""
    part: I8 = _PART_OF[domain.activity]
    part[domain.loop_python] = -1  # a tracer's Python between the framework's calls: what no other part covers
    part[domain.activity == Activity.RUNTIME] = _RUNTIME
    nameless = np.flatnonzero(domain.host & (domain.activity == Activity.OTHER) & (domain.parent >= 0))
    around = activity.nearest(domain.parent, domain.activity != Activity.OTHER, nameless)
    inside = (around >= 0) & _SAYS_MORE[domain.activity[around]]  # the part of the op of which it is a detail
    part[nameless[inside]] = _PART_OF[domain.activity[around[inside]]]
    if periods.line >= 0:
        line = trace.lines[periods.line].slice
        part[line][domain.activity[line] == Activity.OTHER] = _RUNTIME
    part[domain.blocked & ((part < 0) | (part == _RUNTIME))] = _SCHEDULING
    return part


def _without_seams(start: I64, end: I64) -> Intervals:
    """Disjoint intervals by start, with touching ones joined."""
    seam = start[1:] == end[:-1]
    return start[np.append(True, ~seam)], end[np.append(~seam, True)]


def _together(begins: list[I64], ends: list[I64]) -> Intervals:
    """The union of intervals. The lists are emptied, as they hold most of the memory of a breakdown."""
    return intervals.merge_in_place(_concatenated(begins), _concatenated(ends))


def _concatenated(parts: list[I64]) -> I64:
    whole = np.concatenate([np.empty(0, np.int64), *parts])
    parts.clear()
    return whole
