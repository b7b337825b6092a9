"""Keras' own loop takes a noticeable part of the steps.

## What it detects
Time in the loop of fit, evaluate or predict outside of the compiled step, its input and its callbacks, if it is five
percent of the steps or more.

## Why it matters
The loop costs a few tenths of a millisecond for each call of the compiled step, whatever the step does: steps of a
millisecond spend much of their time in it. Time of a few steps among many is no such cost: there the loop stood still.

## Evidence
`framework_ratio`: share of the steady wall time; `part at FILE:LINE`: the part of it on a line. `step_ns`: the mean
steady step.

## Known limits
Reported only where no specific finding explains the time. How much `steps_per_execution` saves depends on the model
and is not measured here.

## Remedy
Run several steps in one call (`steps_per_execution`), or use larger batches.

## References
Keras documentation of Model.compile, steps_per_execution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.detectors.base import Detector, Signal, step_ns
from stepscope.detectors.shared import general_loss
from stepscope.detectors.shared.general_loss import Params
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView
    from stepscope.detectors.base import Seen
    from stepscope.detectors.shared.general_loss import Loss


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    loss = general_loss.find(view, "framework", params)
    if loss is None:
        return
    step = step_ns(view)
    yield loss.seen(
        view,
        params,
        title=f"Keras' own loop {_does(loss, step)}",
        more=(Evidence(metric="step_ns", value=step, unit="ns"),),
        remedies=(
            Remedy(
                id="steps-per-execution", text="run many steps in one call: compile(steps_per_execution=32) or more"
            ),
            Remedy(id="larger-batch-for-loop", text="or fewer, larger steps: a larger batch size"),
            _LOOK,
        ),
        explanation="This time is spent once for each call of the compiled step, whatever the step does."
        if loss.few is None
        else "Most of this time lies in few steps, between their calls: it is no cost of each call.",
    )


_LOOK = Remedy(
    id="look-at-those-steps",
    text="see what happened in the longest of them: stepscope report SESSION --step slowest",
)


def _does(loss: Loss, step: float) -> str:
    if loss.few is not None:
        return f"stalls: {loss.share_text}"
    return f"takes {loss.share_text}: the steps are short ({format_ns(step)})"


DETECTOR = Detector(
    code="GEN011",
    name="time-in-framework-loop",
    cause="Python: interpreter overhead",
    introduced_stage="training",
    pipeline_stage="output-processing",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
