"""What the windows of a recording have in common: the process that they are of, and what they cost its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.derive.optrace import capture_cost
from stepscope.errors import CaptureError
from stepscope.model.log.events import CaptureTaken
from stepscope.wire import commands

if TYPE_CHECKING:
    from stepscope.collector.captures.op_captures import Asked
    from stepscope.collector.recording.owner import Owner
    from stepscope.model.session.session import CaptureInfo

SETTLE_NS = 2_000_000_000
"""Time after the window whose steps it is compared with."""
NOTICE_NS = 1_000_000_000
"""Time in which a process notices a command: it looks for them twice a second."""
_MARGIN_S = 2.0
"""Margin for sampling Python: a process looks for commands twice a second, and perf takes time to start."""
_COSTS = ("ratio", "low", "high", "traced", "neighbours", "step_ns", "slower_ns", "cost_ns")


def pid_of(recording: Owner, worker: str) -> int:
    """The process that a worker's key stands for, or the job's.

    Raises:
        CaptureError: it has ended.
    """
    found = recording.drainer.workers.get(worker)
    if found is not None and not found.closed:
        return found.pid
    if worker or recording.job is None:
        raise CaptureError("the process has ended")
    return recording.job.pid


def keep_awake(recording: Owner, worker: str, seconds: float, *, hz: int = 0) -> None:
    """Ask a process not to rest while it is measured, so that its steps are seen.

    Args:
        recording: the recording.
        worker: the process's key.
        seconds: how long, from its start, without the time until the process notices.
        hz: rate at which it is to sample its Python stacks, which are spliced in; 0: the usual one.
    """
    found = recording.drainer.workers.get(worker)
    if found is None or found.closed:
        return
    command: dict[str, object] = {"kind": commands.STACKS, "hz": hz, "seconds": seconds + _MARGIN_S}
    try:
        commands.send(str(found.folder / commands.COMMANDS_NAME), command)
    except (OSError, ValueError) as error:  # it takes no commands: use the usual samples
        recording.note("DX147", f"Python stacks could not be sampled more often during a window: {error}")


def with_cost(recording: Owner, info: CaptureInfo, asked: Asked) -> CaptureInfo:
    """The window, with what it cost by the steps within and around it."""
    worker = recording.drainer.workers.get(asked.worker)
    if worker is None or not asked.anchors:
        return info
    window = CaptureTaken(
        at=info.at_ns,
        id=info.id,
        kind=info.kind,
        way=info.way,
        recorded_ns=info.recorded_ns,
        cpu_ns=info.cpu_ns,
        anchors=[*asked.anchors],
        thread=asked.thread,
    )
    cost = capture_cost.measure(*worker.recent.observed(), window)
    costs = {name: getattr(cost, name) for name in _COSTS}
    return msgspec.structs.replace(info, steps=cost.traced, **costs)
