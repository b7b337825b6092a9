"""A session is asked for other fetches in run after run, and prepares its graph for each new set of them.

## What it detects
A line whose runs of a compat.v1 session are mostly the first of their fetches and feeds: a list of tensors that is
chosen each time, from a graph that does not grow.

## Why it matters
A session keeps what it needs to run for each set of fetches and feeds. For a new set it prunes the graph, optimises it
and creates every kernel: 10 to 100 times what a run takes, and the memory is kept until the session closes.

## Evidence
`new_ratio`: share of the steady wall time of first runs beyond a usual run. `first_runs`, `runs`: of that line, within
the steady steps. `usual_ns`: median of the line's runs of known fetches; where it has none, of the other runs that are
fed as many samples, which makes the cost modelled. Each run is compared with all before it, by identity of what is
fetched and fed.

## Known limits
The order of fetches does not matter to a session, nor here. Where no run of known fetches is seen, what a run takes is
the time of its ops in a trace, and without a trace there is only a question.
A graph that grows is GRF004, sessions that are made again are HST007.

## Remedy
Fetch one tensor that holds all (`tf.stack`, `tf.concat`), and choose from the array that comes back; or feed which of
them are wanted, and gather them in the graph.

## References
TensorFlow source, DirectSession::GetOrCreateExecutors; FSE'22 study, confusion with computation model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import new_fetches_each_run
from stepscope.causes.job import purpose
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns, format_ratio
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.new_fetches_each_run import NewFetches
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Of steady wall time."""
    min_first: int = 5
    """First runs of a line in the steady steps: a program has some for each of its phases."""
    min_share: Ratio = Ratio(0.2)
    """Of the line's runs: below it the sets of fetches come back, and soon all are known."""
    min_factor: float = 3.0
    """First runs against usual ones: a session takes many times longer to prepare than to run."""
    max_work: Ratio = Ratio(0.5)
    """Of ops in the traced steps, where no run of known fetches was seen: preparing runs none."""


WORK = ("host-compute", "device-compute", "host-python")
"""Parts of a traced step in which an op runs."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided | CaptureRequest]:
    """Yield at most one finding."""
    found = new_fetches_each_run.build(view, params.min_first, params.min_share)
    if found is None:
        return
    steady, usual = view.steps.steady_ns, found.usual_ns
    if usual is not None:
        ratio = found.beyond_ns / steady
        if ratio >= params.min_ratio and found.beyond_ns >= (params.min_factor - 1) * usual * found.first:
            yield _finding(view, found, ratio, params)
        return
    trace, most = view.traces.main, found.total_ns / steady
    if trace is not None and trace.breakdown.ratio(*WORK) < params.max_work and most >= params.min_ratio:
        yield _finding(view, found, most * (1.0 - trace.breakdown.ratio(*WORK)), params)
    elif trace is None and most >= params.min_ratio:
        yield _ask(view, found, most)


def _ask(view: StepsView, found: NewFetches, most: float) -> CaptureRequest:
    place = _place(view, found)
    return CaptureRequest(
        kind="ops",
        missing=Signal.OP_TRACE,
        hint="no run of known fetches shows what a run takes: stepscope trace JOB while it runs",
        suspicion=f"each run of the session at {place.file}:{place.line} is of fetches and feeds never run "
        "together before, for which it prepares its graph",
        suspected_ratio=most,
        where=(place,),
    )


def _place(view: StepsView, found: NewFetches) -> Place:
    return view.place(found.name.call_file, found.name.call_line, function=found.name.call_function)


def _finding(view: StepsView, found: NewFetches, ratio: float, params: Params) -> Seen:
    each = ratio * view.steps.steady_ns / found.first
    return Seen(
        title=f"{found.first:,} of {found.runs:,} session runs have a new set of fetches and feeds: "
        f"never run together before ({found.name.text}), so that the session prepares its graph and makes an "
        f"executor for each new set, {format_ns(each)} beyond a usual run, {format_ratio(ratio)} of the time",
        confidence=0.9 if found.measured else 0.8,
        introduced_stage="training" if view.get(purpose.trains) else "prediction",
        where=(_place(view, found),),
        evidence=(
            Evidence(metric="new_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="first_runs", value=found.first, unit="runs", threshold=params.min_first),
            Evidence(metric="runs", value=found.runs, unit="runs"),
            Evidence(metric="usual_ns", value=found.total_ns / found.first - each, unit="ns"),
        ),
        cost=cost_of(
            view,
            ratio,
            low=(0.85 if found.measured else 0.7) * ratio,
            high=1.1 * ratio,
            basis="measured" if found.measured else "modelled",
        ),
        remedies=(
            Remedy(
                id="fetch-one-tensor",
                text="fetch the same in each run: one tensor that holds all of them (tf.stack, tf.concat), and choose "
                "from the array that comes back; or feed which are wanted and gather them in the graph",
            ),
        ),
        explanation="Each run was compared with all before it: its fetches and feeds, as a set, were new. A session "
        "prunes and optimises the graph and creates its kernels before the first run of a set.",
    )


def _sessions(view: SessionView) -> str:
    steps = view.steps
    runs = steps is None or bool((steps.worker.records.kind == Kind.SESSION_RUN).any())
    return "" if runs else "the job runs no session"


DETECTOR = Detector(
    code="HST017",
    name="new-fetches-each-run",
    cause="Model: confusion with computation model",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
    yields_to=frozenset({"GRF004", "HST007"}),
    applies=_sessions,
)
