"""A trial is a whole run: it is recorded as any other, and nothing is left of it but its session."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from stepscope.model.report.report import Report
from stepscope.model.session.session import Session
from stepscope.sandbox import isolation
from stepscope.sessions.bundle import open_session
from stepscope.wire.kinds import Kind

from .conftest import PATIENCE_S, STEPS, environment, kill, wait_for

PROGRAMS = Path(__file__).with_name("programs")
UID = 54321
"""A normal user without name, files and other processes."""
PACKAGES = str(Path(msgspec.__file__).resolve().parent.parent)

WRITES = """
import os, subprocess, sys, stepscope
open("written", "w").write("x"); open("log.csv", "a").write("more"); os.remove("old")
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
"""


def as_user(uid: int) -> list[str]:
    """The beginning of a command line of a user."""
    return [] if uid == os.getuid() else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


@dataclass
class Place:
    """A user's folder with a program, and a folder for sessions elsewhere."""

    uid: int
    python: str
    base: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def work(self) -> Path:
        return self.base / "work"

    @property
    def session_path(self) -> Path:
        return self.base / "sessions" / "s.stepscope"

    def start(self, *argv: str, **more: str) -> subprocess.Popen[str]:
        """Start a trial."""
        command = [*as_user(self.uid), self.python, str(PROGRAMS / "run_isolated.py"), str(self.session_path), *argv]
        process = subprocess.Popen(
            command,
            cwd=self.work,
            env=self.environment(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def environment(self, **more: str) -> dict[str, str]:
        """Environment of the user."""
        own = environment(HOME=str(self.work), **more)
        if self.uid == os.getuid():
            return own
        return own | {"PYTHONPATH": f"{own['PYTHONPATH']}:{PACKAGES}", "PATH": "/usr/bin:/bin"}

    def run(self, *argv: str, patience_s: float = PATIENCE_S, **more: str) -> tuple[int, str, str]:
        """Run a trial to its end: (exit code, stdout, stderr)."""
        process = self.start(*argv, **more)
        out, err = process.communicate(timeout=patience_s)
        return process.returncode, out, err

    def write(self, name: str, text: str) -> None:
        """A file of the user's."""
        (self.work / name).write_text(text)
        os.chown(self.work / name, self.uid, self.uid)

    def tree(self) -> dict[str, tuple[object, ...]]:
        """All that is below the working folder: kind, mode, time, content."""
        found: dict[str, tuple[object, ...]] = {}
        for path in (self.work, *self.work.rglob("*")):
            seen = path.lstat()
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path)] = (seen.st_mode, seen.st_uid, seen.st_mtime_ns, content)
        return found

    def session(self) -> Session:
        """The session of the trial."""
        return open_session(self.session_path)


def python_of(uid: int) -> str:
    """A Python with all packages that the user may run; skip if there is none."""
    if uid == os.getuid():
        return sys.executable
    python = f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    code = "import msgspec, pyarrow; from stepscope.sandbox import isolation; print(isolation.problem())"
    path = f"{environment()['PYTHONPATH']}:{PACKAGES}"
    try:
        done = subprocess.run(
            [*as_user(uid), python, "-c", code],
            env={"PYTHONPATH": path},
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"{python} does not run for a normal user with the packages of these tests")
    if done.stdout.strip():
        pytest.skip(done.stdout.strip())
    return python


def run_directories(uid: int) -> list[str]:
    """The run directories of a user."""
    return [path.name for path in Path("/dev/shm").glob(f"stepscope-{uid}-*")]


@pytest.fixture(params=["self", "normal user"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A folder of the user who runs the tests, and of a normal one if that is root."""
    uid = os.getuid() if request.param == "self" else UID
    if uid == UID and os.getuid():
        pytest.skip("only root can become another user")
    problem = isolation.problem()
    if problem:
        pytest.skip(problem)
    base = Path(tempfile.mkdtemp(prefix="trial-"))
    base.chmod(0o755)
    place = Place(uid=uid, python=python_of(uid), base=base)
    for name in ("work", "sessions"):
        (base / name).mkdir()
        os.chown(base / name, uid, uid)
    for name, text in (("steps.py", STEPS), ("log.csv", "before"), ("old", "old")):
        place.write(name, text)
    yield place
    for process in place.started:
        process.kill()
        process.communicate()
    shutil.rmtree(base)


def test_a_trial_is_recorded_and_leaves_its_session_alone(place: Place) -> None:
    """Steps, spans and sources are recorded, the exit code comes through, files are as before, a daemon is dead."""
    place.write("job.py", WRITES + STEPS + "sys.exit(3)\n")
    before = place.tree()
    mounts = Path("/proc/self/mountinfo").read_text()
    code, out, err = place.run(place.python, "job.py", "300")
    assert (code, out) == (3, "ready\ndone\n"), err
    assert place.tree() == before
    assert Path("/proc/self/mountinfo").read_text() == mounts
    session = place.session()
    (worker,) = session.workers
    assert (worker.records.kind == Kind.SPAN).sum() == 300
    assert (session.manifest.exit_code, session.manifest.state) == (3, "finished")
    assert str(place.work / "job.py") in session.sources
    assert not Path(session.manifest.run_dir).exists()
    assert [path.name for path in place.session_path.parent.iterdir()] == ["s.stepscope"]
    assert not processes_in(place.work)


def processes_in(folder: Path) -> list[str]:
    """Command lines of processes that were started in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == folder:
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_job(place: Place, number: signal.Signals) -> None:
    """A forwarded signal ends the job, and the launcher ends likewise, with the session finished."""
    place.write("job.py", "import signal; signal.signal(2, signal.SIG_DFL)\n" + STEPS)
    process = place.start(place.python, "job.py", "100000")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -number
    assert place.session().manifest.exit_code == -number


TRIAL = """
import sys
from pathlib import Path
from stepscope.agent.payload import PAYLOAD
from stepscope.launcher import launch
run = launch.LaunchOptions(argv=(sys.executable, "job.py"), payload=PAYLOAD, session=Path(sys.argv[1]), offline=True)
launch.run(run)
"""
JOB = """
import os
folder = os.environ["MLFLOW_TRACKING_URI"].removeprefix("file://")
os.mkdir(folder)
print(os.environ["WANDB_MODE"], folder, "HF_HUB_OFFLINE" in os.environ)
"""


def test_trackers_are_offline_in_a_trial_that_is_not_isolated(place: Place) -> None:
    """What the job writes for them is gone afterwards; hubs are read as always."""
    place.write("job.py", JOB)
    process = subprocess.run(
        [*as_user(place.uid), place.python, "-c", TRIAL, str(place.session_path)],
        cwd=place.work,
        env=place.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    mode, folder, hub = process.stdout.split()
    assert (mode, hub) == ("offline", "False"), process.stderr
    assert not Path(folder).exists()


def test_killed_launcher(place: Place) -> None:
    """The job and its daemon die with the launcher; the sidecar finishes the session and removes the run directory."""
    place.write("job.py", WRITES + STEPS)
    before = place.tree()
    process = place.start(place.python, "job.py", "100000")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    wait_for((place.session_path / "tables").exists, "a segment")
    kill(process.pid)
    process.communicate(timeout=PATIENCE_S)
    wait_for(lambda: not processes_in(place.work), "the trial's processes to end")
    wait_for(lambda: not run_directories(place.uid) or place.uid != UID, "the run directory to go")
    wait_for(lambda: place.session().manifest.state == "finished", "the session")
    assert place.tree() == before


def test_killed_job(place: Place) -> None:
    """A job that is killed is reported as such, and its daemon dies."""
    place.write("job.py", WRITES + "os.kill(os.getpid(), 9)\n")
    before = place.tree()
    code, _, _ = place.run(place.python, "job.py")
    assert code == -signal.SIGKILL
    assert place.session().manifest.exit_code == -signal.SIGKILL
    assert place.tree() == before
    assert not processes_in(place.work)


def test_program_that_does_not_exist(place: Place) -> None:
    """The message is that of a plain run, and neither session nor run directory is left."""
    code, _, err = place.run("/no/such/program")
    assert (code, err) == (
        1,
        "TargetError: cannot start /no/such/program: no such program; expected a file or a name on PATH\n",
    )
    assert list(place.session_path.parent.iterdir()) == []
    assert place.uid != UID or run_directories(UID) == []


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.parametrize("place", ["self" if os.getuid() else "normal user"], indirect=True)
def test_real_training(place: Place) -> None:
    """A Keras program that saves, logs and replaces leaves its files byte-identical, and has steps and findings.

    As a normal user, who has fewer rights; what root's trial leaves is the same for all programs.
    """
    pytest.importorskip("tensorflow")
    (place.work / "runs" / "old").mkdir(parents=True)
    for name in ("notes.txt", "runs/old/events"):
        place.write(name, name)
    for path in (place.work / "runs", place.work / "runs" / "old"):
        os.chown(path, place.uid, place.uid)
    shutil.copyfile(PROGRAMS / "isolated_training.py", place.work / "train.py")
    before = place.tree()
    packages = {} if place.uid == os.getuid() else {"PYTHONPATH": f"{environment()['PYTHONPATH']}:{PACKAGES}"}
    code, out, err = place.run(place.python, "train.py", patience_s=4 * PATIENCE_S, **packages)
    assert code == 0, err
    assert out.endswith("'checkpoints', 'final.keras', 'log.csv', 'old', 'runs', 'steps.py', 'train.py']\n")
    assert place.tree() == before
    report = msgspec.json.decode((place.session_path / "report.json").read_bytes(), type=Report)
    assert report.session.steps >= 500
    assert "tensorflow" in report.session.framework
    assert {row.component for row in report.anatomy} >= {"call", "saving", "callbacks"}
    assert {check.outcome for check in report.checked} >= {"clear"}
    assert not [d for d in report.diagnostics if d.code != "DX107"]
    session = place.session()
    assert set(session.manifest.signals) >= {"host", "memory", "samples", "stacks", "steps", "traces"}
    assert session.op_traces
