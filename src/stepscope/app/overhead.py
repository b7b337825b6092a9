"""What measuring cost: accounted from what was recorded, not guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.model.events import AgentCost
from stepscope.model.finding import Overhead
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView
    from stepscope.model.records import RecordTable

DEFAULT_RECORD_NS = 360
DEFAULT_WRAPPER_NS = 370
"""Where a run is too short to calibrate. Source: docs/benchmarks/overhead.md."""
CPU_SAMPLE_NS = 12_000
"""One sample by the CPU timer, in the main thread: signal, walk of a stack that was seen before, record."""
SPREAD = 1.25
"""Upper bound of the calibrated costs: a record in a cold cache against one in the calibration's warm one."""


def account(view: SessionView) -> Overhead:
    """Cost of level 0 on the steady steps, and the sidecar's share of one core.

    ``ratio``: records of the step's process (any thread's hold the GIL) x the calibrated cost of a record and its
    wrapper, samples of the CPU timer, and the CPU time of the agent's thread. ``low`` leaves the agent's thread out (it
    may have run while the step was waiting), ``high`` takes both and the spread of the calibration.
    """
    session, steps = view.session, view.steps
    sidecar = 0.0
    if len(session.host) > 1:
        span = int(session.host.at_ns[-1] - session.host.at_ns[0])
        own = np.diff(session.host.own_cpu_ns)
        sidecar = float(np.maximum(own, 0).sum()) / span if span else 0.0
    if steps is None or steps.steady_ns == 0:
        return Overhead(ratio=0.0, low=0.0, high=0.0, sidecar_core_ratio=sidecar)
    costs = steps.worker.all(AgentCost)
    record = int(np.median([c.record_ns for c in costs])) if costs else DEFAULT_RECORD_NS
    wrapper = int(np.median([c.wrapper_ns for c in costs])) if costs else DEFAULT_WRAPPER_NS
    lo, hi = steps.windows
    records = steps.worker.records
    inside = (records.start_ns >= lo[0]) & (records.start_ns < hi[-1])
    own_kinds = np.isin(records.kind, [Kind.SAMPLE, Kind.TICK])
    counted = inside & (records.kind == Kind.COUNTS)
    calls = int((inside & ~own_kinds & ~counted).sum())
    short = int(records.arg[counted].sum())
    on_path = calls * (record + wrapper) + short * wrapper
    thread = _thread_ns(records, inside)
    on_path += int((inside & ((records.flags & Flag.CPU) != 0)).sum()) * CPU_SAMPLE_NS
    span = int(hi[-1] - lo[0])
    return Overhead(
        ratio=(on_path + thread) / span,
        low=on_path / span,
        high=(SPREAD * on_path + thread) / span,
        records=int(inside.sum()),
        record_ns=record + wrapper,
        sidecar_core_ratio=sidecar,
    )


def _thread_ns(records: RecordTable, inside: np.ndarray) -> int:
    """CPU time of the agent's thread."""
    return int(records.dur_ns[inside & (records.kind == Kind.TICK)].sum())
