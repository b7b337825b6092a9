"""Under ``stepscope run`` a program without a framework is sampled once it has lived for some seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.run.conftest import Project

from stepscope.diagnosis.analyze import report_of
from stepscope.model.log.events import Code, ThreadSeen
from stepscope.sessions.bundle import open_session
from stepscope.wire.kinds import Kind

LONG = """
import os, sys, time
def work():
    return sum(number * number for number in range(2000))
deadline = time.monotonic() + 100
while len(os.listdir("/proc/self/task")) < 2 and time.monotonic() < deadline: work()
since = time.thread_time()
while time.thread_time() < since + 2: work()
print("done")
"""
"""Computes until it has a thread of ours, and then for two seconds of CPU time."""
LAUNCHER = """
import subprocess, sys
sys.exit(subprocess.run([sys.executable, "long.py"]).returncode)
"""


@pytest.mark.slow
def test_a_program_without_a_framework_has_its_lines(project: Project) -> None:
    """Its main thread's stacks are in the session, with the user's functions; a launcher above it is left alone."""
    project.script("long.py", LONG)
    project.script("launcher.py", LAUNCHER)
    done = project.run("run", "--session", "s", "launcher.py", patience_s=180.0)
    assert (done.returncode, done.stdout) == (0, "done\n")
    session = open_session(project.root / "s")
    (worker,) = session.workers
    assert worker.info.command[-1].endswith("long.py")
    main = [seen.id for seen in worker.all(ThreadSeen) if seen.main]
    samples = worker.records.take(worker.records.kind == Kind.SAMPLE)
    assert set(samples.thread.tolist()) == set(main)
    assert {"work", "work.<locals>.<genexpr>"} & {code.function for code in worker.all(Code)}
    report = report_of(session)
    assert any(Path(place.file).name == "long.py" for entry in report.ledger for place in entry.where)
    assert [entry.phase for entry in report.ledger if entry.phase == "start"] == []


def test_a_short_program_leaves_nothing(project: Project) -> None:
    """What ends within seconds has no thread, no log and no ring, as before."""
    project.script("short.py", "import os\nprint(len(os.listdir('/proc/self/task')))\n")
    done = project.run("run", "--session", "s", "short.py")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert not open_session(project.root / "s").workers
