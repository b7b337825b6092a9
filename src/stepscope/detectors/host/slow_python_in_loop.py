"""Python code in the training loop, before or after the step, takes a large part of the time.

## What it detects
User code of the loop that no probe names (metrics in NumPy, logging, drawing, sleeping, bookkeeping) and that does not
prepare the step's input, if it takes a tenth or more of the steady wall time.

## Why it matters
The device waits while the loop's thread runs this code. Tools that see only ops show it as "all others" or as an input
problem.

## Evidence
`other_python_ratio`: share of the steady wall time that no probe names, measured as the remainder. `samples_on_code`:
stack samples of the loop's thread in the function named and in what it calls: each of up to three functions has its
cost. The time for which the thread was ready while others had the CPUs, by the kernel, counts where it ran, by its CPU
clock; the interval also holds the share by the samples as they were taken. The place is the fewest lines that have more
than half of the function's time. User spans that hold at least half of that time are named, with their share.

## Known limits
In jobs of PyTorch, JAX and NumPy only functions are named whose sampled lines call nothing of these, by their source:
of the others that the loop calls it is open, and GEN012 has the lines. While a C call holds the interpreter lock, its
sample is attributed to the next line. Many functions of which none takes a tenth of the time are GEN012's. At 20
samples a second, a run of 10 s gives shares within about 6 points; where other processes take the CPUs the interval
is wider. Code that reads much memory evicts what the step's
ops read: what their calls may get back is part of the cost's upper end alone.

## Remedy
Do it every N steps, vectorise it, move it to another thread or process, or into the compiled step. The loop's own
lines, and lines in a function that makes the step's call, cannot run less often: these lines are named. If the next
step needs the result (a decoder that chooses the next token), or reads an object that the code changes (the scores that
batches are drawn by), only vectorising or compiling helps.

## References
py-spy and pyinstrument on sampling bias; TensorFlow profiler's "all others" (xprof).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.causes.host import statement_role
from stepscope.derive import unmeasured
from stepscope.derive.python import doing
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, severity_of, step_ns
from stepscope.detectors.shared import loop_python, turn_words
from stepscope.detectors.shared.loop_python import Params
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.python.hot_spots import HotSpot
    from stepscope.derive.steps_view import StepsView
    from stepscope.detectors.shared.loop_python import LoopPython


MAX_FOUND = 3
"""Findings: further functions are in the lines of GEN012."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield a finding for each of the costliest functions; undecided where they may be the framework's own time."""
    untold = unmeasured.framework(view)
    found = loop_python.find(
        view, params, lambda spot: _prepares_none(view, spot) and (not untold or loop_python.calls_none(view, spot))
    )
    if found is not None:
        for part in loop_python.by_function(view, found, params)[:MAX_FOUND]:
            yield _finding(view, part, params, untold)
    elif untold:
        yield from _untold(view, params, untold)


def _prepares_none(view: StepsView, spot: HotSpot) -> bool:
    """Whether a spot prepares no input of the step."""
    return statement_role.build(view, spot) not in {"feeds", "call"}


def _untold(view: StepsView, params: Params, framework: str) -> Iterator[Undecided]:
    """Whether functions that the loop calls are slow Python is open where they call a framework that is not measured.

    The lines of the loop itself are its steps, whether or not the framework has Python frames below them.
    """
    found = loop_python.find(
        view,
        replace(params, max_tensorflow_ratio=Ratio(1.0)),
        lambda spot: _prepares_none(view, spot) and not loop_python.is_loop(view, spot.culprit),
    )
    if found is not None:
        who, ratio = found.who(view), found.share * found.top.ratio
        hint = f"{who} takes {format_ratio(ratio)} of the time, in Python or in calls of {framework}"
        yield Undecided(missing=Signal.CALLS, hint=hint)


def _finding(view: StepsView, found: LoopPython, params: Params, untold: str) -> Seen:
    top = found.top
    role = statement_role.build(view, top)
    after = role in {"uses", "carries"}
    each = turn_words.each(view, top.culprit)
    waits = role == "carries" or statement_role.keeps_state(view, top)
    per_step = f"{format_ns(found.ratio * step_ns(view))} a step"
    position = "on the results of the step" if after else "between the steps"
    return Seen(
        title=f"slow Python code in the loop {position} takes {each or per_step}, in {found.who(view)}: "
        f"{format_ratio(found.ratio)} of the time",
        severity=severity_of(found.ratio),
        confidence=0.85,
        pipeline_stage="output-processing" if after else "none",
        where=found.places(view),
        evidence=found.evidence(view, "samples_on_code", params),
        cost=found.cost(view),
        remedies=(turn_words.ONCE, turn_words.AHEAD) if each else _remedies(view, found, next_waits=waits),
        explanation=f"{_nothing(untold)} runs in this time: the loop's thread is in user Python between two steps.",
    )


def _nothing(untold: str) -> str:
    """``untold``: the framework whose calls are not measured."""
    if untold:
        return f"No call of {untold}, by what the sampled lines call,"
    return "Nothing of TensorFlow, Keras, tf.data or a callback"


def _remedies(view: StepsView, found: LoopPython, *, next_waits: bool) -> tuple[Remedy, ...]:
    """``next_waits``: the next step needs what the function returns or changes: it cannot run less often or later."""
    spot, what = found.top.culprit, doing.callee(found.top, view.source_of)
    if what:
        text = (
            f"call {what} less often or on less data: keep what does not change, take only what is used of its result"
        )
        off = "or hand it to another thread or process, so that the next step can start"
        less = Remedy(id="call-less", text=text)
        return (less,) if next_waits else (less, Remedy(id="move-off-thread", text=off))
    if loop_python.is_loop(view, spot):
        text = "do the work of these lines with NumPy on whole arrays, or inside the compiled step"
        vectorise = Remedy(id="vectorise", text=text)
        off = "or move it into a function that another thread or process runs, so that the next step can start"
        return (vectorise,) if next_waits else (vectorise, Remedy(id="move-off-thread", text=off))
    vectorise = Remedy(id="vectorise", text="vectorise it with NumPy, or compute it inside the compiled step")
    if next_waits:
        return (vectorise,)
    return (
        Remedy(id="do-it-less-often", text=f"run {spot.function} every N steps, or once at the end"),
        vectorise,
        Remedy(id="move-off-thread", text="or hand it to another thread or process, so that the next step can start"),
    )


DETECTOR = Detector(
    code="HST001",
    name="slow-python-in-loop",
    cause="Python: interpreter overhead",
    introduced_stage="training",
    exposed_stage="training",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    params=Params(),
    detect=detect,
    yields_to=frozenset({"HST009", "INP009", "TRD001"}),
)
