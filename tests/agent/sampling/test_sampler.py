"""The agent's thread: what it samples, that nobody sees it, and that it ends."""

from __future__ import annotations

import threading

from tests.agent.conftest import Armed, Measured

from stepscope.agent.sampling.cpu_timer import HZ
from stepscope.agent.sampling.sampler import Sampler
from stepscope.agent.sampling.stacks import MAX_FRAMES, StackTable
from stepscope.agent.state import AgentState
from stepscope.model.log.events import AgentDiagnostic, Code, ProcessEnded, Stack, ThreadSeen
from stepscope.wire.kinds import Flag, Kind

PROGRAM = """
import sys, threading, time, stepscope
from stepscope.agent import bootstrap, start, state
bootstrap.HOOK.activate()
threads, before = threading.enumerate(), threading.active_count()
running = start.MeasuredProcess(state.CURRENT, ())
running.start_thread()
running.register_exit()
ticks = []
def busy(count):
    deadline = time.monotonic() + 30
    last = len(ticks) + count
    while len(ticks) < last and time.monotonic() < deadline: sum(range(1000))
state.CURRENT.hooks.on_tick(ticks.append)
"""


def frames_of(process: Measured, stack: int) -> list[tuple[str, int]]:
    """(function, line) of a stack, root to leaf."""
    codes = {code.id: code for code in process.of(Code)}
    (found,) = [line for line in process.of(Stack) if line.id == stack]
    return [(codes[code].function, line) for code, line in found.frames]


def test_samples_name_the_users_line(armed: Armed) -> None:
    """Samples of a busy loop hold the user's functions, root to leaf, with the time that they stand for."""
    result = armed.start(PROGRAM + "busy(8)\n")
    assert result.stderr == ""
    (process,) = armed.processes()
    samples = process.kinds(Kind.SAMPLE)
    in_busy = [s for s in samples if [name for name, _ in frames_of(process, s.name)] == ["<module>", "busy"]]
    assert len(in_busy) >= 3
    assert {line for s in in_busy for name, line in frames_of(process, s.name) if name == "busy"} <= {12, 13, 14}
    assert all(sample.dur_ns > 0 for sample in samples)
    main = [line.id for line in process.of(ThreadSeen) if line.main]
    assert {sample.thread for sample in samples} == set(main)
    assert all(code.own == (code.file in ("<string>", "<stdin>")) for code in process.of(Code))


def test_the_job_does_not_see_the_thread(armed: Armed) -> None:
    """Threading knows nothing of our thread, which is gone before the job's own exit handlers run."""
    program = (
        """
import atexit, os
def threads_left():
    deadline = time.monotonic() + 30
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < deadline: pass
    print("handler", len(os.listdir("/proc/self/task")))
atexit.register(threads_left)
"""
        + PROGRAM
    )
    result = armed.start(program + "busy(6)\nprint(threading.enumerate() == threads, before)\n")
    assert (result.stdout, result.stderr) == ("True 1\nhandler 1\n", "")
    (process,) = armed.processes()
    assert isinstance(process.lines[-1], ProcessEnded)
    assert process.lines[-1].thread_cpu_ns >= 0
    assert [line.name for line in process.of(ThreadSeen)].count("stepscope-agent") == 1


def test_signals_go_to_the_jobs_threads(armed: Armed) -> None:
    """Our thread blocks signals and leaves the main thread's mask alone: a job that waits for a signal gets it."""
    body = """
import os, signal
from pathlib import Path
def blocked(tid):
    text = Path(f"/proc/self/task/{tid}/status").read_text()
    return int(text.partition("SigBlk:")[2].split()[0], 16)
ours = [int(t) for t in os.listdir("/proc/self/task") if int(t) != os.getpid()]
busy(1)
print([bool(blocked(t) >> (signal.SIGUSR1 - 1) & 1) for t in ours], blocked(os.getpid()))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)
print(signal.sigwait([signal.SIGUSR1]) == signal.SIGUSR1)
"""
    result = armed.start(PROGRAM + body)
    assert (result.stdout, result.stderr) == ("[True] 0\nTrue\n", "")


def test_waiting_pool_threads_are_left_out(armed: Armed) -> None:
    """Threads of a pool that wait for work give no sample, those that work do, and so does a waiting main thread."""
    body = """
from concurrent.futures import ThreadPoolExecutor
def work(): busy(14)
pool = ThreadPoolExecutor(3)
list(pool.map(lambda _: None, range(3)))
pool.submit(work).result()
"""
    armed.start(PROGRAM + body)
    (process,) = armed.processes()
    leaves = {frames_of(process, s.name)[-1][0].rpartition(".")[2] for s in process.kinds(Kind.SAMPLE)}
    assert "_worker" not in leaves
    assert {"busy", "wait"} <= leaves


def test_forked_child_has_its_own_thread(armed: Armed) -> None:
    """A forked child that records is sampled by a thread of its own."""
    body = """
import os
state.CURRENT.hooks.children.append(running.start_thread)
pid = os.fork()
if pid == 0:
    stepscope.step(); stepscope.step()
    state.CURRENT.hooks.on_tick(ticks.append)
    busy(6)
    os._exit(0)
os.waitpid(pid, 0)
"""
    result = armed.start(PROGRAM + body, "-W", "ignore")
    assert result.stderr == ""
    parent, child = armed.processes()
    assert len(child.kinds(Kind.SAMPLE)) >= 3
    assert child.started.origin == "fork"
    assert {code.id for code in child.of(Code)} >= {c for stack in child.of(Stack) for c, _ in stack.frames}
    assert isinstance(parent.lines[-1], ProcessEnded)


def test_ticks_run_and_a_failing_one_is_dropped(armed: Armed) -> None:
    """Functions of probes run with every tick; one that fails three times is dropped, with a diagnostic."""
    body = """
calls = []
def good(now): calls.append(now)
def bad(now): calls.append(None); 1/0
state.CURRENT.hooks.on_tick(bad)
state.CURRENT.hooks.on_tick(good)
busy(10)
print(calls.count(None), len(calls) > 6)
"""
    result = armed.start(PROGRAM + body)
    assert (result.stdout, result.stderr) == ("3 True\n", "")
    (process,) = armed.processes()
    assert [line.code for line in process.of(AgentDiagnostic)][-1] == "DX902"


def test_deep_stacks_keep_root_and_leaf(armed: Armed, opened: object) -> None:
    """Of a deep recursion the outermost and the innermost frames are kept, and equal stacks are one."""
    import sys

    from stepscope.agent.state import AgentState

    assert isinstance(opened, AgentState)
    table = StackTable(opened)

    def descend(depth: int) -> tuple[tuple[int, bool], tuple[int, bool]]:
        if depth:
            return descend(depth - 1)
        first = table.stack(sys._getframe(0))
        return first, table.stack(sys._getframe(0))

    first, second = descend(100)
    assert first[1]
    process = armed.processes()[0]
    frames = frames_of(process, first[0])
    assert len(frames) == MAX_FRAMES
    assert frames[-1][0].endswith("descend")
    assert frames[-1][1] == second_line(process, second[0]) - 1
    assert not frames[0][0].endswith("descend")


def second_line(process: Measured, stack: int) -> int:
    """The line of the leaf."""
    return frames_of(process, stack)[-1][1]


def test_rate_adapts_to_its_cost(opened: object) -> None:
    """Dear ticks lower the rate, to four a second at least while the job is young; cheap ones restore it."""
    from stepscope.agent.state import AgentState

    assert isinstance(opened, AgentState)
    sampler = Sampler(opened)
    for _ in range(12):
        sampler._adapt(opened.lines.started_ns + 1, 20 * 30_000, 20)
    assert sampler._hz == 20
    for _ in range(12):
        sampler._adapt(opened.lines.started_ns + 1, 10 * 70_000, 10)
    assert round(sampler._hz, 6) == 10
    for _ in range(12):
        sampler._adapt(opened.lines.started_ns + 1, 1_000_000_000, 5)
    assert sampler._hz == 4
    sampler._adapt(opened.lines.started_ns + 61_000_000_000, 1_000_000_000, 5)
    assert sampler._hz == 1
    pauses = [sampler._pause() * sampler._hz for _ in range(1000)]
    assert 0.75 <= min(pauses) < 0.8
    assert 1.2 < max(pauses) <= 1.25


def test_denser_for_a_window(armed: Armed) -> None:
    """A window of native stacks has the main thread sampled as often, and nothing stays of it."""
    result = armed.start(
        PROGRAM
        + "running.sampler.denser(199.0, 1.0)\n"
        + "used = time.thread_time() + 0.9\nwhile time.thread_time() < used: sum(range(1000))\n"
        + "end = time.monotonic() + 60\n"
        + "while running.sampler._dense_hz and time.monotonic() < end: time.sleep(0.01)\n"
        + "print(running.sampler._dense_hz, state.CURRENT.duty_cycle._held)\n"
    )
    assert (result.stdout, result.stderr) == ("0.0 0\n", "")
    (process,) = armed.processes()
    dense = [s for s in process.kinds(Kind.SAMPLE) if s.flags & Flag.CPU and s.dur_ns == int(1e9 / 199)]
    assert len(dense) >= 20


def test_a_window_that_sees_python_itself(armed: Armed) -> None:
    """It asks for no more samples than there are, and there is no gap until it is over."""
    result = armed.start(
        PROGRAM
        + "usual, held = running.sampler._hz, state.CURRENT.duty_cycle._held\n"
        + "running.sampler.denser(0, 0.5)\n"
        + "print(running.sampler._dense_hz == usual, state.CURRENT.duty_cycle._held - held)\n"
        + "used = time.thread_time() + 0.5\nwhile time.thread_time() < used: sum(range(1000))\n"
        + "end = time.monotonic() + 60\n"
        + "while running.sampler._dense_hz and time.monotonic() < end: time.sleep(0.01)\n"
        + "print(running.sampler._dense_hz, state.CURRENT.duty_cycle._held - held)\n"
    )
    assert (result.stdout, result.stderr) == ("True 1\n0.0 0\n", "")
    (process,) = armed.processes()
    timed = {s.dur_ns for s in process.kinds(Kind.SAMPLE) if s.flags & Flag.CPU}
    assert timed == {int(1e9 / HZ)}


def test_a_window_that_cannot_be_is_refused(armed: Armed) -> None:
    """What asks is checked: the rate and the length have bounds, and the job goes on."""
    result = armed.start(
        PROGRAM
        + "for fields in ({}, {'hz': 1e9, 'seconds': 1}, {'hz': 99, 'seconds': 'x'}, {'hz': 9, 'seconds': 1e9}):\n"
        + "    running._denser(fields)\n"
        + "print(running.sampler._dense_hz)\n"
    )
    assert (result.stdout, result.stderr) == ("0.0\n", "")
    (process,) = armed.processes()
    assert [d.code for d in process.of(AgentDiagnostic)] == ["DX915"] * 4


def test_pauses_in_gaps_are_sampled(armed: Armed, opened: AgentState) -> None:
    """Where no call was counted in a gap since the last look, a sample stands for that time; where steps run, none."""
    sampler, duty_cycle = Sampler(opened), opened.duty_cycle
    duty_cycle._counting = [Kind.FUNCTION]
    now = opened.now()
    sampler._noted = (now, duty_cycle.note())
    for later, calls in ((90, 5), (180, 0), (270, 0), (360, 3)):
        duty_cycle._past[Kind.FUNCTION] += calls
        looks = threading.Thread(target=sampler._look_for_pauses, args=(now + later * 1_000_000,))
        looks.start()  # a thread does not look at itself
        looks.join()
    (process,) = armed.processes()
    samples = process.kinds(Kind.SAMPLE)
    assert [((s.start_ns - now) // 1_000_000, s.dur_ns // 1_000_000) for s in samples] == [(180, 90), (270, 90)]


def test_the_end_waits_for_what_the_thread_lets_go_of(armed: Armed) -> None:
    """The last reference to an object of the job's may be one that our thread holds for a moment: an iterator ends only
    as long as the interpreter runs.
    """
    program = (
        PROGRAM
        + """
class Slow:
    def __del__(self):
        reached.set()
        time.sleep(1)
        print("ended", sys.is_finalizing(), flush=True)
reached, held = threading.Event(), [Slow()]
def look(now):
    if held: held.pop()
state.CURRENT.hooks.on_tick(look)
reached.wait()
"""
    )
    result = armed.start(program)
    assert (result.stdout, result.stderr) == ("ended False\n", "")
