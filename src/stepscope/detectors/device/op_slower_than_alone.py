"""Ops of the step take longer than the same ops alone: their threads share the cores.

## What it detects
Heavy ops that take, in the traced steps, more than 1 / 0.7 of the time that they take when they are run alone after the
job, at the same shapes, types and attributes, and with the same number of threads; and what else ran at the same time
on the job's cores: the threads of its input pipeline, or nothing that the trace shows.

## Why it matters
An op of TensorFlow divides its work among all cores and ends with the slowest part. A thread that takes one core for
something else makes the whole op late.

## Evidence
From the op trace of some steps and the replay: `slowed_ratio`, share of the traced steps in such ops, with moments in
which several ops run divided among them; `saved_ratio`, share of the steps beyond their time alone; `input_threads`,
threads of the input that worked at the same time, on average; `others_cores`, CPUs that other processes used meanwhile.

## Known limits
Alone, an op finds the caches and the memory's bandwidth for itself: without another thread that works at the same time,
the finding is only information. Other processes that take the CPUs are CFG001's. The replay says when others had the
CPUs while it ran; such ops are left out.

## Remedy
Fewer threads for the input (`num_parallel_calls`, `options.threading.private_threadpool_size`), input prepared before
the training (`cache`), or another process for other work.

## References
Decision 0044; docs/benchmarks/op-limits.md has the ratios of tuned programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import op_limits, sharing
from stepscope.causes.system import contention
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.graph.op_limits import OpLimits
    from stepscope.derive.view import SessionView
    from stepscope.tables.findings import Severity


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_saved_low: Ratio = Ratio(0.03)
    """Lower bound of the share of the steps beyond the ops' time alone. Source: decision 0003, the least finding."""
    min_input_threads: float = 0.3
    """Threads of the input at work during such ops from which they are the reason: a third of a core."""
    max_withheld: float = 0.3
    """CPUs that other processes took, above which CFG001 states the cost."""


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    limits = view.get(op_limits.build)
    if limits is None:
        return
    ratio, low = limits.lost()
    others = view.get(contention.build)
    if low < params.min_saved_low or (others is not None and others.withheld > params.max_withheld):
        return
    threads = sharing.input_threads(limits)
    known = threads >= params.min_input_threads
    yield _seen(view, limits, ratio, low, threads, severity=None if known else "info")


def _seen(
    view: SessionView, limits: OpLimits, ratio: float, low: float, threads: float, *, severity: Severity | None
) -> Seen:
    slowed = limits.slowed()
    types = ", ".join(dict.fromkeys(limit.type for limit in slowed[:3]))
    share = sum(limit.step_ratio for limit in slowed)
    reached = sum(limit.ratio * limit.step_ratio for limit in slowed) / share
    who = "the input pipeline's threads" if severity is None else "work that the trace does not show"
    trace = limits.heavy.trace
    rows = [row for limit in slowed for row in limit.op.rows[:1]]
    return Seen(
        title=f"{types} ops run at {format_ratio(reached)} of their speed alone: their threads share the cores with "
        f"{who}",
        confidence=0.7 if severity is None else 0.5,
        where=graph_pattern.places(view, view.graphs, rows) if view.graphs is not None else (),
        evidence=(
            trace_evidence.evidence(trace, "slowed_ratio", share, "ratio"),
            trace_evidence.evidence(trace, "saved_ratio", ratio, "ratio"),
            trace_evidence.evidence(trace, "input_threads", threads, "threads"),
            Evidence(metric="others_cores", value=limits.replays.others_cores, unit="cores"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, ratio, low=low, basis="modelled"),
        remedies=(
            Remedy(
                id="free-the-cores",
                text="give the input fewer threads (num_parallel_calls, options.threading.private_threadpool_size) or "
                "less to do during the training (cache), and move other work of the process elsewhere",
            ),
        ),
        explanation="The same ops were run alone after the job, at their shapes and types, with the job's threads.",
        severity=severity,
    )


DETECTOR = Detector(
    code="KRN006",
    name="op-slower-than-alone",
    cause="System: scheduling",
    introduced_stage="data preparation",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES, Signal.OP_TRACE}),
    params=Params(),
    detect=detect,
)
