"""When a trial is given up: after a time, or when the machine has hardly any memory left.

An intervention may make a job that never has steady steps, or one that fills the memory: the user's machine comes
first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from msgspec import Struct, field

LOOK_S = 1.0
"""Seconds between two looks."""
LEAST_FREE = 0.04
"""Share of the machine's memory that has to stay available."""
_MEMORY = Path("/proc/meminfo")


class Patience(Struct, kw_only=True):
    """Looks after one trial."""

    seconds: float = 0.0
    """Longest time that it may take; 0: any."""
    why: str = ""
    """Why it was ended; "" if it was not."""
    _began: float = field(default_factory=time.monotonic)

    def look(self, job: int) -> float | None:
        """End the trial's process if it may not go on; seconds until the next look, None if there is none."""
        if self.why:
            return None
        self.why = self._over()
        if self.why:
            with contextlib.suppress(ProcessLookupError):
                os.kill(job, signal.SIGKILL)
        return LOOK_S

    def _over(self) -> str:
        if self.seconds and time.monotonic() - self._began > self.seconds:
            return f"it was not done after {self.seconds:.0f} s and was ended"
        if available_ratio() < LEAST_FREE:
            return f"less than {100 * LEAST_FREE:.0f} % of the machine's memory was left, and it was ended"
        return ""


def available_ratio(text: str | None = None) -> float:
    """Share of the machine's memory that is available; 1 if unknown. ``text``: of /proc/meminfo."""
    try:
        lines = (_MEMORY.read_text() if text is None else text).splitlines()
        sizes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if rest}
        return sizes["MemAvailable"] / sizes["MemTotal"]
    except (OSError, ValueError, IndexError, KeyError, ZeroDivisionError):
        return 1.0
