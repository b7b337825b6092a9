"""Where the steps of an op trace spend their time: parts that add up to the step, from device to interpreter.

Every moment of a step belongs to the first of ``PARTS`` that it is seen in, so that the parts add up by construction.
Work hides what waits beside it: a step whose device computes while the host waits for input computes. What no event of
the trace covers is Python between the framework's calls; where the session holds level-0 records of the same moments,
they say which: callbacks, saving, garbage collection, other Python. There is no "all others".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive import intervals, op_device, op_launch, op_pieces
from stepscope.derive.op_domain import Activity
from stepscope.model.optrace import Category, LineKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.intervals import Intervals, Painting
    from stepscope.derive.op_domain import Domain
    from stepscope.derive.op_launch import Launches
    from stepscope.derive.op_periods import Periods
    from stepscope.derive.op_waits import Waits
    from stepscope.model.optrace import OpTrace
    from stepscope.model.records import F64, Bool

LEVEL_0 = ("saving", "callbacks", "evaluation", "building", "gc")
"""Components of level 0 that name what the host did better than the ops in them do: a model call inside of a callback
is the callback."""
PARTS: dict[str, str] = {
    "device-compute": "kernels of the device",
    "collective": "exchange between devices or hosts",
    "copy-to-device": "copies from host to device",
    "copy-from-device": "copies from device to host",
    "copy-on-device": "copies within a device",
    "device-gap": "the device between two kernels, the next one in its queue",
    "saving": "checkpoints and summaries",
    "callbacks": "callbacks and hooks",
    "evaluation": "validation",
    "building": "building models and graphs",
    "gc": "Python's garbage collector",
    "compile": "tracing and compiling",
    "host-python": "Python that the step's ops call (py_function)",
    "host-compute": "ops on the host's CPUs",
    "input-wait": "waiting for the next batch",
    "device-wait": "a device waits for another one",
    "launch": "handing ops to the device",
    "runtime": "the framework around ops: executor, eager dispatch",
    "scheduling": "inside of the step's call, but none of its threads runs",
    "framework": "Keras' own loop",
    "other-python": "Python between the framework's calls",
}
"""Parts in the order of painting, and what they mean."""
_HOST = {
    "collective": (Activity.COLLECTIVE,),
    "compile": (Activity.COMPILE,),
    "host-python": (Activity.PYTHON,),
    "host-compute": (Activity.OP,),
    "launch": (Activity.LAUNCH, Activity.COPY),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """The split of the periods of one trace."""

    per_step: F64
    """float64[step, part] in ns, columns as PARTS; rows add up to the periods."""
    painting: Painting
    """Its layers are columns of PARTS."""
    periods: Periods
    device: int
    """Index of the plane whose work is shown; -1: the host alone."""

    @property
    def wall_ns(self) -> float:
        """Of all periods."""
        return float(self.per_step.sum())

    def per_step_of(self, part: str) -> F64:
        """One part: float64[step] in ns."""
        column: F64 = self.per_step[:, list(PARTS).index(part)]
        return column

    def mean_ns(self, part: str) -> float:
        """Of the mean step."""
        column = self.per_step_of(part)
        return float(column.mean()) if len(column) else 0.0

    def ratio(self, *parts: str) -> float:
        """Share of all periods."""
        wall = self.wall_ns
        return sum(float(self.per_step_of(part).sum()) for part in parts) / wall if wall else 0.0

    def shares(self) -> dict[str, float]:
        """Parts that there are, the largest first."""
        found = {part: self.ratio(part) for part in PARTS}
        return dict(sorted(((p, r) for p, r in found.items() if r > 0), key=lambda item: -item[1]))

    def when(self, *parts: str) -> Intervals:
        """When some parts are what a step does."""
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
        domain: what its host events are.
        waits: when steps waited for their input.
        launches: the work of the device that is to be shown; None for the host alone.
        level_0: components of level 0 by name, on the trace's clock, where the session has them.
    """
    layers = dict.fromkeys(PARTS, intervals.empty())
    if launches is not None:
        layers |= _device_layers(trace, launches)
    for part, when in (level_0 or {}).items():
        if part in layers:
            layers[part] = when
    for part, when in _host_layers(trace, periods, domain).items():
        layers[part] = intervals.union(layers[part], when)
    layers["input-wait"] = waits.intervals
    *names, _ = PARTS
    painting = intervals.paint([layers[name] for name in names], periods.windows)
    device = launches.device if launches is not None else -1
    return Breakdown(per_step=painting.sums, painting=painting, periods=periods, device=device)


def _device_layers(trace: OpTrace, launches: Launches) -> dict[str, Intervals]:
    device = launches.device
    found = {
        "device-gap": op_launch.queued_gaps(launches),
        "device-compute": op_device.busy(trace, device, Category.KERNEL, Category.OP),
        "collective": op_device.busy(trace, device, Category.COLLECTIVE),
        "copy-to-device": op_device.when(trace, op_device.copies(trace, device, op_device.TO_DEVICE)),
        "copy-from-device": op_device.when(trace, op_device.copies(trace, device, op_device.FROM_DEVICE)),
        "copy-on-device": op_device.busy(trace, device, Category.COPY),
    }
    waits = [
        line.first + np.flatnonzero(trace.metas.category[trace.events.meta[line.slice]] == Category.WAIT)
        for line in trace.lines_of(LineKind.DEVICE_TRACES)
        if line.plane == device
    ]
    if waits:
        found["device-wait"] = op_device.when(trace, np.concatenate(waits))
    return found


def _host_layers(trace: OpTrace, periods: Periods, domain: Domain) -> dict[str, Intervals]:
    """Parts that host threads show. Only what works for the step counts; the pipeline's work is behind its wait."""
    marks = np.isin(trace.categories(), (Category.STEP, Category.MEMORY))
    rows = np.flatnonzero(domain.host & ~domain.of_input & ~marks)
    pieces = op_pieces.build(trace, rows, domain.parent)
    activity = domain.activity[pieces.event]

    def when(chosen: Bool) -> Intervals:
        return intervals.merge(pieces.start_ns[chosen], pieces.end_ns[chosen])

    blocked = domain.blocked[pieces.event]
    around = (activity == Activity.RUNTIME) | ((activity == Activity.OTHER) & (pieces.line == periods.line))
    return {
        **{part: when(np.isin(activity, kinds)) for part, kinds in _HOST.items()},
        "runtime": when(around & ~blocked),
        "scheduling": when(blocked),
    }
