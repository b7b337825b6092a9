"""The job's Python may be another: every version from 3.9 on, in a virtual environment or not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from stepscope.model.log.events import AgentDiagnostic, ProcessEnded
from stepscope.wire.kinds import Kind

from .conftest import Armed

PROGRAM = """
import os, subprocess, sys, threading, stepscope
from stepscope.agent.core import frames; from stepscope.agent import bootstrap, state
for _ in range(10): stepscope.step()
@stepscope.span("decorated")
def work(a, b=2): return a + b
assert work(1) == 3
stepscope.metric("loss", 0.5)
bootstrap.HOOK.plain()
ticks = []
state.CURRENT.hooks.on_tick(ticks.append)
while len(ticks) < 4: sum(range(1000))
from stepscope.agent.sampling import calibrate
print(len(calibrate.measure(state.CURRENT)), frames.code_lines(work)[1:])
subprocess.run([sys.executable, "-c", "pass"], check=True)
if os.fork() == 0:
    with stepscope.span("child"): pass
    os._exit(0)
os.wait()
print("%d.%d" % sys.version_info[:2])
"""


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_supported_python(armed: Armed, version: str, find_python: Callable[[str], str]) -> None:
    """Arming, records, samples, forks and children work, without a word on the job's output: no warning either, as
    3.12 and later have of forks beside threads.
    """
    job = Armed(folder=armed.folder, python=find_python(version))
    result = job.start(PROGRAM, "-W", "error")
    assert (result.stdout, result.stderr) == (f"2 (5, 6)\n{version}\n", "")
    parent, child = armed.processes()
    assert len(parent.kinds(Kind.STEP)) == 9
    assert len(parent.kinds(Kind.SAMPLE)) >= 3
    assert parent.started.python.startswith(version + ".")
    assert isinstance(parent.lines[-1], ProcessEnded)
    assert parent.of(AgentDiagnostic) == []
    assert len(child.kinds(Kind.SPAN)) == 1


@pytest.mark.parametrize("version", ["3.9", "3.12"])
def test_virtual_environment(armed: Armed, tmp_path: Path, version: str, find_python: Callable[[str], str]) -> None:
    """A Python in a virtual environment of its own, started by a shell script, is measured."""
    environment = tmp_path / "venv"
    subprocess.run([find_python(version), "-m", "venv", "--without-pip", environment], check=True)
    script = tmp_path / "train.sh"
    script.write_text(f"#!/bin/sh\n. {environment}/bin/activate\npython -c 'import stepscope; stepscope.step()'\n")
    script.chmod(0o755)
    result = subprocess.run([script], env=armed.environment(), capture_output=True, text=True, check=False)
    assert (result.stderr, result.returncode) == ("", 0)
    assert armed.processes()[0].started.executable.startswith(str(environment))


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.8"])
def test_python_that_is_too_old(armed: Armed, tmp_path: Path, version: str, find_python: Callable[[str], str]) -> None:
    """A Python below 3.9 runs as without us, its own sitecustomize included."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("print('site')\n")
    job = Armed(folder=armed.folder, python=find_python(version))
    result = job.start("print('on')", env={"PYTHONPATH": str(tmp_path / "site")})
    assert (result.stdout, result.stderr) == ("site\non\n", "")
    assert list((armed.folder / "procs").iterdir()) == []


def test_environment_reaches_children_as_it_is(armed: Armed) -> None:
    """The job's children inherit PYTHONPATH and the run's variable unchanged."""
    program = "import os; print(os.environ['PYTHONPATH'], os.environ['STEPSCOPE_RUN'])"
    assert armed.start(program).stdout.split() == [str(armed.folder / "arm"), str(armed.folder)]
    assert "STEPSCOPE_RUN" not in os.environ
