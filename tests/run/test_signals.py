"""Signals reach the job once, stops stop both, and the launcher ends as the job ended."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stepscope.sessions.bundle import open_session

from .conftest import Project, children, environment, job_of, kill, sidecar_of, state_of, wait_for

COUNT = """
import os, signal, sys, time, stepscope
seen = []
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGWINCH"):
    signal.signal(getattr(signal, name), lambda number, frame: seen.append(signal.Signals(number).name))
print("ready", flush=True)
deadline = time.monotonic() + 60
while not seen and time.monotonic() < deadline:
    stepscope.step()
    time.sleep(0.002)
time.sleep(0.3)
print(seen, flush=True)
sys.exit(3)
"""


EACH = """
import signal, sys, time, stepscope
seen = []
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), lambda number, frame: seen.append(signal.Signals(number).name))
print("ready", flush=True)
said, deadline = 0, time.monotonic() + 120
while said < len(sys.argv[1:]) and time.monotonic() < deadline:
    stepscope.step()
    time.sleep(0.002)
    if len(seen) > said:
        time.sleep(0.3)
        print(*seen[said:], flush=True)
        said = len(seen)
sys.exit(3)
"""
"""Says each signal that has come, with those that come within 0.3 s, until there were as many as it names."""


def test_each_signal_is_forwarded_once(project: Project) -> None:
    """A signal that somebody sends to the launcher reaches the job once; the job's own exit code counts."""
    names = ("SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGHUP", "SIGQUIT", "SIGTERM", "SIGINT")
    project.script("each.py", EACH)
    process = project.start("run", "each.py", *names)
    assert process.stdout is not None
    for name in names:
        process.send_signal(getattr(signal, name))
        assert process.stdout.readline() == f"{name}\n"
    out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ("", 3)
    assert err.startswith("stepscope ")


def test_signals_to_the_group_reach_the_job_once(project: Project) -> None:
    """What is sent to the whole group is not passed on, however late the launcher takes it; what it gets alone is."""
    project.script("each.py", EACH.replace("time.sleep(0.3)", "pass"))
    names = [name for each in ("SIGUSR1", "SIGTERM", "SIGINT") for name in (each, "SIGHUP")]
    process = project.start("run", "each.py", *names, own_group=True)
    assert process.stdout is not None
    for name in names[::2]:
        kill(process.pid, signal.SIGSTOP)
        wait_for(lambda: state_of(process.pid) == "T", "the launcher to stop")
        os.killpg(process.pid, getattr(signal, name))
        assert process.stdout.readline() == f"{name}\n"
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGCONT)
        assert process.stdout.readline() == "SIGHUP\n"
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("", 3)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
def test_launcher_dies_by_the_jobs_signal(project: Project, number: signal.Signals) -> None:
    """A job that a forwarded signal ends makes the launcher end by the same signal, after the report."""
    process = project.start("run", "steps.py", "100000")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -number
    assert "stepscope " in err
    assert project.session().manifest.exit_code == -number


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_job_that_dies_by_itself(project: Project, number: signal.Signals) -> None:
    """A job that crashes is reported, the launcher dies as it did, and leaves no core file of its own."""
    project.script(
        "crash.py", f"import os, stepscope\nfor _ in range(50): stepscope.step()\nos.kill(os.getpid(), {number})"
    )
    done = project.run("run", "crash.py")
    assert done.returncode == -number
    assert len(project.session().workers[0].records) >= 49
    assert list(project.root.glob("core*")) == []


def test_stop_and_continue(project: Project) -> None:
    """SIGTSTP to the launcher stops the job and then the launcher; SIGCONT continues both."""
    process = project.start("run", "steps.py", "2000", own_group=True)
    job = job_of(process.pid)
    process.send_signal(signal.SIGTSTP)
    wait_for(lambda: state_of(job) == "T" and state_of(process.pid) == "T", "both to stop")
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("done\n", 0)


def test_job_that_is_continued_alone(project: Project) -> None:
    """When somebody continues the job but not the launcher, the sidecar continues the launcher."""
    process = project.start("run", "steps.py", "2000")
    job = job_of(process.pid)
    wait_for(lambda: sidecar_of(process.pid), "the sidecar")
    kill(job, signal.SIGSTOP)
    wait_for(lambda: state_of(job) == "T" and state_of(process.pid) == "T", "both to stop")
    kill(job, signal.SIGCONT)
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("done\n", 0)


def terminal(project: Project, *args: str) -> tuple[int, int]:
    """Start stepscope as the foreground job of a terminal of its own: (pid, the terminal's other end)."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(project.root)
        os.execve(sys.executable, project.command(*args), environment(NO_COLOR="1"))
    return pid, fd


def read_until(fd: int, text: bytes) -> bytes:
    """Read from a terminal until ``text`` has come, or the terminal is closed."""
    data = b""
    while text not in data:
        try:
            part = os.read(fd, 4096)
        except OSError:
            break
        if not part:
            break
        data += part
    return data


def test_ctrl_c_reaches_the_job_once(project: Project) -> None:
    """Ctrl-C at a terminal is not sent to the job a second time; the report comes."""
    project.script("count.py", COUNT)
    pid, fd = terminal(project, "run", "count.py")
    assert b"ready" in read_until(fd, b"ready")
    os.write(fd, b"\x03")
    rest = read_until(fd, b"report.html")
    assert b"['SIGINT']" in rest
    assert b"stepscope" in rest
    read_until(fd, b"\0")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    os.close(fd)


SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
own = os.getpgrp()
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
status = os.waitpid(job, os.WUNTRACED)[1]
os.tcsetpgrp(0, own)
states = [open("/proc/%s/stat" % p).read().rsplit(")")[1].split()[0]
          for p in os.listdir("/proc") if p.isdigit() and os.getpgid(int(p)) == job]
print("stopped", os.WIFSTOPPED(status), sorted(states), flush=True)
os.tcsetpgrp(0, job)
os.killpg(job, signal.SIGCONT)
print("ended", os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]), flush=True)
"""


def test_ctrl_z_stops_both(project: Project) -> None:
    """Ctrl-Z at a terminal stops job and launcher, the shell sees it, and its continuing continues both.

    The third process of the group is the relay's witness, which no signal stops.
    """
    project.script("shell.py", SHELL)
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(project.root)
        words = [sys.executable, "shell.py", *project.command("run", "-q", "steps.py", "1500")]
        os.execve(sys.executable, words, environment())
    assert b"ready" in read_until(fd, b"ready")
    os.write(fd, b"\x1a")
    assert b"stopped True ['S', 'T', 'T']" in read_until(fd, b"]")
    rest = read_until(fd, b"ended 0")
    assert b"done" in rest
    assert b"ended 0" in rest
    os.waitpid(pid, 0)
    os.close(fd)


def test_ctrl_c_while_the_report_is_written(project: Project) -> None:
    """Who does not wait for the report is told where it will be, and it is written."""
    process = project.start("run", "--session", "s.stepscope", "steps.py", "300")
    sidecar = wait_for(lambda: sidecar_of(process.pid), "the sidecar")
    assert isinstance(sidecar, int)
    wait_for(lambda: os.getsid(sidecar) == sidecar, "its own session")
    kill(sidecar, signal.SIGSTOP)
    assert process.stdout is not None
    assert process.stdout.readline() == "done\n"
    wait_for(lambda: not [p for p in children(process.pid) if p != sidecar], "the job's end")
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == "stepscope: the report is still being written, to s.stepscope/report.txt\n"
    kill(sidecar, signal.SIGCONT)
    report = project.root / "s.stepscope" / "report.txt"
    wait_for(report.exists, "the report")
    wait_for(lambda: state_of(sidecar) in ("", "Z"), "the sidecar's end")
    assert open_session(project.root / "s.stepscope").manifest.exit_code == 0


def test_ignored_hangup_stays_ignored(project: Project) -> None:
    """Under nohup the job ignores SIGHUP as it would without us."""
    code = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    script = project.script("hup.py", "import signal; print(signal.getsignal(signal.SIGHUP))")
    done = subprocess.run(
        [sys.executable, "-c", code, *project.command("run", "-q", script.name)],
        cwd=project.root,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "1\n"


def test_sidecar_is_out_of_the_terminals_reach(project: Project) -> None:
    """The sidecar leads a session of its own and is niced; the job is neither."""
    process = project.start("run", "steps.py", "3000")
    sidecar = wait_for(lambda: sidecar_of(process.pid), "the sidecar")
    assert isinstance(sidecar, int)
    assert wait_for(lambda: os.getsid(sidecar) == sidecar, "its own session")
    assert wait_for(lambda: os.getpriority(os.PRIO_PROCESS, sidecar) >= 10, "being nice")
    job = job_of(process.pid)
    assert os.getsid(job) == os.getsid(0)
    assert os.getpriority(os.PRIO_PROCESS, job) == os.getpriority(os.PRIO_PROCESS, 0)
    assert Path(f"/proc/{job}/exe").exists()
