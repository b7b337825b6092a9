"""Who waits for the interpreter lock: what is told of a thread that does, and of those that do not."""

from __future__ import annotations

import ctypes
import hashlib
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from stepscope.agent.sampling import lock_watch
from stepscope.agent.sampling.lock_watch import LockWatch
from stepscope.agent.sampling.sampler import Sampler
from stepscope.agent.state import AgentState
from stepscope.model.log.events import AgentDiagnostic, ThreadSeen
from stepscope.wire.kinds import Kind, LockState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.agent.conftest import Armed

PROGRAM = """
import threading, time, stepscope
from stepscope.agent import bootstrap, start, state
bootstrap.HOOK.activate()
running = start.MeasuredProcess(state.CURRENT, ())
running.start_thread()
running.register_exit()
ticks, end = [], []
state.CURRENT.hooks.on_tick(ticks.append)
def until(count):
    deadline = time.monotonic() + 30
    while len(ticks) < count and time.monotonic() < deadline: time.sleep(0.005)
"""


@pytest.fixture
def beside() -> Iterator[Callable[[Callable[[threading.Event], object]], int]]:
    """Starts a thread that runs a function until the test ends; the thread's ident. Nobody has to give the lock up."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(10.0)
    over = threading.Event()
    threads: list[threading.Thread] = []

    def run(function: Callable[[threading.Event], object]) -> int:
        threads.append(threading.Thread(target=function, args=(over,)))
        threads[-1].start()
        return threads[-1].ident or 0

    yield run
    sys.setswitchinterval(interval)
    over.set()
    for thread in threads:
        thread.join()


def _turn(over: threading.Event) -> None:
    while not over.is_set():
        time.sleep(0.0001)


def _hash(over: threading.Event) -> None:
    data = bytes(100_000_000)  # 50 ms and more without the lock
    while not over.is_set():
        hashlib.sha256(data)


def _seen(watch: LockWatch, ident: int, wanted: LockState) -> bool:
    """Whether a look finds the thread so before long, while this thread keeps the interpreter lock for 20 ms."""
    sleep = ctypes.PyDLL(None).usleep
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        sleep(20_000)
        if watch.look(ident) == wanted:
            return True
        time.sleep(0.001)
    return False


def test_who_waits_is_told_from_who_is_blocked(
    opened: AgentState, beside: Callable[[Callable[[threading.Event], object]], int]
) -> None:
    """A thread that wants to go on waits for the lock that we keep; who waits for an event, or hashes, does not."""
    watch = LockWatch(opened)
    assert _seen(watch, beside(_turn), LockState.WAITS)
    assert _seen(watch, beside(threading.Event.wait), LockState.ELSEWHERE)
    assert _seen(watch, beside(_hash), LockState.RUNS)
    watch.close()


def test_a_thread_that_has_ended_is_not_told(opened: AgentState) -> None:
    """Of a thread that is gone nothing is said, and its file is closed."""
    watch = LockWatch(opened)
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    ident = thread.ident or 0
    assert _seen(watch, ident, LockState.ELSEWHERE)
    over.set()
    thread.join()
    assert _seen(watch, ident, LockState.NOT_LOOKED)
    assert not watch._files


def test_a_long_look_is_followed_by_a_pause(opened: AgentState, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel makes us wait, we look a small part of the time at most."""
    watch = LockWatch(opened)
    main = threading.get_ident()
    assert watch.look(main)
    monkeypatch.setattr(lock_watch, "_LONG_NS", 0)
    assert watch.look(main)
    assert watch._due > time.monotonic_ns()
    watch._due += 1_000_000_000
    assert watch.look(main) == LockState.NOT_LOOKED
    watch._due = 0
    assert watch.look(main)


def test_where_it_cannot_look_it_says_so_once(
    armed: Armed, opened: AgentState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the symbol of CPython's state nobody is looked at, and a diagnostic says why."""
    monkeypatch.setattr(lock_watch, "_size_of", lambda _: 0)
    watch = LockWatch(opened)
    assert {watch.look(threading.get_ident()) for _ in range(3)} == {LockState.NOT_LOOKED}
    (process,) = armed.processes()
    assert [line.code for line in process.of(AgentDiagnostic)] == ["DX916"]


def test_without_a_lock_nothing_is_said(armed: Armed, opened: AgentState, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that has no interpreter lock has nothing to wait for: no looks, no diagnostic."""
    monkeypatch.setattr("sys._is_gil_enabled", lambda: False, raising=False)
    assert LockWatch(opened).look(threading.get_ident()) == LockState.NOT_LOOKED
    (process,) = armed.processes()
    assert not process.of(AgentDiagnostic)


def test_samples_tell_it_while_another_thread_works(armed: Armed) -> None:
    """Beside a thread that computes in Python, the main thread is seen to wait for the lock, and seen to sleep."""
    body = """
def work():
    while not end: sum(range(1000))
thread = threading.Thread(target=work)
thread.start()
until(30)
end.append(1)
thread.join()
"""
    result = armed.start(PROGRAM + body)
    assert result.stderr == ""
    (process,) = armed.processes()
    states = {s.arg for s in process.kinds(Kind.SAMPLE)}
    assert {LockState.WAITS, LockState.ELSEWHERE} <= states


def test_nobody_is_looked_at_alone(armed: Armed) -> None:
    """A job with one thread pays nothing."""
    armed.start(PROGRAM + "until(10)\nprint(running.sampler._locks._asked)\n")
    (process,) = armed.processes()
    samples = process.kinds(Kind.SAMPLE)
    assert samples
    assert {s.arg for s in samples} == {LockState.NOT_LOOKED}


def by_another_thread(look: Callable[[int], object], now: int) -> None:
    """Look as the agent does: a thread does not look at itself."""
    thread = threading.Thread(target=look, args=(now,))
    thread.start()
    thread.join()


def test_in_a_gap_only_the_main_thread_is_looked_at(armed: Armed, opened: AgentState) -> None:
    """Five times a second at most, in a sample that stands for no time, and only where there are other threads."""
    sampler = Sampler(opened)
    now = opened.now()
    by_another_thread(sampler._look_in_gap, now)
    sampler._beside = True
    for later in (0, 1_000_000, 250_000_000):
        by_another_thread(sampler._look_in_gap, now + later)
    (process,) = armed.processes()
    samples = process.kinds(Kind.SAMPLE)
    assert [(s.start_ns - now, s.dur_ns) for s in samples] == [(0, 0), (250_000_000, 0)]
    assert all(s.arg != LockState.NOT_LOOKED for s in samples)


def test_a_thread_that_is_seen_only_where_it_waits_is_known(armed: Armed) -> None:
    """User code that waits in a queue has samples that stand for no time, and others are looked at because of it."""
    body = """
import queue
def serve(jobs):
    while jobs.get(): pass
jobs = queue.Queue()
thread = threading.Thread(target=serve, args=(jobs,), name="server")
thread.start()
until(24)
jobs.put(None)
thread.join()
"""
    result = armed.start(PROGRAM + body)
    assert result.stderr == ""
    (process,) = armed.processes()
    (server,) = [line.id for line in process.of(ThreadSeen) if line.name == "server"]
    samples = process.kinds(Kind.SAMPLE)
    assert {s.dur_ns for s in samples if s.thread == server} == {0}
    assert {s.arg for s in samples if s.thread != server} > {LockState.NOT_LOOKED}
