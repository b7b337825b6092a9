"""Counts a process's TLB misses, cache misses, cycles and instructions for a while, where the processor counts them.

perf counts, in a separate process that ends by itself; the job is neither stopped nor entered. Counters cost its
threads some 1 us at each turn on a CPU (docs/decisions/0029), so they run for seconds and not always.

Source: perf_event_open(2), PERF_TYPE_HW_CACHE; perf-stat(1).
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from stepscope.native.formats import perf_stat
from stepscope.native.kernel import counting

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 2.0
"""Time for which a process of a job is counted before each look at its memory."""
EVENTS = {
    "task-clock": "cpu_ns",
    "cycles": "cycles",
    "instructions": "instructions",
    "dTLB-load-misses": "dtlb_load_misses",
    "dTLB-store-misses": "dtlb_store_misses",
    "LLC-load-misses": "llc_load_misses",
    "cache-misses": "cache_misses",
}
"""perf's names to those in a look. Processors lack some of them."""
_END_S = 5.0


class Counting:
    """Counts one process from now on."""

    def __init__(self, pid: int, seconds: float) -> None:
        """Begin.

        Raises:
            OSError: perf is missing, or cannot be run.
        """
        program = shutil.which("perf")
        if program is None:
            raise FileNotFoundError("perf")
        names = ",".join(name if name == "task-clock" else f"{name}:u" for name in EVENTS)
        command = [program, "stat", "-x", perf_stat.SEPARATOR, "-e", names, "-p", str(pid), "--log-fd", "1", "--"]
        self._process = subprocess.Popen(
            [*command, "sleep", f"{seconds:.3f}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # a few hundred bytes: perf never waits for a reader
            stderr=subprocess.DEVNULL,
        )

    @property
    def running(self) -> bool:
        """Whether its time is not up yet."""
        return self._process.poll() is None

    def result(self) -> Mapping[str, int]:
        """What was counted, by the names of a look; empty if that failed. Waits until its time is up."""
        try:
            text, _ = self._process.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            text, _ = self._process.communicate()
        return counts(text.decode("ascii", "replace"))


def possible() -> bool:
    """Whether this processor counts, and this user may count."""
    return shutil.which("perf") is not None and not counting.attempt("cycles")


def counts(text: str) -> Mapping[str, int]:
    """Perf's numbers by the names of a look; empty unless cycles were counted."""
    found = perf_stat.read(text)
    named = {EVENTS[name]: value for name, value in found.items() if name in EVENTS}
    return named if named.get("cycles") else {}
