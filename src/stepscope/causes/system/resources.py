"""The steady steps second by second: the share of each second that waited for input, and the resources meanwhile.

Comparisons are made within one run: seconds that waited with seconds that did not, on one time axis.

Serves all causes that compare resources with waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.job import hidden_wait
from stepscope.derive.input.pipeline import MAX_HANDOVER_NS
from stepscope.derive.machine import counters
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import calls
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.input.pipeline import Pipeline
    from stepscope.derive.machine.counters import Wire
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.session.session import Session
    from stepscope.tables.records import F64, I64, ProcessTable

MIN_INTERVALS = 3
"""Fewer seconds cannot be compared."""
BURST_GAP_NS = 500_000_000
"""Two looks of a burst are 20 ms apart; a longer gap means that another burst began."""


class LookIntervals(Struct, frozen=True, kw_only=True):
    """Intervals between looks, long (a second) or short (those of bursts). float64[interval], rates per second."""

    seconds: F64
    wait_ratio: F64 | None
    """Share of each interval that waited for input; None if unknown."""
    net_in: F64
    net_out: F64
    cpu_cores: F64

    def mean(self, values: F64) -> float:
        """Mean over time."""
        return float(np.average(values, weights=self.seconds)) if len(values) else 0.0


class Resources(Struct, frozen=True, kw_only=True):
    """The resources during the steady steps."""

    edges: I64
    """Times of the samples, int64[interval + 1]."""
    looks: LookIntervals
    """About one per second."""
    bursts: LookIntervals | None
    """50 per second in short bursts, while the network carried data; None if there were none."""
    progress: F64
    """Steps per second. float64[interval]."""
    others_cores: F64
    wire: Wire | None
    process: ProcessTable
    """The samples of the process that makes the steps."""

    @property
    def span_s(self) -> float:
        """Length of the sampled time in seconds."""
        return float(self.edges[-1] - self.edges[0]) / 1e9


def build(view: StepsView) -> Resources | None:
    """None if the samples do not cover the steady steps, or none of these resources was sampled."""
    steps, pipe, session = view.steps, view.pipeline, view.session
    if len(steps.windows[0]) == 0 or not len(session.cores):
        return None
    lo, hi = steps.span
    host = counters.host(session)
    at = host.at_ns
    edges = at[(at >= lo) & (at <= hi)]
    if len(edges) <= MIN_INTERVALS:
        return None
    waits = None if view.get(hidden_wait.build) else input_waits(steps, pipe)
    wire = counters.wire(session)
    nothing = np.zeros(len(edges) - 1)
    looks = LookIntervals(
        seconds=np.diff(edges) / 1e9,
        wait_ratio=None if waits is None else covered(waits, edges),
        net_in=1e9 * counters.rate_at(edges, wire.at_ns, wire.rx_bytes) if wire else nothing,
        net_out=1e9 * counters.rate_at(edges, wire.at_ns, wire.tx_bytes) if wire else nothing,
        cpu_cores=counters.rate_at(edges, at, host.job_cpu_ns),
    )
    process = session.process
    return Resources(
        edges=edges,
        looks=looks,
        bursts=_bursts(session, lo, hi, waits),
        progress=1e9 * counters.rate_at(edges, steps.starts, np.arange(len(steps.starts), dtype=np.int64)),
        others_cores=counters.rate_at(edges, at, host.others_cpu_ns),
        wire=wire,
        process=process.take((process.pid == steps.worker.info.pid) & (process.at_ns >= lo) & (process.at_ns <= hi)),
    )


def input_waits(steps: Steps, pipe: Pipeline) -> Intervals:
    """Times in which the steps waited for their input.

    Pulled from Python: inside ``next``, less the cost of a ready batch. Inside a compiled call: at its beginning, for
    the time beyond the mean call's own work, which tf.data's model gives.
    """
    if pipe.windows:
        made = calls.of(steps, steps.kind).begun_in(steps.windows)
        if not len(made):
            return intervals.empty()
        own = float(made.durations.mean()) - (pipe.wait_ns_per_execution or 0.0)
        return intervals.merge(made.starts, made.starts + np.maximum(made.durations - own, 0).astype(np.int64))
    pulls = calls.of(steps, Kind.NEXT)
    ready = min(pipe.handover_ns, MAX_HANDOVER_NS)
    return intervals.merge(pulls.starts + int(ready), pulls.ends)


def covered(spans: Intervals, edges: I64) -> F64:
    """Share of each interval between ``edges`` that lies in ``spans``. float64[interval]."""
    starts, ends = spans
    before = np.concatenate(([0], np.cumsum(ends - starts)))
    index = np.searchsorted(starts, edges, side="right")
    inside = np.where(index > 0, np.minimum(edges, ends[np.maximum(index - 1, 0)]) if len(ends) else 0, 0)
    partial = inside - starts[np.maximum(index - 1, 0)] if len(starts) else np.zeros(len(edges))
    total = np.where(index > 0, before[np.maximum(index - 1, 0)] + partial, 0)
    result: F64 = np.diff(total) / np.maximum(np.diff(edges), 1)
    return result


def _bursts(session: Session, lo: int, hi: int, waits: Intervals | None) -> LookIntervals | None:
    table = session.bursts
    table = table.take((table.at_ns >= lo) & (table.at_ns <= hi))
    if len(table) < counters.DIFFERENCE:
        return None
    gaps = np.diff(table.at_ns)
    keep = (gaps > 0) & (gaps < BURST_GAP_NS)
    if not keep.any():
        return None
    seconds = gaps[keep] / 1e9
    return LookIntervals(
        seconds=seconds,
        wait_ratio=None if waits is None else covered(waits, table.at_ns)[keep],
        net_in=counters.growth(table.rx_bytes)[keep] / seconds,
        net_out=counters.growth(table.tx_bytes)[keep] / seconds,
        cpu_cores=counters.growth(table.job_cpu_ns)[keep] / 1e9 / seconds,
    )
