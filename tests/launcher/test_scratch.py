"""Temporary folders of commands: those of killed ones are swept, and no other."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from stepscope.launcher import rundir, scratch

KILLED = """
import os, subprocess, sys, tempfile
from stepscope.launcher import scratch
made = tempfile.mkdtemp(prefix=scratch.prefix("against"), dir=sys.argv[1])
git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", sys.argv[2]]
subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
subprocess.run([*git, "worktree", "add", "-q", "--detach", made + "/project"], check=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary folders are in the test's."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.setattr(rundir, "temporary_directories", list)


def test_what_a_killed_process_left(tmp_path: Path) -> None:
    """Its folder goes, and what the repository knows of the worktree in it."""
    repository = tmp_path / "project"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "tmp"), str(repository)]
    assert subprocess.run(command, check=False).returncode == -9
    assert list((tmp_path / "tmp").iterdir())
    assert list((repository / ".git" / "worktrees").iterdir())
    scratch.sweep()
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list((repository / ".git" / "worktrees").iterdir()) == []


def test_what_is_in_use_or_of_others_stays(tmp_path: Path) -> None:
    """A folder of a process that lives, of another pid namespace, and a link."""
    mine = scratch.prefix("gather")
    pid, ticks, namespace = mine.split("-")[2:5]
    dead = f"stepscope-gather-{pid}-{int(ticks) + 1}"
    for name in (mine + "a", f"{dead}-{int(namespace) + 1}-b", "stepscope-gather-of-somebody"):
        (tmp_path / "tmp" / name).mkdir()
    (tmp_path / "tmp" / f"{dead}-{namespace}-c").symlink_to(tmp_path)
    scratch.sweep()
    assert len(list((tmp_path / "tmp").iterdir())) == 4
    (tmp_path / "tmp" / f"{dead}-{namespace}-d").mkdir()
    scratch.sweep()
    assert len(list((tmp_path / "tmp").iterdir())) == 4
