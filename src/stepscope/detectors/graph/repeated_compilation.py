"""A program is compiled again while steps run.

## What it detects
Steps of an op trace in which XLA compiles a program that had run before in the trace under the same name: JAX's `jit`,
or TensorFlow's `jit_compile`. With JAX's compilation cache it is traced and written again, and loaded: that counts too.
What the times of the calls say of functions with `jit_compile` is GRF024.

## Why it matters
A compiled program is valid for one set of shapes. A batch of another size, a sequence of another length or a new static
argument recompiles it, which takes as long as many steps and recurs for every new shape.

## Evidence
`recompilation_ratio`: the time of steps with a recompilation beyond the median of the others, as a share of all traced
steps. `compilations`: the number of programs that they compiled. The cause is read from the programs' signatures in the
trace: the parameters whose shapes differ between the program that ran before and the one that ran after.

## Known limits
A program that is compiled for the first time in the trace is not a recompilation. The share is of the traced steps: how
often it happens in the rest of the job is unknown. If signatures are equal or missing, the cause is not named. A trace
is requested if a function with `jit_compile` was traced for unknown shapes (one trace serves them all, and says nothing
about what XLA does), or traced again, and the times of its calls do not say it.

## Remedy
Keep shapes constant: drop or pad the last partial batch, pad sequences to a few lengths (buckets), pass what changes as
an array instead of a Python value.

## References
JAX documentation, "jax_explain_cache_misses"; XLA: shapes are part of a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import long_compiled_calls
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import trace_evidence
from stepscope.detectors.shared.compiled_shapes import CONSTANT, long_calls
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.optrace.kernels.compilations import Change, Compilation
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place

MAX_CHANGES = 2
"""Maximum number of parameters named in the title."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the traced steps. One compilation of 0.1 s in a hundred steps of 10 ms."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    trace = view.traces.main
    if trace is None:
        return
    again = [c for c in trace.compiles.found if c.again]
    wall = float(trace.periods.dur_ns.sum())
    extra = sum(max(0.0, float(trace.periods.dur_ns[i]) - trace.compiles.usual_ns) for i in {c.step for c in again})
    if not again or not trace.compiles.usual_ns or extra < params.min_ratio * wall:
        return
    yield _finding(view, trace, again, extra / wall, params)


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
            CONSTANT,
            Remedy(id="arrays-for-values", text="pass values that change as arrays, not as Python numbers or strings"),
        ),
        explanation=_told(main.changes) + "The share is of the traced steps.",
    )


def _places(view: SessionView, main: Compilation) -> tuple[Place, ...]:
    """The user's function with ``jit_compile`` whose name the program has; else the only one there is."""
    compiled = [t for t in long_compiled_calls.compiled(view) if t.owner == "user" and t.file]
    named = [t for t in compiled if t.function and t.function in main.program] or compiled
    found = dict.fromkeys(view.place(t.file, t.line, t.end_line, t.function) for t in named)
    if len(found) == 1:
        return tuple(found)
    fit = view.fit_place()
    return (fit,) if fit is not None and not found else ()


def _asks(view: SessionView) -> str:
    """What a trace would decide; "" if the times of the calls have."""
    return "" if long_calls(view) is not None else long_compiled_calls.of_many_shapes(view)


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
    asks=_asks,
)
"""JAX and XLA. Traces of tf.functions are GRF001's."""
