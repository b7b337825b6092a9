"""A window of native sampling: ``perf record`` of one process for some seconds, decoded into stacks and memory events.

The process is never stopped: perf opens counters, and we read /proc. perf ends by itself when the time is up or the
process ends, even without us.

Counters of threads are switched together with them, 1 us each time. If only CPU time is needed and a program may select
the samples, counters are those of the CPUs, and the program passes this process's samples.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.native.cpython import bpf_program, layout_check
from stepscope.native.cpython.bpf_attach import FrameWatch
from stepscope.native.cpython.python_memory import Memory
from stepscope.native.formats import perf_data
from stepscope.native.kernel import bpf, perf, perf_start
from stepscope.native.kernel.perf_control import PerfControl
from stepscope.native.kernel.release_calls import ReleaseCalls
from stepscope.native.windows import memory_events
from stepscope.native.windows.native_decode import StackDecoder
from stepscope.tables.errors import CaptureError, FormatError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.stacks import FrameKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stepscope.native.formats.perf_data import PerfRecording
    from stepscope.native.kernel.perf import Abilities, Rates
    from stepscope.native.kernel.release_calls import ReleaseCall
    from stepscope.tables.records import MemoryEventTable
    from stepscope.tables.stacks import StackProfile

SECONDS = 5.0
"""Length of a window: some hundred samples of each busy CPU."""
MAX_SECONDS = 60.0
MAX_BYTES = 256 << 20
"""Maximum size of perf's file: a window that exceeds it ends early."""
NO_FRAMES = "DX149"
_GRACE_S, _PAUSE_S = 10.0, 0.05
_FAILED, _TRIES = 255, 8
"""Exit code of perf if a thread ends while it opens its counters (it is then restarted), and the number of tries."""
_UNKNOWN_OPTION = 129
"""Exit code of perf before 5.10, which accepts no commands."""
_MAX_WORDS = 300


class WindowResult(Struct, frozen=True, kw_only=True):
    """Result of a window. Times in nanoseconds; ``began_ns`` since session start."""

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
    """One window, from its start to its result. Call ``poll`` until it is over, then ``take``."""

    one_page_in = 1
    """Samples are passed whose address is in one of so many pages."""
    follows_calls = True
    """Flag: the calls that return memory are recorded, if the process faults."""

    def __init__(self, pid: int, folder: Path, can: Abilities, rates: Rates, seconds: float = SECONDS) -> None:
        """Begin: calls are first counted briefly. ``folder`` is made here, and the caller deletes it.

        Raises:
            CaptureError: perf cannot be started, or the process has gone.
            OSError: there is no room.
        """
        self.pid = pid
        self.ended_ns = 0
        self._folder = folder
        self._file = folder / "perf.data"
        self._counts = folder / "counts"
        self._can = can
        self._rates = rates
        self.seconds = self._seconds = min(seconds, MAX_SECONDS)
        self._cpu_ns = 0
        self._over = False
        self._problem = ""
        self._tries = 0
        self._control: PerfControl | None = None
        self._controlled = True
        self._process: subprocess.Popen[bytes] | None = None
        self._next_ns = self._deadline_ns = self._started_ns = 0
        try:
            self._root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_CLOEXEC)  # outlives the process
        except OSError as error:
            raise CaptureError(f"process {pid}: {error.strerror}; expected a running process of yours") from error
        self._memory = Memory(pid)
        self._missing: list[Diagnostic] = []
        self.watch = self._watch_frames()
        """Watch that sees Python's frames at each sample; None: not permitted, or no Python."""
        self._gate = self.watch.program if self.watch is not None else self._bare_gate()
        self._every_cpu = self._gate is not None and self._may_choose
        self._calls = self._watch_calls()
        try:
            folder.mkdir(parents=True)
            self._prefix = perf_start.words(folder)
            self._count()
        except OSError as error:
            self.close()
            raise CaptureError(f"{can.perf} cannot be started: {error.strerror}") from error

    @property
    def _may_choose(self) -> bool:
        """Whether all events that are recorded have samples, which a program can choose."""
        return not self._rates.faulting

    def _watch_frames(self) -> FrameWatch | None:
        try:
            runtime = layout_check.runtime_of(self.pid, self._files)
            if runtime is None:
                return None
            layout = layout_check.layout_of(self.pid, self._files, runtime)
            return FrameWatch(layout, runtime.address, self.pid, self.one_page_in)
        except CaptureError as error:
            why = str(error)
        except OSError as error:
            why = f"BPF: {error.strerror or error}; run as root"
        self._note_no_frames(why)
        return None

    def _note_no_frames(self, why: str) -> None:
        text = "Python functions between native calls are taken from the nearest Python sample, not read at the same "
        text += f"moment: {why}"
        self._missing.append(Diagnostic(code=NO_FRAMES, text=text))

    def _bare_gate(self) -> bpf.Program | None:
        """A program that passes this process's samples; None: not permitted."""
        try:
            if not layout_check.is_here(self.pid):
                return None
            return bpf.Program(bpf_program.samples_of(self.pid, self.one_page_in))
        except OSError:  # counters of threads cost more and give the same data
            return None

    def _watch_calls(self) -> ReleaseCalls | None:
        """What shows the calls that perf may not record; None: perf does, none are wanted, or not permitted."""
        if self._can.calls or not (self._rates.faulting and self.follows_calls):
            return None
        with suppress(OSError):
            if layout_check.is_here(self.pid):
                return ReleaseCalls(self.pid, perf.CALLS)
        self._missing.append(perf.no_calls("record the calls that return memory"))
        return None

    @property
    def _files(self) -> str:
        """The root of the process's file system."""
        return f"/proc/self/fd/{self._root}"

    def _start(self, words: list[str], seconds: float, descriptors: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
        self._deadline_ns = time.monotonic_ns() + int((seconds + _GRACE_S) * 1e9)
        with (self._folder / "perf.log").open("wb") as log:
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=descriptors)

    def _count(self) -> None:
        """Count the calls that would be recorded, or give the process the same time to notice the command."""
        if self._can.calls and self._rates.faulting:
            words = perf.counting(self._can, self.pid, str(self._counts))
            self._process = self._start(words, perf.COUNT_SECONDS)
        self._next_ns = time.monotonic_ns() + int(perf.COUNT_SECONDS * 1e9)

    def _record(self) -> bool:
        """Start perf; return whether that worked."""
        try:
            counted = perf.counted(self._counts.read_text("ascii", "replace"))
        except OSError:
            counted = {}
        rates = replace(self._rates, calls_per_s=counted)
        if self._control is not None:
            self._control.close()
        self._control = control = PerfControl() if self._controlled else None
        words = self._command(rates, control.words if control is not None else [])
        descriptors = control.descriptors if control is not None else ()
        self._tries += 1
        self._started_ns = time.monotonic_ns()
        try:
            self._process = self._start([*self._prefix, *words], self._seconds, descriptors)
        except OSError as error:
            self._problem = f"{self._can.perf} cannot be started: {error.strerror}"
            self._over = True
            return False
        if control is not None:
            control.begin(self._process.pid, self.pid, self._gate, chosen=self._every_cpu)
        return True

    def _command(self, rates: Rates, begin: list[str]) -> list[str]:
        where = str(self._file)
        return perf.command(self._can, self.pid, where, self._seconds, rates, every_cpu=self._every_cpu, begin=begin)

    def poll(self, now_ns: int) -> bool:
        """Whether recording is over."""
        if self._over:
            return True
        if self._process is None:
            return now_ns >= self._next_ns and not self._record()
        if self.watch is not None and self._tries:
            self.watch.update()
        if self._calls is not None:
            self._calls.update()
        ended, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        if not ended:
            too_much = self._bytes() > MAX_BYTES or (self._calls is not None and self._calls.full)
            if now_ns > self._deadline_ns or too_much or self._unchosen:
                self._process.send_signal(signal.SIGINT)
            return False
        self._process.returncode = code = os.waitstatus_to_exitcode(status)
        self._cpu_ns += int((usage.ru_utime + usage.ru_stime) * 1e9)
        if (not self._tries or (self._seconds and self._again(code, now_ns))) and self._record():
            return False
        self._over = True
        self.ended_ns = now_ns
        return True

    @property
    def began_ns(self) -> int:
        """Time at which sampling began; 0: it has not."""
        return self._control.began_ns if self._control is not None else self._started_ns

    @property
    def _unchosen(self) -> bool:
        """Whether nothing is recorded because samples would be of all processes."""
        return self._every_cpu and self._control is not None and bool(self._control.problem)

    def _again(self, code: int, now_ns: int) -> bool:
        """Whether to restart perf, which has ended: with other options, or because it failed too early."""
        if self._unchosen:
            self._every_cpu = False
            return True
        if self._controlled and code == _UNKNOWN_OPTION:
            self._controlled = self._every_cpu = False
            if self.watch is not None:
                self._note_no_frames("perf accepts no commands; install 5.10 or later")
            return True
        early = now_ns - self._started_ns < self._seconds * 5e8
        return code == _FAILED and early and self._tries < _TRIES

    def stop(self) -> None:
        """End recording now; the data so far can be taken."""
        self._seconds = 0.0
        until = time.monotonic() + _GRACE_S
        self._over = self._over or self._process is None
        while self._process is not None and not self.poll(time.monotonic_ns()):
            kill = time.monotonic() > until
            self._process.send_signal(signal.SIGKILL if kill else signal.SIGINT)
            time.sleep(_PAUSE_S)

    def take(self, *, origin_ns: int, window: int) -> WindowResult:
        """Decode what was recorded.

        Raises:
            CaptureError: perf recorded nothing; the text has its reason.
        """
        began = time.process_time_ns()
        recorded, profiles, diagnostics = self._decoded(origin_ns, window)
        calls = self._released()
        if calls and not _shown(profiles):
            diagnostics = (*diagnostics, perf.no_calls("show what makes the calls that return memory"))
        events = memory_events.decode(recorded, self.pid, origin_ns=origin_ns, window=window, calls=calls)
        return self._taken(began, origin_ns, profiles, events, diagnostics)

    def _released(self) -> list[ReleaseCall]:
        """The calls that returned memory while perf recorded, if perf has not recorded these itself."""
        if self._calls is None:
            return []
        self._calls.update()
        return self._calls.between(self.began_ns or self._started_ns, self.ended_ns or time.monotonic_ns())

    def _decoded(
        self, origin_ns: int, window: int
    ) -> tuple[PerfRecording, tuple[StackProfile, ...], tuple[Diagnostic, ...]]:
        """What perf has written, with its stacks.

        Raises:
            CaptureError: as ``take``.
        """
        if self.watch is not None:
            self.watch.update()
        try:
            recorded = self._with_what_was_there(perf_data.read(self._file))
            decoder = StackDecoder(
                recorded,
                self.pid,
                origin_ns=origin_ns,
                root=self._files,
                memory=self._memory,
                watch=self.watch,
            )
            profiles = decoder.profiles(f"window {window}")
        except (FormatError, OSError) as error:
            raise CaptureError(f"perf recorded nothing of process {self.pid}: {self._words() or error}") from error
        return recorded, profiles, (*self._missing, *decoder.diagnostics())

    def _taken(
        self,
        began: int,
        origin_ns: int,
        profiles: tuple[StackProfile, ...],
        events: MemoryEventTable,
        diagnostics: tuple[Diagnostic, ...],
    ) -> WindowResult:
        return WindowResult(
            profiles=profiles,
            events=events,
            diagnostics=diagnostics,
            began_ns=(self.began_ns or self._started_ns) - origin_ns,
            recorded_ns=(self.ended_ns or time.monotonic_ns()) - (self.began_ns or self._started_ns),
            bytes=self._bytes(),
            perf_cpu_ns=self._cpu_ns,
            decode_cpu_ns=time.process_time_ns() - began,
        )

    def _with_what_was_there(self, recorded: PerfRecording) -> PerfRecording:
        control = self._control
        if control is None:
            return recorded
        if control.problem and self.watch is not None:
            self._note_no_frames(control.problem)
        if control.there is None:
            return recorded
        mappings, comms = control.there
        return replace(recorded, mappings=mappings + recorded.mappings, comms=comms + recorded.comms)

    def close(self) -> None:
        """Release everything; the caller deletes the folder."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        if self._control is not None:
            self._control.close()
        if self._calls is not None:
            self._calls.close()
        if self.watch is not None:
            self.watch.close()
        elif self._gate is not None:
            self._gate.close()
        self._memory.close()
        os.close(self._root)

    def _bytes(self) -> int:
        try:
            return self._file.stat().st_size
        except OSError:
            return 0

    def _words(self) -> str:
        """Messages of perf, in one line."""
        if self._problem:
            return self._problem
        try:
            text = (self._folder / "perf.log").read_text("utf-8", "replace")
        except OSError:
            return ""
        return " ".join(text.split())[:_MAX_WORDS]


def _shown(profiles: Sequence[StackProfile]) -> bool:
    """Whether stacks of some samples lie in the calls that return memory."""
    inside = [frame.function for one in profiles for frame in one.frames if frame.kind is FrameKind.KERNEL]
    return any(call in function for call in perf.CALLS for function in inside)
