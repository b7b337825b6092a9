"""The steps load or build models or graphs.

## What it detects
Loading and making models, graphs and sessions within the steps, if that takes five percent of the time or more.

## Why it matters
What is made once before the loop costs nothing in the steps.

## Evidence
`building_ratio`: share of the steady wall time; `part at FILE:LINE`: the part of it on a line.

## Known limits
Reported only where no specific finding explains the time. The same object in each step is reported by another
detector; this one does not know whether the object could be kept.

## Remedy
Make it once before the loop, and keep it.

## References
FSE'22 study, inefficient API usage.
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


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    loss = general_loss.find(view, "building", params)
    if loss is None:
        return
    yield loss.seen(
        view,
        params,
        title=f"models or graphs are made within the steps: {loss.share_text}{loss.top_text}",
        remedies=(Remedy(id="build-once", text="make it once before the loop and keep it, for each set of settings"),),
        explanation="Records of calls that load or make a model, a graph or a session lie within the steps.",
    )


DETECTOR = Detector(
    code="GEN006",
    name="time-in-building",
    cause="API: inefficient API usage",
    introduced_stage="model building",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
