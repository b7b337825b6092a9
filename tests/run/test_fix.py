"""``stepscope fix`` on a real program."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.run.conftest import wait_for

from stepscope.sandbox import isolation

PATIENCE_S = 60.0
PROGRAM = """
import pathlib, signal
pathlib.Path("made").write_text("by the run")
print("loss 0.5", flush=True)
signal.pause()
"""
"""Runs until it is ended."""


def test_one_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    """No process, no folder, no file of the run; and no branch."""
    if isolation.problem():
        pytest.skip("no isolation here")
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    place = tmp_path.parent / f"{tmp_path.name}-temporary"
    place.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-m", "stepscope", "fix", "--branch", "faster", "train.py"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(place), "PYTHONPATH": str(Path(isolation.__file__).parents[2])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: any("loss" in log.read_text() for log in place.rglob("*.out")), "the program to run")
    running.send_signal(signal.SIGTERM)
    assert running.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert list(place.iterdir()) == []
    said = subprocess.run(["git", "status", "--porcelain"], cwd=tmp_path, capture_output=True, text=True, check=True)
    refs = subprocess.run(["git", "branch"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (said.stdout, len(refs.stdout.splitlines())) == ("", 1)
    mine = [one for one in Path("/proc").glob("[0-9]*/cwd") if _is_at(one, tmp_path)]
    assert mine == []


def _is_at(link: Path, folder: Path) -> bool:
    try:
        return link.resolve() == folder.resolve()
    except OSError:
        return False


def test_the_temporary_folder_has_a_name_that_is_swept() -> None:
    """What a killed one leaves is removed by the next command that sweeps."""
    from stepscope.launcher import scratch

    with tempfile.TemporaryDirectory(prefix=scratch.prefix("fix")) as name:
        assert scratch._NAME.fullmatch(Path(name).name)
