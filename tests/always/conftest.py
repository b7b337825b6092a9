"""Environments of their own that are enabled, and the jobs that run in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.launcher import run_directories, rundir

SOURCE = Path(stepscope.__file__).resolve().parent.parent
PATIENCE_S = 90.0


def plain(**more: str) -> dict[str, str]:
    """An environment in which nothing of ours is set."""
    dropped = ("PYTHON", "STEPSCOPE", "VIRTUAL_ENV", "CONDA")
    return {**{k: v for k, v in os.environ.items() if not k.startswith(dropped)}, "TF_CPP_MIN_LOG_LEVEL": "2", **more}


def tool(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run stepscope."""
    environment = {**plain(), "PYTHONPATH": str(SOURCE), **(env or {})}
    command = [sys.executable, "-m", "stepscope", *args]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def wait_for(what: Callable[[], Any], why: str, patience_s: float = PATIENCE_S) -> Any:
    """Wait until ``what`` gives something true."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {patience_s} s for {why}")


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


STARTED: list[subprocess.Popen[str]] = []


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A virtual environment, and the folder for what its jobs leave."""

    python: str
    site: Path
    folder: Path
    sessions: Path

    @property
    def pth(self) -> Path:
        """The file that enable writes."""
        return self.site / "stepscope-enable.pth"

    def enable(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Enable it."""
        return tool("enable", "--python", self.python, "--sessions", str(self.sessions), *options)

    def disable(self) -> subprocess.CompletedProcess[str]:
        """Disable it."""
        return tool("disable", "--python", self.python)

    def start(
        self, program: str | Path, *flags: str, words: Sequence[str] = (), **options: Any
    ) -> subprocess.Popen[str]:
        """Start a program (a script, or source) in it, with its arguments."""
        what = [str(program)] if isinstance(program, Path) else ["-c", program]
        options.setdefault("env", plain())
        pipe = subprocess.PIPE
        command = [self.python, *flags, *what, *words]
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=self.folder, **options)
        STARTED.append(process)
        return process

    def run(self, program: str | Path, *flags: str, **options: Any) -> tuple[str, str, int]:
        """Run a program in it to its end: stdout, stderr, exit code."""
        process = self.start(program, *flags, **options)
        out, err = process.communicate(timeout=PATIENCE_S)
        return out, err, process.returncode

    def runs(self) -> list[Path]:
        """Run directories of jobs that were started here: other tests may run beside this one."""
        jobs = [(run, rundir.read_job(run)) for run in run_directories.listed(os.getuid())]
        return [run for run, job in jobs if job is not None and job.cwd == str(self.folder)]

    def finished(self) -> list[Path]:
        """The sessions of jobs that have ended, once their run directories have gone."""
        paths = sorted(self.sessions.glob("*.stepscope")) if self.sessions.is_dir() else []
        return [p for p in paths if json.loads((p / "manifest.json").read_text())["state"] != "running"]


def make(folder: Path, python: str, *, with_tensorflow: bool = False) -> Environment:
    """A virtual environment of a Python; with this environment's packages where a job needs TensorFlow."""
    place = folder / "venv"
    subprocess.run([python, "-m", "venv", "--without-pip", str(place)], check=True, env=plain())
    (site,) = place.glob("lib/python*/site-packages")
    if with_tensorflow:
        (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (folder / "jobs").mkdir()
    return Environment(
        python=str(place / "bin" / "python"), site=site, folder=folder / "jobs", sessions=folder / "sessions"
    )


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """An environment without TensorFlow."""
    return make(tmp_path, sys.executable)


@pytest.fixture
def tensorflow(tmp_path: Path) -> Environment:
    """An enabled environment with TensorFlow."""
    made = make(tmp_path, sys.executable, with_tensorflow=True)
    done = made.enable()
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture
def named(environment: Environment) -> Environment:
    """An enabled environment with a package that has only the name of a framework: its import takes no time."""
    (environment.site / "onnxruntime").mkdir()
    (environment.site / "onnxruntime" / "__init__.py").touch()
    done = environment.enable()
    assert done.returncode == 0, done.stderr
    return environment


@pytest.fixture(autouse=True)
def no_run_left(tmp_path: Path) -> Iterator[None]:
    """What a failed test leaves in /dev/shm goes with it."""
    yield
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            process.kill()
        process.communicate()
    for run in run_directories.listed(os.getuid()):
        job, session = rundir.read_job(run), rundir.session_of(run) or ""
        mine = session.startswith(str(tmp_path)) or (job is not None and job.cwd.startswith(str(tmp_path)))
        if mine and not run_directories.lives(run):
            rundir.remove(run)
