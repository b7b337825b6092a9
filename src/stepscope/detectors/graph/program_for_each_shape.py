"""XLA compiles a function with `jit_compile` for each shape that it meets.

## What it detects
Calls of a function with `jit_compile` that take many times as long as usual, five times and more, where the function
was traced for shapes that change: within the steady steps or, if most shapes come early, in the whole run.

## Why it matters
A compiled program is valid for one set of shapes. TensorFlow traces such a function once for all of them, so nothing
but the time of the calls shows that XLA compiles again: as long as hundreds of steps, for each new length.

## Evidence
`long_ratio`: time of the long calls beyond the usual one, as a share of the steady wall time or, if most come before
it, of the run. `long_calls`, `long_ns`, `usual_ns`: their number, their median time, and the usual one.

## Known limits
The first call is left out: one program is needed. Long calls may have another reason, so the cost is modelled; an op
trace shows the compilations themselves (GRF010). Where other processes take as large a share of the steps' time,
nothing is said. In a longer run the early ones weigh less.

## Remedy
Keep shapes constant: drop or pad the last partial batch, pad sequences to a few lengths (buckets), or leave
`jit_compile` off.

## References
TensorFlow guide "XLA: Optimizing Compiler for Machine Learning"; XLA: shapes are part of a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import long_compiled_calls
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.shared.compiled_shapes import CONSTANT, long_calls
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.graph.long_compiled_calls import LongCalls
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(long_compiled_calls.MIN_RUN)
    """Of the run, in long calls; of the steady wall time twice that."""


_NO_XLA = Remedy(id="no-xla", text="or leave jit_compile off: without XLA one graph serves all shapes")


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    found = long_calls(view)
    if found is not None and found.ratio >= params.min_ratio:
        yield _finding(view, found, params)


def _finding(view: StepsView, found: LongCalls, params: Params) -> Seen:
    of = "of the time" if found.steady else "of the run"
    calls = f"{found.long} of {found.calls} {'steps' if found.steady else 'later calls'}"
    low, each = 0.5 * found.ratio, int(found.long * (found.long_ns - found.usual_ns) / max(1, len(view.steps)))
    return Seen(
        title=f"XLA (jit_compile) compiles {found.function} again for new shapes: {calls} take "
        f"{format_ns(found.long_ns)} instead of {format_ns(found.usual_ns)}, {format_ratio(found.ratio)} {of}",
        confidence=0.7,
        introduced_stage="data preparation",
        exposed_stage=None if found.steady else "initialization",
        pipeline_stage="forward-backward" if found.steady else "none",
        where=_places(view),
        evidence=(
            Evidence(
                metric="long_ratio",
                value=found.ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=() if found.steady else ("phase:first-steps",),
            ),
            Evidence(metric="long_calls", value=found.long, unit="calls", threshold=long_compiled_calls.MIN_LONG),
            Evidence(metric="long_ns", value=found.long_ns, unit="ns"),
            Evidence(metric="usual_ns", value=found.usual_ns, unit="ns"),
        ),
        cost=cost_of(view, found.ratio, low=low, high=found.ratio, basis="modelled")
        if found.steady
        else cost_of(view, found.ratio, low=low, high=found.ratio, basis="modelled", ns_per_step=each),
        remedies=(CONSTANT, _NO_XLA),
        explanation=f"{found.why}. A compilation takes as long as many steps, and these calls do.",
    )


def _places(view: SessionView) -> tuple[Place, ...]:
    made = [t for t in long_compiled_calls.compiled(view) if t.owner == "user" and t.file]
    found = dict.fromkeys(view.place(t.file, t.line, t.end_line, t.function) for t in made)
    fit = view.fit_place()
    return tuple(found) or ((fit,) if fit is not None else ())


DETECTOR = Detector(
    code="GRF024",
    name="program-for-each-shape",
    cause="API: inefficient API usage",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
    yields_to=frozenset({"GRF010"}),
)
