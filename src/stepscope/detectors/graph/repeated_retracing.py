"""A tf.function, or a jitted function of JAX, is traced again and again while the job is in its steady state.

## What it detects
New traces of a function that was traced before, in the steady steps, with the reason: a Python value that changes, a
shape or dtype that changes, another structure or object, or a function that the loop makes again. Of JAX a trace is
all from tracing to the end of XLA's compilation.

## Why it matters
A trace runs the Python body again and builds, optimises and instantiates a graph: tens to thousands of milliseconds,
compared with a step of a few. Step time is lost although nothing but the arguments changed.

## Evidence
`retrace_ratio`: share of the steady wall time in tracing, plus the time of the tracing calls beyond the usual call of
the same function. `traces`: their number, and in how many steps. The signatures before and after show what changed.

## Known limits
A bounded number of traces (a last partial batch, two or three shapes) is not a finding. Traces because the model was
loaded or built again are reported with that (HST007). A nested trace counts as part of the outer one. JAX's static
arguments are not compared: where one of them changes, the reason is not known.

## Remedy
Pass changing numbers as tensors (`tf.constant(x)`); fix or relax shapes (`reduce_retracing=True`, an `input_signature`
with None, padding, `drop_remainder=True`); make the function once, outside the loop. JAX has no open shapes.

## References
TensorFlow guide on tf.function, section "Controlling retracing"; JAX documentation, "Just-in-time compilation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive import job_framework
from stepscope.derive.python import retraces
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy, Stage
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.python.retraces import RetraceGroup
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.03)
    """Of steady wall time: the least that a report calls low."""
    min_traces: int = 3
    """A partial batch or a second shape is bounded; three in the steady state are not."""


RELAX_SHAPES = (
    "use tf.function(reduce_retracing=True) or an input_signature with None, or pad batches to few shapes "
    "(drop_remainder=True, padded_batch with fixed lengths)"
)
REMEDIES = {
    "python-value": (
        "pass-tensors",
        "pass {argument} as a tensor, tf.constant({argument}), or keep it in a tf.Variable",
    ),
    "shape": ("relax-shapes", RELAX_SHAPES),
    "dtype": ("fix-dtype", "convert {argument} to one dtype before the call"),
    "structure": ("fix-structure", "always pass {argument} in the same structure"),
    "object": ("pass-tensors", "do not pass new Python objects as {argument}: pass tensors, or make the object once"),
    "new-function": ("make-function-once", "make the tf.function once, outside the loop, and call that one"),
    "other": ("pass-tensors", "give the function arguments that do not change in type, shape or Python value"),
}
"""By what changes."""
OF_KERAS = {
    "shape": ("fewer-shapes", "pad batches to few shapes (drop_remainder=True, padded_batch with fixed lengths)"),
    "new-function": ("compile-once", "compile the model once, outside of the loop: compile() makes new functions"),
}
"""The same where the function is one of Keras', which the program cannot decorate."""


OF_JAX = {
    "shape": (
        "fewer-shapes",
        "JAX compiles for each shape: pad {argument} to few shapes (the next power of two, one length), drop the rest",
    ),
    "dtype": ("fix-dtype", "convert {argument} to one dtype before the call of JAX: a number of Python has another"),
    "structure": ("fix-structure", "always pass the arguments of JAX in the same structure"),
    "new-function": (
        "make-function-once",
        "make the function once, outside the loop: each jax.jit(...) compiles again",
    ),
    "other": ("pass-arrays", "pass what changes as an array, not as a static argument of jax.jit"),
}
"""The same of JAX."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield one finding per function and cause."""
    for group in retraces.build(view.steps) if view.steps else ():
        ratio = group.cost_ns / group.of_ns
        if ratio >= params.min_ratio and len(group.traces) >= params.min_traces:
            yield _finding(view, group, ratio, params)


def _finding(view: StepsView, group: RetraceGroup, ratio: float, params: Params) -> Seen:
    trace = group.example
    stage = _stage(trace.function, trace.owner)
    of_jax = job_framework.is_jax(view)
    of_keras = OF_KERAS.get(group.cause) if trace.owner == "keras" else None
    known = OF_JAX if of_jax else REMEDIES
    remedy, text = of_keras or known.get(group.cause, known["other"])
    argument = group.argument or "the argument"
    each = format_ns(group.cost_ns / len(group.traces))
    return Seen(
        title=f"{trace.function} is retraced in {group.steps:,} of {group.of:,} steps, {each} each, because "
        f"{_reason(group)}: {format_ratio(ratio)} of the time",
        confidence=0.97,
        introduced_stage=stage,
        exposed_stage="training" if stage in {"training", "data preparation"} else stage,
        where=_places(view, group),
        evidence=(
            Evidence(
                metric="retrace_ratio",
                value=ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=("component:tracing",),
            ),
            Evidence(
                metric="traces",
                value=len(group.traces),
                unit="traces",
                threshold=params.min_traces,
                refs=tuple(f"trace:{t.id}" for t in group.traces[:20]),
            ),
            *(() if of_jax else (Evidence(metric="graph_nodes", value=trace.nodes, unit="nodes"),)),
        ),
        cost=cost_of(view, ratio, low=ratio * group.traced_ns / group.cost_ns, high=1.05 * ratio),
        remedies=(Remedy(id=remedy, text=text.format(argument=argument)),),
        explanation=f"Each trace made a new {'program' if of_jax else 'concrete function'}. Before: "
        f"{trace.before or '-'}; after: {trace.after or '-'}.",
    )


def _reason(group: RetraceGroup) -> str:
    trace = group.example
    change = f" ({trace.before} → {trace.after})" if trace.before and trace.after else ""
    argument = group.argument or "an argument"
    return {
        "python-value": f"the Python value of {argument} changes{change}",
        "shape": f"the shape of {argument} changes{change}",
        "dtype": f"the dtype of {argument} changes{change}",
        "structure": f"the structure of {argument} changes",
        "object": f"{argument} is a new Python object each time",
        "new-function": "the compiled function is made again each time",
    }.get(group.cause, f"its arguments change{change}")


def _stage(function: str, owner: str) -> Stage:
    if owner == "keras":
        if "predict" in function:
            return "prediction"
        if "test" in function:
            return "evaluation"
    return "data preparation" if owner == "tf.data" else "training"


def _places(view: StepsView, group: RetraceGroup) -> tuple[Place, ...]:
    """The call that brought the new argument, then the function."""
    trace = next((t for t in reversed(group.traces) if t.stack), group.example)
    places = [view.place(f, line, function=fn) for f, fn, line in reversed(trace.stack[-2:])]
    if trace.file and trace.owner == "user":
        places.append(view.place(trace.file, trace.line, trace.end_line, trace.function))
    return tuple(dict.fromkeys(places))


DETECTOR = Detector(
    code="GRF001",
    name="repeated-retracing",
    cause="Model: confusion with computation model",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.TRACES}),
    params=Params(),
    detect=detect,
    frameworks=frozenset({"tensorflow", "jax"}),
    yields_to=frozenset({"HST007"}),
)
