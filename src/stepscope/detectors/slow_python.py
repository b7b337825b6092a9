"""Python code in the training loop, before or after the step, takes a large part of the time.

## What it detects
User code of the loop that no probe names (metrics in NumPy, logging, drawing, sleeping, bookkeeping) and that does not
prepare the step's input, taking a tenth or more of the steady wall time.

## Why it matters
The device waits while the loop's thread runs it. It shows as "all others" or as an input problem in tools that see
only ops.

## Evidence
`other_python_ratio`: share of the steady wall time that no probe names, measured as the remainder of everything that is
named. `samples_on_code`: stack samples of the loop's thread on the function named, with their interval.

## Known limits
A sample inside of a C call that holds the interpreter lock lands on the line after it. At 20 samples a second a run of
10 s tells shares within some 6 points.

## Remedy
Do it every N steps, vectorise it, move it to another thread or process, or into the compiled step.

## References
py-spy and pyinstrument on sampling bias; TensorFlow profiler's "all others" (xprof).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.derive import hot
from stepscope.detectors.base import Detector, Signal, Undecided, cost_of, severity_of
from stepscope.model.finding import Evidence, Finding, Remedy
from stepscope.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.view import SessionView


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of steady wall time: a loop's own bookkeeping takes a few percent of short steps."""
    min_samples: int = 8
    """Fewer say nothing about lines."""
    max_tensorflow_ratio: Ratio = Ratio(0.5)
    """Code that spends more inside of TensorFlow is an eager step (HST002), not slow Python."""


def detect(session: SessionView, params: Params) -> Iterator[Finding | Undecided]:
    """Yield at most one finding: the function with the most samples."""
    anatomy, steps = session.anatomy, session.steps
    if anatomy is None or steps is None or anatomy.ratio("other-python") < params.min_ratio:
        return
    share = anatomy.ratio("other-python")
    spots = session.hot_spots("other-python")
    total = sum(s.samples for s in spots)
    mine = [
        s
        for s in spots
        if s.tensorflow_ratio <= params.max_tensorflow_ratio and session.role_of_statement(s) not in {"feeds", "call"}
    ]
    count = sum(s.samples for s in mine)
    part = sum(s.ratio for s in mine)
    ratio = share * part
    if count < params.min_samples or ratio < params.min_ratio:
        return
    low, high = hot.confidence_interval(part, total)
    top = mine[0]
    after = session.role_of_statement(top) == "uses"
    lines = top.lines[:3] or (top.culprit.line,)
    where = [session.place(top.culprit.file, min(lines), max(lines), top.culprit.function)]
    if top.statement is not None:
        where.append(session.place(top.statement.file, top.statement.line, function=top.statement.function))
    per_step = ratio * steps.steady_ns / steps.steady_count
    position = "after the step, on its results," if after else "between the steps"
    yield Finding(
        code=DETECTOR.code,
        name=DETECTOR.name,
        title=f"slow Python code in the loop {position} takes {format_ns(per_step)} a step, mostly in "
        f"{top.culprit.function}: {format_ratio(ratio)} of the time",
        severity=severity_of(ratio),
        confidence=0.85,
        symptom="Time: slow execution time",
        cause="Python: interpreter overhead",
        introduced_stage="training",
        exposed_stage="training",
        pipeline_stage="output-processing" if after else "none",
        where=tuple(dict.fromkeys(where)),
        evidence=(
            Evidence(
                metric="other_python_ratio",
                value=share,
                unit="ratio",
                threshold=params.min_ratio,
                refs=("component:other-python",),
            ),
            Evidence(metric="samples_on_code", value=count, unit="samples"),
            Evidence(metric="samples", value=total, unit="samples"),
        ),
        cost=cost_of(session, ratio, low=share * low, high=share * high),
        remedies=(
            Remedy(id="do-it-less-often", text=f"run {top.culprit.function} every N steps, or after training"),
            Remedy(id="vectorise", text="vectorise it with NumPy, or compute it inside of the compiled step"),
            Remedy(
                id="move-off-thread", text="or hand it to another thread or process, so that the next step can start"
            ),
        ),
        explanation="Nothing of TensorFlow, Keras, tf.data or a callback runs in this time: the loop's thread "
        "is in user "
        "Python between two steps.",
    )


DETECTOR = Detector(
    code="HST001",
    name="slow-python-in-loop",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    params=Params(),
    detect=detect,
)
