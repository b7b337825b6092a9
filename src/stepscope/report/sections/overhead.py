"""The profiling overhead, computed from recorded data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.ledger import wrapped_calls
from stepscope.model.log.eager import EagerOps
from stepscope.model.log.events import AgentCost
from stepscope.model.report.overhead import Overhead
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView
    from stepscope.tables.records import HostTable, RecordTable

DEFAULT_RECORD_NS = 360
DEFAULT_WRAPPER_NS = 370
"""Cost of a call for runs too short to calibrate. Source: docs/benchmarks/overhead.md."""
CPU_SAMPLE_NS = 12_000
"""Cost of one CPU-timer sample in the main thread: signal, walk of a known stack, record."""
NOTED_NS = (10_000, 15_000, 20_000)
"""Cost of an op that a look at eager code notes: low, usual, high. Source: decision 0060."""
TICK_NS = 1_000_000_000
"""A tick's record covers the second before it."""


def account(view: SessionView) -> Overhead:
    """Cost of level 0 on the steady steps, including the gaps, and the sidecar's share of one core meanwhile.

    In gaps some calls are counted by a light wrapper; hooks and wrappers that nothing detaches cost there what they
    cost elsewhere. A call whose record was dropped because there were too many costs as much as one that was recorded,
    which is an upper bound: the record is not written.

    ``ratio``: wrapped calls of the step's process (any thread's hold the GIL) x what one costs in a step, by how
    closely they follow each other, samples of the CPU timer, ops that looks have noted, and the CPU time of the
    agent's thread. ``low`` excludes the agent's thread (it may have run while the step was waiting), ``high`` uses the
    upper bound of a call's cost.
    """
    session, steps = view.session, view.steps
    sidecar = _sidecar(session.host, int(steps.windows[1][-1]) if steps is not None else None)
    if steps is None or steps.steady_ns == 0:
        return Overhead(ratio=0.0, low=0.0, high=0.0, sidecar_core_ratio=sidecar)
    costs = steps.worker.all(AgentCost)
    record = int(np.median([c.record_ns for c in costs])) if costs else DEFAULT_RECORD_NS
    wrapper = int(np.median([c.wrapper_ns for c in costs])) if costs else DEFAULT_WRAPPER_NS
    lo, _ = steps.windows
    records = steps.worker.with_gaps()
    gaps = steps.worker.gaps.take(steps.worker.gaps.start_ns >= lo[0])
    end = max([steps.span[1], *gaps.end_ns.tolist()])  # a job may end in a gap
    inside = (records.start_ns >= lo[0]) & (records.start_ns < end)
    calls = wrapped_calls.of_records(records, inside, end, record + wrapper)
    low, usual, high = (
        a + b for a, b in zip(calls.ns, wrapped_calls.of_gaps(gaps, steps.worker.in_gaps).ns, strict=True)
    )
    detached_ns = int((gaps.end_ns - gaps.start_ns)[gaps.kind == Kind.EXECUTION].sum())
    span = end - int(lo[0])
    cpu_samples = int((inside & ((records.flags & Flag.CPU) != 0)).sum())
    sampling = cpu_samples * CPU_SAMPLE_NS
    noted = sum(look.ops for look in steps.worker.all(EagerOps) if lo[0] <= look.at < end)
    thread = _thread_ns(records, inside & (records.start_ns >= lo[0] + TICK_NS))
    return Overhead(
        ratio=(usual + NOTED_NS[1] * noted + sampling + thread) / span,
        low=(low + NOTED_NS[0] * noted + sampling) / span,
        high=(high + NOTED_NS[2] * noted + sampling + thread) / span,
        records=int(inside.sum()) + int((gaps.start_ns < end).sum()),
        record_ns=record + wrapper,
        call_ns=round(calls.ns[1] / max(1, calls.calls)),
        rest_ratio=detached_ns / span,
        sidecar_core_ratio=sidecar,
    )


def _sidecar(host: HostTable, until_ns: int | None) -> float:
    """CPU time of the sidecar over wall time, until the last step: what it does later does not slow the job."""
    if len(host) <= 1:
        return 0.0
    spans = np.diff(host.at_ns)
    last = host.at_ns[-1] if until_ns is None else max(until_ns, int(host.at_ns[1]))
    inside = (spans > 0) & (host.at_ns[1:] <= last)
    return float(np.maximum(np.diff(host.own_cpu_ns)[inside], 0).sum()) / max(1, int(spans[inside].sum()))


def _thread_ns(records: RecordTable, inside: np.ndarray) -> int:
    """CPU time of the agent's thread."""
    return int(records.dur_ns[inside & (records.kind == Kind.TICK)].sum())
