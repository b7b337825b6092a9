"""``compare`` on sessions of real jobs, and the workflows of examples/ci as they stand there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.run.conftest import PATIENCE_S, Project, environment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "ci"
JOB = """
import sys, time, stepscope
wait = {wait} if len(sys.argv) < 2 else float(sys.argv[1])
for _ in range(60):
    stepscope.step()
    with stepscope.span("work"):
        time.sleep(wait)
"""


def _github() -> str:
    """The shell lines of the steps that measure and compare."""
    steps = yaml.safe_load((EXAMPLES / "github.yml").read_text())["jobs"]["compare"]["steps"]
    wanted = [step["run"] for step in steps if step.get("name") in {"Measure both commits in turn", "Compare"}]
    assert len(wanted) == 2
    return "\n".join(wanted)


def _gitlab() -> str:
    """The shell lines of the job's script."""
    return "\n".join(yaml.safe_load((EXAMPLES / "gitlab.yml").read_text())["performance"]["script"])


def _git(folder: Path, *args: str) -> str:
    words = ("git", "-c", "user.name=a", "-c", "user.email=a@b", *args)
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def _repository(folder: Path, waits: tuple[float, float]) -> str:
    """Two commits of a training, the second checked out; the name of the first."""
    folder.mkdir()
    _git(folder, "init", "-q")
    for wait in waits:
        (folder / "train.py").write_text(JOB.format(wait=wait))
        _git(folder, "add", "train.py")
        _git(folder, "commit", "-q", "--allow-empty", "-m", f"wait {wait}")
    return _git(folder, "rev-parse", "HEAD~1")


FAST_S, SLOW_S = 0.005, 0.05
MEASURES = 'exec "{python}" -m stepscope "$@"'
HANDS_OVER = """if [ "$1" = run ]; then
  grep -q "wait = {fast}" train.py && of=base || of=new
  exec cp -r "{runs}/$of/$(basename "$3")" "$3"
fi
"""
"""A ``stepscope run`` that hands over a recorded session of the training that lies here."""


def _workflow(folder: Path, lines: str, waits: tuple[float, float], runs: Path | None = None) -> tuple[int, str]:
    """Execute lines on two commits of a training: their exit code and the comparison."""
    base = _repository(folder / "repository", waits)
    (folder / "bin").mkdir()
    command = folder / "bin" / "stepscope"
    before = HANDS_OVER.format(fast=FAST_S, runs=runs) if runs else ""
    command.write_text(f"#!/bin/sh\n{before}{MEASURES.format(python=sys.executable)}\n")
    command.chmod(0o755)
    inherited = environment(
        RUNS="4", BASE=base, CI_MERGE_REQUEST_DIFF_BASE_SHA=base, GITHUB_STEP_SUMMARY=str(folder / "summary.md")
    )
    done = subprocess.run(
        ["bash", "-e", "-c", lines],
        cwd=folder / "repository",
        env={**inherited, "PATH": f"{command.parent}:{inherited['PATH']}"},
        capture_output=True,
        text=True,
        timeout=6 * PATIENCE_S,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, (folder / "repository" / "comparison.md").read_text()


def measured(project: Project) -> None:
    """The workflow of GitHub on a commit with ten times the step, and its exit code."""
    code, _ = _workflow(project.root, _github(), (FAST_S, SLOW_S))
    (project.root / "code").write_text(str(code))


@pytest.mark.slow
def test_a_workflow_fails_a_slower_commit(ran_once: Callable[[Callable[[Project], None]], Project]) -> None:
    """A commit with ten times the step."""
    root = ran_once(measured).root
    shown = (root / "repository" / "comparison.md").read_text()
    assert ((root / "code").read_text(), "B is slower" in shown, "B is faster" in shown) == ("1", True, False)


@pytest.mark.slow
def test_a_workflow_passes_a_faster_commit(
    ran_once: Callable[[Callable[[Project], None]], Project], tmp_path: Path
) -> None:
    """A commit with a tenth of the step. Its jobs were measured for the other workflow."""
    runs = ran_once(measured).root / "repository" / "runs"
    code, shown = _workflow(tmp_path, _gitlab(), (SLOW_S, FAST_S), runs)
    assert (code, "B is slower" in shown, "B is faster" in shown) == (0, False, True)


def test_sessions_and_packed_sessions_of_real_jobs(project: Project) -> None:
    """Two runs whose steps wait 5 and 50 ms: the ratio within the runs, the note, and the same from packed files."""
    project.script("train.py", JOB.format(wait=0.005))
    for name, words in (("a", ()), ("b", ("0.05",))):
        done = project.run("run", "--session", f"{name}.stepscope", "train.py", *words)
        assert done.returncode == 0, done.stderr
        assert project.run("pack", f"{name}.stepscope").returncode == 0
    done = project.run("compare", "a.stepscope", "b.stepscope", "--format", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["design"] == "within"
    assert report["typical"]["verdict"] == "slower"
    assert 2 < report["typical"]["ratio"] < 20
    assert any(note.startswith("commands differ: A") for note in report["notes"])
    packed = project.run("compare", "a.stepscope.zip", "b.stepscope.zip", "--format", "json")
    assert json.loads(packed.stdout)["main"] == report["main"]
    text = project.run("compare", "a.stepscope", "b.stepscope")
    assert "one run a side" in text.stdout


def test_what_is_no_session(project: Project) -> None:
    """One line on stderr and the exit code of a session that cannot be read."""
    project.script("train.py", "")
    done = project.run("compare", "train.py", "missing")
    assert done.returncode == 65
    assert (
        done.stderr
        == "stepscope: B: missing: no such session; expected a session, a folder of sessions, or a pattern\n"
    )
