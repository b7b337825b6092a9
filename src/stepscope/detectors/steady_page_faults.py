"""Every step faults the same memory in again.

## What it detects
Page faults of the process that makes the steps that never end: about as many in each part of the steady steps, without
its memory growing. Memory is given back to the kernel and touched again, step after step.

## Why it matters
A fault enters the kernel, finds and zeroes a page and accounts for it: 0.5 us on bare machines, 1.5 us in virtual ones,
for 4 KiB that a kernel then overwrites. A tensor of 32 MiB is 8,192 of them. Profilers of ops book this as compute: it
happens inside of the copy or the op that touches the memory first.

## Evidence
`fault_ratio`: faults x the cost of one (measured on this host by the collector, `fault_ns`) of the CPU time;
`lasting_ratio`: the share that three of four parts of the steady steps reach; `faults_per_step`; `system_ratio`: CPU
time in the kernel; `kept_ratio`: pages per fault that came to stay. The cost adds what giving the pages back takes; its
low end is what was won where the practice was published (3 of 10 %).

## Known limits
Counters say neither which call faults nor why: that needs a window of stacks. Faults of huge pages count as one of
4 KiB each, so their share is told too small. Only the process that makes the steps is looked at.

## Remedy
Find out which allocator serves the tensors before changing it: on x86 TensorFlow's oneDNN pool does, and preloading
another malloc changes nothing for them.

## References
Gregg, "Flame graphs in deep learning" (2022): 10 % of CPU in page faults through madvise. Linux: proc(5), minflt;
madvise(2), MADV_DONTNEED.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.detectors.base import Detector, Signal, Undecided, cost_of, severity_of
from stepscope.model.finding import Evidence, Finding, Remedy
from stepscope.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.faults import Faults
    from stepscope.derive.view import SessionView

PUBLISHED_GAIN = 0.3
"""Of the share that was hoped for, what came out. Source: Gregg 2022, 3 of 10 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.03)
    """Of the steady wall time: less is what allocators cost everywhere (0 to 1 % in the clean cases)."""
    max_kept_ratio: Ratio = Ratio(0.5)
    """Pages per fault that stay: more is memory that grows (MEM001)."""
    max_lost_ratio: Ratio = Ratio(0.15)
    """CPUs that others take, above which shares of wall time are less certain."""


def detect(session: SessionView, params: Params) -> Iterator[Finding | Undecided]:
    """Yield at most one finding, and what is not known about it."""
    faults = session.faults
    if faults is None or faults.kept_ratio > params.max_kept_ratio:
        return
    if faults.lasting_ratio * faults.busy < params.min_ratio:
        return
    yield _finding(session, faults, params)


def _finding(session: SessionView, faults: Faults, params: Params) -> Finding:
    ratio = faults.churn_ratio * faults.busy
    contention = session.contention
    starved = contention is not None and contention.lost_ratio >= params.max_lost_ratio
    spread = faults.cost.high_ns / faults.cost.fault_ns
    return Finding(
        code=DETECTOR.code,
        name=DETECTOR.name,
        title=f"page faults in every step: {faults.per_step:,.0f} a step take {format_ratio(faults.ratio)} of the CPU "
        "time; the same memory is given back and faulted in again",
        severity=severity_of(ratio),
        confidence=0.6 if starved else 0.8,
        symptom="Time: slow execution time",
        cause="unknown",
        introduced_stage="unknown",
        exposed_stage="training" if session.trains else "prediction",
        pipeline_stage="forward-backward",
        evidence=(
            Evidence(metric="fault_ratio", value=faults.ratio, unit="ratio"),
            Evidence(metric="lasting_ratio", value=faults.lasting_ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="faults_per_step", value=faults.per_step, unit="faults"),
            Evidence(metric="fault_ns", value=faults.cost.fault_ns, unit="ns"),
            Evidence(metric="system_ratio", value=faults.system_ratio, unit="ratio"),
            Evidence(metric="kept_ratio", value=faults.kept_ratio, unit="ratio", threshold=params.max_kept_ratio),
        ),
        cost=cost_of(session, ratio, low=PUBLISHED_GAIN * ratio, high=spread * ratio, basis="modelled"),
        remedies=(
            Remedy(
                id="find-the-allocator",
                text="find out which call gives the memory back, and which allocator serves the tensors, before any "
                "allocator is changed",
            ),
        ),
        explanation="The process does not grow, yet the kernel hands it new pages in every step: what was freed went "
        "back to the kernel at once. The gain of a remedy is at most this share.",
    )


DETECTOR = Detector(
    code="MEM002",
    name="steady-page-faults",
    needs=frozenset({Signal.STEPS, Signal.FAULTS}),
    params=Params(),
    detect=detect,
)
