"""Callbacks take a noticeable part of the steps, and no detector says why.

## What it detects
Callbacks and hooks that together take five percent of the steps or more, with the costliest one and how often it
runs.

## Why it matters
The loop waits for each callback before it starts the next step.

## Evidence
`callbacks_ratio`: share of the steady wall time; `part at FILE:LINE`: the part of it on a line.

## Known limits
Reported only where no specific finding explains the time. What a callback does may be wanted, and what less of it would
save is not measured: it is information, unless a known line takes a fifth of the steps.

## Remedy
Run the costliest callback every N batches or once an epoch.

## References
Keras documentation of Callback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.detectors.base import Detector, Signal
from stepscope.detectors.shared import general_loss
from stepscope.detectors.shared.general_loss import Params
from stepscope.tables.findings import Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView
    from stepscope.detectors.base import Seen
    from stepscope.detectors.shared.general_loss import Loss

MIN_CLEAR_RATIO = 0.20
"""Of the steady wall time, on one line: from there on it is more than information."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    loss = general_loss.find(view, "callbacks", params)
    if loss is None:
        return
    yield loss.seen(
        view,
        params,
        title=f"callbacks take {loss.share_text}{loss.top_text}",
        remedies=(
            Remedy(id="callback-less-often", text="run the costliest callback every N batches, or once an epoch"),
        ),
        explanation="No step runs while a callback does.",
        clear_ratio=loss.ratio * loss.spent[0].ratio if loss.spent and _is_clear(loss) else 0.0,
    )


def _is_clear(loss: Loss) -> bool:
    return loss.ratio * loss.spent[0].ratio >= MIN_CLEAR_RATIO


DETECTOR = Detector(
    code="GEN004",
    name="time-in-callbacks",
    cause="API: inefficient API usage",
    introduced_stage="training",
    pipeline_stage="output-processing",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
