"""Real jobs under the real launcher."""

import importlib
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from tests import recordings

import stepscope
from stepscope.launcher import jobs, rundir
from stepscope.model.session.session import Session
from stepscope.sessions.bundle import open_session
from stepscope.wire.kinds import Kind

SOURCE = Path(stepscope.__file__).resolve().parent.parent
BENCHMARKS = Path(__file__).parents[2] / "bench"
PATIENCE_S = 240.0

STEPS = """
import sys, time, stepscope
print("ready", flush=True)
for _ in range(int(sys.argv[1])):
    stepscope.step()
    with stepscope.span("work"):
        time.sleep(0.001)
print("done", flush=True)
"""


def environment(**more: str) -> dict[str, str]:
    """Environment of a launcher that finds this stepscope."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "CONDA_PREFIX", "STEPSCOPE_RUN")}
    return {**inherited, "PYTHONPATH": str(SOURCE), **more}


AS_GROUP = "import os, sys; os.setpgrp(); os.execv(sys.argv[1], sys.argv[1:])"


@dataclass
class Project:
    """A directory with a user's scripts, in which stepscope is run."""

    root: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def script(self, name: str, text: str) -> Path:
        """Write a script."""
        path = self.root / name
        path.write_text(text, "utf-8")
        return path

    def command(self, *args: str) -> list[str]:
        """The command line of stepscope."""
        return [sys.executable, "-m", "stepscope", *args]

    def run(
        self, *args: str, env: dict[str, str] | None = None, patience_s: float = PATIENCE_S
    ) -> subprocess.CompletedProcess[str]:
        """Run stepscope to its end."""
        return subprocess.run(
            self.command(*args),
            cwd=self.root,
            env=env or environment(),
            capture_output=True,
            text=True,
            timeout=patience_s,
            check=False,
        )

    def start(self, *args: str, own_group: bool = False) -> subprocess.Popen[str]:
        """Start stepscope and wait until its job has printed a line.

        ``own_group``: in a process group of its own, as a shell with job control does. The kernel discards SIGTSTP to
        a group whose parent is in another session (an orphaned one), and the group of the tests may be one.
        """
        process = subprocess.Popen(
            [sys.executable, "-c", AS_GROUP, *self.command(*args)] if own_group else self.command(*args),
            cwd=self.root,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def sessions(self) -> list[Path]:
        """The sessions in the directory."""
        return sorted(self.root.glob("*.stepscope"))

    def session(self) -> Session:
        """The one session in the directory."""
        (path,) = self.sessions()
        return open_session(path)

    def close(self) -> None:
        """End whatever was started, and remove what it left."""
        for process in self.started:
            if process.poll() is None:
                for child in children(process.pid):
                    kill(child)
                process.kill()
            process.communicate()
        for manifest in self.root.rglob("manifest.json"):
            run = json.loads(manifest.read_text() or "{}").get("run_dir", "")
            if Path(run).name.startswith("stepscope-"):
                rundir.remove(Path(run))


def spans(session: Session) -> int:
    """How many spans of the user's own a session holds."""
    return sum(int((worker.records.kind == Kind.SPAN).sum()) for worker in session.workers)


def wait_for(what: Callable[[], object], why: str, patience_s: float = PATIENCE_S, *, every_s: float = 0.01) -> object:
    """Wait until ``what`` gives something true, asking at this interval."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(every_s)
    raise AssertionError(f"waited {patience_s} s for {why}")


def stepping(project: Project, count: int, least: int) -> list[int]:
    """Pids of the jobs of a folder, once there are so many and each has made more than ``least`` steps."""

    def mine() -> list[int]:
        every = [job.status for job in jobs.running()]
        pids = [one.pid for one in every if one.cwd == str(project.root) and one.steps > least]
        return pids if len(pids) == count else []

    found = wait_for(mine, f"steps of {count} jobs", every_s=0.5)
    assert isinstance(found, list)
    return found


def what_is_left() -> ModuleType:
    """The check that the benchmarks use: what a job leaves behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module("_left_behind")


def children(pid: int) -> dict[int, str]:
    """Child processes and their command lines."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            found[int(child)] = command
    return found


def sidecar_of(launcher: int) -> int:
    """Pid of the launcher's sidecar once it runs, 0 before."""
    return next((pid for pid, command in children(launcher).items() if "stepscope.sidecar.sidecar" in command), 0)


def job_of(launcher: int) -> int:
    """Pid of the launcher's job."""
    return next(pid for pid, command in children(launcher).items() if "stepscope.sidecar.sidecar" not in command)


def state_of(pid: int) -> str:
    """State letter of a process, empty if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat[stat.rindex(")") + 2]


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project; whatever was started in it is ended."""
    project = Project(tmp_path)
    project.script("steps.py", STEPS)
    yield project
    project.close()


@pytest.fixture(scope="session")
def ran_once(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Callable[[Project], None]], Project]:
    """A project in which a function ran its jobs, once for all workers (``tests.recordings``); tests only read it.

    The function's module and ``programs/`` say what it makes, with the sources of stepscope and the packages.
    """
    packages = sorted(f"{one.name} {one.version}" for one in importlib.metadata.distributions())
    here = Path(__file__)
    made_by = recordings.key_of([SOURCE / "stepscope", here, here.parent / "programs"], sys.executable, *packages)
    root = recordings.root(request.config, tmp_path_factory.getbasetemp()).with_name("sessions")  # keys change oftener
    kept = recordings.Recordings(root, made_by)

    def ran(make: Callable[[Project], None]) -> Project:
        code = recordings.key_of([Path(make.__code__.co_filename)])
        return Project(kept.folder(f"{make.__name__}-{code}", lambda folder: made_in(folder, make)))

    return ran


def made_in(folder: Path, make: Callable[[Project], None]) -> bool:
    """Run jobs in a folder."""
    project = Project(folder)
    project.script("steps.py", STEPS)
    try:
        make(project)
    finally:
        project.close()
    return True


@pytest.fixture
def started_long(project: Project) -> subprocess.Popen[str]:
    """A job that would run for a minute, in its middle."""
    return project.start("run", "--session", "s.stepscope", "steps.py", "50000")


@pytest.fixture(autouse=True, scope="session")
def hangup_as_usual() -> Iterator[None]:
    """Jobs get SIGHUP's default action also when the tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
