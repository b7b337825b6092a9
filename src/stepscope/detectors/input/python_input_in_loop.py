"""Python code in the training loop prepares the batch while nothing else runs.

## What it detects
A loop that makes its own batches: statements whose results reach the arguments of the step's call and that take a large
part of the wall time, in user Python (or in libraries called from it), outside tf.data.

## Why it matters
Until the batch is ready, no step can start; work in the loop is never overlapped with the step, as tf.data's prefetch
would do.

## Evidence
`other_python_ratio`: share of the steady wall time that no probe names, measured as the remainder. `samples`: stack
samples of the loop's thread (about 20 a second) that fall on the function named; the share has their interval. Def-use
analysis of the loop's source shows whether a statement feeds the step. Work on the step's results, such as the next
token of a decoder, counts as Python on results (HST001), not as input. The cost is what the costliest function takes,
or, if that is more, what other processes save that make the batches ahead on the CPUs that the step leaves; the latter
is the lower end, all of the preparation the upper one. A batch that tf.data holds ready costs the loop itself up to 0.3
ms: only preparation beyond that counts. User spans that hold at least half of that time are named, with their share.

## Known limits
Where no loop is around the call, its function is taken for one that each step calls. A sample inside a C call that
holds the interpreter lock lands on the line after it. If the source is not available, the code counts as slow Python in
the loop (HST001).

## Remedy
Move the preparation into a tf.data pipeline with `map` and `prefetch`; without TensorFlow make the next batch in
another process, where a CPU is idle: it saves little where the step is much shorter than that. Vectorise it with NumPy
over the whole batch, or do it once before the loop, if it uses no random numbers.

## References
tf.data performance guide, prefetching; training-pipeline analysis (Rand 2020), stage preprocessing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.host import statement_role
from stepscope.causes.input import input_cause, input_work, random_input
from stepscope.derive.input.pipeline import MAX_HANDOVER_NS
from stepscope.derive.python import loop_source
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, severity_of
from stepscope.detectors.remedies import Fact
from stepscope.detectors.shared import drawn, loop_python
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.python.hot_spots import HotSpot
    from stepscope.derive.steps_view import StepsView
    from stepscope.detectors.shared.loop_python import LoopPython

MOST = 0.5
"""Of the preparation: making batches ahead is advised first only if it saves that much of it."""


class Params(loop_python.Params, frozen=True, kw_only=True):
    """Thresholds."""

    handover: Ns = Ns(MAX_HANDOVER_NS)
    """Time that ``next`` of a tf.data pipeline takes from the loop although the batch is ready: it remains."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    found = loop_python.find(view, params, lambda s: _feeds(view, s))
    steps = view.steps
    if found is None:
        return
    if found.ratio - params.handover * steps.steady_count / steps.steady_ns < params.min_ratio:
        return
    most = next(iter(loop_python.by_function(view, found, params)), found)
    part = min(1.0, most.top.ratio / found.part)
    ahead = input_work.saved_ahead(view, found.ratio)
    yield Seen(
        title=f"the loop prepares each batch in Python before the step: {format_ratio(found.ratio)} of the time, "
        f"{format_ratio(part)} of it in {most.who(view)}",
        severity=severity_of(found.ratio),
        confidence=0.85,
        where=most.places(view),
        evidence=found.evidence(view, "samples_on_input_code", params),
        cost=found.cost(view, least=ahead, usual=max(ahead, most.ratio)),
        remedies=_remedies(view, most, ahead_first=ahead >= MOST * found.ratio),
        about=frozenset({Fact.WHOLE_ARRAYS}) if loop_python.in_arrays(view, most) else frozenset(),
        explanation="The time lies between two calls of the step, on the thread that makes them; the loop's source "
        "shows that the result goes into the step's arguments.",
    )


def _remedies(view: StepsView, most: LoopPython, *, ahead_first: bool) -> tuple[Remedy, ...]:
    """``ahead_first``: batches that are made ahead save most of the time, as the step leaves them time and CPUs."""
    draw = random_input.at(view, most.top.culprit)
    once = f", or once before the loop {drawn.IF_THE_SAME}" if draw is None else ""
    who = most.who(view)
    less = (
        Remedy(id="vectorise", text=f"or vectorise {who}: work on whole batches{once}"),
        Remedy(
            id="less-in-numpy",
            text=f"or give {who} less to do: smaller, narrower arrays, only what the step reads{once}",
        ),
    )
    return (*_AHEAD, *less) if ahead_first else (*less, *_AHEAD)


_AHEAD = (
    Remedy(
        id="use-tf-data",
        text="or move the preparation into tf.data (map with num_parallel_calls, prefetch), so that the next "
        "batch is made while the step runs",
    ),
    Remedy(
        id="make-ahead",
        text="or make the next batch in another process (a thread, where NumPy does the work) while the step runs",
    ),
)


def _feeds(view: StepsView, spot: HotSpot) -> bool:
    """Whether the statement makes the step's input in Python.

    The loop's own line does not if it only waits for the interpreter lock, or if it iterates over tf.data: the time of
    ``next`` is recorded, and the rest is tf.data ending one pass and starting another.
    """
    if statement_role.build(view, spot) != "feeds":
        return False
    if (spot.culprit.file, spot.culprit.function) != view.loop:
        return True
    cause = view.get(input_cause.build)
    locked = cause is not None and cause.limit in {"python-function", "generator"} and cause.python_ratio > 0
    return not locked and not _iterates(view, spot)


def _iterates(view: StepsView, spot: HotSpot) -> bool:
    """Whether the spot is the header of the loop over a dataset."""
    source = view.source_of(spot.culprit.file)
    pulled = len(view.pipeline.pulled_gaps_ns) > 0
    if source is None or view.call_line is None or not pulled:
        return False
    return loop_source.in_header(source, view.call_line, spot.culprit.line)


DETECTOR = Detector(
    code="INP004",
    name="python-input-in-loop",
    cause="Data: inefficient data preprocessing",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    frameworks=frozenset({"keras", "onnxruntime", "tensorflow"}),
    params=Params(),
    detect=detect,
    yields_to=frozenset({"HST009", "INP009", "TRD001"}),
)
