"""``compare`` on sessions of real jobs, and the workflows of examples/ci as they stand there."""

from __future__ import annotations

import json
import subprocess
import sys
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


@pytest.mark.slow
@pytest.mark.parametrize(("lines", "waits", "code"), [(_github, (0.005, 0.05), 1), (_gitlab, (0.05, 0.005), 0)])
def test_workflow_judges_two_commits(tmp_path: Path, lines: object, waits: tuple[float, float], code: int) -> None:
    """The shell lines of the file fail a commit with ten times the step, and pass one with a tenth."""
    assert callable(lines)
    base = _repository(tmp_path / "repository", waits)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "stepscope"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m stepscope "$@"\n')
    command.chmod(0o755)
    inherited = environment(
        RUNS="4",
        BASE=base,
        CI_MERGE_REQUEST_DIFF_BASE_SHA=base,
        GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"),
    )
    done = subprocess.run(
        ["bash", "-e", "-c", lines()],
        cwd=tmp_path / "repository",
        env={**inherited, "PATH": f"{command.parent}:{inherited['PATH']}"},
        capture_output=True,
        text=True,
        timeout=6 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == code, done.stderr
    shown = (tmp_path / "repository" / "comparison.md").read_text()
    assert ("B is slower" in shown, "B is faster" in shown) == (code == 1, code == 0)


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
