"""Analyses of one op trace, computed once and on demand, for detectors and reports."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from stepscope.derive.optrace import op_times
from stepscope.derive.optrace.device import allocator_memory, device_work, launch_times
from stepscope.derive.optrace.host import (
    activity,
    batch_waits,
    data_loader,
    event_labels,
    stage_calls,
    step_threads,
    traced_stages,
)
from stepscope.derive.optrace.host.step_threads import KINETO
from stepscope.derive.optrace.kernels import compilations, gpu_kernels, roofline_model
from stepscope.derive.optrace.steps import (
    critical_path,
    device_idle,
    device_periods,
    host_runs,
    step_parts,
    step_periods,
    trace_lanes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.device.allocator_memory import Timeline
    from stepscope.derive.optrace.device.launch_times import Launches
    from stepscope.derive.optrace.host.activity import Domain
    from stepscope.derive.optrace.host.batch_waits import Waits
    from stepscope.derive.optrace.host.data_loader import Loader
    from stepscope.derive.optrace.host.event_labels import Labels
    from stepscope.derive.optrace.host.stage_calls import PipelineCalls, WorkByStage
    from stepscope.derive.optrace.host.traced_stages import Tree
    from stepscope.derive.optrace.kernels.compilations import Compiles
    from stepscope.derive.optrace.kernels.gpu_kernels import Kernels
    from stepscope.derive.optrace.kernels.roofline_model import RooflinePoint
    from stepscope.derive.optrace.op_times import OpStats
    from stepscope.derive.optrace.steps.critical_path import Gain, Path, Segment
    from stepscope.derive.optrace.steps.device_idle import DeviceIdle
    from stepscope.derive.optrace.steps.step_parts import Breakdown
    from stepscope.derive.optrace.steps.step_periods import Periods
    from stepscope.derive.optrace.steps.trace_lanes import Lanes
    from stepscope.tables.optrace import OpTrace

Framework = Literal["tensorflow", "jax", "torch"]
_JITTED = "PjitFunction("
PYTHON = "Python"
"""Name of user Python on a critical path."""


class OpView:
    """One op trace. ``level_0``: parts of a step that the session's records name, on the trace's clock."""

    def __init__(
        self,
        trace: OpTrace,
        name: str = "",
        level_0: Mapping[str, Intervals] | None = None,
        *,
        ref: str = "",
        worker: str = "",
    ) -> None:
        self.trace = trace
        self.name = name
        self.worker = worker
        """Key of the process; "" if imported."""
        self.ref = ref
        """The capture it came from, as used in evidence; "" if imported."""
        self.together: tuple[OpView, ...] = ()
        """What other profilers recorded of the same process at the same time: JAX's records no tf.data."""
        self._level_0 = level_0

    @cached_property
    def domain(self) -> Domain:
        """Kinds of the host's events, and for whom they ran."""
        return activity.build(self.trace, step_threads.beside(self.trace, self._marked.line))

    @cached_property
    def _marked(self) -> Periods:
        """The steps as the host marked them."""
        return step_periods.build(self.trace)

    @cached_property
    def periods(self) -> Periods:
        """The steps: by the work of the device, or of JAX's threads, where their caller is ahead of it."""
        marked = self._marked
        device = device_work.main(self.trace) if marked.how is not None else -1
        if marked.how is None or marked.plane == device:
            return marked
        if device >= 0:
            launches = launch_times.build(self.trace, self.domain, device)
            return device_periods.follow(self.trace, marked, device_periods.of_launches(launches))
        work = host_runs.build(self.trace)
        return device_periods.follow(self.trace, marked, work) if work is not None else marked

    @cached_property
    def framework(self) -> Framework:
        """The framework whose profiler wrote it, if its events show that."""
        if self.trace.source.format == KINETO:
            return "torch"
        return "jax" if any(text.startswith(_JITTED) for text in self.trace.strings) else "tensorflow"

    @property
    def shows_steps(self) -> bool:
        """Whether it contains steps."""
        return self.periods.how is not None

    @cached_property
    def waits(self) -> Waits:
        """Times at which the steps waited for a batch."""
        return batch_waits.build(self.trace, self.domain)

    @cached_property
    def device(self) -> int:
        """Index of the device plane whose work makes up the steps; -1 if it is the host's."""
        plane = self.periods.plane
        if any(plane == device.index for device in device_work.captured(self.trace)):
            return plane
        return device_work.main(self.trace)

    @cached_property
    def launches(self) -> Launches | None:
        """The device's work with the launches."""
        return launch_times.build(self.trace, self.domain, self.device) if self.device >= 0 else None

    @cached_property
    def breakdown(self) -> Breakdown:
        """Where the steps spend their time."""
        return step_parts.build(
            self.trace, self.periods, self.domain, self.waits, launches=self.launches, level_0=self._level_0
        )

    @cached_property
    def idle(self) -> DeviceIdle | None:
        """Idle times of the device, and what the host did meanwhile."""
        return device_idle.build(self.breakdown) if self.device >= 0 else None

    @cached_property
    def kernels(self) -> Kernels | None:
        """The device's kernels."""
        return gpu_kernels.build(self.trace, self.device, self.periods) if self.device >= 0 else None

    @cached_property
    def roofline(self) -> tuple[RooflinePoint, ...]:
        """The device's ops with known work."""
        return roofline_model.build(self.trace, self.device, self.periods) if self.device >= 0 else ()

    @cached_property
    def memory(self) -> tuple[Timeline, ...]:
        """Memory of the framework's allocators."""
        return allocator_memory.build(self.trace)

    @cached_property
    def compiles(self) -> Compiles:
        """Compilations within the steps."""
        return compilations.build(self.trace, self.domain, self.periods)

    @cached_property
    def stats(self) -> OpStats:
        """Time per op of the whole trace."""
        return op_times.build(self.trace)

    @cached_property
    def _stage_calls(self) -> tuple[PipelineCalls, WorkByStage] | None:
        return _calls_within(self, step_periods.build(self.trace).windows)

    @cached_property
    def pipeline(self) -> Tree | None:
        """The input pipeline that fed the steps; perhaps recorded by another profiler."""
        found = self._stage_calls
        others = (_calls_within(other, self.periods.windows) for other in self.together)
        found = found or next((calls for calls in others if calls is not None), None)
        return traced_stages.build(*found) if found is not None else None

    @cached_property
    def loader(self) -> Loader | None:
        """PyTorch's loader that fed the steps."""
        return data_loader.build(self.trace, self.waits)

    @cached_property
    def lanes(self) -> Lanes:
        """Its threads and streams, within the typical steps."""
        waiting = np.zeros(len(self.trace.events), np.bool_)
        if self._stage_calls is not None:
            calls, work = self._stage_calls
            parallel = [i for i, path in enumerate(calls.paths) if path in work.parallel]
            waiting[calls.row[np.isin(calls.path, parallel)]] = True
        steps = critical_path.typical(self.periods)
        windows = self.periods.start_ns[steps], self.periods.end_ns[steps]
        return trace_lanes.build(
            self.trace, self.domain, windows, self.periods.line, waiting=waiting, launches=self.launches
        )

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The critical paths of some steps."""
        return critical_path.build(self.lanes, self.periods)

    def gains(self, *, less: float = 0.5) -> tuple[Gain, ...]:
        """Time the steps would save if an op, or Python, took a share less; largest first."""
        return critical_path.gains(self.paths, self._what, less=less)

    def _what(self, segment: Segment) -> tuple[str, str] | None:
        """(name, type) of the op or Python in a segment of a path that could be made shorter."""
        if segment.event < 0:
            return (PYTHON, "") if segment.what == critical_path.PYTHON else None
        return None if segment.what else self.labels.of(segment.event)

    @cached_property
    def labels(self) -> Labels:
        """The op of every event."""
        return event_labels.build(self.trace)


def _calls_within(view: OpView, steps: Intervals) -> tuple[PipelineCalls, WorkByStage] | None:
    """Calls and work of the pipeline that gave batches to some steps."""
    calls = stage_calls.build(view.trace, view.domain, view.waits, steps)
    return (calls, stage_calls.work(view.trace, view.domain, calls)) if calls is not None else None
