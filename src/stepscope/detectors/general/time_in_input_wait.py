"""The steps wait for input, and no detector says why.

## What it detects
Input wait of five percent of the steps or more that no detector of the input explains, with the slowest stage of the
pipeline and its function, else the line that waits.

## Why it matters
The device computes nothing while a step waits for its batch.

## Evidence
`input_wait_ratio`: share of the steady wall time; `part at FILE:LINE`: the part of it on a line.

## Known limits
Reported only where no specific finding explains the time. How much a faster pipeline would save is not measured: its
stages may be limited by the same CPUs as the steps. So it is information, unless a fifth of the steps is waited for a
batch, without what other processes' use of the CPUs explains.

## Remedy
Make the named stage cheaper, or run it in parallel and ahead of the steps (`num_parallel_calls`, `prefetch`).

## References
TensorFlow guide "Better performance with the tf.data API"; training-pipeline analysis (Rand 2020).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.input import input_cause
from stepscope.causes.job import hidden_wait
from stepscope.detectors.base import Detector, Signal
from stepscope.detectors.shared import general_loss
from stepscope.detectors.shared.general_loss import Params
from stepscope.tables.findings import Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView
    from stepscope.detectors.base import Seen

MIN_CLEAR_RATIO = 0.20
"""Of the steady wall time: the wait from which it is more than information."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    loss = general_loss.find(view, "input-wait", params)
    if loss is None:
        return
    yield loss.seen(
        view,
        params,
        title=f"the steps wait for input: {loss.share_text}{loss.top_text}",
        remedies=(
            Remedy(
                id="parallel-input",
                text="run the slowest stage in parallel and ahead of the steps: num_parallel_calls=tf.data.AUTOTUNE, "
                "prefetch(tf.data.AUTOTUNE)",
            ),
            Remedy(id="cache-input", text="or do its work once: cache() behind what does not change between epochs"),
        ),
        explanation="In this time the next batch was not ready; no detector of the input found the reason.",
        clear_ratio=_clear(view),
    )


def _clear(view: StepsView) -> float:
    """The wait that other processes do not explain, if it is clearly one; else 0."""
    cause = view.get(input_cause.build)
    if cause is None or view.get(hidden_wait.build) or cause.wait_ratio < MIN_CLEAR_RATIO:
        return 0.0
    return cause.wait_ratio


DETECTOR = Detector(
    code="GEN003",
    name="time-in-input-wait",
    cause="Data: inefficient data preprocessing",
    introduced_stage="data preparation",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
