"""The host waits for tensors in a noticeable part of the steps.

## What it detects
Reads of tensors from Python (`.numpy()`, `float()`, `bool()`) in which the thread of the steps waits for five percent
of the time or more, with their lines and how often they run.

## Why it matters
Each read waits until the device has computed the tensor, and the next step is not prepared meanwhile.

## Evidence
`host_sync_ratio`: share of the steady wall time; `part at FILE:LINE`: the part of it on a line.

## Known limits
Reported only where no specific finding explains the time. The wait holds the device's own work, which has to be done
in any case; what reading less often would save is not known.

## Remedy
Read the tensor every N steps, or keep the sum in the compiled step and read it once an epoch.

## References
TensorFlow guide on asynchronous execution; FSE'22 study, inefficient data transmission.
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
    loss = general_loss.find(view, "host-sync", params)
    if loss is None:
        return
    yield loss.seen(
        view,
        params,
        title=f"the host waits for tensors: {loss.share_text}{loss.top_text}",
        remedies=(
            Remedy(
                id="read-less-often",
                text="read the tensor every N steps, or add it up in the compiled step and read it once",
            ),
        ),
        explanation="The thread waits until the tensor is computed and copied; it prepares no next step meanwhile.",
    )


DETECTOR = Detector(
    code="GEN009",
    name="time-in-host-sync",
    cause="Python: interpreter overhead",
    introduced_stage="training",
    pipeline_stage="device-to-host",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
