"""The program's Python in an op trace, if the profiler recorded it: what the loop called, and who made its batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.optrace.host import loop_calls
from stepscope.derive.optrace.host.activity import Activity
from stepscope.derive.optrace.steps import device_idle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.host.loop_calls import CalledFunction, Producer
    from stepscope.derive.optrace.trace_view import OpView


def producer(view: OpView) -> Producer | None:
    """The Python that makes the batches while the steps wait for them."""
    waiting = view.breakdown.when("input-wait")
    return loop_calls.producer(view.trace, view.domain, view.periods.line, waiting)


def hides_waits(view: OpView) -> bool:
    """Whether the steps may wait for their batches without an event that shows it: the trace has no stage of any
    pipeline, no loader and no call of ``next``.
    """
    if view.pipeline is not None or view.loader is not None:
        return False
    domain = view.domain
    return view.framework == "torch" or not (domain.loop_python | (domain.activity == Activity.GET_NEXT)).any()


def while_idle(view: OpView) -> Mapping[CalledFunction, float]:
    """What the loop called while the device was idle: shares of the idle time."""
    return _calls(view, device_idle.idle_times(view.breakdown)) if view.device >= 0 else {}


def in_steps(view: OpView) -> Mapping[CalledFunction, float]:
    """What the loop called in its own Python while the device was idle: shares of the steps."""
    if view.device < 0:
        return {}
    ratio = view.breakdown.ratio("other-python")
    return {call: share * ratio for call, share in _calls(view, view.breakdown.when("other-python")).items()}


def _calls(view: OpView, windows: Intervals) -> Mapping[CalledFunction, float]:
    return loop_calls.shares(view.trace, view.domain, view.periods.line, view.periods.start_ns, windows)
