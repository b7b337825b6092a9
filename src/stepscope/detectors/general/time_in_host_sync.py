"""The host waits for tensors in a noticeable part of the steps.

## What it detects
Reads of tensors from Python (`.numpy()`, `float()`, `bool()`) in which the thread of the steps waits for five percent
of the time or more, with their lines and how often they run. Keras on JAX or PyTorch reads the results of each batch
where a callback asks for them (`on_train_batch_end`): then the callback is named.

## Why it matters
Each read waits until the device has computed the tensor, and the next step is not prepared meanwhile.

## Evidence
`host_sync_ratio`: share of the steady wall time; `part at FILE:LINE`: the part of it on a line.

## Known limits
Reported only where no specific finding explains the time. The wait holds the device's own work, which has to be done
in any case; what reading less often would save is not known.

## Remedy
Read the tensor every N steps, or keep the sum in the compiled step and read it once an epoch. Keras does not wait for
callbacks of batches that say `async_safe = True`, nor for those that only work once an epoch.

## References
TensorFlow guide on asynchronous execution; FSE'22 study, inefficient data transmission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.detectors.base import Detector, Signal
from stepscope.detectors.shared import general_loss
from stepscope.detectors.shared.general_loss import Params
from stepscope.tables.findings import Remedy
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView
    from stepscope.detectors.base import Seen


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    loss = general_loss.find(view, "host-sync", params)
    if loss is None:
        return
    of_keras = _reads_logs(view)
    asking = _asking(view) if of_keras else ""
    yield loss.seen(
        view,
        params,
        title=f"Keras waits for each batch's results{asking and f', for {asking}'}: {loss.share_text}"
        if of_keras
        else f"the host waits for tensors: {loss.share_text}{loss.top_text}",
        remedies=(_ASYNC_SAFE if of_keras else _LESS_OFTEN,),
        explanation="The thread waits until the tensor is computed and copied; it prepares no next step meanwhile."
        + (" The wait holds the step's own computation." if of_keras else ""),
    )


_LESS_OFTEN = Remedy(
    id="read-less-often", text="read the tensor every N steps, or add it up in the compiled step and read it once"
)
_ASYNC_SAFE = Remedy(
    id="async-callbacks",
    text="work in on_epoch_end, or set async_safe = True on callbacks that may run on other threads, several at once",
)
LOGS = "logs"
"""Role of Keras' own reads."""
BATCH_END = frozenset({"on_batch_end", "on_train_batch_end", "on_test_batch_end", "on_predict_batch_end"})
MOST = 0.5
"""Share of the waits from which Keras' own reads are what is reported."""


def _reads_logs(view: StepsView) -> bool:
    """Whether most of the time is Keras' reading of logs."""
    rows = view.named_times(Kind.SYNC)
    return sum(row.total_ns for row in rows if row.name.role == LOGS) > MOST * sum(row.total_ns for row in rows)


def _asking(view: StepsView) -> str:
    """The user's callback of batches that takes longest, by its class."""
    rows = [row for row in view.named_times(Kind.CALLBACK) if row.name.own and row.name.hook in BATCH_END]
    return rows[0].name.text.partition(".")[0] if rows else ""


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
