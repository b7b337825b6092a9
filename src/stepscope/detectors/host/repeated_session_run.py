"""A step runs the same part of a session's graph several times, once for each fetch.

## What it detects
Several calls of `session.run` with the same `feed_dict` in every step, of which one (usually the training op) computes
most of what the others need: loss, accuracy and predictions fetched by separate runs.

## Why it matters
Each run computes everything between the feed and its fetches. What two runs need is computed twice: the forward pass
once for the training, once for the loss, once for the accuracy.

## Evidence
`repeated_ratio`: share of the steady wall time in runs that repeat nodes of another run of the step. Each run is
weighted by its share of repeated nodes (`shared_ratio`: that of the longest run). `runs_per_step`: the number of such
runs. The times are those of the calls, the nodes are read from the session's graph, the feeds from the source.

## Known limits
Feeds count as equal if they are written the same and their names were not rebound between the runs. A value fetched
after the update sees the new weights; fetched together with it, the old ones. Runs that take their batch from a queue
or an iterator are not repetitions: each has its own batch.

## Remedy
Fetch everything in one run: `_, loss, accuracy = session.run([train_op, loss, accuracy], feed_dict=feed)`; fetch values
that are only monitored every N steps.

## References
TensorFlow 1 documentation of Session.run; FSE'22 study, inefficient API usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import repeated_session_run
from stepscope.causes.job import purpose
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of, step_ns
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.repeated_session_run import Reruns
    from stepscope.derive.steps.named_times import NamedTime
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of steady wall time."""
    min_runs: float = 0.5
    """Of the same fetches, a step: what is fetched now and then costs next to nothing."""
    min_shared: Ratio = Ratio(0.5)
    """Of the nodes of a run, that the main one computes too."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    steps = view.steps
    found = repeated_session_run.build(view, params.min_runs, params.min_shared)
    if found is None or found.lost_ns < params.min_ratio * steps.steady_ns:
        return
    yield _finding(view, found, steps.steady_ns, steps.steady_count, params)


def _finding(view: StepsView, found: Reruns, steady_ns: int, count: int, params: Params) -> Seen:
    ratio, most = found.lost_ns / steady_ns, found.high_ns / steady_ns
    longest = found.others[0]
    what = " and ".join(f"{other.run.name.text}" for other in found.others)
    calls = sum(other.run.calls for other in found.others)
    single = len(found.others) == 1
    fetch = "a separate session.run call fetches" if single else "separate session.run calls fetch"
    take = "it takes" if single else "together they take"
    return Seen(
        title=f"each step runs the same part of the graph {1 + len(found.others)} times: {fetch} {what} with the same "
        f"feed_dict as {found.main.name.text}; {take} {format_ns(most * step_ns(view))} of each step",
        confidence=0.85,
        introduced_stage="training" if view.get(purpose.trains) else "prediction",
        where=tuple(dict.fromkeys(_place(view, run) for run in (*(o.run for o in found.others), found.main))),
        evidence=(
            Evidence(metric="repeated_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="shared_ratio", value=longest.shared, unit="ratio", threshold=params.min_shared),
            Evidence(metric="runs_per_step", value=calls / count, unit="runs"),
        ),
        cost=cost_of(view, ratio, low=0.8 * ratio, high=most),
        remedies=(
            Remedy(
                id="one-run",
                text="fetch all of it in one run, session.run(["
                f"{', '.join((found.main.name.text, *(o.run.name.text for o in found.others)))}], feed_dict=...), "
                "or fetch values that are only monitored every N steps",
            ),
        ),
        explanation="A run computes everything between the feed and its fetches; the graph shows that these runs need "
        "nodes that the step's largest run also computes.",
    )


def _place(view: StepsView, run: NamedTime) -> Place:
    return view.place(run.name.call_file, run.name.call_line, function=run.name.call_function)


def _sessions(view: SessionView) -> str:
    steps = view.steps
    runs = steps is None or bool((steps.worker.records.kind == Kind.SESSION_RUN).any())
    return "" if runs else "the job runs no session"


DETECTOR = Detector(
    code="HST012",
    name="repeated-session-run",
    cause="API: inefficient API usage",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
    applies=_sessions,
)
