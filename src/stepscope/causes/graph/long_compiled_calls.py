"""Calls of a function with ``jit_compile`` that take many times as long as usual: XLA compiles in these.

One trace of TensorFlow's serves all shapes of such a function, and says nothing about what XLA does: for each shape
that it meets it compiles a program, which takes as long as many steps. The first call is left out: one program is
needed.

Serves program_for_each_shape, and repeated_compilation, which needs no trace where the times say it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.general import phase_lines
from stepscope.causes.job import hidden_wait
from stepscope.derive import steps_view
from stepscope.model.log.events import Traced

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView

USUAL = 25
"""Percentile of the calls' times that counts as usual: many of them may compile."""
LONG = 5
"""Factor of the usual time from which a call is long."""
LEAST_NS = 50_000_000
"""Least time of a long call: XLA compiles no step of a model in less."""
MIN_LONG = 5
"""Long calls: the first of each epoch's last batch, and some others, are no pattern."""
MIN_STEADY = 0.20
"""Of the steady wall time in long calls: they may have other reasons."""
MIN_RUN = 0.10
"""The same of the run, where most of them come before the steps are steady."""


class LongCalls(Struct, frozen=True, kw_only=True):
    """The long calls among all that the job's thread made of the step's function but the first."""

    function: str
    why: str
    """What is known of its shapes."""
    long: int
    calls: int
    long_ns: float
    """Median time of a long call."""
    usual_ns: float
    steady: bool
    """Whether they are counted in the steady steps; else in the whole run."""
    ratio: float
    """Their time beyond the usual one, as a share of the steady wall time, or of the run."""


def build(view: SessionView) -> LongCalls | None:
    """The long calls of the steady steps, if there are enough; else those of the run; None if neither has."""
    many, mine = _many(view), steps_view.of(view)
    call = mine.steps.call if mine is not None else None
    if mine is None or call is None or many is None or not mine.steps.steady_ns or view.get(hidden_wait.build):
        return None  # a wait for input within the call is no compilation
    steps, function, why = mine.steps, many.function, of_many_shapes(view)
    took = (steps.call_ends - steps.starts)[steps.steady]
    found = _long(took, function, why, wall_ns=steps.steady_ns, steady=True)
    if found is not None:
        return found
    whole = view.get(phase_lines.job)
    alike = [n.id for n in mine.names.values() if (n.text, n.file, n.line) == (call.text, call.file, call.line)]
    calls = mine.calls(steps.kind).named(alike)
    return _long(calls.durations[1:], function, why, wall_ns=whole.wall_ns, steady=False) if whole is not None else None


def _long(took: np.ndarray, function: str, why: str, *, wall_ns: int, steady: bool) -> LongCalls | None:
    usual = float(np.percentile(took, USUAL)) if len(took) else 0.0
    long = took[took >= max(LONG * usual, LEAST_NS)]
    ratio = float((long - usual).sum()) / wall_ns
    if len(long) < MIN_LONG or ratio < (MIN_STEADY if steady else MIN_RUN):
        return None
    return LongCalls(
        function=function,
        why=why,
        long=len(long),
        calls=len(took),
        long_ns=float(np.median(long)),
        usual_ns=usual,
        steady=steady,
        ratio=ratio,
    )


def compiled(view: SessionView) -> list[Traced]:
    """Traces of functions that XLA compiles."""
    traces = view.worker.all(Traced) if view.worker is not None else ()
    return [t for t in traces if t.jit]


def of_many_shapes(view: SessionView) -> str:
    """A function that XLA may compile many times, although it is traced once; "" if there is none."""
    many = _many(view)
    if many is None:
        return ""
    return f"XLA compiles {many.function} for each shape that it is called with, and its shapes change"


def _many(view: SessionView) -> Traced | None:
    return next((one for one in compiled(view) if "None" in one.signature or one.ordinal > 1), None)
