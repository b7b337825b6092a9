"""Looks at what threads wait for: when, and what the session then holds."""

from __future__ import annotations

import sys
import threading
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from stepscope.agent.sampling.lock_watch import LockWatch
from stepscope.agent.sampling.wait_looks import WaitLooks
from stepscope.model.log.events import Stack, ThreadSeen
from stepscope.model.log.waits import ThreadCounts, WaitSeen
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from tests.agent.conftest import Armed

    from stepscope.agent.state import AgentState

PROGRAM = """
import os, threading, time, stepscope
from stepscope.agent import bootstrap, start, state
bootstrap.HOOK.activate()
running = start.MeasuredProcess(state.CURRENT, ())
running.start_thread()
running.register_exit()
reader, writer = os.pipe()
ticks = []
def feed(now):
    ticks.append(now)
    if len(ticks) % 4 == 0: os.write(writer, b"x")
state.CURRENT.hooks.on_tick(feed)
def fetch():
    os.read(reader, 1 << 16)
"""


def waits_of(armed: Armed) -> tuple[list[WaitSeen], list[ThreadCounts], set[bool]]:
    """The waits that samples of ``fetch`` name, the counters, and whether their thread is the main one."""
    (process,) = armed.processes()
    waits = {line.id: line for line in process.of(WaitSeen)}
    stacks = {line.id: line.wait for line in process.of(Stack)}
    mains = {line.id: line.main for line in process.of(ThreadSeen)}
    taken = [(waits[stacks[s.name]], s.thread) for s in process.kinds(Kind.SAMPLE) if stacks[s.name]]
    found = [wait for wait, _ in taken if wait.kind == "pipe"]
    return found, process.of(ThreadCounts), {mains[thread] for wait, thread in taken if wait.kind == "pipe"}


def test_samples_of_the_main_thread_say_what_it_waits_for(armed: Armed) -> None:
    """A main thread that reads from a pipe is seen to, with the size; its counters are logged."""
    result = armed.start(PROGRAM + "while len(ticks) < 60: fetch()\n")
    assert result.stderr == ""
    found, counts, mains = waits_of(armed)
    assert {(wait.call, wait.bytes) for wait in found} == {("read", 1 << 16)}
    assert mains == {True}
    assert counts
    assert counts[-1].reads > 0
    assert counts[-1].waits > 0


def test_a_thread_that_writes_records_is_looked_at(armed: Armed) -> None:
    """So is another thread that makes steps."""
    program = """
def work():
    while len(ticks) < 60:
        stepscope.step()
        fetch()
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    result = armed.start(PROGRAM + program)
    assert result.stderr == ""
    found, _, mains = waits_of(armed)
    assert found
    assert mains == {False}


def test_no_tick_looks_twice_in_a_row(opened: AgentState) -> None:
    """However rare ticks are, every other one goes without looks; and there are ten looks a second at most."""
    looks = WaitLooks(opened, LockWatch(opened))
    second = 1_000_000_000
    assert [looks.due(i * second) for i in range(1, 5)] == [True, False, True, False]
    assert sum(looks.due(5 * second + i * second // 1000) for i in range(1000)) in {10, 11}


def test_what_computes_is_not_looked_at(opened: AgentState) -> None:
    """Neither a thread that ran for its whole period nor one inside of the framework is worth a look."""
    looks = WaitLooks(opened, LockWatch(opened))
    frame = sys._getframe()
    code = SimpleNamespace(co_filename="/usr/lib/site-packages/tensorflow/python/eager/execute.py")
    framework = cast("FrameType", SimpleNamespace(f_code=code))
    assert [looks.worth(frame, waited, 80) for waited in (80, 10, 9, 0)] == [True, True, False, False]
    assert not looks.worth(framework, 80, 80)
    user = SimpleNamespace(co_filename="/home/me/tensorflow/train.py")
    assert looks.worth(cast("FrameType", SimpleNamespace(f_code=user)), 80, 80)


def test_counters_of_the_main_thread_are_read_ever_more_rarely(
    opened: AgentState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it never waits: each second at first, then four times until twice the time, so that the steps of a
    short job have several.
    """
    lines: list[dict[str, object]] = []
    monkeypatch.setattr(opened, "log", lines.append)
    looks = WaitLooks(opened, LockWatch(opened))
    seconds = []
    for second in range(1, 34):
        before = len(lines)
        looks.tick(threading.get_ident())
        seconds += [second] if any(line["t"] == "thread_counts" for line in lines[before:]) else []
    assert seconds == [*range(1, 8), 8, 10, 12, 14, 16, 20, 24, 28, 32]
