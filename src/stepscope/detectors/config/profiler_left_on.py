"""The program's own profiler records a large part of the training.

## What it detects
TensorFlow's profiler, started by the program (`tf.profiler.experimental.start`, `Profile`, Keras' TensorBoard callback
with `profile_batch`), or runs of a session with `RunOptions(trace_level=FULL_TRACE)`, if they record a fifth of the
steady time or more, and at least fifty steps.

## Why it matters
It records every op: steps of many short ops take up to half as long again, memory grows with each of them, and stopping
the profiler writes all of that on the training thread. A few tens of steps show the same.

## Evidence
`recorded_ratio`: share of the steady time in which it recorded. `recorded_steps`. `slower_ratio`: how much longer the
recorded steps are than the other steps of the same run, by their medians. `stop_ns`: the time that stopping it took.

Measured (bench/cases/73-profiler-all-epochs, TensorFlow 2.21): 3.4x faster without it; stopping it is most of that.

## Known limits
If it recorded all steps, there is nothing to compare with: its cost is then modelled as that of recording steps of some
milliseconds.

## Remedy
Record some steps of the steady part: `profile_batch=(10, 20)`, or `start` and `stop` around them.

## References
TensorFlow guide "Optimize TensorFlow performance using the Profiler"; tensorflow-tracing (OpML'19), on cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import profiler_left_on
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of, severity_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.profiler_left_on import ProfilerUse
    from stepscope.derive.steps_view import StepsView

SLOWER = {"": (0.06, 0.0, 0.5), "run-metadata": (0.5, 0.0, 1.6)}
"""How much longer recorded steps take, if this run does not show it, with its range, by ``UserProfiler.way``. Measured:
0.06 on Keras steps of 5 ms, 0.5 on steps of 3 ms with a callback (docs/benchmarks/capture.md; the pair named in
docs/detectors.md); runs of a session with a full trace 1.6 on runs of 0.2 ms, 0.1 on runs of 23 ms."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_time_ratio: Ratio = Ratio(0.2)
    """Share of the steady time that is recorded."""
    min_steps: int = 50
    """Recorded steps: fewer are recorded to be looked at."""
    min_ratio: Ratio = Ratio(0.03)
    """Share of the steady time that is lost: the least that a report calls low."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    found = profiler_left_on.build(view.steps)
    if found is None or found.steps < params.min_steps or found.time_ratio < params.min_time_ratio:
        return
    if _lost(found, _slower(found)) >= params.min_ratio:
        yield _finding(view, found, params)


def _slower(found: ProfilerUse) -> float:
    return SLOWER[found.started.way][0] if found.slower is None else found.slower


def _lost(found: ProfilerUse, slower: float) -> float:
    """Share of the time of the steps and of stopping the profiler."""
    in_steps = found.wall_ns * found.time_ratio * (1 - 1 / (1 + max(0.0, slower)))
    return (in_steps + found.stop_ns) / (found.wall_ns + found.stop_ns)


def _finding(view: StepsView, found: ProfilerUse, params: Params) -> Seen:
    known = found.slower is not None
    started = found.started
    lost, low, high = (_lost(found, slower) for slower in (_slower(found), *SLOWER[started.way][1:]))
    how = _how(found.slower)
    if found.stop_ns:
        how += f"; stopping it took {format_ns(found.stop_ns)}"
    compared = (Evidence(metric="slower_ratio", value=found.slower, unit="ratio"),) if found.slower is not None else ()
    who = "the program's own profiler" if not started.way else "full tracing of session runs (RunOptions)"
    return Seen(
        title=f"{who} records {found.steps:,} steps, {format_ratio(found.time_ratio)} of the time: {how}",
        severity=severity_of(lost),
        confidence=0.9 if known else 0.6,
        where=(view.place(started.file, started.line, function=started.function),) if started.file else (),
        evidence=(
            Evidence(metric="recorded_ratio", value=found.time_ratio, unit="ratio", threshold=params.min_time_ratio),
            Evidence(metric="recorded_steps", value=found.steps, unit="steps", threshold=params.min_steps),
            *compared,
            Evidence(metric="stop_ns", value=found.stop_ns, unit="ns"),
        ),
        cost=cost_of(view, lost) if known else cost_of(view, lost, low=low, high=high, basis="modelled"),
        remedies=(
            Remedy(
                id="profile-some-steps",
                text=_SOME_RUNS if started.way else _SOME_STEPS,
            ),
        ),
        explanation="The log of the run says when the profiler was started and stopped: steps with and without it "
        "are compared.",
    )


def _how(slower: float | None) -> str:
    if slower is None:
        return "their slowdown is unknown, because there are no others to compare with"
    return f"recorded steps take {format_ratio(slower)} longer" if slower > 0 else "recorded steps take no longer"


_SOME_STEPS = (
    "record only some steps of the steady part, as profile_batch=(10, 20) of Keras' TensorBoard callback does, and "
    "then stop the profiler"
)
_SOME_RUNS = (
    "trace one run in some thousands: leave options=RunOptions(trace_level=FULL_TRACE) and run_metadata out of the rest"
)


DETECTOR = Detector(
    code="CFG006",
    name="profiler-left-on",
    cause="API: inefficient API usage",
    introduced_stage="environment setting",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
)
