"""How long steps wait for PyTorch's DataLoaders, and what of that a device computed through.

A program that never waits for its device runs ahead of it: then the time in ``next`` is lost only where the device is
idle. Without a device the calls compute on the host, and the wait is lost whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.causes.system import gpu
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import calls
from stepscope.model.log.program import DataLoaderMade
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.steps_view import StepsView


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderWait:
    """The waits for one loader, in the steady steps."""

    made: DataLoaderMade
    ratio: float
    """Share of the steps in its ``next``."""
    lost_ratio: float
    """Share in which no device computed meanwhile."""
    next_ns: float
    """Mean time of a ``next`` that returned a batch."""
    batches: int

    @property
    def row_ns(self) -> float:
        """Time of one sample, where the process that trains makes them; 0: others do, or their number is not known."""
        return self.next_ns / self.made.batch if self.made.batch and not self.made.workers else 0.0


def build(view: StepsView) -> LoaderWait | None:
    """The loader that the steps wait for most; None without one."""
    loaders = {made.id: made for made in view.worker.all(DataLoaderMade)}
    steps = view.steps
    taken = calls.of(steps, Kind.NEXT)
    taken = taken.where(np.isin(taken.args, np.array(list(loaders), np.int64)))
    spent = intervals.clipped_sum(taken.starts, taken.ends, steps.windows)
    if not spent.any():
        return None
    by_loader = {number: float(spent[taken.args == number].sum()) for number in loaders}
    most = max(by_loader, key=lambda number: by_loader[number])
    inside = (taken.args == most) & (spent > 0)
    ratio = by_loader[most] / steps.steady_ns
    return LoaderWait(
        made=loaders[most],
        ratio=ratio,
        lost_ratio=min(ratio, _idle_ratio(view)),
        next_ns=float(taken.durations[inside].mean()),
        batches=int(inside.sum()),
    )


def _idle_ratio(view: StepsView) -> float:
    """Share of the time in which the busiest device of the job is idle; 1 without a device."""
    found = view.get(gpu.build)
    own = [one for one in found if one.job_reserved_bytes > 0] or found
    return 1.0 - max((one.busy_ratio for one in own), default=0.0)
