"""What shares the cores with ops that are slower in the step than alone.

Serves op_slower_than_alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.host.activity import Activity

if TYPE_CHECKING:
    from stepscope.causes.graph.op_limits import OpLimits

_WORK = (Activity.OP, Activity.PYTHON, Activity.STAGE)
"""Activities of the input's threads that use a core."""


def input_threads(limits: OpLimits) -> float:
    """Threads of the input that worked while the slowed ops ran, on average."""
    view = limits.heavy.trace
    trace, domain = view.trace, view.domain
    rows = np.flatnonzero(domain.host & ~domain.of_input & (domain.activity == Activity.OP))
    slow = {row for limit in limits.slowed() for row in limit.op.labels}
    rows = rows[np.isin(view.labels.index[rows], list(slow))]
    ran = intervals.clip(intervals.merge(trace.events.start_ns[rows], trace.events.end_ns[rows]), view.periods.windows)
    busy = np.flatnonzero(domain.host & domain.of_input & np.isin(domain.activity, _WORK))
    outer = busy[~np.isin(domain.parent[busy], busy)]
    work = intervals.clipped_sum(trace.events.start_ns[outer], trace.events.end_ns[outer], ran).sum()
    return float(work) / max(1, intervals.total(ran))
