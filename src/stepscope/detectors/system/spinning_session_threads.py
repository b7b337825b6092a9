"""Threads of ONNX Runtime spin between its runs, and the Python around the runs waits for a CPU.

## What it detects
Sessions whose threads wait actively (`session.intra_op.allow_spinning`, the default), in a process whose threads take a
part of the CPUs while no run is under way, so that the thread that makes the steps waits for one.

## Why it matters
What is done between two runs, preparation above all, becomes as many times slower as there are threads for each CPU: in
a container of two CPUs on a host of many, a session has a thread for each core of the host.

## Evidence
`idle_cores`: CPUs that the process's threads take while no run is under way, at least: beyond all CPUs during the runs,
without the job's own Python threads. `waiting_ratio`: share of the time in which the steps' thread was runnable and had
no CPU (schedstat), without what other processes took. The cost is the part of that wait that is not in the runs.

## Known limits
Threads of other libraries that spin (OpenMP's) in such a process count as the session's. A run may take
a little longer if its threads sleep first.

## Remedy
`options.add_session_config_entry("session.intra_op.allow_spinning", "0")`, or `intra_op_num_threads` no larger than the
CPUs that the job may use, 1 for a small model.

## References
ONNX Runtime: thread management; onnxruntime_session_options_config_keys.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.causes.system import contention, oversubscribed_threads
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_number_of, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_cores: float = oversubscribed_threads.MIN_SPINNING_CORES
    """CPUs taken between the runs."""
    min_ratio: Ratio = Ratio(0.1)
    """Of the time: medium severity begins here (DESIGN 3.3), and threads wait for a CPU on every shared host."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    found = view.get(oversubscribed_threads.spinning)
    used = view.get(contention.build)
    if found is None or used is None or found.cores < params.min_cores:
        return
    ratio = found.wait * found.outside
    if ratio < params.min_ratio:
        return
    cores = format_number_of(f"{found.cores:.2g}", "CPUs")
    yield Seen(
        title=f"ONNX Runtime's threads spin between its runs: they take {cores} of {used.available:.0f}, and the "
        f"steps' thread waits {format_ratio(found.wait)} of the time for one",
        confidence=0.85,
        where=tuple(
            dict.fromkeys(view.place(one.file, one.line, function=one.function) for one in found.sessions if one.file)
        ),
        evidence=(
            Evidence(metric="idle_cores", value=found.cores, unit="cores", threshold=params.min_cores),
            Evidence(metric="waiting_ratio", value=found.wait, unit="ratio", threshold=params.min_ratio),
        ),
        cost=cost_of(view, ratio, low=found.least, high=found.wait, basis="modelled"),
        remedies=(
            Remedy(
                id="no-spinning",
                text='let them sleep: options.add_session_config_entry("session.intra_op.allow_spinning", "0")',
            ),
            Remedy(
                id="fewer-session-threads",
                text="or give the session no more threads than the job has CPUs: SessionOptions.intra_op_num_threads, "
                "1 for a small model",
            ),
        ),
        explanation="A run is over when it returns; its threads go on looking for work, on the CPUs that the code "
        "between two runs needs.",
    )


DETECTOR = Detector(
    code="CFG007",
    name="spinning-session-threads",
    cause="Hardware: improper configuration",
    introduced_stage="environment setting",
    exposed_stage="prediction",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS, Signal.HOST}),
    frameworks=frozenset({"onnxruntime"}),
    params=Params(),
    detect=detect,
)
