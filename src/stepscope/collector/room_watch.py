"""Watches the room in the control group that our processes share with the job, and says when they must give way.

A job that fits into its limit without us can still die of the memory that we hold. So the collector leaves when less is
left in the group than the collector and the rings hold: what they give back then at least doubles the job's room.
While less than twice that is left, it does nothing that it can do without: no analysis, no capture, no cache.

A look is due before the room above that could be filled at the speed at which one thread gets pages from the kernel, so
that there are twenty looks a second near the limit and one a second far from it. A thread does it, because an
analysis may take longer. Where half of what was to be left is gone before the collector has stored what it has, it ends
at once: what is not stored is in the rings, as after a SIGKILL.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import threading
import time
from typing import TYPE_CHECKING

import pyarrow as pa

from stepscope.launcher import give_way
from stepscope.launcher.give_way import GaveWay
from stepscope.native.cgroups import cgroup, room
from stepscope.wire.env import PROCS_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.collector.recorder import Recording

FIRST_TOUCH_PER_S = 2.5e9
"""Bytes a second that one thread gets from the kernel in pages of 4 KiB, 1.6 us each."""
LEAST_S, MOST_S = 0.05, 1.0
"""Between two looks."""
SPARE_NS = 10_000_000_000
"""Between two times that free memory is given back while memory is short."""
TAKEN_S = 5.0
"""Longest wait for the job's processes to stop recording: they look twice a second, but a starved one is late."""
_SHARED_MEMORY = "/dev/" + "shm"


class RoomWatch:
    """Follows the room of one recording; does nothing where no group has a limit."""

    def __init__(self, recording: Recording, host: Path = cgroup.HOST) -> None:
        """Begin with the first look."""
        self._run = recording.run
        self._recording = recording
        self._host = host
        self._status = host / "proc/self/status"
        self._next_spared_ns = 0
        self._stop = threading.Event()
        self._wake, self._waking = os.pipe()
        self.leaving: GaveWay | None = None
        """Why the collector must leave; None: it need not."""
        self.pause_s = self.look()
        if self.pause_s:
            threading.Thread(target=self._watch, daemon=True).start()

    @property
    def wakes(self) -> int:
        """A descriptor that becomes readable when the collector must leave."""
        return self._wake

    def look(self) -> float:
        """Look at the room; return the seconds until the next look, 0 where there is no limit."""
        tight = room.tightest(self._host)
        if tight is None:
            return 0.0
        own, left = self.own_bytes(), tight.left_bytes
        self._recording.sampling.spare = left < 2 * own
        if left < own and self.leaving is None:
            now_ns = time.monotonic_ns()
            why = GaveWay(at_ns=now_ns, limit_bytes=tight.limit_bytes, left_bytes=left, own_bytes=own)
            self.leaving = why
            os.write(self._waking, b"!")
        if self.leaving is not None and left < self.leaving.own_bytes // 2:
            self.leave_at_once(self.leaving)
        return min(MOST_S, max(LEAST_S, (left - own) / FIRST_TOUCH_PER_S))

    def own_bytes(self) -> int:
        """What would be free if the collector left: its own memory, the rings, the logs."""
        words = cgroup.read(self._status).split()
        own = sum(int(words[words.index(name) + 1]) << 10 for name in ("RssAnon:", "VmPTE:") if name in words)
        return own + _in_memory(self._run)

    def _watch(self) -> None:
        while not self._stop.wait(self.pause_s):
            self.pause_s = self.look() or MOST_S

    def spare(self, now_ns: int) -> None:
        """Hold as little as possible where memory is short, now and then."""
        if self._recording.sampling.spare and now_ns >= self._next_spared_ns:
            self._next_spared_ns = now_ns + SPARE_NS
            self._recording.flush(now_ns, final=True)
            trim()

    def close(self) -> None:
        """End the looks, because the job has ended."""
        self._stop.set()

    def leave_at_once(self, why: GaveWay) -> None:
        """End this process now."""
        give_way.announce(self._run, why)
        os._exit(give_way.EXIT_CODE)


def leave(recording: Recording, why: GaveWay) -> None:
    """Have the job's processes stop recording, store what there is, give the rings' memory back, end this process."""
    until = time.monotonic() + TAKEN_S
    waiting = give_way.announce(recording.run, why)
    _store(recording, give_way.read(recording.run) or why, time.monotonic_ns())
    while time.monotonic() < until and any(command.exists() for command in waiting):
        time.sleep(LEAST_S)
    with contextlib.suppress(OSError):
        recording.drainer.poll(time.monotonic_ns())
        recording.drainer.flush()
        recording.drainer.release({c.parent.parent.name for c in waiting if not c.exists()})
    os._exit(give_way.EXIT_CODE)


def _store(recording: Recording, why: GaveWay, now_ns: int) -> None:
    recording.note(give_way.CODE, why.text(recording.manifest.origin_monotonic_ns))
    for code, text in recording.sampling.close():
        recording.note(code, text)
    recording.drainer.poll(now_ns)
    recording.flush(now_ns, final=True)
    for captures in (recording.native, recording.system_calls, recording.memory, recording.python):
        captures.close(now_ns)
    recording.write_notes()


def trim() -> None:
    """Give memory that is free in this process back to the kernel."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)


def _in_memory(run: Path) -> int:
    """Bytes that the rings and logs of a run take in memory."""
    try:
        device = os.stat(_SHARED_MEMORY).st_dev
    except OSError:
        return 0
    total = 0
    for folder, _, names in os.walk(run / PROCS_NAME):
        for name in names:
            try:
                about = os.stat(os.path.join(folder, name))  # of what a link leads to
            except OSError:
                continue
            total += 512 * about.st_blocks if about.st_dev == device else 0
    return total
