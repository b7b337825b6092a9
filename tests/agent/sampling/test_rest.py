"""The agent's thread rests while the process forks, where it is the only other thread, and comes back."""

from __future__ import annotations

from tests.agent.conftest import Armed

from stepscope.model.log.events import AgentDiagnostic, ProcessEnded
from stepscope.wire.kinds import Flag, Kind

PROGRAM = """
import os, sys, threading, time, stepscope
from stepscope.agent import bootstrap, state
from stepscope.agent.core import side_thread
side_thread.FORK_WARNS = True
stepscope.step()
ticks = []
state.CURRENT.hooks.on_tick(ticks.append)
def threads(): return len(os.listdir("/proc/self/task"))
def compute_until(true):
    deadline = time.monotonic() + 30
    while not true() and time.monotonic() < deadline: sum(range(1000))
compute_until(lambda: ticks)
during = []
os.register_at_fork(after_in_parent=lambda: during.append(threads()))
"""
FORK = """
pid = os.fork()
if not pid: os._exit(0)
os.waitpid(pid, 0)
"""


def _armed(armed: Armed, body: str) -> str:
    """What a program prints that starts as ``PROGRAM``, on any Python as on one that warns."""
    begin = PROGRAM.replace("stepscope.step()", "", 1)
    result = armed.start(begin.replace("FORK_WARNS = True", "FORK_WARNS = True\nstepscope.step()") + body)
    assert result.stderr == ""
    return str(result.stdout)


def test_a_process_forks_with_one_thread_and_is_sampled_again(armed: Armed) -> None:
    """At the fork there is no thread of ours; once the main thread has computed there is one again, and it samples."""
    body = FORK + "seen = len(ticks)\ncompute_until(lambda: len(ticks) > seen + 6)\nprint(during, threads())\n"
    assert _armed(armed, body * 2) == "[1] 2\n[1, 1] 2\n"
    (process,) = armed.processes()
    waited = [record for record in process.kinds(Kind.SAMPLE) if not record.flags & Flag.CPU]
    assert waited
    assert process.of(AgentDiagnostic) == []


def test_a_process_with_threads_of_its_own_forks_with_ours(armed: Armed) -> None:
    """It has the warning without us, too: nothing is stopped."""
    body = "threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n" + FORK + "print(during)\n"
    assert _armed(armed, body) == "[3]\n"


def test_a_process_ends_while_the_thread_rests(armed: Armed) -> None:
    """Nothing waits for the thread that has ended."""
    assert _armed(armed, FORK + "print(threads())\n") == "1\n"
    (process,) = armed.processes()
    assert isinstance(process.lines[-1], ProcessEnded)
