"""No mode leaves anything behind: what is there after a real job was there before. whatif: test_whatif.py."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from .conftest import Project, environment, job_of, what_is_left

WHILE = """
import os, stepscope, time
print("ready", flush=True)
while not os.path.exists("stop"):
    with stepscope.span("work"):
        time.sleep(0.002)
    stepscope.step()
"""


@pytest.fixture(name="left_behind")
def _left_behind() -> ModuleType:
    return what_is_left()


def test_the_check_sees_what_is_left(left_behind: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that a mark names is told; one that was there before, or is another's, is not."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "stepscope-before").write_text("mark-1")
    before = left_behind.there()
    (tmp_path / "stepscope-mine").write_text("mark-1")
    (tmp_path / "stepscope-other").write_text("mark-2")
    found = left_behind.left(before, "mark-1", only_marked=True, patience_s=0.0)
    assert found == [f"file {tmp_path / 'stepscope-mine'}"]


def test_run_trace_and_attach(left_behind: ModuleType, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that is traced and looked at from outside while it runs."""
    monkeypatch.setenv("TMPDIR", str(project.root))
    before = left_behind.there()
    project.script("train.py", WHILE)
    launcher = project.start("run", "--session", "s.stepscope", "train.py")
    env = environment(LEFT=str(project.root))
    traced = project.run("trace", str(job_of(launcher.pid)), "--kind", "native", "--seconds", "1", "--force", env=env)
    assert traced.returncode in (0, 75), traced.stderr
    attached = project.run("attach", str(launcher.pid), "--seconds", "8", env=env)
    assert attached.returncode == 0, attached.stderr
    (project.root / "stop").write_text("")
    launcher.communicate(timeout=60)
    assert left_behind.left(before, str(project.root), only_marked=True) == []
