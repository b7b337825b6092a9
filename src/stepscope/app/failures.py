"""How a job failed, in words."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.model.session.session import Manifest


def of(manifest: Manifest) -> str:
    """How a job failed, in words; "" if it did not."""
    code = manifest.exit_code
    if manifest.mode == "attach":
        return ""
    if code is None:
        tasks = [worker for worker in manifest.workers if worker.member is not None] or manifest.workers
        return "" if tasks and all(worker.clean_exit for worker in tasks) else "did not end by itself"
    if code < 0:
        return f"was ended by {_signal_name(-code)}"
    return f"failed with exit code {code}" if code else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
