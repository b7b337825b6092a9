"""What is sent when a job has ended may not hold its user up: it gets a time, and its failure is a line."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stepscope.tables.errors import StepscopeError

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_S = 60.0
"""Time that ``run`` gives to sending, when its job has ended and its report is shown."""


def in_time(work: Callable[[], str], url: str) -> tuple[bool, str]:
    """Whether ``work`` was done in time, and its line, else why not. Never raises."""
    said: list[tuple[bool, str]] = []

    def run() -> None:
        try:
            said.append((True, work()))
        except (StepscopeError, OSError, ValueError) as error:
            said.append((False, str(error)))

    thread = threading.Thread(target=run, name="stepscope-gather", daemon=True)  # a dead mount may never answer
    thread.start()
    try:
        thread.join(WAIT_S)
    except KeyboardInterrupt:
        return False, "interrupted"
    if not thread.is_alive() and not said:
        return False, f"sending to {url} failed: the error stands above"  # by the hook for errors of threads
    return said[0] if said else (False, f"sending to {url} took more than {WAIT_S:.0f} s")
