"""How many CPUs the steps could use at once while their thread waits for the work of other threads.

The number of runnable threads does not show it: an idle thread of Eigen's pools spins for a while before it sleeps, and
successive ops pass from thread to thread. The work itself shows it:

- ops of an op trace. A long op is cut into pieces for all threads of the pool; a short one is not, so short ops use
  several CPUs only if they are in flight at the same time. An op whose thread was preempted is no evidence, and neither
  are the ops in flight with it;
- the stage that limits the input: the number of calls it makes at once.

Serves contention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.input import pipeline_python
from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.host.activity import Activity

if TYPE_CHECKING:
    from stepscope.derive.input.pipeline import Pipeline
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.steps.steps import Steps

MIN_SHARED_NS = 100_000
"""An op that takes this long on one CPU is split over the threads of its pool. Source: Eigen's TensorCostModel requires
100,000 cycles (kStartupCycles) and as many for each further thread; TensorFlow's Shard 10,000 for each piece."""
PREEMPTED_NS, PREEMPTED_FACTOR = 1_000_000, 10
"""An op was preempted if it takes longer than a scheduler's shortest slice, and than this many times its median.
Source: kernel, base_slice_ns 0.7 to 4 ms."""
FASTEST = 0.3
"""Fastest part of the traced steps, which had the CPUs. With one CPU, nothing runs at once."""
AUTOTUNE = -1
"""Requested number of parallel calls: as many as tf.data finds useful."""
MIN_PYTHON_RATIO = 0.5
"""Share of the input wait covered by the pipeline's Python functions from which they are what the steps wait for."""


def of_ops(trace: OpView, cpus: float) -> tuple[float, float]:
    """CPUs that the ops of the traced steps could use at once, at most ``cpus``; 1 if no op is seen. Also the least.

    How well a long op is split is unknown: at least half of the other CPUs are assumed to be useful.
    """
    events = trace.trace.events
    undelayed = trace.periods.dur_ns <= np.quantile(trace.periods.dur_ns, FASTEST)
    windows = trace.periods.start_ns[undelayed], trace.periods.end_ns[undelayed]
    rows = trace.domain.rows(Activity.OP)
    starts, ends = events.start_ns[rows], events.end_ns[rows]
    durs = ends - starts
    _, group = np.unique(trace.trace.names()[rows], return_inverse=True)
    usual = np.zeros(len(rows))
    order = np.argsort(group, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        usual[same] = np.median(durs[same]) if len(same) else 0.0
    shared = usual >= MIN_SHARED_NS
    taken = (durs >= PREEMPTED_NS) & (durs >= PREEMPTED_FACTOR * usual) & ~shared
    aside = intervals.merge(
        np.concatenate([starts[taken], starts[shared]]), np.concatenate([ends[taken], ends[shared]])
    )
    short = ~taken & ~shared
    each = intervals.clipped_sum(starts[short], ends[short], windows)
    each -= intervals.clipped_sum(starts[short], ends[short], intervals.clip(aside, windows))
    busy = intervals.clip(intervals.merge(starts[short], ends[short]), windows)
    covered = intervals.total(busy) - int(intervals.clipped_sum(*busy, aside).sum())
    at_once = float(each.sum()) / covered if covered > 0 else 1.0
    wall = intervals.total(windows)
    long = intervals.total(intervals.clip(intervals.merge(starts[shared], ends[shared]), windows))
    ratio = long / wall if wall else 0.0
    most = max(1.0, cpus)
    return ratio * most + (1.0 - ratio) * min(max(1.0, at_once), most), ratio * (1.0 + most) / 2 + (1.0 - ratio)


def of_input(steps: Steps, pipeline: Pipeline, wait_ratio: float, cpus: float) -> float | None:
    """CPUs that the limiting stage of the input could use at once, at most ``cpus``; None if unknown.

    Python functions hold the interpreter lock, unless the libraries that they call release it; ops of a stage that
    makes one call after the other may still be split.
    """
    stage = pipeline.slowest
    most = max(1.0, cpus)
    asked = (
        [most if made.parallel == AUTOTUNE else made.parallel for made in stage.datasets] if stage is not None else []
    )
    calls = min(most, max([1.0, *asked, stage.parallelism if stage is not None else 1.0]))
    if calls > 1.0:
        return None if pipeline.functions else calls
    python = pipeline_python.python_ratio(steps, pipeline.functions) if pipeline.functions else 0.0
    return 1.0 if python and python >= MIN_PYTHON_RATIO * wait_ratio else None
