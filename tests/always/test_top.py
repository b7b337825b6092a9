"""``ps`` and ``top`` as people see them: quick, plain without a terminal, gone with a key."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from stepscope.collector.agent_files.ring import RECORD_DTYPE
from stepscope.collector.recording.recent import Recent
from stepscope.launcher import rundir
from stepscope.model.api.status import LiveFinding, LiveShare, LiveTask, Status
from stepscope.native import process_stat
from stepscope.report import live
from stepscope.wire.kinds import Kind

from .conftest import SOURCE, plain, tool, wait_for

STEPS = """
import os, time, stepscope
print("ready", flush=True)
while not os.path.exists("stop"):
    stepscope.step()
    with stepscope.span("work"): time.sleep(0.002)
"""
STATUS = Status(
    pid=7,
    mode="enable",
    command=("python", "train.py"),
    framework="tensorflow 2.21.0, keras 3.15.1",
    session="/s/train.stepscope",
    state="running",
    started_unix_s=100.0,
    updated_unix_s=160.0,
    processes=2,
    steps=600,
    step_title="Keras fit",
    steps_per_s=12.5,
    samples_per_s=800.0,
    anatomy=(LiveShare(component="input-wait", ratio=0.61), LiveShare(component="call", ratio=0.35)),
    top=LiveFinding(
        code="INP003",
        title="the input generator runs in Python",
        severity="high",
        cost_ratio=0.58,
        place="train.py:41 make",
    ),
    findings=2,
    analysed_unix_s=150.0,
    analysis_every_s=30.0,
    undecided=("HST009",),
    tasks=(
        LiveTask(kind="Keras function", name="train", pid=7, count=600, per_s=12.5, mean_ns=10**7, p95_ns=2 * 10**7),
    ),
    records=5000,
    sidecar_core_ratio=0.004,
    session_bytes=3 << 20,
    bytes_per_hour=20e6,
)
ROW = live.JobRow(status=STATUS, user="ann", state="running", name="train.py")

SESSION = f"top-{os.getpid()}.stepscope"
"""No other job of this machine has one of that name."""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A job of ``run`` that goes on until it is told to stop; no TensorFlow."""
    (tmp_path / "steps.py").write_text(STEPS)
    launcher = subprocess.Popen(
        [sys.executable, "-m", "stepscope", "run", "-q", "--session", SESSION, "steps.py"],
        cwd=tmp_path,
        env=plain(PYTHONPATH=str(SOURCE)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "ready\n"
    yield launcher
    (tmp_path / "stop").write_text("")
    launcher.communicate(timeout=60)


def pid_of(tmp_path: Path) -> int:
    """The job's pid, once ``ps`` lists it with a rate."""
    for found in json.loads(tool("ps", "--json").stdout)["jobs"]:
        if found["session"] == str(tmp_path / SESSION) and found["steps_per_s"]:
            return int(found["pid"])
    return 0


def test_a_job_of_run_is_listed_and_watched(job: subprocess.Popen[str], tmp_path: Path) -> None:
    """``ps`` and ``top`` know jobs of ``run``: by pid, by session, by script; an unknown one is an error."""
    pid = wait_for(lambda: pid_of(tmp_path), "the job in ps")
    for name in (str(pid), SESSION, str(tmp_path / SESSION)):
        said = tool("top", "--once", name)
        assert said.returncode == 0, said.stderr
        assert f"pid {pid}" in said.stdout
        assert "steps of stepscope.step" in said.stdout
        assert "\x1b" not in said.stdout
    done = tool("top", "no-such-job")
    assert (done.returncode, done.stdout) == (67, "")
    assert "no running job matches no-such-job" in done.stderr
    assert "steps.py" in tool("ps").stdout
    assert job.poll() is None


def test_a_key_leaves(job: subprocess.Popen[str], tmp_path: Path) -> None:
    """On a terminal ``top`` draws the screen, ends by q, restores the terminal and leaves the job alone."""
    pid = wait_for(lambda: pid_of(tmp_path), "the job in ps")
    main, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    before = termios.tcgetattr(inner)
    top = subprocess.Popen(
        [sys.executable, "-m", "stepscope", "top", str(pid)],
        env=plain(PYTHONPATH=str(SOURCE), TERM="xterm"),
        stdin=inner,
        stdout=inner,
        stderr=inner,
    )
    screen = b""
    while b"steps/s" not in screen:
        ready, _, _ = select.select([main], [], [], 30)
        assert ready, screen
        screen += os.read(main, 65_536)
    os.write(main, b"q")
    while top.poll() is None:
        if select.select([main], [], [], 0.2)[0]:
            screen += os.read(main, 65_536)
    assert top.returncode == 0
    assert b"\x1b[?1049h" in screen
    assert termios.tcgetattr(inner)[3] == before[3]
    assert job.poll() is None
    os.close(main)
    os.close(inner)


def test_without_a_terminal_it_ends_with_the_job(job: subprocess.Popen[str], tmp_path: Path) -> None:
    """Without a terminal ``top`` prints blocks of text until the job has ended, and says where its report is."""
    pid = wait_for(lambda: pid_of(tmp_path), "the job in ps")
    top = subprocess.Popen(
        [sys.executable, "-m", "stepscope", "top", str(pid)],
        env=plain(PYTHONPATH=str(SOURCE)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert top.stdout is not None
    assert "steps.py" in top.stdout.readline()
    (tmp_path / "stop").write_text("")
    job.wait(timeout=60)
    out, _ = top.communicate(timeout=60)
    assert out.endswith(f"steps.py has ended: stepscope report {tmp_path}/{SESSION}\n")


@pytest.mark.parametrize("width", [80, 120, 200])
def test_text(width: int) -> None:
    """List and view hold what the status says, within the width."""
    table = live.table([ROW], width=width)
    view = live.text(ROW, width=width, now_s=200.0)
    assert max(map(len, (table + view).splitlines())) <= width
    for words in ("train.py", "INP003", "58 %", "ann"):
        assert words in table
    for words in (
        "800 samples/s",
        "12.5 steps/s",
        "of Keras fit",
        "running for 100 s",
        "input wait",
        "61 %",
        "HST009",
        "1 more",
        "train.py:41 make",
        "Keras function",
        "600",
        "3 MiB",
        "0.4 % of a core",
    ):
        assert words in view


def test_nothing_known_yet() -> None:
    """A job without status is listed as starting, and nothing is claimed about it."""
    row = live.JobRow(status=Status(pid=7), user="ann", state="starting", name="train.py")
    assert "not analysed yet" in live.table([row], width=120)
    assert "not analysed yet" in live.text(row, width=120)
    looked = live.JobRow(status=Status(pid=7, analysed_unix_s=1.0), user="ann", state="running", name="ps.py")
    assert "no repeating work at present" in live.table([looked], width=160)
    assert "no repeating work at present" in live.text(looked, width=120)
    assert "no job is being measured" in live.table([], width=80)


def test_hostile_status(tmp_path: Path) -> None:
    """What another user published reaches the terminal without control characters; a damaged status is none."""
    from stepscope.launcher import jobs

    run = rundir.make(tmp_path / "s.stepscope", 0)
    try:
        me = os.getpid()
        rundir.write_job(
            run, rundir.JobFacts(pid=me, start_ticks=process_stat.start_ticks(me), launcher_pid=me, command=("a\x1b",))
        )
        (run / "status.json").write_text(json.dumps({"framework": "x\x1b]0;evil\x07", "pid": 1, "uid": 0}))
        (job,) = [job for job in jobs.running() if job.run == run]
        assert job.status.framework == "x ]0;evil "
        assert (job.status.pid, job.status.uid) == (me, os.getuid())
        (run / "status.json").write_text('{"pid": "x"')
        (job,) = [job for job in jobs.running() if job.run == run]
        assert (job.state, job.status.command) == ("starting", ("a ",))
        (run / "status.json").write_bytes(b"[" * (2 << 20))
        assert any(job.run == run for job in jobs.running())
    finally:
        rundir.remove(run)


def test_calls_of_a_gap_are_counted() -> None:
    """Calls that were only counted go by the names of the newest ones, in their shares."""
    rows = np.zeros(9, RECORD_DTYPE)
    rows["kind"][:8], rows["name"][:8] = Kind.FUNCTION, [1, 1, 1, 1, 1, 1, 2, 2]
    rows["start_ns"], rows["dur_ns"] = np.arange(9), 1
    rows["kind"][8], rows["flags"][8], rows["arg"][8] = Kind.REST, int(Kind.FUNCTION) << 8, 400
    recent = Recent(0)
    recent.add_records(rows)
    assert recent.counts[int(Kind.FUNCTION), 1] == 306
    assert recent.counts[int(Kind.FUNCTION), 2] == 102


def test_recent_is_bounded() -> None:
    """However much comes, the recent past holds a bounded number of records; counts go on."""
    recent = Recent(0)
    for second in range(100):
        rows = np.zeros(3_000, RECORD_DTYPE)
        rows["kind"], rows["name"], rows["start_ns"] = Kind.EXECUTION, 1, second * 10**9
        recent.add_records(rows)
    assert recent.counts[int(Kind.EXECUTION), 1] == 300_000
    assert recent._held <= 43_000
