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
`own_cpu_cores`: CPU time of all other threads of the process. `lock_wait_ratio`: where other processes take too much
CPU for that to say anything, what looks at the interpreter lock found the step waiting for it. `dropped_ratio`: share
of the elements that a later filter, skip or shard drops.

If the wait lies inside a compiled step and tf.data keeps no model of it (TensorFlow before 2.17, autotune off), the
function is the cause if it runs without a break, at least 90 % of the time including the pauses around its calls (it
would pause for a full buffer), while the rest of the job computes for less than 0.7 of a core.

A function that is written inside of the map's function is converted by AutoGraph together with it, and may run fifty
times slower than plain Python; the title says so.

## Known limits
If the lock or the CPUs are scarce, the saving is an interval and the cost is its middle. Without the function, the
compiled call and Keras' own loop take at most the time that the rest of the job computes on one core, and at least that
time spread over all cores. At least the wait is saved. `disturbed_ratio` is the larger of: (a) the mean gap between two
batches less its 10th percentile, times `python_busy_ratio`; (b) if the process uses one core of several, the time of
the calls plus 25 us around each, at most the CPU time of their threads, less the wait. Time that the function waits for
the interpreter lock counts as its own. With a GPU, CPU time says nothing about the step, and only the wait counts.

## Remedy
Drop first what a later filter, skip or shard drops. Write a function that AutoGraph has converted at the module's
level. Write the work with TensorFlow ops (`tf.strings`, `tf.image`, `tf.io`, lookup tables); where the function calls
such ops one by one from Python, let it work with NumPy instead. Or do it once before training and store the result. Do
not store random output: use `tf.random` or `tf.image.stateless_random_*`, and store only the work before them. Where
only Python can do it, work on whole batches. Turn the debug mode off.

## References
tf.data performance guide; documentation of tf.py_function on the interpreter lock and serialisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.input import input_cause, random_input
from stepscope.detectors.base import Detector, Seen, Signal, Undecided
from stepscope.detectors.input.parts import dropped
from stepscope.detectors.shared import converted, drawn, pipeline_python
from stepscope.detectors.shared.pipeline_python import Params
from stepscope.model.log.program import Setting
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.input.input_cause import InputCause
    from stepscope.derive.input.pipeline_python import PythonFunction
    from stepscope.derive.steps_view import StepsView
    from stepscope.detectors.input.parts.dropped import Dropped


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    waited = pipeline_python.find(view, "python-function", params)
    if waited is None:
        return
    cause, function = waited.cause, waited.function
    debug = None if function.name.own else _debug_mode(view)
    inside = function.inside.function if function.inside is not None and debug is not None else ""
    name = inside or function.users
    by = f", called by {function.name.text}," if not inside and function.wraps is not None else ""
    draw = random_input.of_function(view, function)
    drop = dropped.after(view, cause.stage) if debug is None else None
    yield Seen(
        title=f"{'the debug mode of tf.data is on: ' if debug is not None else ''}{name}{by} runs as Python in the "
        f"input pipeline (tf.{function.role}{converted.said(view, function)}), "
        f"{format_ns(waited.per_batch_ns)} per batch"
        f"{pipeline_python.inside_text(view, function) if debug is None else ''}"
        f"{drop.said(view) if drop is not None else ''}{waited.held_up(view)}",
        confidence=0.95,
        cause="API: not using efficient API" if debug is None else "API: inefficient API usage",
        where=(*_places(view, function, debug), *(drop.places(view) if drop is not None else ())),
        evidence=(
            *waited.evidence(params),
            Evidence(metric="python_calls", value=function.calls, unit="calls", refs=(f"name:{function.name.id}",)),
            *((drop.evidence(),) if drop is not None else ()),
        ),
        cost=waited.cost(view),
        remedies=_REMEDY_OF_DEBUG_MODE
        if debug is not None
        else (
            *_first(view, cause, drop),
            *converted.remedies(view, function),
            Remedy(
                id="use-tensorflow-ops",
                text=f"write {name} with TensorFlow ops ({_OPS if draw is None else _RANDOM_OPS}): Python code in the "
                f"input holds the interpreter lock (GIL), so more parallel calls do not help",
            ),
            *((_in_graph(function),) if function.wraps is None else ()),
            _with_numpy(name),
            *drawn.keeping(draw, _OFFLINE),
            Remedy(id="batch-the-python", text="or call it on whole batches (batch before the map)"),
        ),
        about=pipeline_python.about(function),
        explanation="The function ran on tf.data's threads and was timed call by call. It holds Python's global "
        "interpreter lock, so it runs on one core whatever num_parallel_calls says."
        f"{pipeline_python.by_trace(cause)}"
        + ("" if waited.hidden else pipeline_python.account(view, cause, waited.saved)),
    )


def _first(view: StepsView, cause: InputCause, drop: Dropped | None) -> tuple[Remedy, ...]:
    """Less work before the same work made cheaper."""
    return () if drop is None or cause.stage is None else (drop.remedy(view, cause.stage),)


def _in_graph(function: PythonFunction) -> Remedy:
    text = f"call {function.users} in the map itself, without tf.{function.role}, if it needs no values: its"
    return Remedy(id="ops-in-graph", text=f"{text} TensorFlow ops then run in the graph, not one by one from Python")


def _with_numpy(name: str) -> Remedy:
    text = (
        f"or let {name} work with NumPy, and make one tensor at the end: a small TensorFlow op that Python calls costs"
    )
    return Remedy(id="numpy-in-python", text=f"{text} many times its work")


_OPS = "tf.strings, tf.image, tf.io, lookup tables"
_RANDOM_OPS = "tf.image.stateless_random_*, tf.random, tf.image; map with num_parallel_calls=tf.data.AUTOTUNE"
_OFFLINE = Remedy(
    id="prepare-offline",
    text=f"or do its work once, {drawn.IF_THE_SAME}: before training into TFRecord files, or cache()",
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
        works = own[:-1] if function.wraps is not None else own[1:]
        own = [view.place(debug.file, debug.line, function=debug.function), *works]
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
    frameworks=frozenset({"tf.data"}),
    params=Params(),
    detect=detect,
)
