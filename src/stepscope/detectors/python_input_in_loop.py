"""Python code in the training loop prepares the batch while nothing else runs.

## What it detects
A loop that makes its own batches: the statements of the loop whose results reach the arguments of the step's call take
a large part of the wall time, in user Python (or in libraries called from it), outside of tf.data.

## Why it matters
Until the batch is ready, no step can start; work in the loop is never overlapped with the step, as tf.data's prefetch
would do.

## Evidence
`other_python_ratio`: share of the steady wall time that no probe names, measured as the remainder. `samples`: stack
samples of the loop's thread (about 20 a second) that fall on the function named; the share has their interval.
Whether a statement feeds the step is read from the loop's own source by def-use.

## Known limits
A sample inside of a C call that holds the interpreter lock lands on the line after it. Where the source is not at hand,
the code counts as slow Python in the loop (HST001).

## Remedy
Move the preparation into a tf.data pipeline with `map` and `prefetch`, vectorise it with NumPy over the whole batch, or
do it once before the loop.

## References
tf.data performance guide, prefetching; training-pipeline analysis (Rand 2020), stage preprocessing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.derive import hot
from stepscope.detectors.base import Detector, Signal, Undecided, cost_of, severity_of
from stepscope.model.finding import Evidence, Finding, Remedy
from stepscope.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.hot import HotSpot
    from stepscope.derive.view import SessionView


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of steady wall time. Source: as for any input wait, INP001."""
    max_tensorflow_ratio: Ratio = Ratio(0.5)
    """Code that spends more inside of TensorFlow is an eager step (HST002)."""
    min_samples: int = 8
    """Fewer say nothing about lines."""


def detect(session: SessionView, params: Params) -> Iterator[Finding | Undecided]:
    """Yield at most one finding."""
    anatomy = session.anatomy
    if anatomy is None or anatomy.ratio("other-python") < params.min_ratio:
        return
    share = anatomy.ratio("other-python")
    spots = session.hot_spots("other-python")
    feeding = [s for s in spots if s.tensorflow_ratio < params.max_tensorflow_ratio and _feeds(session, s)]
    count = sum(s.samples for s in feeding)
    total = sum(s.samples for s in spots)
    part = sum(s.ratio for s in feeding)
    ratio = share * part
    if count < params.min_samples or ratio < params.min_ratio:
        return
    low, high = hot.confidence_interval(part, total)
    top = feeding[0]
    lines = top.lines[:3] or (top.culprit.line,)
    where = [session.place(top.culprit.file, min(lines), max(lines), top.culprit.function)]
    if top.statement is not None:
        where.append(session.place(top.statement.file, top.statement.line, function=top.statement.function))
    yield Finding(
        code=DETECTOR.code,
        name=DETECTOR.name,
        title=f"the loop prepares each batch in Python before the step, mostly in {top.culprit.function}: "
        f"{format_ratio(ratio)} of the time",
        severity=severity_of(ratio),
        confidence=0.85,
        symptom="Time: slow execution time",
        cause="Data: inefficient data preprocessing",
        introduced_stage="data preparation",
        exposed_stage="training",
        pipeline_stage="preprocessing",
        where=tuple(dict.fromkeys(where)),
        evidence=(
            Evidence(
                metric="other_python_ratio",
                value=share,
                unit="ratio",
                threshold=params.min_ratio,
                refs=("component:other-python",),
            ),
            Evidence(metric="samples_on_input_code", value=count, unit="samples"),
            Evidence(metric="samples", value=total, unit="samples"),
        ),
        cost=cost_of(session, ratio, low=share * low, high=share * high),
        remedies=(
            Remedy(
                id="use-tf-data",
                text="move the preparation into tf.data (map with num_parallel_calls, prefetch), so that the "
                "next batch is "
                "made while the step runs",
            ),
            Remedy(
                id="vectorise",
                text=f"or vectorise {top.culprit.function}: work on whole batches, or once before training",
            ),
        ),
        explanation="The time lies between two calls of the step, on the thread that makes them; by the loop's "
        "source the "
        "result goes into the step's arguments.",
    )


def _feeds(session: SessionView, spot: HotSpot) -> bool:
    """The statement makes the step's input, and it is not the loop's own line that waits for the interpreter lock."""
    if session.role_of_statement(spot) != "feeds":
        return False
    cause = session.input_cause
    locked = cause is not None and cause.limit in {"python-function", "generator"} and cause.python_ratio > 0
    return not locked or (spot.culprit.file, spot.culprit.function) != session.loop


DETECTOR = Detector(
    code="INP004",
    name="python-input-in-loop",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    params=Params(),
    detect=detect,
)
