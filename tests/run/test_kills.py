"""Whoever dies by SIGKILL at whatever moment: every session opens, and what is lost is stated."""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from stepscope.model.session.session import Session
from stepscope.sessions.bundle import open_session
from stepscope.store.manifests import read_manifest

from .conftest import Project, job_of, kill, sidecar_of, spans, state_of, wait_for

COUNTED = """
import mmap, struct, sys, time, stepscope
with open("count", "w+b") as file:
    file.write(bytes(8)); file.flush()
    count = mmap.mmap(file.fileno(), 8)
with stepscope.span("first"):
    pass
print("ready", flush=True)
for number in range(1, int(sys.argv[1]) + 1):
    with stepscope.span("work"):
        time.sleep(0.0005)
    struct.pack_into("<q", count, 0, number)
print("done", flush=True)
"""
"""Says in a file how many spans it has ended: the truth that a session is held against."""


def start(project: Project, steps: int = 200_000) -> subprocess.Popen[str]:
    """Start the counting job."""
    project.script("counted.py", COUNTED)
    return project.start("run", "--session", "s.stepscope", "counted.py", str(steps))


def counted(project: Project) -> int:
    """How many spans the job says that it has ended."""
    return int.from_bytes((project.root / "count").read_bytes(), "little")


def reopened(project: Project) -> Session:
    """The session, which has no record twice."""
    session = open_session(project.root / "s.stepscope")
    for worker in session.workers:
        assert len(set(worker.records.seq.tolist())) == len(worker.records)
    return session


def new_sidecar(launcher: int, old: int) -> int:
    """Pid of the launcher's sidecar once it is another one."""
    found = sidecar_of(launcher)
    return found if found != old else 0


@pytest.mark.parametrize("delay", [0.0, 0.3, 1.7])
def test_killed_job(project: Project, delay: float) -> None:
    """The session of a killed job is finished and has every record that the job has ended."""
    process = start(project)
    time.sleep(delay)
    kill(job_of(process.pid))
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    session = reopened(project)
    assert (session.manifest.state, session.manifest.exit_code) == ("finished", -9)
    assert spans(session) >= counted(project)
    assert not session.workers[0].info.clean_exit
    assert session.workers[0].info.signal == signal.SIGKILL


def test_killed_sidecar(project: Project) -> None:
    """A killed sidecar is back, twice; the job ends as always, nothing is lost or stored twice, and it is stated."""
    process = start(project, 6000)
    first = wait_for(lambda: sidecar_of(process.pid), "the sidecar")
    wait_for((project.root / "s.stepscope" / "tables").exists, "a segment")
    assert isinstance(first, int)
    kill(first)
    second = wait_for(lambda: new_sidecar(process.pid, first), "the second sidecar")
    assert isinstance(second, int)
    kill(second)
    wait_for(lambda: new_sidecar(process.pid, second), "the third sidecar")
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("done\n", 0)
    session = reopened(project)
    assert (session.manifest.state, session.manifest.sidecar_starts) == ("finished", 3)
    assert spans(session) == 6001
    assert any("(restarts: 2)" in d.text for d in session.manifest.diagnostics)
    assert session.workers[0].info.command[-2:] == ("counted.py", "6000")
    assert session.workers[0].info.clean_exit
    assert session.workers[0].info.signal == 0


def test_killed_launcher(project: Project) -> None:
    """Without its launcher the job goes on, and the sidecar finishes the session."""
    process = start(project, 6000)
    sidecar = wait_for(lambda: sidecar_of(process.pid), "the sidecar")
    assert isinstance(sidecar, int)
    wait_for(lambda: read_manifest(project.root / "s.stepscope").job_pid, "the sidecar at work")
    process.kill()
    wait_for(lambda: state_of(sidecar) in ("", "Z"), "the sidecar's end")
    session = reopened(project)
    assert (session.manifest.state, session.manifest.exit_code) == ("finished", None)
    assert spans(session) == 6001
    assert (project.root / "s.stepscope" / "report.txt").exists()


def threads_of(pid: int) -> int:
    """How many threads a process has; a killed one keeps its locks until the last has gone."""
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return 0


def wait_for_end(pid: int) -> None:
    """Wait until nothing of a killed process runs."""
    wait_for(lambda: state_of(pid) in ("", "Z") and threads_of(pid) < 2, "the end")


def kill_all(project: Project, process: subprocess.Popen[str]) -> Path:
    """Kill launcher, sidecar and job; the run directory that they leave."""
    job = job_of(process.pid)
    sidecar = wait_for(lambda: sidecar_of(process.pid), "the sidecar")
    assert isinstance(sidecar, int)
    process.kill()
    kill(sidecar)
    kill(job)
    for pid in (sidecar, job):
        wait_for_end(pid)
    process.communicate()
    return Path(read_manifest(project.root / "s.stepscope").run_dir)


@pytest.mark.parametrize("delay", [0.0, 1.2])
def test_everybody_killed(project: Project, delay: float) -> None:
    """When all three are killed the session is completed at its opening from what the run directory holds."""
    process = start(project)
    time.sleep(delay)
    run = kill_all(project, process)
    session = reopened(project)
    assert session.manifest.state == "recovered"
    assert spans(session) >= counted(project)
    assert any("completed from the rings" in d.text for d in session.manifest.diagnostics)
    assert not run.exists()
    assert str(project.root / "counted.py") in session.sources
    assert spans(reopened(project)) == spans(session)


def test_everything_gone(project: Project) -> None:
    """Where the run directory is gone too, what was durable opens and the loss is stated."""
    process = start(project)
    tables = project.root / "s.stepscope" / "tables"
    wait_for(lambda: tables.exists() and any(tables.iterdir()), "a durable segment")
    shutil.rmtree(kill_all(project, process))
    session = reopened(project)
    assert session.manifest.state == "recovered"
    assert 0 < spans(session) < counted(project)
    assert any("is lost" in d.text for d in session.manifest.diagnostics)


def test_live_session_is_left_alone(project: Project) -> None:
    """Opening a session whose job still runs reads what is durable and changes nothing."""
    process = start(project, 1500)
    path = project.root / "s.stepscope"
    assert open_session(path).manifest.state == "running"
    out, _ = process.communicate(timeout=60)
    assert out == "done\n"
    assert spans(reopened(project)) == 1501


def test_foreign_run_directory_is_not_touched(project: Project, tmp_path: Path) -> None:
    """A manifest from elsewhere cannot make us read or delete a directory that is not this session's."""
    precious = tmp_path / "precious"
    (precious / "procs").mkdir(parents=True)
    (precious / "file").write_text("mine")
    session = tmp_path / "evil.stepscope"
    session.mkdir()
    (session / "manifest.json").write_text(f'{{"schema_version": 1, "state": "running", "run_dir": "{precious}"}}')
    assert open_session(session).manifest.state == "recovered"
    assert (precious / "file").read_text() == "mine"
