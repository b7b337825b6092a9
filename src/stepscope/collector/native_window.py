"""A window of native sampling: ``perf record`` of one process for some seconds, decoded into stacks and memory events.

The process is never stopped: perf opens counters for its threads and reads /proc. It ends by itself when the time is up
or the process ends, also without us.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stepscope.collector import frame_fit, memory_events, perf, perf_start
from stepscope.collector.frame_watch import FrameWatch
from stepscope.collector.native_decode import StackDecoder
from stepscope.collector.python_memory import Memory
from stepscope.errors import CaptureError, FormatError
from stepscope.formats import perf_data
from stepscope.model.finding import Diagnostic

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.collector.perf import Abilities, Rates
    from stepscope.model.records import MemoryEventTable
    from stepscope.model.stacks import StackProfile

SECONDS = 5.0
"""Of a window: some hundred samples of each CPU that is busy."""
MAX_SECONDS = 60.0
MAX_BYTES = 256 << 20
"""Of perf's file: a window that grows beyond ends early."""
NO_FRAMES = "DX149"
_GRACE_S, _PAUSE_S = 10.0, 0.05
_FAILED, _TRIES = 255, 8
"""perf's exit code where a thread ends while it opens its counters: it is started again."""
_MAX_WORDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a window saw. Times in nanoseconds; ``began_ns`` since session start."""

    profiles: tuple[StackProfile, ...]
    events: MemoryEventTable
    diagnostics: tuple[Diagnostic, ...]
    began_ns: int
    recorded_ns: int
    bytes: int
    perf_cpu_ns: int
    """CPU time of perf."""
    decode_cpu_ns: int


class NativeWindow:
    """One window, from its start to what it saw. ``poll`` until it is over, then ``take``."""

    def __init__(self, pid: int, folder: Path, can: Abilities, rates: Rates, seconds: float = SECONDS) -> None:
        """Begin: calls are counted for a moment first. ``folder`` is made, and is the caller's to delete.

        Raises:
            CaptureError: perf cannot be started, or the process has gone.
            OSError: there is no room.
        """
        self.pid = pid
        self.began_ns = self.ended_ns = 0
        self._folder = folder
        self._file = folder / "perf.data"
        self._counts = folder / "counts"
        self._can = can
        self._rates = rates
        self._seconds = min(seconds, MAX_SECONDS)
        self._cpu_ns = 0
        self._recording = self._over = False
        self._tries = 0
        self._deadline_ns = time.monotonic_ns()
        try:
            self._root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_CLOEXEC)  # outlives the process
        except OSError as error:
            raise CaptureError(f"process {pid}: {error.strerror}; expected one of yours that runs") from error
        self._memory = Memory(pid)
        self._missing: list[Diagnostic] = []
        self.watch = self._watch_frames()
        """What sees Python's frames at each sample; None: not ours to see, or no Python."""
        try:
            folder.mkdir(parents=True)
            self._prefix = perf_start.words(folder)
            if can.calls:
                self._process = self._start(perf.counting(can, pid, str(self._counts)), perf.COUNT_SECONDS)
            else:
                self._record()
        except OSError as error:
            self.close()
            raise CaptureError(f"{can.perf} cannot be started: {error.strerror}") from error

    def _watch_frames(self) -> FrameWatch | None:
        try:
            runtime = frame_fit.runtime_of(self.pid, self._files)
            if runtime is None:
                return None
            return FrameWatch(frame_fit.layout_of(self.pid, self._files, runtime), runtime.address)
        except CaptureError as error:
            why = str(error)
        except OSError as error:
            why = f"BPF: {error.strerror or error}; run as root"
        text = f"Python's functions between two calls of native code are of samples close by, not of the moment: {why}"
        self._missing.append(Diagnostic(code=NO_FRAMES, text=text))
        return None

    @property
    def _files(self) -> str:
        """Where the process's file system begins."""
        return f"/proc/self/fd/{self._root}"

    def _start(self, words: list[str], seconds: float) -> subprocess.Popen[bytes]:
        self._deadline_ns = time.monotonic_ns() + int((seconds + _GRACE_S) * 1e9)
        with (self._folder / "perf.log").open("wb") as log:
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _record(self) -> None:
        try:
            counted = perf.counted(self._counts.read_text("ascii", "replace"))
        except OSError:
            counted = {}
        rates = replace(self._rates, calls_per_s=counted)
        words = perf.command(self._can, self.pid, str(self._file), self._seconds, rates)
        self._process = self._start([*self._prefix, *words], self._seconds)
        if self.watch is not None:
            self.watch.follow(self._process.pid)
        self._recording = True
        self._tries += 1
        self.began_ns = time.monotonic_ns()

    def poll(self, now_ns: int) -> bool:
        """Whether recording is over."""
        if self._over:
            return True
        if self.watch is not None and self._recording:
            self.watch.update()
        ended, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        if not ended:
            if now_ns > self._deadline_ns or self._bytes() > MAX_BYTES:
                self._process.send_signal(signal.SIGINT)
            return False
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._cpu_ns += int((usage.ru_utime + usage.ru_stime) * 1e9)
        if not self._recording:
            self._record()
            return False
        early = now_ns - self.began_ns < self._seconds * 5e8
        if self._process.returncode == _FAILED and early and self._tries < _TRIES:
            self._record()
            return False
        self._over = True
        self.ended_ns = now_ns
        return True

    def stop(self) -> None:
        """End recording now; what there is can be taken."""
        self._seconds = 0.0
        until = time.monotonic() + _GRACE_S
        while not self.poll(time.monotonic_ns()):
            kill = time.monotonic() > until
            self._process.send_signal(signal.SIGKILL if kill else signal.SIGINT)
            time.sleep(_PAUSE_S)

    def take(self, *, origin_ns: int, window: int) -> Taken:
        """Decode what was recorded.

        Raises:
            CaptureError: perf recorded nothing, and says why.
        """
        began = time.process_time_ns()
        if self.watch is not None:
            self.watch.update()
        try:
            recorded = perf_data.read(self._file)
            decoder = StackDecoder(
                recorded,
                self.pid,
                origin_ns=origin_ns,
                root=self._files,
                memory=self._memory,
                watch=self.watch,
            )
            profiles = decoder.profiles(f"window {window}")
            events = memory_events.decode(recorded, self.pid, origin_ns=origin_ns, window=window)
        except (FormatError, OSError) as error:
            raise CaptureError(f"perf recorded nothing of process {self.pid}: {self._words() or error}") from error
        return Taken(
            profiles=profiles,
            events=events,
            diagnostics=(*self._missing, *decoder.diagnostics()),
            began_ns=self.began_ns - origin_ns,
            recorded_ns=(self.ended_ns or time.monotonic_ns()) - self.began_ns,
            bytes=self._bytes(),
            perf_cpu_ns=self._cpu_ns,
            decode_cpu_ns=time.process_time_ns() - began,
        )

    def close(self) -> None:
        """Give back what is held; the folder is the caller's to delete."""
        os.close(self._root)
        self._memory.close()
        if self.watch is not None:
            self.watch.close()

    def _bytes(self) -> int:
        try:
            return self._file.stat().st_size
        except OSError:
            return 0

    def _words(self) -> str:
        """What perf said, in one line."""
        try:
            text = (self._folder / "perf.log").read_text("utf-8", "replace")
        except OSError:
            return ""
        return " ".join(text.split())[:_MAX_WORDS]
