"""Jobs that die for lack of memory: the session that the death left says who held it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.sessions.analysis import analyze
from stepscope.tables.findings import Finding

from .conftest import Project, environment

GROWS = """
import numpy as np, stepscope, sys, time
def collect(count):
    history = []
    for _ in range(count):
        history.append(np.ones(1 << 20))
        stepscope.step()
        time.sleep(0.02)
    return history
collect(int(sys.argv[1]))
print("done")
"""
"""Keeps 8 MiB a step."""
GROUPS = Path("/sys/fs/cgroup/memory") if Path("/sys/fs/cgroup/memory").is_dir() else Path("/sys/fs/cgroup")
LIMIT = "memory.limit_in_bytes" if GROUPS.name == "memory" else "memory.max"


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group with a limit of 1,500 MiB."""
    folder = GROUPS / f"stepscope-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / LIMIT).write_text(str(1500 << 20))
    except OSError:
        pytest.skip("no right to make a control group of memory")
    yield folder
    folder.rmdir()


def death(project: Project) -> Finding:
    """What the report says of the death."""
    report = analyze(project.root / "s.stepscope")
    (found,) = (f for f in report.findings if f.code == "MEM004")
    return found


def test_an_exception(project: Project) -> None:
    """A list that grows up to the limit of the address space: the list, its line, and how many entries fit."""
    project.script("grows.py", GROWS)
    limited = f"ulimit -v 3000000; exec '{sys.executable}' grows.py 2000"
    done = project.run("run", "--session", "s.stepscope", "--", "sh", "-c", limited)
    assert done.returncode == 1
    found = death(project)
    assert "history in collect holds" in found.title
    assert "address space" in found.title
    assert found.where[0].line == 6
    assert found.cause == "API: inefficient API usage"


def test_a_kill(project: Project, group: Path) -> None:
    """The same in a control group: the kernel kills, and the looks until then say it."""
    project.script("grows.py", GROWS)
    enter = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    command = project.command("run", "--session", "s.stepscope", "grows.py", "2000")
    subprocess.run([*enter, *command], cwd=project.root, env=environment(), capture_output=True, check=False)
    found = death(project)
    assert "history in collect holds" in found.title
    assert "1.46 GiB (control group)" in found.title
    fits = next(e.value for e in found.evidence if e.metric == "size_that_fits")
    assert 60 <= fits <= 187


def test_a_job_that_lives_has_room(project: Project) -> None:
    """A job that ends well has no such finding, and its distance to the limit is in the report."""
    project.script("grows.py", GROWS)
    done = project.run("run", "--session", "s.stepscope", "grows.py", "40")
    assert done.returncode == 0
    report = analyze(project.root / "s.stepscope")
    assert [f.code for f in report.findings if f.code.startswith("MEM")] == []
    assert report.memory_room is not None
    assert 0 < report.memory_room.peak_bytes <= report.memory_room.limit_bytes
