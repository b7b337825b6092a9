"""Steps wait for user Python inside the input pipeline.

## What it detects
A `tf.py_function` or `tf.numpy_function` in a tf.data pipeline whose calls explain most of the time of the slowest
stage, while steps wait for their input. In the debug mode of tf.data every function of a map is one; the finding says
so.

## Why it matters
Such a function holds Python's global interpreter lock: it runs on one core however many parallel calls the map is
given, competes with the training loop for the lock, and keeps tf.data from running the map in parallel or fusing it.

## Evidence
`input_wait_ratio`: share of the steady wall time that steps wait; `disturbed_ratio`: what the lock costs them in
addition. `python_busy_ratio`: share of the time in which the function ran on one of tf.data's threads.
`python_ns_per_batch`: its time per batch. All are measured call by call; nothing is reported below ten percent of wait.
`own_cpu_cores`: CPU time of all other threads of the process.

If the wait lies inside a compiled step and tf.data keeps no model of it (TensorFlow before 2.17, autotune off), the
function is the cause if it runs without a break, at least 90 % of the time including the pauses around its calls (it
would pause for a full buffer), while the rest of the job computes for less than 0.7 of a core.

## Known limits
The saving lies between two figures, and the cost is their middle if lock or CPUs are scarce: without the function, the
compiled call and Keras' own loop take no longer than the rest of the job's computation takes on one core, and no less
than that spread over all cores. At least the wait is saved. In addition (`disturbed_ratio`) the larger of two figures
is: the mean gap between two batches less its 10th percentile and, if the process uses one core of several, the time of
the calls and 25 us around each, at most the CPU time of their threads, less the wait. Time that the function waits for
the interpreter lock counts as its own. With a GPU, CPU time says nothing about the step, and only the wait counts.

## Remedy
Write the work with TensorFlow ops (`tf.strings`, `tf.image`, `tf.io`, lookup tables), or do it once before training and
store the result; if only Python can do it, work on whole batches. Turn the debug mode off.

## References
tf.data performance guide; documentation of tf.py_function on the interpreter lock and serialisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.causes.input import input_cause
from stepscope.detectors import pipeline_python
from stepscope.detectors.base import Detector, Seen, Signal, Undecided
from stepscope.model.log.program import Setting
from stepscope.model.report.finding import Evidence, Place, Remedy
from stepscope.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.input.pipeline_python import PythonFunction
    from stepscope.derive.steps_view import StepsView


@dataclass(frozen=True, slots=True, kw_only=True)
class Params(pipeline_python.Params):
    """Thresholds."""

    told: Ratio = Ratio(0.05)
    """The additional cost of the interpreter lock is reported from this share on."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    waited = pipeline_python.find(view, "python-function", params)
    if waited is None:
        return
    cause, function = waited.cause, waited.function
    debug = None if function.name.own else _debug_mode(view)
    inside = function.inside.function if function.inside is not None and debug is not None else ""
    name = inside or function.name.text
    wait = format_ratio(cause.wait_ratio)
    besides = (
        f" and lose {format_ratio(cause.disturbed_ratio)} to its GIL" if cause.disturbed_ratio > params.told else ""
    )
    waits = f"; steps wait for it {wait} of the time{besides}"
    if waited.hidden:
        waits = f", without a break ({format_ratio(waited.busy_ratio)} of the time): it sets the pace of the steps"
    yield Seen(
        title=f"{'the debug mode of tf.data is on: ' if debug is not None else ''}{name} runs as Python in the input "
        f"pipeline (tf.{function.role}), {format_ns(waited.per_batch_ns)} per batch{waits}",
        confidence=0.95,
        cause="API: not using efficient API" if debug is None else "API: inefficient API usage",
        where=_places(view, function, debug),
        evidence=(
            *waited.evidence(params),
            Evidence(metric="python_calls", value=function.calls, unit="calls", refs=(f"name:{function.name.id}",)),
        ),
        cost=waited.cost(view),
        remedies=_REMEDY_OF_DEBUG_MODE
        if debug is not None
        else (
            Remedy(
                id="use-tensorflow-ops",
                text=f"write {name} with TensorFlow ops (tf.strings, tf.image, tf.io, lookup tables): Python code in "
                "the input holds the interpreter lock (GIL), so more parallel calls do not help",
            ),
            Remedy(id="prepare-offline", text="or do its work once: before training into TFRecord files, or cache()"),
            Remedy(id="batch-the-python", text="or call it on whole batches (batch before the map)"),
        ),
        explanation="The function ran on tf.data's threads and was timed call by call. It holds Python's global "
        "interpreter lock, so it runs on one core whatever num_parallel_calls says."
        f"{pipeline_python.by_trace(cause)}",
    )


_REMEDY_OF_DEBUG_MODE = (
    Remedy(
        id="data-debug-mode-off",
        text="remove tf.data.experimental.enable_debug_mode(): it makes every function run op by op from Python, one "
        "element at a time, whatever num_parallel_calls says",
    ),
)


def _debug_mode(view: StepsView) -> Setting | None:
    """The call that turned on the debug mode of tf.data."""
    settings = view.worker.all(Setting)
    return next((s for s in settings if s.name == "data_debug_mode" and s.value), None)


def _places(view: StepsView, function: PythonFunction, debug: Setting | None) -> tuple[Place, ...]:
    """The debug mode; the function itself, where it was put into the graph, and the transformation that runs it."""
    own = pipeline_python.own_places(view, function)
    if debug is not None:
        own = [view.place(debug.file, debug.line, function=debug.function), *own[1:]]
    places = [*own, *pipeline_python.made_places(view, function)]
    cause = view.get(input_cause.build)
    if cause is not None and cause.stage is not None:
        places += [p for d in cause.stage.datasets if (p := view.dataset_place(d)) is not None]
    return tuple(dict.fromkeys(places))


DETECTOR = Detector(
    code="INP002",
    name="python-function-in-pipeline",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
