"""CPU samples of the main thread: exact lines, and nothing of them left when the agent has gone."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.agent.conftest import Armed

from stepscope.model.log.events import Code, Stack
from stepscope.wire.kinds import Flag, Kind

HEAD = """
import os, signal, sys, threading, time, stepscope
from pathlib import Path
from stepscope.agent import bootstrap, start, state
bootstrap.HOOK.activate()
def timers(): return Path("/proc/self/timers").read_text().count("signal:")
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))
def arm():
    global running
    running = start.MeasuredProcess(state.CURRENT, ())
    running.start_thread()
    running.register_exit()
"""


def test_cpu_samples_name_the_line(armed: Armed) -> None:
    """CPU time of the main thread has samples on the lines that use it, about as many as it used."""
    result = armed.start(HEAD + "arm()\nspin(1)\nprint(timers())\n")
    assert (result.stdout, result.stderr) == ("1\n", "")
    (process,) = armed.processes()
    samples = [record for record in process.kinds(Kind.SAMPLE) if record.flags & Flag.CPU]
    codes = {code.id: code.function for code in process.of(Code)}
    stacks = {stack.id: [codes[code] for code, _ in stack.frames] for stack in process.of(Stack)}
    assert sum(1 for sample in samples if stacks[sample.name] == ["<module>", "spin"]) >= 20
    total = sum(sample.dur_ns for sample in samples)
    assert 0.7e9 < total < 1.5e9


LONG = """
numbers = [None] * 12_000_000
def note(_): return 0
def work(): return note(numbers[:])
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        work()
"""


def test_time_before_a_function_begins_is_its_callers(armed: Armed) -> None:
    """Python looks for signals where a function begins: the copy took the time, and ended before ``note`` began."""
    result = armed.start(HEAD + LONG + "arm()\nspin(1)\nprint(timers())\n")
    assert (result.stdout, result.stderr) == ("1\n", "")
    (process,) = armed.processes()
    taken = [one for one in process.kinds(Kind.SAMPLE) if one.flags & Flag.CPU]
    assert sum(one.dur_ns for one in taken) >= 0.9e9  # of 1 s, though a copy lasts longer than a period
    codes = {code.id: code.function for code in process.of(Code)}
    leaves = {stack.id: codes[stack.frames[-1][0]] for stack in process.of(Stack)}
    samples = [leaves[one.name] for one in taken]
    assert samples.count("work") > 2 * samples.count("note")
    assert samples.count("work") >= 5


def test_no_timer_when_the_agent_has_left(armed: Armed) -> None:
    """Taking the agent out deletes the timer; so does the end of the interpreter, before the job's own handlers."""
    result = armed.start(
        "import atexit\natexit.register(lambda: print('exit', timers()))\n"
        + HEAD
        + "arm()\nspin(0.2)\nprint(timers())\nstate.CURRENT.take_out('test')\n"
        + "end = time.monotonic() + 30\n"
        + "while timers() and time.monotonic() < end: pass\n"
        + "print(timers())\n"
    )
    assert (result.stdout, result.stderr) == ("1\n0\nexit 0\n", "")


def test_children_have_no_timer_of_ours(armed: Armed) -> None:
    """A forked child and an executed program start without a timer, and with the default handlers."""
    result = armed.start(
        HEAD
        + """
import subprocess
arm()
pid = os.fork()
if pid == 0:
    spin(0.2)
    os._exit(timers())
print(os.waitpid(pid, 0)[1])
program = "import signal; print(all(signal.getsignal(n) is signal.SIG_DFL for n in range(34, 65)))"
print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip())
""",
        "-W",
        "ignore",
    )
    assert (result.stdout, result.stderr) == ("0\nTrue\n", "")
    assert len(armed.processes()) == 1


def test_signals_of_the_job_are_left_alone(armed: Armed) -> None:
    """A real-time signal that the job uses is not taken, and its handlers are what they were."""
    result = armed.start(
        HEAD
        + """
taken = signal.SIGRTMAX - 5
got = []
signal.signal(taken, lambda number, frame: got.append(number))
arm()
spin(0.3)
os.kill(os.getpid(), taken)
spin(0.01)
print(got == [taken], timers())
"""
    )
    assert (result.stdout, result.stderr) == ("True 1\n", "")


def test_blocking_calls_are_not_interrupted(armed: Armed) -> None:
    """Waiting in system calls beside the timer ends when it should, also where Python does not retry."""
    result = armed.start(
        HEAD
        + """
import ctypes, select
arm()
libc = ctypes.CDLL(None, use_errno=True)
failed = 0
for _ in range(20):
    spin(0.03)
    failed += libc.usleep(5000) != 0
    failed += libc.poll(None, 0, 5) != 0
print(failed)
"""
    )
    assert (result.stdout, result.stderr) == ("0\n", "")


BORROWER = """
#include <string.h>
static unsigned char heap[1 << 20];

/* Computes with the stack pointer in the middle of a buffer, as code made at run time may do; says how many bytes below
   it have changed meanwhile. */
long borrow(long turns)
{
    unsigned char *middle = heap + (1 << 19);
    long changed = 0, i;
    memset(heap, 0xAB, sizeof heap);
    __asm__ volatile("mov %%rsp, %%r12\\n mov %0, %%rsp\\n mov %1, %%rcx\\n 1: dec %%rcx\\n jnz 1b\\n mov %%r12, %%rsp"
                     : : "r"(middle), "r"(turns) : "rcx", "r12", "memory", "cc");
    for (i = 0; i < 1 << 19; i++) changed += heap[i] != 0xAB;
    return changed;
}
"""


@pytest.mark.parametrize("faults", [False, True])
def test_signals_never_run_on_a_borrowed_stack(armed: Armed, tmp_path: Path, *, faults: bool) -> None:
    """What lies below the stack pointer stays as it is, with a fault handler of the job's and without."""
    compiler = shutil.which("gcc")
    if compiler is None or platform.machine() != "x86_64":
        pytest.skip("needs gcc on x86_64")
    (tmp_path / "borrow.c").write_text(BORROWER)
    library = tmp_path / "borrow.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, tmp_path / "borrow.c"], check=True)
    result = armed.start(
        HEAD
        + ("import faulthandler\nfaulthandler.enable()\n" if faults else "")
        + f"arm()\nimport ctypes\nborrow = ctypes.CDLL({str(library)!r}).borrow\n"
        + "before = time.thread_time()\nchanged = 0\n"
        + "while time.thread_time() - before < 1: changed += borrow(ctypes.c_long(300_000_000))\n"
        + "print(changed, timers())\n"
    )
    assert (result.stdout, result.stderr) == ("0 1\n", "")
    (process,) = armed.processes()
    assert sum(bool(record.flags & Flag.CPU) for record in process.kinds(Kind.SAMPLE)) >= 2
