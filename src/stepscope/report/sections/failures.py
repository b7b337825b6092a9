"""How a job failed, in words."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.model.session.session import Manifest, WorkerInfo


def of(manifest: Manifest) -> str:
    """How a job failed, in words; "" if it did not."""
    code = manifest.exit_code
    if manifest.mode == "attach":
        return ""
    if code is None:
        return "" if ended_by_itself(manifest) else "did not end by itself"
    if code < 0:
        return f"was ended by {_signal_name(-code)}"
    return f"failed with exit code {code}" if code else ""


def ended_by_itself(manifest: Manifest) -> bool:
    """Whether the exit handlers of the job's tasks ran or, where it has none, of the job's process.

    What these start ends as they see fit: a child that multiprocessing forks runs no exit handlers. Such children say
    of themselves that they are the task.
    """
    tasks: dict[str, WorkerInfo] = {}
    for worker in manifest.workers:  # the earliest first
        name = worker.member.name if worker.member is not None else ""
        if name and (name not in tasks or tasks[name].pid == worker.pid):  # of that pid again: by exec
            tasks[name] = worker
    own = [worker for worker in manifest.workers if worker.pid == manifest.job_pid]
    deciding = list(tasks.values()) or own[-1:] or list(manifest.workers)
    return bool(deciding) and all(worker.clean_exit for worker in deciding)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
