"""A program is compiled again while steps run.

## What it detects
Steps of an op trace in which XLA compiles a program that had run before in the trace under the same name: JAX's `jit`,
or TensorFlow's `jit_compile`. With JAX's compilation cache it is traced and written again, and loaded: that counts too.
Where the traced steps show none: calls that take many times as long as usual, again and
again, of a function with `jit_compile` that was traced for shapes that change.

## Why it matters
A compiled program is valid for one set of shapes. A batch of another size, a sequence of another length or a new static
argument recompiles it, which takes as long as many steps and recurs for every new shape.

## Evidence
`recompilation_ratio`: the time of steps with a recompilation beyond the median of the others, as a share of all traced
steps. `compilations`: the number of programs that they compiled. The cause is read from the programs' signatures in the
trace: the parameters whose shapes differ between the program that ran before and the one that ran after. Without a
traced compilation: `long_ratio`, the time of the long calls beyond the usual one, as a share of the steady wall time;
`long_steps`.

## Known limits
A program that is compiled for the first time in the trace is not a recompilation. The share is of the traced steps: how
often it happens in the rest of the job is unknown. If signatures are equal or missing, the cause is not named. A trace
is requested if a function with `jit_compile` was traced for unknown shapes (one trace serves them all, and says nothing
about what XLA does), or traced again. Long calls of such a function may have another reason: its confidence is lower.

## Remedy
Keep shapes constant: drop or pad the last partial batch, pad sequences to a few lengths (buckets), pass what changes as
an array instead of a Python value.

## References
JAX documentation, "jax_explain_cache_misses"; XLA: shapes are part of a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import trace_evidence
from stepscope.model.log.events import Traced
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.optrace.kernels.compilations import Change, Compilation
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.view import SessionView

_CONSTANT = Remedy(
    id="constant-shapes",
    text="keep the shapes constant: drop or pad the last partial batch, pad sequences to a few lengths",
)
USUAL = 25
"""Percentile of the calls' times that counts as usual: many of them may compile."""
LONG = 5
"""Factor of the usual time from which a call is long."""
LEAST_NS = 50_000_000
"""Least time of a long call: XLA compiles no step of a model in less."""
MIN_LONG = 5
"""Long calls: the first of each epoch's last batch, and some others, are no pattern."""
MAX_CHANGES = 2
"""Maximum number of parameters named in the title."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the traced steps. One compilation of 0.1 s in a hundred steps of 10 ms."""
    min_long_ratio: Ratio = Ratio(0.20)
    """Of the steady wall time in long calls: they may have other reasons."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    trace = view.traces.main
    if trace is None:
        return
    yield from list(_traced(view, trace, params)) or _by_times(view, params)


def _traced(view: SessionView, trace: OpView, params: Params) -> Iterator[Seen]:
    again = [c for c in trace.compiles.found if c.again]
    wall = float(trace.periods.dur_ns.sum())
    extra = sum(max(0.0, float(trace.periods.dur_ns[i]) - trace.compiles.usual_ns) for i in {c.step for c in again})
    if not again or not trace.compiles.usual_ns or extra < params.min_ratio * wall:
        return
    yield _finding(view, trace, again, extra / wall, params)


def _by_times(view: SessionView, params: Params) -> Iterator[Seen]:
    """By calls that take many times as long as usual."""
    steps, why = view.steps, _of_many_shapes(view)
    if steps is None or not why:
        return
    took = (steps.call_ends - steps.starts)[steps.steady]
    usual = float(np.percentile(took, USUAL)) if len(took) else 0.0
    long = took[took >= max(LONG * usual, LEAST_NS)]
    ratio = float((long - usual).sum()) / steps.steady_ns if steps.steady_ns else 0.0
    if len(long) < MIN_LONG or ratio < params.min_long_ratio:
        return
    yield Seen(
        title=f"XLA (jit_compile) compiles again for new shapes: {len(long)} of {len(took)} steps take "
        f"{format_ns(float(np.median(long)))} instead of {format_ns(usual)}, {format_ratio(ratio)} of the time",
        confidence=0.7,
        introduced_stage="data preparation",
        where=_compiled_places(view),
        evidence=(
            Evidence(metric="long_ratio", value=ratio, unit="ratio", threshold=params.min_long_ratio),
            Evidence(metric="long_steps", value=len(long), unit="steps", threshold=MIN_LONG),
        ),
        cost=cost_of(view, ratio, low=0.5 * ratio, high=ratio, basis="modelled"),
        remedies=(
            _CONSTANT,
            Remedy(id="no-xla", text="or leave jit_compile off: without XLA one graph serves all shapes"),
        ),
        explanation=f"{why}. A compilation takes as long as many steps, and these calls do.",
    )


def _compiled_places(view: SessionView) -> tuple[Place, ...]:
    made = [t for t in _compiled(view) if t.owner == "user" and t.file]
    found = dict.fromkeys(view.place(t.file, t.line, t.end_line, t.function) for t in made)
    fit = view.fit_place()
    return tuple(found) or ((fit,) if fit is not None else ())


def _finding(view: SessionView, trace: OpView, again: list[Compilation], ratio: float, params: Params) -> Seen:
    main = max(again, key=lambda c: c.dur_ns)
    steps = sorted({int(trace.periods.number[c.step]) for c in again})
    extra = ratio * float(trace.periods.dur_ns.sum())
    places = _places(view, main)
    name = places[0].function if len(places) == 1 and places[0].function in main.program else main.program
    at = f"step {steps[0]}" if len(steps) == 1 else f"{len(steps)} of {len(trace.periods)} traced steps"
    loaded = all(c.cached for c in again)
    how = "traced again and taken from the compilation cache" if loaded else "compiled again"
    return Seen(
        title=f"recompilation: {name or 'a program'} was {how} in {at}, {format_ns(extra)} in all"
        f"{_because(main.changes)}",
        confidence=0.95 if main.changes else 0.8,
        introduced_stage="data preparation" if main.changes else "unknown",
        where=places,
        evidence=(
            trace_evidence.evidence(trace, "recompilation_ratio", ratio, "ratio", params.min_ratio),
            trace_evidence.evidence(trace, "compilations", len(again), "compilations"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, ratio),
        remedies=(
            _CONSTANT,
            Remedy(id="arrays-for-values", text="pass values that change as arrays, not as Python numbers or strings"),
        ),
        explanation=_told(main.changes) + "The share is of the traced steps.",
    )


def _places(view: SessionView, main: Compilation) -> tuple[Place, ...]:
    """The user's function with ``jit_compile`` whose name the program has; else the only one there is."""
    compiled = [t for t in _compiled(view) if t.owner == "user" and t.file]
    named = [t for t in compiled if t.function and t.function in main.program] or compiled
    found = dict.fromkeys(view.place(t.file, t.line, t.end_line, t.function) for t in named)
    if len(found) == 1:
        return tuple(found)
    fit = view.fit_place()
    return (fit,) if fit is not None and not found else ()


def _compiled(view: SessionView) -> list[Traced]:
    """Traces of functions that XLA compiles."""
    traces = view.worker.all(Traced) if view.worker is not None else ()
    return [t for t in traces if t.jit]


def _of_many_shapes(view: SessionView) -> str:
    """A function that XLA may compile many times, although it is traced once."""
    for made in _compiled(view):
        if "None" in made.signature or made.ordinal > 1:
            return f"XLA compiles {made.function} for each shape that it is called with, and its shapes change"
    return ""


def _because(changes: tuple[Change, ...]) -> str:
    if not changes:
        return ""
    told = [f"{c.before} became {c.now}" for c in changes[:MAX_CHANGES]]
    more = f" and {len(changes) - MAX_CHANGES} more" if len(changes) > MAX_CHANGES else ""
    return f", because shapes changed: {', '.join(told)}{more}"


def _told(changes: tuple[Change, ...]) -> str:
    if not changes:
        return "The program ran before and was made again; its signatures do not say why. "
    each = ", ".join(f"parameter {c.parameter} from {c.before} to {c.now}" for c in changes)
    return f"The new program differs from the one before in: {each}. "


DETECTOR = Detector(
    code="GRF010",
    name="repeated-compilation",
    cause="API: inefficient API usage",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.OP_TRACE}),
    params=Params(),
    detect=detect,
    asks=_of_many_shapes,
)
"""JAX and XLA. Traces of tf.functions are GRF001's."""
