"""Python code runs inside the compiled step: `tf.py_function` or `tf.numpy_function` in the model, loss or metric.

## What it detects
Functions that were put into the graph of the step (not of the input pipeline) with `tf.py_function` or
`tf.numpy_function`, and that run for a large part of the steady steps.

## Why it matters
The function holds Python's interpreter lock, runs on one core, and its tensors are copied out of the runtime and back;
on a GPU the step also waits for the copies. Nothing of it can be fused, placed or run at the same time.

## Evidence
From the graph: the node that calls Python, outside functions of tf.data, and its line. From the recorded calls
(level 0), without a trace: `python_busy_ratio`, share of the steady steps in which the functions ran;
`python_ns_per_step`; `python_calls`.

Measured (bench/cases/34-numpy-function-in-step): TensorFlow 2.21: 2.2x faster with TensorFlow ops (56 % saved);
predicted 58 %. TensorFlow 2.15: 2.0x less CPU time; predicted 57 %.

## Known limits
The ops that replace the Python also need time: `low` of the cost is half. Python that the runtime overlaps with other
ops counts in full.

## Remedy
TensorFlow ops; or do it in the input pipeline, where it runs while the step computes; or once before training, if it
uses no random numbers.

## References
Documentation of `tf.py_function` and `tf.numpy_function` on the interpreter lock and serialisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import random_input
from stepscope.derive.input import pipeline_python
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import converted, drawn
from stepscope.detectors.shared.pipeline_python import about
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.input.pipeline_python import PythonFunction
    from stepscope.derive.steps_view import StepsView

CALLS_PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
LEAST = 0.5
"""Least share of the time in Python that ops for the same work are assumed to save. Source: M2 of the static-check
measurements, 2.1 to 3.0 times for functions that do next to nothing."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the steady steps."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding: all Python of the step."""
    index, steps = view.graphs, view.steps
    if index is None:
        return
    lines = _lines(index)
    functions = [f for f in pipeline_python.build(steps) if _called_at(f) in lines] if lines else []
    ratio = min(1.0, sum(f.total_ns for f in functions) / max(1, steps.steady_ns))
    if ratio >= params.min_ratio:
        yield _finding(view, functions, ratio, params)


def _lines(index: GraphIndex) -> set[tuple[str, int]]:
    """Lines that put calls of Python into graphs of the step."""
    table = index.table
    rows = [row for row in table.of_types(*CALLS_PYTHON).tolist() if not index.of_data(int(table.graph[row]))]
    return {(table.text(table.file, row), int(table.line[row])) for row in rows if table.line[row]}


def _called_at(function: PythonFunction) -> tuple[str, int] | None:
    stack = function.made.stack if function.made is not None else []
    return (stack[-1][0], stack[-1][2]) if stack else None


def _finding(view: StepsView, functions: list[PythonFunction], ratio: float, params: Params) -> Seen:
    first = functions[0]
    draw = random_input.of_function(view, first)
    count = view.steps.steady_count
    per_step = sum(f.total_ns for f in functions) / max(1, count)
    more = f" and {len(functions) - 1} more" if len(functions) > 1 else ""
    return Seen(
        title=f"{first.users}{more} runs as Python inside the compiled step (tf.{first.role}"
        f"{converted.said(view, first)}): {format_ns(per_step)} per step, {format_ratio(ratio)} of the time",
        confidence=0.9,
        where=_places(view, functions),
        evidence=(
            Evidence(metric="python_busy_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="python_ns_per_step", value=per_step, unit="ns"),
            Evidence(
                metric="python_calls",
                value=sum(f.calls for f in functions),
                unit="calls",
                refs=tuple(f"name:{f.name.id}" for f in functions),
            ),
        ),
        cost=cost_of(view, ratio, low=LEAST * ratio),
        remedies=(
            *converted.remedies(view, first),
            Remedy(
                id="use-tensorflow-ops",
                text=f"write {first.users} with TensorFlow ops: Python holds the interpreter lock (GIL), runs on "
                "one core and copies its tensors out of the runtime and back",
            ),
            Remedy(
                id="ops-in-graph",
                text=f"call {first.users} itself, without tf.{first.role}, if it needs no values: its TensorFlow ops "
                "then run in the step's graph, not one by one from Python",
            ),
            Remedy(
                id="python-in-pipeline",
                text="or call it in the input pipeline, while the step computes"
                + (f", or once {drawn.IF_THE_SAME}" if draw is None else ""),
            ),
        ),
        about=about(first),
        explanation="The graph of the step contains the call of Python; each call was timed where TensorFlow makes it.",
    )


def _places(view: StepsView, functions: list[PythonFunction]) -> tuple[Place, ...]:
    """Where the functions are defined, and where they were put into the graph."""
    found = []
    for function in functions:
        name = function.name
        if name.file and name.line:
            found.append(view.place(name.file, name.line, name.end_line, name.text))
        made = function.made
        if made is not None and made.stack:
            file, where, line = made.stack[-1]
            found.append(view.place(file, line, function=where))
    return tuple(dict.fromkeys(found))


DETECTOR = Detector(
    code="GRF006",
    name="python-in-compiled-step",
    cause="API: not using efficient API",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
