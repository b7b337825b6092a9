"""The step runs op by op in Python instead of as a compiled function.

## What it detects
Training or inference whose calls into TensorFlow come from Python one op at a time, with no tf.function around them,
while Python's part of it, not the ops, takes a large share of the steady wall time.

## Why it matters
Each eager op costs tens of microseconds of Python and dispatch before its kernel starts; steps of many small ops run
several times slower than as a graph.

## Evidence
`eager_ratio`: share of the samples of the steady steps whose stack goes from user code into TensorFlow outside of any
compiled function. `python_ratio`: those of them whose innermost frame is Python rather than the call that runs an op.

## Known limits
Large ops hide the dispatch: then Python's share is small and nothing is said. The predicted saving is modelled:
Python's share, and of the op calls' share as much as dispatch inside of the runtime takes beside that much Python (2
parts, measured on steps of small ops). A step that would be compiled but for a setting is GRF003.

## Remedy
Put the step into one `@tf.function`.

## References
TensorFlow guide "Better performance with tf.function"; FSE'22 study, confusion with computation model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.detectors.base import Detector, Signal, Undecided, cost_of, severity_of
from stepscope.model.finding import Evidence, Finding, Remedy
from stepscope.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.view import SessionView


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_eager_ratio: Ratio = Ratio(0.25)
    """Of the steady samples: less cannot save much."""
    min_python_ratio: Ratio = Ratio(0.15)
    """Of the steady samples in eager Python itself."""
    min_samples: int = 20
    """Fewer say nothing."""


def detect(session: SessionView, params: Params) -> Iterator[Finding | Undecided]:
    """Yield at most one finding."""
    eager = session.eager
    if eager is None or eager.samples < params.min_samples or session.eager_setting is not None:
        return
    if eager.eager_ratio < params.min_eager_ratio or eager.python_ratio < params.min_python_ratio:
        return
    ratio, (low, high) = eager.saved_ratio, eager.interval
    yield Finding(
        code=DETECTOR.code,
        name=DETECTOR.name,
        title="the step runs eagerly, op by op from Python (no tf.function around it): "
        f"{format_ratio(eager.eager_ratio)} of the time, {format_ratio(eager.python_ratio)} of it in Python itself",
        severity=severity_of(ratio),
        confidence=0.8,
        symptom="Time: slow execution time",
        cause="Model: confusion with computation model",
        introduced_stage="training",
        exposed_stage="training",
        pipeline_stage="forward-backward",
        where=tuple(session.place(file, first, last, name) for file, name, first, last in eager.lines),
        evidence=(
            Evidence(metric="eager_ratio", value=eager.eager_ratio, unit="ratio", threshold=params.min_eager_ratio),
            Evidence(metric="python_ratio", value=eager.python_ratio, unit="ratio", threshold=params.min_python_ratio),
            Evidence(metric="samples", value=eager.samples, unit="samples", threshold=params.min_samples),
        ),
        cost=cost_of(session, ratio, low=low, high=high, basis="modelled"),
        remedies=(
            Remedy(id="use-tf-function", text="decorate the step with @tf.function, so that it runs as one graph"),
        ),
        explanation="Stacks go from user code through TensorFlow's Python layers for each op; no compiled function "
        "encloses them.",
    )


DETECTOR = Detector(
    code="HST002",
    name="eager-step",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    params=Params(),
    detect=detect,
)
