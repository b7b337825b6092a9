"""The agent's thread: samples Python stacks about 20 times a second and runs the agent's periodic work.

The job does not see this thread (``agent.core.side_thread``), and it never imports.

It samples the main thread, threads that write records, and any other thread with user code on its stack; threads that
wait idly in a pool are left out. Once another thread than the main one does something, samples say five times a second
who waits for the GIL (``agent.sampling.lock_watch``), and a thread that waits is sampled whosever code it runs. A
sample stands for the time since the previous one; for the main thread, only for the part of it in which that thread
used no CPU, because its CPU time has its own samples (``agent.sampling.cpu_timer``). Bias to know: this thread needs
the GIL to look, so it sees other threads where they release it: one that computes for less than 5 ms between two waits
always appears to wait. The period jitters by a quarter, so that it does not beat with the period of the steps.

During a window of native stacks there is no gap (``denser``). If the window cannot see Python's frames itself, this
thread samples at the window's rate: its samples name the frames there. That is part of the window's cost, not of the
permanent measurement.

Ten times a second, a sample of the main thread or of one that writes records says what that thread waits for
(``agent.sampling.wait_looks``): its stack then names a ``wait`` line.

No sampling in gaps (``agent.duty_cycle``), because samples could not be joined to records. Only waits of the main
thread for the GIL are observed, and what it does while no calls are counted.

The rate adapts: by the median cost of a tick over the last ten seconds, this thread uses at most 0.07 % of one core; in
the first minute of a job it takes at least four samples a second.
"""

from __future__ import annotations

import _thread
import os
import threading
import time
from collections import deque

from stepscope.agent.core import side_thread
from stepscope.agent.core.guard import MAX_FAILURES
from stepscope.agent.core.other_frames import Stacks
from stepscope.agent.duty_cycle import NOTE_NS
from stepscope.agent.sampling.calibrate import Calibration
from stepscope.agent.sampling.cpu_timer import HZ, CpuTimer
from stepscope.agent.sampling.governor import Governor
from stepscope.agent.sampling.lock_watch import LockWatch
from stepscope.agent.sampling.stacks import StackTable
from stepscope.agent.sampling.wait_looks import MOST_THREADS, WaitLooks
from stepscope.wire.kinds import Kind, LockState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from stepscope.agent.state import AgentState

DEFAULT_HZ = 20.0
MAX_CPU_RATIO = 0.0007
"""Share of one core that this thread may use, over ``_WINDOW_S``. Source: decision 0004, level 0."""
_WINDOW_S = 10
_MIN_HZ_YOUNG = 4.0
_MIN_HZ = 1.0
_YOUNG_NS = 60_000_000_000
_SECOND_NS = 1_000_000_000
MAX_DENSE_HZ, MAX_DENSE_S = 200.0, 120.0
_NOTE_S = NOTE_NS / _SECOND_NS
_ERRAND_S = 0.05
_LOOKS_NS = 200_000_000
"""Interval between two looks at who waits for the GIL: one thread costs 25 to 40 us of CPU time with cold caches."""
_OURS = 2
"""Number of threads that are always known: the main one and this one."""
_STOP_TIMEOUT_S = 10.0
"""Longest wait for the thread, which ends at once but for what it is doing. It may be letting go of the last reference
to an iterator of the job's: that waits for Python in the input, which after the interpreter's end never returns."""
_REST_S = 5.0
"""Longest wait for the thread before a fork."""
_GONE_NS = 1_000_000_000
"""Longest wait for the kernel to take the ended thread away: on a full CPU that waits for its turn."""
_LOOK_S = 0.0002
_TASKS = "/proc/self/task"
_LEAST_PAUSE_S = 0.02
_IDLE = frozenset(
    (
        *(("threading.py", "wait"), ("threading.py", "_wait_for_tstate_lock"), ("queue.py", "get")),
        *(("thread.py", "_worker"), ("selectors.py", "select"), ("socket.py", "accept")),
        *(("pool.py", "worker"), ("connection.py", "wait"), ("connection.py", "_recv")),
    )
)
"""(file, function) of leaf frames in which threads of pools and servers wait for work."""
_SAMPLE = int(Kind.SAMPLE)
_WAITS = int(LockState.WAITS)
_TICK = int(Kind.TICK)


class Sampler:
    """The thread and its state. ``start`` and ``stop`` may be called once each."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._stop = _thread.allocate_lock()
        self._stop.acquire()
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        self._main = threading.main_thread().ident or 0
        self._stacks = StackTable(state)
        self._timer = CpuTimer(state, self._stacks)
        self._locks = LockWatch(state)
        self._waits = WaitLooks(state, self._locks)
        self._beside = False
        """Whether a thread other than the main one has ever run user code, or any code that was not idle."""
        self._look_due = 0
        self._main_cpu = 0
        self._governor = Governor(state)
        self._calibration = Calibration(state)
        self._base_hz = float(state.config.get("sample_hz") or DEFAULT_HZ)
        self._hz = self._base_hz
        self._noise = state.now() & 0x7FFFFFFF | 1
        self._costs: deque[float] = deque(maxlen=_WINDOW_S)
        self._dense_hz = 0.0
        """Sampling rate of the running window; 0 if there is none."""
        self._dense_until = 0
        self._noted = (0, 0)
        """Time of the last look in a gap, and the number of calls counted until then."""
        self._ident = self._native = 0
        self._begun = False
        """Whether the thread has been made."""
        self._rests = False
        """Whether the thread has been asked to end until the next tick of the CPU timer."""
        self.pid = os.getpid()
        self.cpu_ns = 0
        """CPU time that the thread has used."""

    def start(self) -> None:
        """Make the thread.

        If called on the main thread, also make the timer on its CPU clock.
        """
        if self._timer.start():
            self._main_cpu = self._timer.used_ns()
        side_thread.start(self._run)
        self._begun = True

    def stop(self) -> None:
        """Stop the timer and the thread, and wait for it, also if it has not had its first turn yet."""
        self._timer.stop()
        if self._stop.locked():
            self._stop.release()
        if self._begun and self._ident != _thread.get_ident():
            self._ended.acquire(timeout=_STOP_TIMEOUT_S)

    def rest(self) -> None:
        """Before a fork: end the thread if it is the only other one of the process; the CPU timer starts it again.

        From Python 3.12 on ``os.fork`` warns where there is more than one thread, as the kernel counts them. Threads of
        the job's own, or of its libraries, bring that warning without us, too.
        """
        if self.pid != os.getpid() or self._rests or not self._timer.clock or len(os.listdir(_TASKS)) != _OURS:
            return
        self._rests = True
        self._timer.pause(paused=False)
        self._timer.waker = self._wake
        self._stop.release()
        if self._ended.acquire(timeout=_REST_S):
            self._ended.release()
            until = self._state.now() + _GONE_NS
            while os.path.exists("%s/%d" % (_TASKS, self._native)) and self._state.now() < until:
                time.sleep(_LOOK_S)

    def _wake(self) -> None:
        """On the main thread: start the thread again, once it has ended."""
        if self._ended.acquire(blocking=False):
            self._timer.waker = None
            if not self._stop.locked():
                self._stop.acquire()
            self._rests = False
            self._main_cpu = self._timer.used_ns()
            side_thread.start(self._run)

    def denser(self, hz: float, seconds: float) -> None:
        """On the agent's thread: sample at ``hz`` for ``seconds``, whatever it costs; 0: return to the normal rate.

        There is no gap meanwhile.

        Raises:
            ValueError: more than ``MAX_DENSE_HZ`` or ``MAX_DENSE_S``, or less than once.
        """
        if not ((hz == 0 or 1.0 <= hz <= MAX_DENSE_HZ) and 0.0 < seconds <= MAX_DENSE_S):
            raise ValueError(
                "stacks at %g Hz for %g s; expected at most %g for %g" % (hz, seconds, MAX_DENSE_HZ, MAX_DENSE_S)
            )
        now = self._state.now()
        if not self._dense_hz:
            self._state.duty_cycle.hold(now)
        self._dense_hz, self._dense_until = hz or self._hz, now + int(seconds * _SECOND_NS)
        self._timer.rate(hz or HZ)

    def _usual(self) -> None:
        """Return to the normal rate after a window."""
        self._dense_hz = 0.0
        self._timer.rate(HZ)
        self._state.duty_cycle.release()

    def _run(self) -> None:
        state = self._state
        try:
            self._ident, self._native = _thread.get_ident(), threading.get_native_id()
            thread = state.threads.of(self._ident, "stepscope-agent")
            self._loop(thread)
        except Exception as error:
            state.take_out("its thread failed: %s: %s" % (type(error).__name__, error))
        finally:
            if not self._rests:
                self._timer.stop()
            self._locks.close()
            self._ended.release()

    def _loop(self, thread: int) -> None:
        state = self._state
        last = second = state.now()
        cpu, apart = 0, state.hooks.apart_ns
        ticks = 0
        while not self._wait():
            now = state.now()
            if state.lines.out:
                return
            if self._dense_hz and now >= self._dense_until:
                self._usual()
            detached = state.duty_cycle.detached
            if not detached:
                self._sample(now, now - last)
            last = now
            ticks += 1
            self._turn(now)
            whole_second = now - second >= _SECOND_NS
            if whole_second or not (detached and state.duty_cycle.detached):
                for function in list(state.hooks.ticks):
                    self._call(function, now)
            if detached and not state.duty_cycle.detached:
                self._main_cpu = self._timer.used_ns()  # CPU time used in the gap is not part of the next period
            if whole_second:
                state.records.flush_regularly()
                state.lines.write_regularly()
                self._governor.tick(now)
                self._calibration.tick(now)
                self._waits.tick(self._main)
                used = time.thread_time_ns()
                state.write(now, used - cpu, state.records.written(), 0, _TICK, 0, thread)
                self._adapt(now, used - cpu - (state.hooks.apart_ns - apart), ticks)
                self.cpu_ns += used - cpu
                cpu = used
                apart = state.hooks.apart_ns
                second, ticks = now, 0

    def _turn(self, now: int) -> None:
        """Let the duty cycle begin, continue or end a gap."""
        duty_cycle = self._state.duty_cycle
        detached = duty_cycle.detached
        if detached:
            self._look_for_pauses(now)
        self._call(duty_cycle.tick, now)
        if duty_cycle.detached and not detached:
            self._noted = (now, duty_cycle.note())
        self._timer.pause(paused=duty_cycle.detached)

    def _call(self, function: object, now: int) -> None:
        try:
            function(now)  # type: ignore[operator]
        except Exception as error:
            place = getattr(function, "__module__", None) or "tick"
            self._state.failures.add("%s.tick" % place.rpartition(".")[2], error)
            if self._state.failures.of(place.rpartition(".")[2]) >= MAX_FAILURES:
                self._state.hooks.ticks[:] = [tick for tick in self._state.hooks.ticks if tick is not function]

    def _wait(self) -> bool:
        """Wait until the next tick; True at the end. Meanwhile, copy counts in a gap and continue an errand."""
        wait = self._stop.acquire  # on an event it would cost ten times as much
        pause = self._pause()
        duty_cycle, errand = self._state.duty_cycle, self._state.hooks.errand
        if duty_cycle.detached or errand is not None:
            step = _NOTE_S if duty_cycle.detached else _ERRAND_S
            for _ in range(int(pause / step)):
                if wait(timeout=step):
                    return True
                if duty_cycle.detached:
                    self._look_in_gap(self._state.now())
                    self._look_for_pauses(self._state.now())
                if errand is not None:
                    self._call(errand, self._state.now())
            pause %= step
        return wait(timeout=pause)

    def _pause(self) -> float:
        """Seconds to the next tick: the period, give or take a quarter; in a gap, until it ends or is logged."""
        self._noise = (self._noise * 1_103_515_245 + 12_345) & 0x7FFFFFFF
        pause = (0.75 + 0.5 * self._noise / 0x7FFFFFFF) / (self._dense_hz or self._hz)
        due = self._state.duty_cycle.due_ns(self._state.now()) / _SECOND_NS
        if self._state.duty_cycle.detached:
            return max(_LEAST_PAUSE_S, due)
        return min(pause, max(_LEAST_PAUSE_S, due)) if due > 0 else pause

    def _adapt(self, now: int, used_ns: int, ticks: int) -> None:
        """Set the rate so that recent ticks fit into the budget.

        The median over the window counts: new code on the stack costs once, when it is named.
        """
        if not ticks or self._dense_hz:
            return
        self._costs.append(used_ns / ticks)
        per_tick = sorted(self._costs)[len(self._costs) // 2]
        young = now - self._state.lines.started_ns < _YOUNG_NS
        lowest = _MIN_HZ_YOUNG if young else _MIN_HZ
        affordable = MAX_CPU_RATIO * _SECOND_NS / max(per_tick, 1.0)
        self._hz = min(self._base_hz, max(affordable, lowest))

    def _sample(self, now: int, period: int) -> None:
        state = self._state
        due = now >= self._look_due
        looks = due and self._beside
        waits = self._waits.due(now)
        left = MOST_THREADS if waits else 0
        # Before anything else: we hold the GIL, and a thread that wants it from now on waits for us.
        lock, wait = self._waits.look(self._main, now) if looks else (0, 0)
        with Stacks() as found:
            for ident, frame in found.items():
                if ident == self._main:
                    waited = self._main_waited(period)
                    if waits and not looks and self._waits.worth(frame, waited, period):
                        _, wait = self._waits.look(ident, now)
                    if waited:
                        self._write(now, waited, lock, self._stacks.stack(frame, wait)[0], ident)
                    continue
                looked = left > 0 and state.threads.writes(ident) and self._waits.worth(frame, period, period)
                left -= looked
                if not _is_idle(frame):
                    self._other(now, period, ident, frame, looked=looked, locks=looks)
                elif due or looked:
                    self._idle(now, ident, frame, self._waits.look(ident, now)[1] if looked else 0)
        if due:
            self._beside = self._beside or state.threads.known() > _OURS
            self._look_due = now + _LOOKS_NS

    def _other(self, now: int, period: int, ident: int, frame: FrameType, *, looked: bool, locks: bool) -> None:
        """Sample a thread that is not the main one. ``locks``: note whether it waits for the GIL."""
        self._beside = True
        stack, own = self._stacks.stack(frame)
        # As late as possible: a thread that had to give us the GIL waits by now to have it back.
        lock, wait = self._waits.look(ident, now) if locks or looked else (0, 0)
        lock = lock if locks else 0
        if own or lock == _WAITS or self._state.threads.is_known(ident):
            stack = self._stacks.stack(frame, wait)[0] if wait else stack
            self._write(now, period, lock, stack, ident)

    def _write(self, now: int, dur: int, lock: int, stack: int, ident: int) -> None:
        self._state.write(now, dur, lock, stack, _SAMPLE, 0, self._state.threads.of(ident))

    def _look_in_gap(self, now: int) -> None:
        """Sample the main thread alone; the sample stands for no time. Jobs with gaps have the shortest steps."""
        if not self._beside or now < self._look_due:
            return
        lock = self._locks.look(self._main)
        self._look_due = now + _LOOKS_NS
        self._sample_main(now, 0, lock)

    def _look_for_pauses(self, now: int) -> None:
        """In a gap: sample the main thread if no call was counted since the last look, because it then does something
        else than steps. The sample stands for that time.
        """
        since, before = self._noted
        calls = self._state.duty_cycle.note()
        self._noted = (now, calls)
        if calls == before:
            self._sample_main(now, now - since, 0)

    def _sample_main(self, now: int, period: int, lock: int) -> None:
        with Stacks() as found:
            frame = found.get(self._main)
            if frame is not None:
                self._write(now, period, lock, self._stacks.stack(frame)[0], self._main)

    def _idle(self, now: int, ident: int, frame: FrameType, wait: int) -> None:
        """Sample a thread that waits in user code and may compute whenever we cannot look: the sample stands for no
        time.
        """
        stack, own = self._stacks.stack(frame, wait)
        if own:
            self._beside = True
            self._state.write(now, 0, 0, stack, _SAMPLE, 0, self._state.threads.of(ident))

    def _main_waited(self, period: int) -> int:
        """The part of the period in which the main thread used no CPU; the timer's samples stand for the rest."""
        if not self._timer.clock:
            return period
        used = self._timer.used_ns()
        waited = period - (used - self._main_cpu)
        self._main_cpu = used
        return max(0, waited)


def _is_idle(frame: FrameType) -> bool:
    """Whether a thread waits for work."""
    code = frame.f_code
    return (code.co_filename.rpartition("/")[2], code.co_name) in _IDLE
