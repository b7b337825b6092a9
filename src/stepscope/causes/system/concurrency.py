"""How many CPUs the steps could use at once while their thread waits for work that other threads do.

Runnable threads do not tell: a thread of Eigen's pools that finds no work spins for some before it sleeps, and one op
after the other is handed from thread to thread. What tells is the work itself:

- ops of an op trace. One that takes long is cut into pieces for all threads of the pool; a short one is not, so of
  short ones only those that are in flight at the same time run on several CPUs. An op whose thread was taken off its
  CPU says nothing about that, and neither does what was in flight beside it;
- the stage that limits the input: how many calls it makes at once.

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
"""An op that takes so long on one CPU is shared out over the threads of its pool. Source: Eigen's TensorCostModel asks
100,000 cycles (kStartupCycles) and as many for each further thread; TensorFlow's Shard 10,000 for each piece."""
PREEMPTED_NS, PREEMPTED_FACTOR = 1_000_000, 10
"""An op that takes longer than a scheduler's slice at its shortest, and than so many times its median, was taken off
its CPU. Source: kernel, base_slice_ns 0.7 to 4 ms."""
FASTEST = 0.3
"""Of the traced steps, the fastest: those that had the CPUs. With one CPU, nothing runs at once."""
AUTOTUNE = -1
"""Of calls in parallel that were asked for: as many as tf.data finds useful."""
MIN_PYTHON_RATIO = 0.5
"""Of the wait for the input, covered by Python functions of the pipeline: they are what is waited for."""


def of_ops(trace: OpView, cpus: float) -> tuple[float, float]:
    """CPUs that the ops of the traced steps could use at once, ``cpus`` at most; 1 where no op is seen. And the least.

    How well a long op is shared out is not known: at least half of the other CPUs are taken to be of use.
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
    """CPUs that the stage which limits the input could use at once, ``cpus`` at most; None where that is not known.

    Python functions hold the interpreter lock, unless the libraries that they call release it; ops of a stage that
    makes one call after the other may still be shared out.
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
