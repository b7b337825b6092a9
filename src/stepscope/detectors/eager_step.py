"""The step runs op by op in Python instead of as a compiled function.

## What it detects
Training or inference whose calls into TensorFlow come from Python one op at a time (no tf.function,
`run_eagerly=True`), while Python's part of it, not the ops, takes a large share of the steady wall time.

## Why it matters
Each eager op costs tens of microseconds of Python and dispatch before its kernel starts; steps of many small ops run
several times slower than as a graph.

## Evidence
`eager_ratio`: share of the samples of the steady steps whose stack goes from user code into TensorFlow outside of any
compiled function. `python_ratio`: those of them whose innermost frame is Python rather than the call that runs an op.

## Known limits
Large ops hide the dispatch: then Python's share is small and nothing is said. The predicted saving is modelled:
Python's share and half of the op calls' share (dispatch inside of the runtime).

## Remedy
Put the step into one `@tf.function`; with Keras, leave `run_eagerly` off outside of debugging.

## References
TensorFlow guide "Better performance with tf.function"; FSE'22 study, confusion with computation model.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.derive import hot
from stepscope.detectors.base import Detector, Signal, Undecided, cost_of, severity_of
from stepscope.model.events import ModelBuilt
from stepscope.model.finding import Evidence, Finding, Remedy
from stepscope.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.hot import Sample
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
    dispatch_ratio: Ratio = Ratio(0.5)
    """Part of an eager op call's time that is dispatch for small ops. Source: M3 of the static-check measurements."""


def detect(session: SessionView, params: Params) -> Iterator[Finding | Undecided]:
    """Yield at most one finding."""
    taken = session.samples
    if len(taken) < params.min_samples:
        return
    eager = [s for s in taken if s.component in {"call", "other-python"} and _is_eager(s)]
    python = [s for s in eager if not s.in_op]
    whole = hot.weight_of(taken)
    if whole == 0:
        return
    eager_ratio, python_ratio = hot.weight_of(eager) / whole, hot.weight_of(python) / whole
    if eager_ratio < params.min_eager_ratio or python_ratio < params.min_python_ratio:
        return
    ratio = python_ratio + params.dispatch_ratio * (eager_ratio - python_ratio)
    low, _ = hot.confidence_interval(python_ratio, len(taken))
    _, high = hot.confidence_interval(eager_ratio, len(taken))
    on_purpose = any(m.run_eagerly for m in session.worker.all(ModelBuilt)) if session.worker else False
    lines = Counter((c.file, c.function) for s in eager if (c := s.culprit) is not None)
    where = []
    for (file, function), _count in lines.most_common(2):
        seen = [c.line for s in eager if (c := s.culprit) is not None and (c.file, c.function) == (file, function)]
        where.append(session.place(file, min(seen), max(seen), function))
    built = (
        next((m for m in session.worker.all(ModelBuilt) if m.run_eagerly and m.file), None) if session.worker else None
    )
    if built is not None:
        where.insert(0, session.place(built.file, built.line))
    how = "run_eagerly is on" if on_purpose else "no tf.function around it"
    yield Finding(
        code=DETECTOR.code,
        name=DETECTOR.name,
        title=f"the step runs eagerly, op by op from Python ({how}): {format_ratio(eager_ratio)} of the time, "
        f"{format_ratio(python_ratio)} of it in Python itself",
        severity=severity_of(ratio),
        confidence=0.8,
        symptom="Time: slow execution time",
        cause="Model: confusion with computation model",
        introduced_stage="training",
        exposed_stage="training",
        pipeline_stage="forward-backward",
        where=tuple(where),
        evidence=(
            Evidence(metric="eager_ratio", value=eager_ratio, unit="ratio", threshold=params.min_eager_ratio),
            Evidence(metric="python_ratio", value=python_ratio, unit="ratio", threshold=params.min_python_ratio),
            Evidence(metric="samples", value=len(taken), unit="samples", threshold=params.min_samples),
        ),
        cost=cost_of(session, ratio, low=low, high=high, basis="modelled"),
        remedies=(
            Remedy(id="remove-run-eagerly", text="remove run_eagerly=True (and tf.config.run_functions_eagerly)")
            if on_purpose
            else Remedy(id="use-tf-function", text="decorate the step with @tf.function, so that it runs as one graph"),
        ),
        explanation="Stacks go from user code through TensorFlow's Python layers for each op; no compiled "
        "function encloses "
        "them.",
    )


COMPILED = ("/polymorphic_function/", "/client/session.py")
"""Code of TensorFlow through which compiled graphs are called: tf.function and Session.run."""


def _is_eager(sample: Sample) -> bool:
    return sample.in_tensorflow and not any(part in f.file for f in sample.frames for part in COMPILED)


DETECTOR = Detector(
    code="HST002",
    name="eager-step",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    params=Params(),
    detect=detect,
)
