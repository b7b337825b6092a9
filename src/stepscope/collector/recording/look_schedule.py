"""Looks at the memory of a job's processes while it runs: a few, at growing intervals that depend on their cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.native.memory import hardware_counters, memory_look
from stepscope.native.memory.hardware_counters import Counting
from stepscope.store import memory_looks
from stepscope.tables.errors import FormatError
from stepscope.wire.spent import SpentTime

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.collector.recording.owner import RecorderInterface

FIRST_NS = {"run": 60_000_000_000, "attach": 2_000_000_000, "enable": 600_000_000_000}
"""Time of the first look by mode. A look at a TensorFlow process takes 55 ms of CPU time: under ``run``, whose jobs may
be short, it waits until that is its share; under ``enable`` ten times as long; ``attach`` exists to look. Other modes
make no looks."""
PAUSE_NS = 60_000_000_000
"""Pause before the second look; each pause is twice the previous one, so that a day has ten."""
CPU_RATIO = 0.001
"""Maximum share of one core for looks: where they take long, at a large process, they come later. Of the first one most
is done once for all, so that it does not say when the second may come."""
MAX_PROCESSES = 4
"""Number of measured processes that are looked at, the largest."""


LATEST_NS = 10_000_000_000
"""Time after which a look no longer waits for hardware counters."""


class LookSchedule:
    """The looks of one recording."""

    def __init__(self, recording: RecorderInterface, now_ns: int) -> None:
        """Begin at ``now_ns``."""
        self._recording = recording
        each = recording.job.memory_looks_ns if recording.job is not None else 0
        first = each or FIRST_NS.get(recording.manifest.mode)
        self._due_ns = now_ns + first if first is not None else None
        self._pause_ns = each or PAUSE_NS
        self._began_ns = now_ns
        self._spent = SpentTime()
        self._often = bool(each)
        self._counting: Counting | None = None
        self._counted_pid = 0
        self._countable: bool | None = None

    def tick(self, now_ns: int) -> None:
        """Look if a look is due; if hardware can count, it counts the largest process for some seconds before."""
        if self._due_ns is None or now_ns < self._due_ns:
            return
        if self._counting is None and self._count():
            return
        if self._counting is not None and self._counting.running and now_ns < self._due_ns + LATEST_NS:
            return
        hardware = self._counting.result() if self._counting is not None else {}
        self._counting = None
        cost_ns = sum(self._look(pid, now_ns, hardware if pid == self._counted_pid else {}) for pid in self._pids())
        if self._often:  # a trial of memory: both sides are looked at alike
            self._due_ns = now_ns + self._pause_ns
            return
        self._spent.add(cost_ns)
        self._due_ns = max(now_ns + self._pause_ns, self._began_ns + int(self._spent.ns / CPU_RATIO))
        self._pause_ns *= 2

    def _count(self) -> bool:
        """Begin to count; False if that is not possible here."""
        if self._countable is None:
            self._countable = hardware_counters.possible()
        pids = self._pids()
        if not self._countable or not pids:
            return False
        try:
            self._counting = Counting(pids[0], hardware_counters.SECONDS)
        except OSError:
            self._countable = False
            return False
        self._counted_pid = pids[0]
        return True

    def _pids(self) -> list[int]:
        job = self._recording.job
        pids = self._recording.drainer.alive_pids() or ({job.pid} if job else ())
        return sorted(pids, key=lambda pid: -_resident_pages(pid))[:MAX_PROCESSES]

    def _look(self, pid: int, now_ns: int, hardware: Mapping[str, int]) -> int:
        """Look and store; return the cost in nanoseconds of CPU time."""
        recording = self._recording
        origin_ns = recording.manifest.origin_monotonic_ns
        try:
            look = replace(memory_look.look(pid, origin_ns), hardware=hardware)
        except (FileNotFoundError, ProcessLookupError):  # it has ended: no loss
            return 0
        except (OSError, FormatError) as error:
            recording.note("DX160", f"no memory snapshot of process {pid}: {error}")
            return 0
        if not len(look.mappings):
            return look.cpu_ns
        try:
            memory_looks.write(recording.session, f"{pid}-{(now_ns - origin_ns) // 1_000_000:09d}", look)
        except OSError as error:
            recording.note("DX160", f"a memory snapshot of process {pid} could not be stored: {error.strerror}")
        return look.cpu_ns


def _resident_pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
