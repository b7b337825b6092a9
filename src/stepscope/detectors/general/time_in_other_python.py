"""Python between the steps takes a noticeable part of the time, and no detector says why.

## What it detects
Python on the thread of the steps that belongs to no call of the framework, if it takes five percent of the time or
more, with the lines that stack samples show and what they call.

## Why it matters
The device waits while the thread runs Python.

## Evidence
`other_python_ratio`: share of the steady wall time; `part at FILE:LINE`: the part of it on a line.

## Known limits
Reported only where no specific finding explains the time. Lines rest on stack samples, 20 a second: a run of a few
seconds names only large parts. What the code is for is not known.

## Remedy
Do the work on whole arrays, less often, or in another thread; or put it into the compiled step.

## References
py-spy and pyinstrument on sampling bias.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.detectors import general_loss
from stepscope.detectors.base import Detector, Seen, Signal
from stepscope.detectors.general_loss import Params
from stepscope.model.report.finding import Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    loss = general_loss.find(view, "other-python", params)
    if loss is None:
        return
    yield Seen(
        title=f"Python between the steps takes {loss.share_text}{loss.top_text}",
        severity=loss.severity,
        confidence=general_loss.CONFIDENCE,
        where=loss.where,
        evidence=loss.evidence(params),
        cost=loss.cost(view),
        remedies=(
            Remedy(id="vectorise", text="do it with NumPy on whole arrays, or inside of the compiled step"),
            Remedy(id="do-it-less-often", text="or every N steps, or in another thread or process"),
        ),
        explanation="Nothing of the framework runs on the thread of the steps in this time.",
    )


DETECTOR = Detector(
    code="GEN012",
    name="time-in-other-python",
    cause="Python: interpreter overhead",
    introduced_stage="training",
    pipeline_stage="output-processing",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
