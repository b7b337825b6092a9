"""Controls the start of perf's recording: it opens its counters, our program is attached to them, then they are
enabled.

perf takes commands through a pipe and answers each. Its answer means that its counters are open: nothing has been
sampled when the program that selects the samples, or sees Python's frames at them, is attached.

Source: perf-record(1), --control and --delay; perf 5.10 and later.
"""

from __future__ import annotations

import os
import select
import threading
import time
from typing import TYPE_CHECKING

from stepscope.native.kernel import initial_maps

if TYPE_CHECKING:
    from stepscope.native.kernel.bpf import Program
    from stepscope.native.kernel.initial_maps import AlreadyThere

_ANSWER = b"ack\n"
"""Answer of perf, followed by the zero that ends a C string, as in perf 6.1."""
_PATIENCE_S = 30.0
"""Maximum time until perf has opened its counters, on a busy machine."""


class PerfControl:
    """Commands to one perf process. Make it, start perf with ``words`` and ``descriptors``, then call ``begin``."""

    def __init__(self) -> None:
        """Make two pipes."""
        self._theirs_in, self._asks = os.pipe()
        self._answers, self._theirs_out = os.pipe()
        self._thread: threading.Thread | None = None
        self.began_ns = 0
        """Time at which the counters were enabled, CLOCK_MONOTONIC; 0: not yet."""
        self.there: AlreadyThere | None = None
        """Mappings of the process at that time."""
        self.problem = ""
        """Reason why nothing is recorded, or Python's frames are not seen."""

    @property
    def descriptors(self) -> tuple[int, int]:
        """The descriptors that perf must inherit."""
        return self._theirs_in, self._theirs_out

    @property
    def words(self) -> list[str]:
        """Arguments of perf: nothing is counted before the command, and nothing is looked up that we look up
        ourselves.
        """
        return ["-D", "-1", f"--control=fd:{self._theirs_in},{self._theirs_out}", "--synth=no", "--no-bpf-event"]

    def begin(self, perf: int, pid: int, program: Program | None, *, chosen: bool) -> None:
        """Attach ``program`` to the counters of ``perf`` and enable them, in a thread that ends by itself.

        ``chosen``: enable nothing unless the program is at each counter, because samples are of all processes.
        """
        for own in self.descriptors:
            os.close(own)
        asked = {"perf": perf, "pid": pid, "program": program, "chosen": chosen}
        self._thread = threading.Thread(target=self._begin, kwargs=asked, daemon=True)
        self._thread.start()

    def _begin(self, *, perf: int, pid: int, program: Program | None, chosen: bool) -> None:
        try:
            if not self._ask("disable"):
                return
            if program is not None:
                found, attached = program.attach(perf)
                if not attached or (chosen and attached != found):
                    self.problem = f"the program runs at {len(attached)} of perf's {len(found)} counters"
            if self.problem and chosen:
                return
            self.there = initial_maps.read(pid)
            if self._ask("enable"):
                self.began_ns = time.monotonic_ns()
        except OSError as error:
            self.problem = str(error)

    def _ask(self, word: str) -> bool:
        """Send a command; return whether perf answered, which it does not if it has ended."""
        try:
            os.write(self._asks, f"{word}\n".encode("ascii"))
        except BrokenPipeError:
            return False
        ready, _, _ = select.select([self._answers], [], [], _PATIENCE_S)
        return bool(ready) and os.read(self._answers, 2 * len(_ANSWER)).strip(b"\0") == _ANSWER

    def close(self) -> None:
        """Close the pipes, after perf has ended."""
        if self._thread is not None:
            self._thread.join()
        else:
            for theirs in self.descriptors:
                os.close(theirs)
        os.close(self._asks)
        os.close(self._answers)
