"""Threads of ONNX Runtime hold the CPUs: they spin between its runs, or are more than there are CPUs.

## What it detects
Sessions whose threads wait actively (`session.intra_op.allow_spinning`, the default), in a process whose threads take a
part of the CPUs while no run is under way, so that the thread that makes the steps waits for one. And sessions with
more threads than the job has CPUs (`intra_op_num_threads`), if that thread waits for one: they take turns in each run.

## Why it matters
What is done between two runs, preparation above all, becomes as many times slower as there are threads for each CPU: in
a container of two CPUs on a host of many, a session has a thread for each core of the host.

## Evidence
`idle_cores`: CPUs that the process's threads take while no run is under way, at least: beyond all CPUs during the runs,
without the job's own Python threads. `waiting_ratio`: share of the time in which the steps' thread was runnable and had
no CPU (schedstat), without what other processes took. The cost is the part of that wait that is not in the runs; of
more threads than CPUs it is all of it. `session_threads`: of the largest session.

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

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system import contention, oversubscribed_threads
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_number_of, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.system.oversubscribed_threads import Spinning
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.place import Place


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_cores: float = oversubscribed_threads.MIN_SPINNING_CORES
    """CPUs taken between the runs."""
    min_ratio: Ratio = Ratio(0.1)
    """Of the time: medium severity begins here (decision 0003), and threads wait for a CPU on every shared host."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    found = view.get(oversubscribed_threads.spinning)
    used = view.get(contention.build)
    if found is None or used is None:
        return
    ratio = found.wait * found.outside
    if found.cores < params.min_cores or ratio < params.min_ratio:
        if found.is_crowd and found.wait >= params.min_ratio:
            yield _crowd(view, found, params)
        return
    cores = format_number_of(f"{found.cores:.2g}", "CPUs")
    yield Seen(
        title=f"ONNX Runtime's threads spin between its runs: they take {cores} of {used.available:.0f}, and the "
        f"steps' thread waits {format_ratio(found.wait)} of the time for one",
        confidence=0.85,
        where=_places(view, found),
        evidence=(
            Evidence(metric="idle_cores", value=found.cores, unit="cores", threshold=params.min_cores),
            Evidence(metric="waiting_ratio", value=found.wait, unit="ratio", threshold=params.min_ratio),
        ),
        cost=cost_of(view, ratio, low=found.least, high=found.wait, basis="modelled", by_time=True),
        remedies=(_SLEEP, _FEWER),
        explanation="A run is over when it returns; its threads go on looking for work, on the CPUs that the code "
        "between two runs needs.",
    )


def _crowd(view: StepsView, found: Spinning, params: Params) -> Seen:
    cpus = format_number_of(f"{found.available:.0f}", "CPUs")
    return Seen(
        title=f"a session of ONNX Runtime has {found.most_threads} threads for {cpus}: the steps' thread waits "
        f"{format_ratio(found.wait)} of the time for one",
        confidence=0.85,
        pipeline_stage="forward-backward",
        where=_places(view, found),
        evidence=(
            Evidence(metric="session_threads", value=found.most_threads, unit="threads", threshold=found.available),
            Evidence(metric="available_cores", value=found.available, unit="cores"),
            Evidence(metric="waiting_ratio", value=found.wait, unit="ratio", threshold=params.min_ratio),
        ),
        cost=cost_of(
            view, found.wait, low=0.5 * found.wait, high=min(1.0, 1.25 * found.wait), basis="modelled", by_time=True
        ),
        remedies=(_FEWER, _SLEEP),
        explanation="Each run wakes its threads, which look for work and hold the CPUs from each other, and from the "
        "thread that waits for the result.",
    )


def _places(view: StepsView, found: Spinning) -> tuple[Place, ...]:
    """Where the sessions were made."""
    made = (view.place(one.file, one.line, function=one.function) for one in found.sessions if one.file)
    return tuple(dict.fromkeys(made))


_SLEEP = Remedy(
    id="no-spinning",
    text='let them sleep: options.add_session_config_entry("session.intra_op.allow_spinning", "0")',
)
_FEWER = Remedy(
    id="fewer-session-threads",
    text="give the session no more threads than the job has CPUs: SessionOptions.intra_op_num_threads, 1 for a small "
    "model",
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
