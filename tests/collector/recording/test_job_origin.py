"""Whose job it is, and of which commit."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from stepscope.collector.recording.job_origin import job_origin

GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def git(folder: Path, *words: str) -> str:
    """A command of git."""
    said = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    done = subprocess.run(
        ["git", "-C", str(folder), *said, *words], capture_output=True, text=True, check=True, env={**os.environ, **GIT}
    )
    return done.stdout.strip()


def test_a_repository(tmp_path: Path) -> None:
    """Its folder is the project, from below too; before the first commit there is none."""
    top = tmp_path / "nets"
    (top / "jobs").mkdir(parents=True)
    git(top, "init", "-q")
    assert job_origin(str(top), environment={}).commit == ""
    git(top, "commit", "-q", "--allow-empty", "-m", "first")
    found = job_origin(str(top / "jobs"), os.getpid(), environment={})
    assert (found.user, found.project) == (getpass.getuser(), "nets")
    assert found.commit == git(top, "rev-parse", "HEAD")


def test_no_repository(tmp_path: Path) -> None:
    """The working directory is the project; a folder that is gone is no error."""
    assert job_origin(str(tmp_path), environment={}).project == tmp_path.name
    found = job_origin(str(tmp_path / "gone"), 2**22, environment={})
    assert (found.project, found.commit, found.user) == ("gone", "", getpass.getuser())


def test_git_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it end when it is killed: so it is in a call to a dead file system."""
    git_s, child_s = 0.2, 20
    (tmp_path / "git").write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep {child_s}\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("stepscope.collector.recording.job_origin._GIT_S", git_s)
    monkeypatch.setattr(subprocess.Popen, "kill", lambda _: None)
    began = time.monotonic()
    found = job_origin(str(tmp_path), environment={})
    assert time.monotonic() - began < child_s / 2
    assert (found.project, found.commit) == (tmp_path.name, "")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.parametrize(
    ("environment", "team"),
    [
        ({"STEPSCOPE_TEAM": "vision", "SLURM_JOB_ACCOUNT": "lab7"}, "vision"),
        ({"SLURM_JOB_ACCOUNT": "lab7"}, "lab7"),
    ],
)
def test_team(tmp_path: Path, environment: dict[str, str], team: str) -> None:
    """What the user says counts more than what is charged."""
    assert job_origin(str(tmp_path), environment=environment).team == team
