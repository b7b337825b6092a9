"""User Python inside of the input pipeline is what steps wait for.

## What it detects
A `tf.py_function` or `tf.numpy_function` in a tf.data pipeline whose calls explain most of the time of the slowest
stage, while steps wait for their input.

## Why it matters
Such a function holds Python's global interpreter lock: it runs on one core however many parallel calls the map is
given, competes with the training loop for the lock, and keeps tf.data from running the map in parallel or fusing it.

## Evidence
`input_wait_ratio`: share of the steady wall time that steps wait, `disturbed_ratio`: what the lock costs them
besides. `python_busy_ratio`: share of the time in which the function ran on one of tf.data's threads.
`python_ns_per_batch`: its time per batch. All three are measured call by call; below ten percent of wait nothing is
said.

## Known limits
The cost is the wait, the most that can be saved there, and what the interpreter lock takes from the step's own
Python (`disturbed_ratio`: mean gap between two batches less its 10th percentile). Time that the function waits for
the interpreter lock counts as its own.

## Remedy
Write the work with TensorFlow ops (`tf.strings`, `tf.image`, `tf.io`, lookup tables), or do it once before training
and store the result; where only Python can do it, work on whole batches.

## References
tf.data performance guide; documentation of tf.py_function on the interpreter lock and serialisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.detectors.base import Detector, Signal, Undecided, cost_of, severity_of
from stepscope.model.finding import Evidence, Finding, Place, Remedy
from stepscope.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.pipeline_python import PythonFunction
    from stepscope.derive.view import SessionView


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_wait_ratio: Ratio = Ratio(0.10)
    """Of steady wall time; see INP001."""
    told: Ratio = Ratio(0.05)
    """What the interpreter lock costs the step besides is told from this share on."""


def detect(session: SessionView, params: Params) -> Iterator[Finding | Undecided]:
    """Yield at most one finding."""
    cause, steps = session.input_cause, session.steps
    if cause is None or steps is None or cause.limit != "python-function" or cause.function is None:
        return
    saved = min(1.0, cause.wait_ratio + cause.disturbed_ratio)
    if session.hidden_wait or saved < params.min_wait_ratio:
        return
    function = cause.function
    per_batch = function.total_ns / steps.steady_count
    name = function.name.text
    wait = format_ratio(cause.wait_ratio)
    besides = (
        f" and lose {format_ratio(cause.disturbed_ratio)} to its GIL" if cause.disturbed_ratio > params.told else ""
    )
    error = 2 * cause.error_ratio
    yield Finding(
        code=DETECTOR.code,
        name=DETECTOR.name,
        title=f"{name} runs as Python in the input pipeline (tf.{function.role}), {format_ns(per_batch)} per batch; "
        f"steps wait {wait} of their time for it{besides}",
        severity=severity_of(saved),
        confidence=0.95,
        symptom="Time: slow execution time",
        cause="API: not using efficient API",
        introduced_stage="data preparation",
        exposed_stage="training",
        pipeline_stage="preprocessing",
        where=places_of(session, function),
        evidence=(
            Evidence(
                metric="input_wait_ratio",
                value=cause.wait_ratio,
                unit="ratio",
                threshold=params.min_wait_ratio,
                refs=("component:input-wait",),
            ),
            Evidence(metric="python_busy_ratio", value=cause.python_ratio, unit="ratio"),
            Evidence(metric="disturbed_ratio", value=cause.disturbed_ratio, unit="ratio"),
            Evidence(metric="python_ns_per_batch", value=per_batch, unit="ns", refs=(f"name:{function.name.id}",)),
            Evidence(metric="python_calls", value=function.calls, unit="calls", refs=(f"name:{function.name.id}",)),
        ),
        cost=cost_of(session, saved, low=cause.wait_ratio - error, high=saved + error),
        remedies=(
            Remedy(
                id="use-tensorflow-ops",
                text=f"write {name} with TensorFlow ops (tf.strings, tf.image, tf.io, lookup tables): Python "
                f"code in the "
                "input holds the interpreter lock (GIL), so more parallel calls do not help",
            ),
            Remedy(id="prepare-offline", text="or do its work once: before training into TFRecord files, or cache()"),
            Remedy(id="batch-the-python", text="or call it on whole batches (batch before the map)"),
        ),
        explanation="The function ran on tf.data's threads and was timed call by call. It holds Python's global "
        "interpreter lock, so it runs on one core whatever num_parallel_calls says.",
    )


def places_of(session: SessionView, function: PythonFunction) -> tuple[Place, ...]:
    """The function itself, where it was put into the graph, and the transformation that runs it."""
    name = function.name
    places = [session.place(name.file, name.line, name.end_line, name.text)] if name.file else []
    inside = function.inside
    if inside is not None:
        lines = inside.lines[:3]
        places.append(session.place(inside.file, min(lines), max(lines), inside.function))
    if function.made is not None:
        places += [session.place(f, line, function=fn) for f, fn, line in reversed(function.made.stack[-2:])]
    cause = session.input_cause
    if cause is not None and cause.stage is not None:
        places += [p for d in cause.stage.datasets if (p := session.dataset_place(d)) is not None]
    return tuple(dict.fromkeys(places))


DETECTOR = Detector(
    code="INP002",
    name="python-function-in-pipeline",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
