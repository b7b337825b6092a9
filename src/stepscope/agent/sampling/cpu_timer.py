"""Samples the main thread by its own CPU clock: the half of the truth that another thread cannot see.

The agent's thread needs the GIL to look at stacks. While the main thread computes in Python, the agent's thread gets
the GIL only where the main thread releases it, in a step of a few milliseconds always at the same place: the call of
the step. So code before and after the step would never be seen. A kernel timer on the CPU clock of the main thread has
no such bias: it fires at a fixed interval of CPU time, the handler runs in the main thread between two bytecodes, and
the line that it interrupts is exact (a C call shows on the line that made it).

Not between any two: Python looks for signals where a function begins, where a loop turns back and after a call. An
indexing of NumPy's that takes 30 ms ends before the next of these, which may be the begin of a function that has done
nothing yet. If the handler comes late by more than a tick of the kernel, such a function is left out of the stack.

Both halves add up to wall time: samples of the timer stand for CPU time (``Flag.CPU``), samples of the agent's thread
for the rest of its period, in which the main thread waited.

It is harmless because: the signal runs on its own stack (``agent.sampling.signal_stack`` says why it must); the timer
runs only while the thread is on a CPU, so no blocked system call is interrupted; the signal is a real-time one that
nothing else uses, and is left alone if somebody does; forked children and executed programs inherit no timer; it is
deleted before the interpreter ends. If any of this is unavailable, there is no timer.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

from stepscope.agent.sampling import signal_stack
from stepscope.agent.sampling.stacks import begun
from stepscope.wire.kinds import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.sampling.stacks import StackTable
    from stepscope.agent.state import AgentState

HZ = 40
"""Samples per second of CPU time of the main thread; one costs about 10 us."""
_SIGEV_THREAD_ID = 4
_SIGNALS_FROM_TOP = 5
"""Offset of the first signal tried, SIGRTMAX - 5, then downwards: others take the ends of the range."""
_CANDIDATES = 8
_LATE_NS = 6_000_000
"""From when to when it fires a CPU timer may take a tick of the kernel, 4 ms at 250 Hz, the lowest usual rate."""
_SAMPLE = int(Kind.SAMPLE)
_CPU = int(Flag.CPU)


class _SigEvent(ctypes.Structure):
    """The struct sigevent of Linux (64 bytes) with the thread's id. Source: timer_create(2)."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread", ctypes.c_int),
        ("pad", ctypes.c_int * 11),
    )


class _TimerSpec(ctypes.Structure):
    """The struct itimerspec: interval, then first."""

    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("value_s", ctypes.c_long),
        ("value_ns", ctypes.c_long),
    )


class CpuTimer:
    """The timer of one process. Call ``start`` from the main thread; ``stop`` from any thread, any number of times."""

    def __init__(self, state: AgentState, stacks: StackTable) -> None:
        self._state = state
        self._stacks = stacks
        self._libc: Foreign = None
        self._timer = ctypes.c_void_p()
        self._signal = 0
        self._thread = 0
        self._period_ns = 1_000_000_000 // HZ
        self._due_ns = 0
        """CPU time of the thread at which the timer fires next."""
        self._failed = False
        self._paused = False
        self.waker: Optional[Callable[[], object]] = None
        """Called at each tick, on the main thread, while it is set."""
        self.clock = 0
        """Clock id of the main thread's CPU time; 0 if there is no timer."""
        self.pid = 0

    def start(self) -> bool:
        """Make the timer. False, with a diagnostic, if that fails."""
        try:
            why = self._start()
        except (OSError, AttributeError, ValueError) as error:
            why = "%s: %s" % (type(error).__name__, error)
        if why:
            self._state.lines.diagnostic("DX911", "no CPU samples of the main thread: " + why)
        return not why

    def _start(self) -> str:
        if not sys.platform.startswith("linux"):
            return "needs Linux timers"
        if threading.current_thread() is not threading.main_thread():
            return "the framework was imported outside of the main thread"
        free = [
            number
            for number in range(
                signal.SIGRTMAX - _SIGNALS_FROM_TOP, signal.SIGRTMAX - _SIGNALS_FROM_TOP - _CANDIDATES, -1
            )
            if signal.getsignal(number) is signal.SIG_DFL
        ]
        if not free:
            return "all real-time signals are taken"
        self._libc = ctypes.CDLL(None, use_errno=True)
        signal_stack.give(self._libc)
        self._thread = self._state.thread()
        clock = time.pthread_getcpuclockid(threading.get_ident())
        event = _SigEvent(signo=free[0], notify=_SIGEV_THREAD_ID, thread=threading.get_native_id())
        if self._libc.timer_create(ctypes.c_int(clock), ctypes.byref(event), ctypes.byref(self._timer)):
            return "timer_create: " + os.strerror(ctypes.get_errno())
        self._signal = free[0]
        signal.signal(self._signal, self._on_signal)
        signal.siginterrupt(self._signal, False)
        signal_stack.use(self._libc, self._signal)
        self.clock, self.pid = clock, os.getpid()
        if self._set(self._period_ns):
            self.stop()
            return "timer_settime: " + os.strerror(ctypes.get_errno())
        return ""

    def _set(self, period_ns: int) -> bool:
        """Fire every ``period_ns`` from now on, 0: never. Returns whether that failed."""
        spec = _TimerSpec(0, period_ns, 0, period_ns)
        self._due_ns = self.used_ns() + period_ns
        return bool(self._libc.timer_settime(self._timer, 0, ctypes.byref(spec), None))

    def pause(self, *, paused: bool) -> None:
        """Pause or resume; does nothing if that is already so."""
        if paused != self._paused and self.clock and self.pid == os.getpid():
            self._paused = paused
            self._set(0 if paused else self._period_ns)

    def rate(self, hz: float) -> None:
        """Fire at ``hz`` per second of CPU time from now on."""
        self._period_ns = int(1e9 / hz)
        if self.clock and not self._paused and self.pid == os.getpid():
            self._set(self._period_ns)

    def _on_signal(self, _number: int, frame: Optional[FrameType]) -> None:
        """Note where the main thread is. Runs between two of its bytecodes."""
        if frame is None or self._failed or not self.clock:
            return
        try:
            if self.waker is not None:
                self.waker()
            late_ns = self.used_ns() - self._due_ns
            used_ns = (max(0, late_ns) // self._period_ns + 1) * self._period_ns  # signals that wait are one
            self._due_ns += used_ns
            stack, _ = self._stacks.stack(begun(frame) if late_ns >= _LATE_NS else frame)
            self._state.write(time.monotonic_ns(), used_ns, 0, stack, _SAMPLE, _CPU, self._thread)
        except Exception as error:
            self._failed = True
            self._state.lines.diagnostic("DX911", "CPU samples ended: %s: %s" % (type(error).__name__, error))
            self.stop()

    def used_ns(self) -> int:
        """CPU time of the main thread so far."""
        return time.clock_gettime_ns(self.clock)

    def stop(self) -> None:
        """Delete the timer. The handler stays: without it a late signal would kill the process."""
        if self.clock and self.pid == os.getpid():
            self._libc.timer_delete(self._timer)
        self.clock = 0
