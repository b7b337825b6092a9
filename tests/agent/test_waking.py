"""A process without a framework is measured and sampled once the collector's signal says that it lives for long."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.agent.conftest import Armed

from stepscope.model.log.events import AgentDiagnostic, Code, ThreadSeen
from stepscope.wire.kinds import Kind

COMPUTES = """
import os, signal, sys, time
def state():
    module = sys.modules.get("stepscope.agent.state")
    return getattr(module, "CURRENT", None)
def work(until):
    deadline = time.monotonic() + 60
    while not until() and time.monotonic() < deadline: sum(range(1000))
def woken(): return state() is not None and sys.modules["stepscope.agent.bootstrap"].HOOK.plain is not None
"""
WAKE = """
os.kill(os.getpid(), signal.SIGURG)
work(woken)
os.kill(os.getpid(), signal.SIGURG)
def samples(): return state().records.newest_kinds(64).count(sys.modules["stepscope.wire.kinds"].Kind.SAMPLE)
work(lambda: samples() > 3)
"""


def test_two_signals_and_it_is_sampled(armed: Armed) -> None:
    """Until the first there is nothing of ours; after the second, the main thread's lines are sampled."""
    begin = "print(state(), len(os.listdir('/proc/self/task')), 'threading' in sys.modules)\n"
    end = "import threading\nprint(threading.main_thread() is threading.current_thread(), threading.active_count())\n"
    result = armed.start(COMPUTES + begin + WAKE + end)
    assert (result.stdout, result.stderr) == ("None 1 False\nTrue 1\n", "")
    (process,) = armed.processes()
    functions = {code.function for code in process.of(Code)}
    assert "work" in functions
    assert [line.main for line in process.of(ThreadSeen) if line.name == "MainThread"] == [True]
    assert len(process.kinds(Kind.SAMPLE)) > 1
    assert process.of(AgentDiagnostic) == []


def test_a_framework_that_comes_later_finds_the_thread(armed: Armed) -> None:
    """There is one thread of ours, not two."""
    (armed.folder / "torch.py").write_text("")
    body = f"sys.path.append({str(armed.folder)!r})\nimport torch\nprint(len(os.listdir('/proc/self/task')))\n"
    result = armed.start(COMPUTES + WAKE + body)
    assert (result.stdout, result.stderr) == ("2\n", "")
    (process,) = armed.processes()
    assert [line.name for line in process.of(ThreadSeen)].count("stepscope-agent") == 1


def test_a_program_that_handles_the_signal_keeps_it(armed: Armed) -> None:
    """Its handler takes the place of ours, and nothing is measured."""
    body = "got = []\nsignal.signal(signal.SIGURG, lambda *a: got.append(1))\nos.kill(os.getpid(), signal.SIGURG)\n"
    result = armed.start(COMPUTES + body + "work(lambda: got)\nprint(got, state())\n")
    assert (result.stdout, result.stderr) == ("[1] None\n", "")
    assert not (armed.folder / "procs").exists() or armed.processes() == []


def test_a_program_that_replaces_ours_ignores_the_signal(armed: Armed) -> None:
    """After ``exec`` nobody listens, and the signal does nothing."""
    program = "import os\nos.execv('/bin/sh', ['sh', '-c', 'kill -URG $$; echo lives'])\n"
    result = armed.start(program)
    assert (result.stdout, result.stderr, result.returncode) == ("lives\n", "", 0)


def test_a_forked_child_of_a_measured_process_is_left_alone(armed: Armed) -> None:
    """It has no thread of ours, whoever signals: its parent is measured, and it makes no record."""
    body = """
pid = os.fork()
if not pid:
    turns = iter(range(200))
    os.kill(os.getpid(), signal.SIGURG)
    work(lambda: next(turns, None) is None)
    os._exit(len(os.listdir("/proc/self/task")))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    result = armed.start(COMPUTES + WAKE + body, "-W", "ignore")
    assert (result.stdout, result.stderr) == ("1\n", "")


def test_a_program_that_is_not_armed_is_as_before() -> None:
    """Without a run no handler is set."""
    line = "import signal; print(signal.getsignal(signal.SIGURG) is signal.SIG_DFL)"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("signals", [1, 3])
def test_a_fork_waits_for_the_start(armed: Armed, signals: int) -> None:
    """A child would find what that thread imports half imported, for ever; and Python 3.12 warns of two threads. More
    signals make no more threads."""
    body = """
before = len(os.listdir("/proc/self/task"))
pid = os.fork()
if not pid:
    import stepscope.agent.start
    os._exit(len(os.listdir("/proc/self/task")))
print(before, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), woken())
"""
    result = armed.start(COMPUTES + signals * "os.kill(os.getpid(), signal.SIGURG)\n" + body)
    assert (result.stdout, result.stderr) == ("2 1 True\n", "")
