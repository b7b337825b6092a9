"""Evaluations inside of the training take a noticeable part of its time.

## What it detects
Validation or prediction within the steps of a fit that takes five percent of the time or more, with its line and how
often it runs.

## Why it matters
An evaluation trains nothing: on many batches after short epochs it can take longer than the training.

## Evidence
`evaluation_ratio`: share of the steady wall time; `part at FILE:LINE`: the part of it on a line.

## Known limits
Reported only where no specific finding explains the time. How often a model must be evaluated is the user's decision;
what less of it would save is not claimed.

## Remedy
Evaluate every N epochs (`validation_freq`), on fewer batches (`validation_steps`), or in larger ones
(`validation_batch_size`).

## References
Keras documentation of Model.fit.
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
    loss = general_loss.find(view, "evaluation", params)
    if loss is None:
        return
    yield loss.seen(
        view,
        params,
        title=f"evaluations take {loss.share_text}{loss.top_text}",
        remedies=(
            Remedy(
                id="evaluate-less-often",
                text="evaluate less often (validation_freq=N) or on less data (validation_steps)",
            ),
            Remedy(
                id="evaluate-in-larger-batches",
                text="or in larger batches: validation_batch_size, with the same result",
            ),
        ),
        explanation="The model does not train while it is evaluated.",
    )


DETECTOR = Detector(
    code="GEN005",
    name="time-in-evaluation",
    cause="Python: interpreter overhead",
    introduced_stage="training",
    exposed_stage="evaluation",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
