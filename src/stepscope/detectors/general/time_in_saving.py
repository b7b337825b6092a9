"""Saving or writing summaries takes a noticeable part of the steps, and no detector says why.

## What it detects
Checkpoints, weights, models and summaries that the thread of the steps writes in five percent of the time or more,
with the line that writes, how often, and how much if known.

## Why it matters
No step runs while the thread serialises and writes.

## Evidence
`saving_ratio`: share of the steady wall time; `part at FILE:LINE`: the part of it on a line. `saved_bytes`: written
within the steady steps, if known.

## Known limits
Reported only where no specific finding explains the time. Files written in other ways count as other Python. How
often a job must save is the user's decision.

## Remedy
Save every N epochs or by time, weights only, or in the background.

## References
tf.train.CheckpointOptions documentation; training-pipeline analysis (Rand 2020), stage storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.detectors.base import Detector, Signal
from stepscope.detectors.shared import general_loss
from stepscope.detectors.shared.general_loss import Params
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import format_bytes
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView
    from stepscope.detectors.base import Seen


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    loss = general_loss.find(view, "saving", params)
    if loss is None:
        return
    written = _bytes(view)
    yield loss.seen(
        view,
        params,
        title=f"saving takes {loss.share_text}{loss.top_text}{f', {format_bytes(written)} in all' if written else ''}",
        more=(Evidence(metric="saved_bytes", value=written, unit="bytes"),) if written else (),
        remedies=(
            Remedy(id="save-less-often", text="save every N epochs or minutes, and weights only"),
            Remedy(id="save-in-background", text="or in the background: experimental_enable_async_checkpoint=True"),
        ),
        explanation="The thread of the steps serialises and writes itself.",
    )


def _bytes(view: StepsView) -> int:
    """Bytes that were saved within the steady steps; 0 if unknown."""
    calls = view.calls(Kind.SAVE).begun_in(view.steps.windows)
    return int(np.maximum(calls.args, 0).sum())


DETECTOR = Detector(
    code="GEN008",
    name="time-in-saving",
    cause="API: inefficient API usage",
    introduced_stage="training",
    pipeline_stage="storage",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
