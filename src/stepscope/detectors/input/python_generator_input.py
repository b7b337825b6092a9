"""A Python generator, PyDataset or Sequence makes the batches, and steps wait for it.

## What it detects
Input that Python code yields element by element or batch by batch (`Dataset.from_generator`, a generator, PyDataset or
Sequence given to `fit`), whose own running time explains most of the time of the slowest stage, while steps wait.

## Why it matters
A generator runs on one thread under Python's global interpreter lock, cannot be run in parallel by tf.data, and every
element crosses from Python into TensorFlow one by one.

## Evidence
`input_wait_ratio`: share of the steady wall time that steps wait; `disturbed_ratio`: what the lock costs them in
addition; `lock_wait_ratio`: the same where other processes take much CPU, as looks at the lock found it.
`python_busy_ratio`: share of the time in which the generator ran. `python_ns_per_batch`: its time per batch, measured
call by call. `dropped_ratio`: share of its elements that a later filter, skip or shard drops. Nothing is reported below
ten percent of wait: a generator that is fast enough is no problem.

## Known limits
The cost is the wait plus what the generator's use of the lock and the CPUs costs the step; INP002 says how it is known,
also if the wait is hidden in a compiled step. A generator that itself waits (for a disk, a server) looks like one that
computes; the lines inside it show the difference.

## Remedy
Build the dataset from files or arrays with tf.data ops and run the work in `map(..., num_parallel_calls=AUTOTUNE)`;
write prepared data to TFRecord files once, if none of it is random; give a PyDataset `workers` above one and
`use_multiprocessing`. Without TensorFlow in the process (Keras on PyTorch or JAX) only the last is offered.

## References
tf.data guide on from_generator and its limits; Keras documentation of PyDataset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.input import random_input
from stepscope.detectors.base import Detector, Seen, Signal, Undecided
from stepscope.detectors.input.parts import dropped
from stepscope.detectors.remedies import workers
from stepscope.detectors.shared import drawn, pipeline_python
from stepscope.detectors.shared.pipeline_python import Params
from stepscope.tables.findings import Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.input.pipeline_python import PythonFunction
    from stepscope.derive.steps_view import StepsView


LEAST_CALLS = 2
"""Calls per batch from which a generator yields less than whole batches."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    waited = pipeline_python.find(view, "generator", params)
    if waited is None:
        return
    function = waited.function
    draw = random_input.of_function(view, function)
    name = function.users
    if name == "<lambda>" and function.inside is not None:
        name = function.inside.function
    stage = waited.cause.stage
    drop = dropped.after(view, stage)
    what = "PyDataset" if function.role == "pydataset" else "input generator"
    yield Seen(
        title=f"the {what} {name} runs in Python, {format_ns(waited.per_batch_ns)} per batch"
        f"{pipeline_python.inside_text(view, function)}{drop.said(view) if drop is not None else ''}"
        f"{waited.held_up(view)}",
        confidence=0.95,
        where=(*_places(view, function), *(drop.places(view) if drop is not None else ())),
        evidence=(*waited.evidence(params), *((drop.evidence(),) if drop is not None else ())),
        cost=waited.cost(view),
        remedies=(
            *((drop.remedy(view, stage),) if drop is not None and stage is not None else ()),
            Remedy(
                id="use-tf-data-map",
                text="build the dataset from files or arrays and do the generator's work with tf.data ops in "
                "map(num_parallel_calls=tf.data.AUTOTUNE)",
            ),
            *drawn.keeping(draw, _OFFLINE),
            *_otherwise(view, function),
        ),
        explanation="The Python code that makes the batches was timed call by call. It runs under the interpreter "
        "lock, so threads do not run it in parallel."
        f"{pipeline_python.by_trace(waited.cause)}"
        + ("" if waited.hidden else pipeline_python.account(view, waited.cause, waited.saved)),
    )


def _otherwise(view: StepsView, function: PythonFunction) -> tuple[Remedy, ...]:
    """What helps without tf.data ops: several processes, or fewer calls where each makes less than a batch."""
    if function.role == "pydataset":
        text = f"make batches in worker processes: PyDataset(workers={workers(view)}, use_multiprocessing=True)"
        return (Remedy(id="more-workers", text=text),)
    if function.calls < LEAST_CALLS * view.steps.steady_count * view.pipeline.batches_per_step:
        return ()
    return (Remedy(id="yield-batches", text="or yield whole batches instead of single examples, and prefetch"),)


_OFFLINE = Remedy(
    id="prepare-offline", text=f"or write the prepared examples to TFRecord files once, {drawn.IF_THE_SAME}"
)


def _places(view: StepsView, function: PythonFunction) -> tuple[Place, ...]:
    """The generator's code, then the construction of the dataset that runs it."""
    name = function.name
    places = pipeline_python.own_places(view, function)
    pipe = view.pipeline
    made_by = [d for d in pipe.datasets if d.fn_file == name.file and d.file]
    places += [view.place(d.file, d.line, function=d.function) for d in made_by if d.fn_line == name.line]
    places += pipeline_python.made_places(view, function)
    return tuple(dict.fromkeys(places))


DETECTOR = Detector(
    code="INP003",
    name="python-generator-input",
    cause="API: not using efficient API",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"keras", "tensorflow"}),
    params=Params(),
    detect=detect,
)
