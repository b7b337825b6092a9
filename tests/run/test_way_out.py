"""A program that has ended while its process has not, and one that came to harm: the agent leaves, and it is told."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from tests.run.conftest import Project, job_of, kill, wait_for

from stepscope.launcher import jobs
from stepscope.wire import off
from stepscope.wire.kinds import Kind

HEAD = """
import atexit, os, signal, threading, time, weakref
import onnxruntime, stepscope
for _ in range(30):
    stepscope.step(); time.sleep(0.001)
"""
HELD = """
from stepscope.agent import state
class Thing: pass
thing, gone = Thing(), threading.Event()
weakref.finalize(thing, gone.set)
state.CURRENT.hooks.on_tick(lambda now_ns, held=thing: None)
del thing
threading.Thread(target=gone.wait, name="keeper").start()
print("main over", flush=True)
"""
WORKS = """
def works():
    for _ in range(3000):
        stepscope.step(); time.sleep(0.001)
threading.Thread(target=works).start()
print("main over", flush=True)
"""
HANDLER = """
def hangs():
    print("ready", flush=True)
    while not os.path.exists("stop"): time.sleep(0.01)
atexit.register(hangs)
import stepscope
for _ in range(30):
    stepscope.step(); time.sleep(0.001)
"""


@pytest.fixture
def home(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of this test alone."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(project.root / name.lower()))
    monkeypatch.setenv("STEPSCOPE_UNENDED_S", "1")
    (project.root / "onnxruntime").mkdir()
    (project.root / "onnxruntime" / "__init__.py").touch()  # a framework that computes: the agent has its thread
    return project.root


def notes(session: Path, code: str) -> list[str]:
    """What a report says under a code."""
    report = json.loads((session / "report.json").read_text())
    return [note["text"] for note in report["diagnostics"] if note["code"] == code]


def test_a_reference_held_on_purpose_is_let_go(project: Project, home: Path) -> None:
    """A thread that waits for the end of an object which the agent holds: the agent lets go, and the process ends."""
    project.script("held.py", HEAD + HELD)
    done = project.run("run", "--session", "s.stepscope", "held.py")
    assert (done.stdout, done.returncode) == ("main over\n", 0), done.stderr
    (text,) = notes(home / "s.stepscope", "DX903")
    assert text.endswith("it waits for threads that are no daemons: keeper")
    assert off.harmed() == []


def test_threads_that_work_are_measured_on(project: Project, home: Path) -> None:
    """Where threads make the steps after the main thread's end, they are the job."""
    project.script("works.py", HEAD + WORKS)
    done = project.run("run", "--session", "s.stepscope", "works.py")
    assert done.returncode == 0
    assert notes(home / "s.stepscope", "DX903") == []
    assert sum(int((worker.records.kind == Kind.STEP).sum()) for worker in project.session().workers) > 3000


def test_an_exit_handler_that_does_not_return(project: Project, home: Path) -> None:
    """The agent has no thread there: the collector says that the process has not ended, and where it waits."""
    project.script("handler.py", "import atexit, os, time\n" + HANDLER)
    process = project.start("run", "--session", "s.stepscope", "handler.py")
    pid = job_of(process.pid)

    def told() -> str:
        job = next((job for job in jobs.running() if job.status.pid == pid), None)
        return next((text for text in job.status.problems if "has not" in text), "") if job is not None else ""

    assert "in hangs, handler.py:" in str(wait_for(told, "the problem in the status"))
    (home / "stop").touch()
    process.communicate(timeout=60)
    assert process.returncode == 0
    (text,) = notes(home / "s.stepscope", "DX103")
    assert "its process has not: its main thread waits in hangs, handler.py:" in text
    assert off.harmed() == []  # it ended by itself


def test_a_process_that_had_to_be_killed_after_its_end(project: Project, home: Path) -> None:
    """A signal was needed to end it: its program is not measured any more."""
    project.script("handler.py", "import atexit, os, time\n" + HANDLER)
    process = project.start("run", "--session", "s.stepscope", "handler.py")
    pid = job_of(process.pid)
    wait_for(lambda: any("has not" in " ".join(j.status.problems) for j in jobs.running() if j.status.pid == pid), "it")
    kill(pid)
    process.communicate(timeout=60)
    assert [(entry["program"], entry["what"]) for entry in off.harmed()] == [(str(home / "handler.py"), "did not end")]


def test_a_crash_switches_the_program_off(project: Project, home: Path) -> None:
    """The report of the crash says so; run does it unmeasured until that is taken back, or for once with --measure."""
    number = signal.SIGSEGV
    project.script(
        "crash.py",
        "import os, stepscope\nfor _ in range(50): stepscope.step()\nprint('out', flush=True)\n"
        f"os.kill(os.getpid(), {number})\n",
    )
    first = project.run("run", "--session", "1.stepscope", "crash.py")
    assert first.returncode == -number
    assert "DX104 measuring is off for crash.py since " in first.stderr
    assert notes(home / "1.stepscope", "DX104")[0].endswith(f"enable --again '{home / 'crash.py'}')")
    second = project.run("run", "--session", "2.stepscope", "crash.py")
    assert (second.stdout, second.returncode) == ("out\n", -number)
    assert second.stderr.count("\n") == 1
    assert second.stderr.startswith("stepscope: measuring is off for crash.py since ")
    assert not (home / "2.stepscope").exists()
    assert "died of SIGSEGV" in project.run("ps").stdout
    assert "died of SIGSEGV" in project.run("enable", "--status").stdout
    project.run("run", "--measure", "--session", "3.stepscope", "crash.py")
    assert (home / "3.stepscope").exists()
    assert project.run("enable", "--again", "crash.py").returncode == 0
    assert off.harmed() == []
    assert project.run("enable", "--again", "crash.py").returncode == 64
    project.run("run", "--session", "4.stepscope", "crash.py")
    assert (home / "4.stepscope").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_signals_of_users_are_no_harm(project: Project, home: Path, number: signal.Signals) -> None:
    """Jobs are ended on purpose every day."""
    project.script(
        "ends.py",
        "import os, signal, stepscope\nfor _ in range(50): stepscope.step()\n"
        f"signal.signal(2, signal.SIG_DFL); os.kill(os.getpid(), {number})\n",
    )
    assert project.run("run", "--session", str(home / "s.stepscope"), "ends.py").returncode == -number
    assert off.harmed() == []


def test_a_crash_of_a_child_counts_for_its_program(project: Project, home: Path) -> None:
    """A worker that its launcher started died: the worker's script is off, and the launcher's is not."""
    project.script(
        "worker.py",
        "import os, stepscope, time\nprint('ready', flush=True)\n"
        "while True:\n    stepscope.step(); time.sleep(0.01)\n    if os.path.exists('stop'): os.abort()\n",
    )
    project.script(
        "launcher.py",
        "import subprocess, sys\nsys.exit(subprocess.run([sys.executable, 'worker.py']).returncode == -6)\n",
    )
    process = project.start("run", "--session", "s.stepscope", "launcher.py")
    wait_for(lambda: any(job.status.processes for job in jobs.running() if job.status.cwd == str(home)), "the worker")
    (home / "stop").touch()
    process.communicate(timeout=60)
    assert process.returncode == 1
    assert [(entry["program"], entry["what"]) for entry in off.harmed()] == [
        (str(home / "worker.py"), "died of SIGABRT")
    ]


LOOP = """
import os, time, stepscope
from stepscope.agent import state
print("ready", flush=True)
stepscope.step()
current = state.CURRENT
while not os.path.exists("stop") or (current is not None and not current.lines.out):
    stepscope.step(); time.sleep(0.002)
print("done", flush=True)
"""


@pytest.mark.parametrize("framework", ["import onnxruntime\n", ""])
def test_a_running_job_is_left(project: Project, home: Path, framework: str) -> None:
    """With and without a thread of ours: the agent leaves, the job goes on, and the session says why."""
    project.script("loop.py", framework + LOOP)
    process = project.start("run", "--session", "s.stepscope", "loop.py")
    said = project.run("disable", "--now", "loop.py")
    assert str(home / "loop.py") in said.stdout
    wait_for(
        lambda: any(job.left for job in jobs.running() if job.status.session == str(home / "s.stepscope")), "the mark"
    )
    (home / "stop").touch()
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("done\n", 0)
    (text,) = notes(home / "s.stepscope", "DX102")
    assert text.endswith(f"switched off for loop.py by {off.user_file()}")
    again = project.run("run", "-q", "--session", "2.stepscope", "loop.py")
    assert (again.stdout, again.returncode) == ("ready\ndone\n", 0)
    assert "switched off for loop.py by" in again.stderr
    assert not (home / "2.stepscope").exists()
    assert project.run("enable", "--again", "loop.py").returncode == 0
    assert not Path(off.user_file()).exists()


def test_no_timer_is_left_when_the_agent_has_left(project: Project, home: Path) -> None:
    """The interpreter takes handlers of signals back while it ends: a timer of ours would then kill the process."""
    project.script(
        "leaves.py",
        "import atexit\n"
        "atexit.register(lambda: print(open('/proc/self/timers').read().count('ClockID')))\n"  # the last handler
        "import onnxruntime, stepscope\n"
        "from stepscope.agent import state\n"
        "print(open('/proc/self/timers').read().count('ClockID'))\n"
        "state.CURRENT.take_out('it is tried')\n",
    )
    done = project.run("run", "--session", "s.stepscope", "leaves.py")
    assert (done.stdout, done.returncode) == ("1\n0\n", 0)


def test_a_process_that_is_off_in_a_measured_job(project: Project, home: Path) -> None:
    """A file may name one program of a job: that process is not measured, and the report says so."""
    off.replace_file(off.user_file(), "worker.py\n")
    project.script("worker.py", "import stepscope\nstepscope.step()\nprint('ready', flush=True)\n")
    project.script(
        "launcher.py",
        "import stepscope, subprocess, sys\nstepscope.step()\nsubprocess.run([sys.executable, 'worker.py'])\n",
    )
    done = project.run("run", "--session", "s.stepscope", "launcher.py")
    assert (done.stdout, done.returncode) == ("ready\n", 0)
    (text,) = notes(home / "s.stepscope", "DX115")
    assert text.endswith(f"was not measured: measuring is switched off for worker.py by {off.user_file()}")
    assert len(project.session().workers) == 1


def test_whatif_refuses_what_is_off(project: Project, home: Path) -> None:
    """Experiments measure, too; a program that came to harm may be tried, because somebody asks for that."""
    off.replace_file(off.user_file(), "steps.py\n")
    done = project.run("whatif", "steps.py")
    assert (done.returncode, "switched off for steps.py" in done.stderr) == (64, True)
