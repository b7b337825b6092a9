"""A large part of the run lies outside of its steady steps.

## What it detects
Each phase of the job outside of its steady steps that takes five percent of the run or more: the program's start,
imports, building up to the first step, first steps, tracing, evaluation, saving, time between steps, and the end; with
the lines that run in it.

## Why it matters
Steps may be as fast as they can be and still be a tenth of the run. What happens in the other nine tenths is then what
can be made faster.

## Evidence
`phase_ratio`: share of the job's wall time. `phase_ns`: its time. `times`: how often it occurred, if it is counted.
`part at FILE:LINE`: share of the phase on a line.

## Known limits
Reported only where no specific finding explains the time. Some of these phases are wanted, and all of them weigh less
in a longer run: no saving is claimed. Lines rest on stack samples, 20 a second, which begin with the import of the
framework.

## Remedy
Depends on the phase: keep what was built (a saved model, prepared data), trace fewer and smaller graphs, evaluate and
save less often.

## References
FSE'22 study, slow initialization; TensorFlow guide "Better performance with tf.function".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.general import phase_lines
from stepscope.detectors import general_loss
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.general_loss import Params
from stepscope.model.report.finding import Evidence, Remedy
from stepscope.model.report.ledger import ONCE
from stepscope.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.general.phase_lines import PhaseTime
    from stepscope.derive.view import SessionView
    from stepscope.model.report.finding import Stage
    from stepscope.model.report.ledger import Phase

_KEEP = Remedy(id="keep-what-is-built", text="prepare it once and keep it: prepared data in a file, a saved model")
_TRACES = Remedy(
    id="fewer-traces",
    text="fewer and smaller traces: one signature for each function, loops of the graph instead of unrolled Python",
)
_LESS_OFTEN = Remedy(id="less-often", text="do it less often, or in another thread or process")
_EVALUATE = Remedy(id="evaluate-less-often", text="evaluate less often, on less data, or in larger batches")
_SAVE = Remedy(id="save-less-often", text="save less often, weights only, or in the background")
WHAT: dict[Phase, tuple[str, tuple[Remedy, ...]]] = {
    "start": ("the program's start before it imports a framework takes", (_KEEP,)),
    "imports": ("imports of frameworks take", ()),
    "building": ("building models, data and graphs before the first step takes", (_KEEP,)),
    "first-steps": ("the first steps, with their traces, take", (_TRACES,)),
    "steps": ("", ()),
    "other-steps": ("steps of other makers take", ()),
    "tracing": ("tracing outside of the steps takes", (_TRACES,)),
    "evaluation": ("evaluations between the steps take", (_EVALUATE,)),
    "saving": ("saving between the steps takes", (_SAVE,)),
    "between-steps": ("what lies between the steps takes", (_LESS_OFTEN,)),
    "end": ("what follows the last step takes", ()),
    "not-seen": ("", ()),
}
"""Subject and verb of each phase's finding, and its remedies; "": it has none."""


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield one finding for each phase."""
    for time in view.get(phase_lines.build):
        if time.ratio >= params.min_ratio and WHAT[time.phase][0]:
            yield _finding(view, time, params)


def _finding(view: SessionView, time: PhaseTime, params: Params) -> Seen:
    return Seen(
        title=f"{WHAT[time.phase][0]} {format_ratio(time.ratio)} of the run ({format_ns(time.ns)})"
        f"{general_loss.top_text(time.lines)}{_edge_text(time)}",
        severity="info",
        confidence=general_loss.CONFIDENCE,
        exposed_stage=_stage(time),
        introduced_stage=_stage(time),
        where=tuple(dict.fromkeys(spent.place for spent in time.lines)),
        evidence=(
            Evidence(
                metric="phase_ratio",
                value=time.ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=(f"phase:{time.phase}",),
            ),
            Evidence(metric="phase_ns", value=time.ns, unit="ns"),
            *((Evidence(metric="times", value=time.count, unit="times"),) if time.count else ()),
            *general_loss.of_lines(time.lines),
        ),
        cost=cost_of(view, 0.0, high=time.ratio, basis="unknown", ns_per_step=0),
        remedies=WHAT[time.phase][1] if not _edge_text(time) else (_FEWER_LOOPS,),
        explanation="This time lies outside of the steady steps: shares of the step and costs of findings do not "
        f"include it.{_EDGES if _edge_text(time) else ''}",
    )


_FEWER_LOOPS = Remedy(
    id="fewer-loops",
    text="call fit, evaluate and predict less often, on more data each",
)
_EDGES = (
    " Each fit, evaluate and predict makes a dataset and an iterator of what it is given, before its first callback; "
    "when it ends, it destroys the iterator, with the pipeline's threads and buffers; predict also joins "
    "its outputs."
)
MIN_EDGE = 0.5
"""Share of a phase from which what Keras' loops do at their edges is its subject."""


def _edge_text(time: PhaseTime) -> str:
    """What Keras does in most of the time; "" if it does neither."""
    what, ns = max(time.edges, key=lambda edge: edge[1], default=("", 0))
    return f": {what} ({format_ns(ns)})" if ns >= MIN_EDGE * time.ns else ""


def _stage(time: PhaseTime) -> Stage:
    if time.phase in ONCE:
        return "initialization"
    return "evaluation" if time.phase == "evaluation" else "training"


DETECTOR = Detector(
    code="GEN013",
    name="time-outside-steps",
    cause="Python: interpreter overhead",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
